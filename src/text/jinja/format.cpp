// Formatting, after the "Format Specification Mini-Language" and "printf-style String Formatting" of Python's manual.
#include "text/jinja/format.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "text/jinja/operators.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {
namespace {

constexpr std::size_t max_width = 100'000;  // widths are charged too; this keeps them ints
constexpr std::size_t max_precision = 1000;

struct Specification {
  std::string fill = " ";
  char align = 0;
  char sign = '-';
  bool alternate = false;
  char group = 0;
  std::size_t width = 0;
  std::optional<std::size_t> precision;
  char type = 0;
};

std::size_t read_number(Runtime& runtime, std::string_view text, std::size_t& at, std::size_t limit) {
  std::size_t result = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    result = result * 10 + static_cast<std::size_t>(text[at] - '0');
    if (result > limit) runtime.fail("format: expected a width or precision of at most {}, found more", limit);
  }
  return result;
}

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

Specification parse_specification(Runtime& runtime, std::string_view text) {
  Specification spec;
  std::size_t at = 0;
  if (!text.empty()) {
    std::size_t after = 0;
    static_cast<void>(unicode::next(text, after));
    if (after < text.size() && is_align(text[after])) {
      spec.fill = text.substr(0, after);
      spec.align = text[after];
      at = after + 1;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      at = 1;
    }
  }
  const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
  if (peek() == '+' || peek() == '-' || peek() == ' ') spec.sign = text[at++];
  if (peek() == '#') {
    spec.alternate = true;
    ++at;
  }
  if (peek() == '0') {
    if (spec.align == 0) {
      spec.fill = "0";
      spec.align = '=';
    }
    ++at;
  }
  spec.width = read_number(runtime, text, at, max_width);
  if (peek() == ',' || peek() == '_') spec.group = text[at++];
  if (peek() == '.') {
    ++at;
    if (peek() < '0' || peek() > '9') runtime.fail("format: expected a precision after '.', found none");
    spec.precision = read_number(runtime, text, at, max_precision);
  }
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size()) runtime.fail("format: found an invalid format specification '{}'", text);
  return spec;
}

std::string group_digits(const std::string& digits, char separator, std::size_t every) {
  const std::size_t whole = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  std::string result;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % every == 0) result += separator;
    result += digits[i];
  }
  return result + digits.substr(whole);
}

std::string print_double(double value, std::size_t precision, char type, bool alternate) {
  std::string pattern = alternate ? "%#." : "%.";
  pattern += '*';
  pattern += type;
  std::string buffer(400 + precision, '\0');
  const int written = std::snprintf(buffer.data(), buffer.size(), pattern.c_str(), static_cast<int>(precision), value);
  buffer.resize(static_cast<std::size_t>(std::max(written, 0)));
  return buffer;
}

/// The digits of |value| for a float presentation type.
std::string float_digits(double value, const Specification& spec) {
  const double magnitude = std::fabs(value);
  const bool upper = spec.type == 'E' || spec.type == 'F' || spec.type == 'G';
  if (!std::isfinite(magnitude)) {
    std::string text = std::isnan(magnitude) ? "nan" : "inf";
    if (upper) std::transform(text.begin(), text.end(), text.begin(), [](char c) { return static_cast<char>(c - 32); });
    return spec.type == '%' ? text + "%" : text;
  }
  if (spec.type == '%') return print_double(magnitude * 100, spec.precision.value_or(6), 'f', spec.alternate) + "%";
  if (spec.type == 0) {
    if (!spec.precision) return float_repr(magnitude);
    std::string text = print_double(magnitude, std::max<std::size_t>(*spec.precision, 1), 'g', spec.alternate);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
  }
  std::size_t precision = spec.precision.value_or(6);
  const char type = spec.type == 'n' ? 'g' : spec.type;
  if (type == 'g' || type == 'G') precision = std::max<std::size_t>(precision, 1);
  return print_double(magnitude, precision, type, spec.alternate);
}

std::string integer_digits(std::uint64_t magnitude, char type) {
  switch (type) {
    case 'b':
      return fmt::format("{:b}", magnitude);
    case 'o':
      return fmt::format("{:o}", magnitude);
    case 'x':
      return fmt::format("{:x}", magnitude);
    case 'X':
      return fmt::format("{:X}", magnitude);
    default:
      return fmt::format("{}", magnitude);
  }
}

std::string pad(Runtime& runtime, const Specification& spec, const std::string& head, const std::string& body,
                char default_align) {
  const std::size_t size = unicode::length(head) + unicode::length(body);
  if (size >= spec.width) return head + body;
  runtime.charge_bytes(spec.width * spec.fill.size());
  const std::size_t missing = spec.width - size;
  const char align = spec.align == 0 ? default_align : spec.align;
  const std::size_t left = align == '<' ? 0 : (align == '^' ? missing / 2 : missing);
  const auto fill = [&](std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text += spec.fill;
    return text;
  };
  if (align == '=') return head + fill(left) + body;
  return fill(left) + head + body + fill(missing - left);
}

std::string format_number(Runtime& runtime, const Value& value, const Specification& spec) {
  const bool as_float = value.is_float() || std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  std::string digits;
  std::string head;
  bool negative = false;
  if (as_float && spec.type != 0) {
    if (std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos) {
      runtime.fail("format: expected a type for a float, found '{}'", spec.type);
    }
  }
  if (as_float) {
    const double number = *value.number();
    negative = std::signbit(number) && !std::isnan(number);
    digits = float_digits(number, spec);
    if (spec.group != 0) digits = group_digits(digits, spec.group, 3);
  } else {
    const std::int64_t number = *value.integer();
    if (spec.type != 0 && std::string_view("bcdoxXn").find(spec.type) == std::string_view::npos) {
      runtime.fail("format: expected a type for an int, found '{}'", spec.type);
    }
    if (spec.precision) runtime.fail("format: expected no precision for an int, found one");
    if (spec.type == 'c') {
      if (number < 0 || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000)) {
        runtime.fail("format: expected a character code, found {}", number);
      }
      std::string text;
      unicode::append(text, static_cast<char32_t>(number));
      return pad(runtime, spec, "", text, '<');
    }
    negative = number < 0;
    digits = integer_digits(negative ? ~static_cast<std::uint64_t>(number) + 1 : static_cast<std::uint64_t>(number),
                            spec.type);
    const bool decimal = spec.type == 0 || spec.type == 'd' || spec.type == 'n';
    if (spec.group != 0) digits = group_digits(digits, spec.group, decimal ? 3 : 4);
    if (spec.alternate && !decimal) head = std::string("0") + spec.type;
  }
  if (negative) {
    head.insert(0, "-");
  } else if (spec.sign != '-') {
    head.insert(0, std::string(1, spec.sign));
  }
  return pad(runtime, spec, head, digits, '>');
}

std::string format_text(Runtime& runtime, const std::string& text, const Specification& spec) {
  if (spec.type != 0 && spec.type != 's') runtime.fail("format: expected type 's' for a str, found '{}'", spec.type);
  if (spec.align == '=' && spec.fill != "0") runtime.fail("format: expected no '=' alignment for a str, found one");
  Specification plain = spec;
  if (plain.align == '=') plain.align = '<';
  std::string cut = text;
  if (spec.precision) cut.resize(unicode::byte_offset(cut, *spec.precision));
  return pad(runtime, plain, "", cut, '<');
}

}  // namespace

std::string format_value(Runtime& runtime, const Value& value, std::string_view specification) {
  if (specification.empty()) return text_of(runtime, value);
  const auto spec = parse_specification(runtime, specification);
  if (value.is_bool() && spec.type == 0) return format_number(runtime, *value.integer(), spec);
  if (value.number()) return format_number(runtime, value, spec);
  if (value.is_string()) return format_text(runtime, value.string()->bytes, spec);
  runtime.fail("format: expected no format specification for {}, found '{}'", type_name(value), specification);
}

namespace {

/// Takes the arguments of a % in order, or by name.
class PercentArguments {
 public:
  PercentArguments(Runtime& runtime, const Value& value) : runtime_(runtime), value_(value) {
    const auto* sequence = value.sequence();
    if (sequence != nullptr && sequence->kind == Sequence::Kind::tuple) tuple_ = sequence;
  }
  const Value& next() {
    if (tuple_ == nullptr) {
      if (used_++ > 0) runtime_.fail("'%': expected more arguments for the format, found 1");
      return value_;
    }
    if (used_ >= tuple_->items.size()) {
      runtime_.fail("'%': expected more arguments for the format, found {}", tuple_->items.size());
    }
    return tuple_->items[used_++];
  }
  const Value& named(std::string_view name) {
    const auto* dict = value_.dict();
    if (dict == nullptr) runtime_.fail("'%': expected a dict for %({}), found {}", name, type_name(value_));
    const auto* found = dict->find(name);
    if (found == nullptr) runtime_.fail("'%': expected a value for %({}), found none", name);
    used_ = 1;
    return *found;
  }
  void finish() const {
    const bool all = tuple_ != nullptr ? used_ == tuple_->items.size() : used_ > 0;
    // A dict or list that is not used is no error in Python, as it could be a mapping.
    if (!all && value_.dict() == nullptr && (tuple_ != nullptr || value_.sequence() == nullptr)) {
      runtime_.fail("'%': expected all arguments to be used by the format, found more");
    }
  }

 private:
  Runtime& runtime_;
  const Value& value_;
  const Sequence* tuple_ = nullptr;
  std::size_t used_ = 0;
};

std::string percent_piece(Runtime& runtime, char type, Specification spec, const Value& value) {
  if (type == 's' || type == 'r' || type == 'a') {
    spec.type = 's';
    if (spec.align == '=') {
      spec.align = '>';
      spec.fill = " ";
    }
    if (spec.align == 0) spec.align = '>';
    return format_text(runtime, type == 's' ? text_of(runtime, value) : repr(runtime, value), spec);
  }
  if (type == 'c') {
    if (value.is_string() && value.string()->length == 1) return value.string()->bytes;
    spec.type = 'c';
    if (!value.integer()) runtime.fail("'%': expected an int or a character for %c, found {}", type_name(value));
    return format_number(runtime, *value.integer(), spec);
  }
  if (!value.number()) runtime.fail("'%': expected a number for %{}, found {}", type, type_name(value));
  spec.type = type == 'i' || type == 'u' ? 'd' : type;
  if (std::string_view("doxX").find(spec.type) == std::string_view::npos) {
    return format_number(runtime, *value.number(), spec);
  }
  if (value.is_float()) {
    const double number = *value.number();
    if (spec.type != 'd') runtime.fail("'%': expected an int for %{}, found float", type);
    if (!(std::fabs(number) < 9.2e18)) runtime.fail("'%': expected a float within 64 bits for %d, found a larger one");
    spec.precision.reset();
    return format_number(runtime, static_cast<std::int64_t>(number), spec);
  }
  const auto precision = spec.precision;
  spec.precision.reset();
  const std::int64_t number = *value.integer();
  if (!precision) return format_number(runtime, number, spec);
  Specification digits;
  digits.type = spec.type;
  digits.fill = "0";
  digits.align = '=';
  digits.sign = spec.sign;
  digits.width = *precision + static_cast<std::size_t>(number < 0 || spec.sign != '-');
  const std::string body = format_number(runtime, number, digits);
  if (spec.align == '=') spec.fill = spec.fill == "0" ? " " : spec.fill;
  return pad(runtime, spec, "", body, '>');
}

}  // namespace

Value format_percent(Runtime& runtime, const String& format, const Value& arguments) {
  const std::string_view text = format.bytes;
  runtime.charge_bytes(text.size());
  PercentArguments taken(runtime, arguments);
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '%') {
      out += text[at++];
      continue;
    }
    ++at;
    const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
    const Value* named = nullptr;
    if (peek() == '(') {
      const std::size_t end = text.find(')', at);
      if (end == std::string_view::npos) runtime.fail("'%': expected ')' after the key, found the end");
      named = &taken.named(text.substr(at + 1, end - at - 1));
      at = end + 1;
    }
    Specification spec;
    for (; at < text.size() && std::string_view("-+ #0").find(text[at]) != std::string_view::npos; ++at) {
      if (text[at] == '-') spec.align = '<';
      if (text[at] == '+' || (text[at] == ' ' && spec.sign == '-')) spec.sign = text[at];
      if (text[at] == '#') spec.alternate = true;
      if (text[at] == '0' && spec.align == 0) {
        spec.fill = "0";
        spec.align = '=';
      }
    }
    if (spec.align == '<') spec.fill = " ";
    spec.width = read_number(runtime, text, at, max_width);
    if (peek() == '.') {
      ++at;
      spec.precision = read_number(runtime, text, at, max_precision);
    }
    const char type = peek();
    if (type == '\0') runtime.fail("'%': expected a conversion after '%', found the end");
    ++at;
    if (type == '%') {
      out += '%';
      continue;
    }
    if (std::string_view("sradiuoxXeEfFgGc").find(type) == std::string_view::npos) {
      runtime.fail("'%': expected a known conversion, found '%{}'", type);
    }
    out += percent_piece(runtime, type, spec, named != nullptr ? *named : taken.next());
    runtime.charge(1);
  }
  taken.finish();
  return runtime.string(std::move(out), format.safe);
}

namespace {

/// Resolves a replacement field's name: `0`, `name`, `0.attribute`, `name[key]`.
Value resolve_field(Runtime& runtime, std::string_view field, const Arguments& arguments, std::size_t& automatic) {
  const std::size_t end = std::min(field.find_first_of(".["), field.size());
  const std::string_view head = field.substr(0, end);
  Value value;
  const bool numeric = std::all_of(head.begin(), head.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (numeric) {
    std::size_t at = 0;
    const std::size_t index = head.empty() ? automatic++ : read_number(runtime, head, at, max_width);
    if (index >= arguments.positional.size()) runtime.fail("format: expected an argument {}, found none", index);
    value = arguments.positional[index];
  } else {
    const auto& named = arguments.keyword;
    const auto found = std::find_if(named.begin(), named.end(), [&](const auto& each) { return each.first == head; });
    if (found == named.end()) runtime.fail("format: expected an argument '{}', found none", head);
    value = found->second;
  }
  for (std::size_t at = end; at < field.size();) {
    const bool dotted = field[at] == '.';
    const std::size_t start = at + 1;
    at = dotted ? std::min(field.find_first_of(".[", start), field.size()) : field.find(']', start);
    if (at == std::string_view::npos) runtime.fail("format: expected ']' in a field name, found none");
    const std::string_view key = field.substr(start, at - start);
    if (key.empty()) runtime.fail("format: expected a name in a field, found none");
    const bool index = std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (dotted) {
      value = get_attribute(runtime, value, Value::constant(std::string(key)));
    } else if (index) {
      std::size_t digits = 0;
      value = get_item(runtime, value, static_cast<std::int64_t>(read_number(runtime, key, digits, max_width)));
      ++at;
    } else {
      value = get_item(runtime, value, Value::constant(std::string(key)));
      ++at;
    }
  }
  return value;
}

std::string expand(Runtime& runtime, std::string_view text, const Arguments& arguments, std::size_t& automatic,
                   int levels) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c != '{' && c != '}') {
      out += c;
      ++at;
      continue;
    }
    if (levels == 2 && at + 1 < text.size() && text[at + 1] == c) {
      out += c;
      at += 2;
      continue;
    }
    if (c == '}' || levels == 0) runtime.fail("format: found a single '{}' or fields nested too deep", c);
    std::size_t end = at + 1;
    for (int open = 1; end < text.size(); ++end) {
      open += text[end] == '{' ? 1 : (text[end] == '}' ? -1 : 0);
      if (open == 0) break;
    }
    if (end >= text.size()) runtime.fail("format: expected '}}' after a field, found the end");
    const std::string_view field = text.substr(at + 1, end - at - 1);
    at = end + 1;
    const std::size_t name_end = std::min(field.find_first_of("!:"), field.size());
    Value value = resolve_field(runtime, field.substr(0, name_end), arguments, automatic);
    std::size_t rest = name_end;
    if (rest < field.size() && field[rest] == '!') {
      const char conversion = rest + 1 < field.size() ? field[rest + 1] : '\0';
      if (conversion != 's' && conversion != 'r') {
        runtime.fail("format: expected the conversion !s or !r, found '{}'", field);
      }
      value = runtime.string(conversion == 's' ? text_of(runtime, value) : repr(runtime, value));
      rest += 2;
    }
    if (rest < field.size() && field[rest] != ':') runtime.fail("format: expected ':' in a field, found '{}'", field);
    const auto specification =
        rest < field.size() ? expand(runtime, field.substr(rest + 1), arguments, automatic, levels - 1) : std::string();
    out += format_value(runtime, value, specification);
    runtime.charge_bytes(out.size() / 8);
  }
  return out;
}

}  // namespace

Value format_braces(Runtime& runtime, const String& format, const Arguments& arguments) {
  runtime.charge_bytes(format.bytes.size());
  std::size_t automatic = 0;
  return runtime.string(expand(runtime, format.bytes, arguments, automatic, 2), format.safe);
}

}  // namespace headrace::text::jinja
