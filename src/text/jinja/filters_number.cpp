// Filters that make numbers: int, float, abs, round, and default for what is missing.
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "text/jinja/operators.hpp"
#include "text/jinja/registry.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {
namespace {

std::string lowered(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return result;
}

/// Drops underscores that stand between digits; nothing if one stands elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      result += text[i];
    } else if (i == 0 || i + 1 == text.size() || std::isxdigit(static_cast<unsigned char>(text[i - 1])) == 0 ||
               std::isxdigit(static_cast<unsigned char>(text[i + 1])) == 0) {
      return std::nullopt;
    }
  }
  return result;
}

enum class Parse { valid, invalid, too_large };

/// int(text, base).
Parse parse_integer(std::string_view text, int base, std::int64_t& result) {
  const auto plain = without_underscores(unicode::strip(text));
  if (!plain || plain->empty()) return Parse::invalid;
  const std::string text_lower = lowered(*plain);
  std::string_view digits = text_lower;
  const bool negative = digits.front() == '-';
  if (negative || digits.front() == '+') digits.remove_prefix(1);
  const auto prefixed = [&](std::string_view prefix, int of) {
    if (!digits.starts_with(prefix) || (base != of && base != 0)) return;
    base = of;
    digits.remove_prefix(2);
  };
  prefixed("0x", 16);
  prefixed("0o", 8);
  prefixed("0b", 2);
  if (base == 0) base = 10;
  std::uint64_t magnitude = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (digits.empty() || end.ptr != digits.data() + digits.size()) return Parse::invalid;
  const std::uint64_t limit = std::uint64_t{1} << 63U;
  if (end.ec == std::errc::result_out_of_range || magnitude > limit || (magnitude == limit && !negative)) {
    return Parse::too_large;
  }
  if (end.ec != std::errc()) return Parse::invalid;
  result = static_cast<std::int64_t>(negative ? ~magnitude + 1 : magnitude);
  return Parse::valid;
}

/// float(text).
std::optional<double> parse_float(std::string_view text) {
  const auto plain = without_underscores(unicode::strip(text));
  if (!plain || plain->empty()) return std::nullopt;
  const std::string digits = lowered(*plain);
  std::string_view bare = digits;
  if (bare.front() == '-' || bare.front() == '+') bare.remove_prefix(1);
  const bool word = bare == "inf" || bare == "infinity" || bare == "nan";
  if (!word && (bare.empty() || bare.find_first_not_of("0123456789.e+-") != std::string_view::npos)) {
    return std::nullopt;
  }
  char* end = nullptr;
  const double result = std::strtod(digits.c_str(), &end);
  return end == digits.c_str() + digits.size() ? std::optional(result) : std::nullopt;
}

/// int(value) of a float; nothing for NaN. Raises for infinity and beyond 64 bits.
std::optional<std::int64_t> truncated(Runtime& runtime, double value) {
  if (std::isnan(value)) return std::nullopt;
  if (!(std::fabs(value) < 9223372036854775808.0)) {
    runtime.fail("int: expected a number within 64 bits, found {}", float_repr(value));
  }
  return static_cast<std::int64_t>(value);
}

[[noreturn]] void fail_undefined(Runtime& runtime, std::string_view filter, const Value& input) {
  const auto& message = std::get<Undefined>(input.data()).message;
  runtime.fail("{}: {}", filter, message ? *message : "found an undefined value");
}

Value to_integer(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "int", arguments, {"default", "base"});
  const Value fallback = parameters.has(0) ? parameters[0] : Value(std::int64_t{0});
  const std::int64_t base = parameters.integer(1, 10);
  if (input.is_undefined()) fail_undefined(runtime, "int", input);
  if (const auto* string = input.string()) {
    runtime.charge_bytes(string->bytes.size());
    if (base != 0 && (base < 2 || base > 36)) runtime.fail("int: expected a base from 2 to 36, found {}", base);
    std::int64_t result = 0;
    const Parse parsed = parse_integer(string->bytes, static_cast<int>(base), result);
    if (parsed == Parse::valid) return result;
    if (parsed == Parse::too_large) runtime.fail("int: expected a number within 64 bits, found a larger one");
    const auto number = parse_float(string->bytes);
    if (!number || std::isinf(*number)) return fallback;
    const auto whole = truncated(runtime, *number);
    return whole ? Value(*whole) : fallback;
  }
  if (const auto integer = input.integer()) return *integer;
  if (const auto number = input.number()) {
    const auto whole = truncated(runtime, *number);
    return whole ? Value(*whole) : fallback;
  }
  return fallback;
}

Value to_float(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "float", arguments, {"default"});
  const Value fallback = parameters.has(0) ? parameters[0] : Value(0.0);
  if (input.is_undefined()) fail_undefined(runtime, "float", input);
  if (const auto* string = input.string()) {
    runtime.charge_bytes(string->bytes.size());
    const auto number = parse_float(string->bytes);
    return number ? Value(*number) : fallback;
  }
  const auto number = input.number();
  return number ? Value(*number) : fallback;
}

Value absolute(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "abs", arguments, {});
  if (const auto integer = input.integer()) return *integer < 0 ? negate(runtime, *integer) : Value(*integer);
  if (const auto number = input.number()) return std::fabs(*number);
  runtime.fail("abs: expected a number, found {}", type_name(input));
}

/// round(value, digits) of Python: exact decimal rounding, half to even.
double round_decimal(double value, std::int64_t digits) {
  if (!std::isfinite(value) || digits > 323) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits >= 0) {
    const std::string text = fmt::format("{:.{}f}", value, digits);
    return std::strtod(text.c_str(), nullptr);
  }
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / scale) * scale;
}

Value round(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "round", arguments, {"precision", "method"});
  const std::int64_t digits = parameters.integer(0, 0);
  const std::string method = parameters.has(1) ? parameters.text(1) : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    runtime.fail("round: expected the method common, ceil or floor, found '{}'", method);
  }
  if (!input.number()) runtime.fail("round: expected a number, found {}", type_name(input));
  if (method == "common") {
    if (!input.integer()) return round_decimal(*input.number(), digits);
    if (digits >= 0) return *input.integer();
    if (digits < -18) return std::int64_t{0};
    std::int64_t scale = 1;
    for (std::int64_t i = 0; i > digits; --i) scale *= 10;
    const Value remainder = arithmetic(runtime, Arithmetic::modulo, *input.integer(), scale);
    const std::int64_t low = *input.integer() - *remainder.integer();
    const bool odd = (low / scale) % 2 != 0;
    const std::int64_t twice = *remainder.integer() - (scale - *remainder.integer());
    return twice > 0 || (twice == 0 && odd) ? arithmetic(runtime, Arithmetic::add, low, scale) : Value(low);
  }
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = *input.number() * scale;
  const auto whole = truncated(runtime, method == "ceil" ? std::ceil(scaled) : std::floor(scaled));
  if (!whole) runtime.fail("round: expected a number, found nan");
  return static_cast<double>(*whole) / scale;
}

Value default_value(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "default", arguments, {"default_value", "boolean"});
  const bool lacks = input.is_undefined() || (parameters.truth(1, false) && !is_true(input));
  if (!lacks) return input;
  return parameters.has(0) ? parameters[0] : runtime.string("");
}

constexpr std::array<FilterEntry, 6> table{{{"abs", absolute},
                                            {"d", default_value},
                                            {"default", default_value},
                                            {"float", to_float},
                                            {"int", to_integer},
                                            {"round", round}}};

}  // namespace

std::span<const FilterEntry> number_filters() { return table; }

}  // namespace headrace::text::jinja
