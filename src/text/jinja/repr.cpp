// str() and repr() of values, as Python prints them.
#include <array>
#include <charconv>
#include <cmath>

#include "text/jinja/operators.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {
namespace {

void append_string_repr(Runtime& runtime, std::string& out, const String& string) {
  runtime.charge_bytes(string.bytes.size());
  const bool has_single = string.bytes.find('\'') != std::string::npos;
  const bool has_double = string.bytes.find('"') != std::string::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out += quote;
  for (std::size_t offset = 0; offset < string.bytes.size();) {
    const char32_t c = unicode::next(string.bytes, offset);
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (unicode::is_printable(c)) {
      unicode::append(out, c);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<unsigned>(c));
    }
  }
  out += quote;
}

void append_items(Runtime& runtime, std::string& out, const Sequence& sequence) {
  bool first = true;
  for (const auto& item : sequence.items) {
    if (!first) out += ", ";
    first = false;
    append_repr(runtime, out, item);
  }
}

void append_sequence(Runtime& runtime, std::string& out, const Sequence& sequence) {
  using Kind = Sequence::Kind;
  switch (sequence.kind) {
    case Kind::list:
      out += '[';
      append_items(runtime, out, sequence);
      out += ']';
      return;
    case Kind::tuple:
      out += '(';
      append_items(runtime, out, sequence);
      out += sequence.items.size() == 1 ? ",)" : ")";
      return;
    case Kind::range:
      out += sequence.range_text;
      return;
    case Kind::generator:
      out += "<generator object>";
      return;
    case Kind::keys:
    case Kind::values:
    case Kind::items:
      out += sequence.kind == Kind::keys     ? "dict_keys(["
             : sequence.kind == Kind::values ? "dict_values(["
                                             : "dict_items([";
      append_items(runtime, out, sequence);
      out += "])";
      return;
  }
}

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t e = text.find('e');
  const bool negative = text.front() == '-';
  std::string digits;
  for (const char c : text.substr(negative ? 1 : 0, e - (negative ? 1 : 0))) {
    if (c != '.') digits += c;
  }
  int exponent = 0;
  const std::size_t exponent_start = text[e + 1] == '+' ? e + 2 : e + 1;
  std::from_chars(text.data() + exponent_start, text.data() + text.size(), exponent);
  std::string result = negative ? "-" : "";
  // Python's float_repr_style "short": plain digits for exponents from -4 to 15.
  if (exponent < -4 || exponent >= 16) {
    result += digits.front();
    if (digits.size() > 1) result += "." + digits.substr(1);
    return result + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return result + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return result + digits + std::string(whole - digits.size(), '0') + ".0";
  return result + digits.substr(0, whole) + "." + digits.substr(whole);
}

void append_repr(Runtime& runtime, std::string& out, const Value& value) {
  runtime.charge(1);
  if (const auto* string = value.string()) {
    if (string->safe) out += "Markup(";
    append_string_repr(runtime, out, *string);
    if (string->safe) out += ")";
  } else if (const auto* sequence = value.sequence()) {
    append_sequence(runtime, out, *sequence);
  } else if (const auto* dict = value.dict()) {
    out += '{';
    bool first = true;
    for (const auto& [key, item] : dict->entries) {
      if (!first) out += ", ";
      first = false;
      append_repr(runtime, out, key);
      out += ": ";
      append_repr(runtime, out, item);
    }
    out += '}';
  } else if (auto* object = value.object()) {
    const Runtime::Level level(runtime);
    out += object->describe(runtime);
  } else if (value.is_undefined()) {
    out += "Undefined";
  } else {
    append_text(runtime, out, value);
  }
}

void append_text(Runtime& runtime, std::string& out, const Value& value) {
  if (const auto* string = value.string()) {
    runtime.charge_bytes(string->bytes.size());
    out += string->bytes;
  } else if (value.is_undefined()) {
    return;
  } else if (value.is_none()) {
    out += "None";
  } else if (value.is_bool()) {
    out += is_true(value) ? "True" : "False";
  } else if (const auto integer = value.integer()) {
    out += fmt::format("{}", *integer);
  } else if (value.is_float()) {
    out += float_repr(*value.number());
  } else {
    append_repr(runtime, out, value);
  }
}

std::string text_of(Runtime& runtime, const Value& value) {
  std::string result;
  append_text(runtime, result, value);
  return result;
}

std::string repr(Runtime& runtime, const Value& value) {
  std::string result;
  append_repr(runtime, result, value);
  return result;
}

}  // namespace headrace::text::jinja
