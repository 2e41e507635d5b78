// + - * / // % ** and unary minus, with Python's rules for signs and types. Integers beyond 64 bits are refused.
#include <cmath>
#include <cstring>

#include "base/checked.hpp"
#include "text/jinja/format.hpp"
#include "text/jinja/operators.hpp"

namespace headrace::text::jinja {
namespace {

std::string_view symbol(Arithmetic op) {
  switch (op) {
    case Arithmetic::add:
      return "+";
    case Arithmetic::subtract:
      return "-";
    case Arithmetic::multiply:
      return "*";
    case Arithmetic::divide:
      return "/";
    case Arithmetic::floor_divide:
      return "//";
    case Arithmetic::modulo:
      return "%";
    case Arithmetic::power:
      return "**";
  }
  return "?";
}

std::int64_t fitted(Runtime& runtime, std::optional<std::int64_t> result, Arithmetic op) {
  if (!result) runtime.fail("'{}': expected an integer result of at most 64 bits, found a larger one", symbol(op));
  return *result;
}

double float_modulo(double a, double b) {
  double result = std::fmod(a, b);
  if (result != 0) {
    if ((b < 0) != (result < 0)) result += b;
    return result;
  }
  return std::copysign(0.0, b);
}

double float_floor_divide(double a, double b) {
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1.0;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1.0 : floored;
}

std::optional<std::int64_t> checked_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  for (; exponent > 0; --exponent) {  // at most 63 rounds for |base| >= 2
    const auto next = checked_mul(result, base);
    if (!next) return std::nullopt;
    result = *next;
  }
  return result;
}

Value float_power(Runtime& runtime, double a, double b) {
  if (a == 0 && b < 0) runtime.fail("'**': expected a base that is not zero for a negative power, found 0.0");
  if (a < 0 && std::isfinite(b) && b != std::floor(b)) {
    runtime.fail("'**': expected a real result, found a complex one");
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) runtime.fail("'**': found a result out of range");
  return result;
}

Value integer_arithmetic(Runtime& runtime, Arithmetic op, std::int64_t a, std::int64_t b) {
  const bool divides = op == Arithmetic::divide || op == Arithmetic::floor_divide || op == Arithmetic::modulo;
  if (divides && b == 0) runtime.fail("'{}': expected a divisor that is not zero, found 0", symbol(op));
  switch (op) {
    case Arithmetic::add:
      return fitted(runtime, checked_add(a, b), op);
    case Arithmetic::subtract: {
      std::int64_t result = 0;
      const bool overflow = __builtin_sub_overflow(a, b, &result);
      return fitted(runtime, overflow ? std::nullopt : std::optional(result), op);
    }
    case Arithmetic::multiply:
      return fitted(runtime, checked_mul(a, b), op);
    case Arithmetic::divide:
      return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
    case Arithmetic::floor_divide: {
      if (b == -1) return fitted(runtime, checked_mul(a, b), op);
      return a / b - static_cast<std::int64_t>(a % b != 0 && (a < 0) != (b < 0));
    }
    case Arithmetic::modulo: {
      if (b == -1) return std::int64_t{0};
      const std::int64_t remainder = a % b;
      return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
    }
    case Arithmetic::power:
      if (b < 0) return float_power(runtime, static_cast<double>(a), static_cast<double>(b));
      return fitted(runtime, checked_power(a, b), op);
  }
  return None{};
}

Value float_arithmetic(Runtime& runtime, Arithmetic op, double a, double b) {
  const bool divides = op == Arithmetic::divide || op == Arithmetic::floor_divide || op == Arithmetic::modulo;
  if (divides && b == 0) runtime.fail("'{}': expected a divisor that is not zero, found 0.0", symbol(op));
  switch (op) {
    case Arithmetic::add:
      return a + b;
    case Arithmetic::subtract:
      return a - b;
    case Arithmetic::multiply:
      return a * b;
    case Arithmetic::divide:
      return a / b;
    case Arithmetic::floor_divide:
      return float_floor_divide(a, b);
    case Arithmetic::modulo:
      return float_modulo(a, b);
    case Arithmetic::power:
      return float_power(runtime, a, b);
  }
  return None{};
}

Value repeat(Runtime& runtime, const Value& value, std::int64_t count) {
  const std::size_t times = count < 0 ? 0 : static_cast<std::size_t>(count);
  if (const auto* string = value.string()) {
    const auto bytes = checked_mul(string->bytes.size(), times);
    runtime.charge_bytes(bytes.value_or(SIZE_MAX));  // before anything of that size is made
    std::string result;
    result.reserve(*bytes);
    for (std::size_t i = 0; i < times && !string->bytes.empty(); ++i) result += string->bytes;
    return Value::constant(std::move(result), string->safe);
  }
  const auto& items = value.sequence()->items;
  runtime.charge(checked_mul(items.size(), times).value_or(SIZE_MAX));
  std::vector<Value> result;
  for (std::size_t i = 0; i < times && !items.empty(); ++i) result.insert(result.end(), items.begin(), items.end());
  return runtime.sequence(std::move(result), value.sequence()->kind);
}

bool is_repeatable(const Value& value) {
  if (value.is_string()) return true;
  const auto* sequence = value.sequence();
  return sequence != nullptr && (sequence->kind == Sequence::Kind::list || sequence->kind == Sequence::Kind::tuple);
}

Value concatenate(Runtime& runtime, const String& a, const String& b) {
  runtime.charge_bytes(a.bytes.size() + b.bytes.size());
  if (a.safe == b.safe) return Value::constant(a.bytes + b.bytes, a.safe);
  // Markup escapes the plain text that it is added to.
  return runtime.string(a.safe ? a.bytes + escape_html(b.bytes) : escape_html(a.bytes) + b.bytes, true);
}

}  // namespace

Value arithmetic(Runtime& runtime, Arithmetic op, const Value& a, const Value& b) {
  if (a.number() && b.number()) {
    if (a.integer() && b.integer()) return integer_arithmetic(runtime, op, *a.integer(), *b.integer());
    return float_arithmetic(runtime, op, *a.number(), *b.number());
  }
  for (const auto* side : {&a, &b}) {
    const auto* undefined = std::get_if<Undefined>(&side->data());
    const bool formats = op == Arithmetic::modulo && a.is_string();
    if (undefined != nullptr && !formats) {
      runtime.fail("'{}': {}", symbol(op), undefined->message ? *undefined->message : "found an undefined value");
    }
  }
  if (op == Arithmetic::add) {
    if (a.is_string() && b.is_string()) return concatenate(runtime, *a.string(), *b.string());
    const auto *s = a.sequence(), *t = b.sequence();
    if (s != nullptr && t != nullptr && s->kind == t->kind && is_repeatable(a)) {
      runtime.charge(s->items.size() + t->items.size());
      std::vector<Value> items;
      items.reserve(s->items.size() + t->items.size());
      items.insert(items.end(), s->items.begin(), s->items.end());
      items.insert(items.end(), t->items.begin(), t->items.end());
      return runtime.sequence(std::move(items), s->kind);
    }
  }
  if (op == Arithmetic::multiply) {
    if (is_repeatable(a) && b.integer()) return repeat(runtime, a, *b.integer());
    if (is_repeatable(b) && a.integer()) return repeat(runtime, b, *a.integer());
  }
  if (op == Arithmetic::modulo && a.is_string()) return format_percent(runtime, *a.string(), b);
  runtime.fail("'{}': expected operands that fit together, found {} and {}", symbol(op), type_name(a), type_name(b));
}

Value negate(Runtime& runtime, const Value& value) {
  if (const auto integer = value.integer()) return integer_arithmetic(runtime, Arithmetic::subtract, 0, *integer);
  if (const auto number = value.number()) return -*number;
  runtime.fail("'-': expected a number, found {}", type_name(value));
}

Value plus(Runtime& runtime, const Value& value) {
  if (const auto integer = value.integer()) return *integer;
  if (const auto number = value.number()) return *number;
  runtime.fail("'+': expected a number, found {}", type_name(value));
}

}  // namespace headrace::text::jinja
