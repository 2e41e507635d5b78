// The tests: what may follow `is`.
#include <array>

#include "text/jinja/operators.hpp"
#include "text/jinja/registry.hpp"

namespace headrace::text::jinja {
namespace {

using Kind = Sequence::Kind;

template <bool (*predicate)(const Value&)>
bool simple(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "test", arguments, {});
  return predicate(input);
}

bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_undefined(const Value& value) { return value.is_undefined(); }
bool is_none(const Value& value) { return value.is_none(); }
bool is_boolean(const Value& value) { return value.is_bool(); }
bool is_false(const Value& value) { return value.is_bool() && !is_true(value); }
bool is_truth(const Value& value) { return value.is_bool() && is_true(value); }
bool is_integer(const Value& value) { return value.integer().has_value() && !value.is_bool(); }
bool is_float(const Value& value) { return value.is_float(); }
bool is_number(const Value& value) { return value.number().has_value(); }
bool is_string(const Value& value) { return value.is_string(); }
bool is_mapping(const Value& value) { return value.dict() != nullptr; }
bool is_sequence(const Value& value) {
  if (const auto* sequence = value.sequence()) {
    return sequence->kind == Kind::list || sequence->kind == Kind::tuple || sequence->kind == Kind::range;
  }
  return value.is_string() || value.dict() != nullptr || value.is_undefined();
}
bool is_iterable_value(const Value& value) { return is_iterable(value); }
bool is_callable(const Value& value) {
  // Python's Undefined has a __call__, which raises.
  return value.is_undefined() || (value.object() != nullptr && value.object()->is_callable());
}
bool is_escaped(const Value& value) { return value.is_string() && value.string()->safe; }

template <bool wants_odd>
bool parity(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "test", arguments, {});
  const Value rest = arithmetic(runtime, Arithmetic::modulo, input, std::int64_t{2});
  return equal(runtime, rest, std::int64_t{wants_odd ? 1 : 0});
}

bool divisible_by(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "divisibleby", arguments, {"num"}, 1);
  return equal(runtime, arithmetic(runtime, Arithmetic::modulo, input, parameters[0]), std::int64_t{0});
}

template <bool upper>
bool has_case(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Value text = runtime.string(text_of(runtime, input));
  return is_true(bind_method(runtime, text, upper ? "isupper" : "islower")->object()->call(runtime, arguments));
}

template <Comparison op>
bool compares(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "test", arguments, {"other"}, 1);
  return compare(runtime, op, input, parameters[0]);
}

bool same_as(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "sameas", arguments, {"other"}, 1);
  const Value& other = parameters[0];
  if (input.data().index() != other.data().index()) return false;
  if (input.sequence() != nullptr) return input.sequence() == other.sequence();
  if (input.dict() != nullptr) return input.dict() == other.dict();
  // Identity of numbers and strings is an accident of Python's caches: equal ones of one type count as the same.
  return equal(runtime, input, other);
}

bool known_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "filter", arguments, {});
  return input.is_string() && find_filter(input.string()->bytes) != nullptr;
}

bool known_test(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "test", arguments, {});
  return input.is_string() && find_test(input.string()->bytes) != nullptr;
}

constexpr std::array<TestEntry, 39> table{{{"boolean", simple<is_boolean>},
                                           {"callable", simple<is_callable>},
                                           {"defined", simple<is_defined>},
                                           {"divisibleby", divisible_by},
                                           {"escaped", simple<is_escaped>},
                                           {"even", parity<false>},
                                           {"false", simple<is_false>},
                                           {"filter", known_filter},
                                           {"float", simple<is_float>},
                                           {"in", compares<Comparison::in>},
                                           {"integer", simple<is_integer>},
                                           {"iterable", simple<is_iterable_value>},
                                           {"lower", has_case<false>},
                                           {"mapping", simple<is_mapping>},
                                           {"none", simple<is_none>},
                                           {"number", simple<is_number>},
                                           {"odd", parity<true>},
                                           {"sameas", same_as},
                                           {"sequence", simple<is_sequence>},
                                           {"string", simple<is_string>},
                                           {"test", known_test},
                                           {"true", simple<is_truth>},
                                           {"undefined", simple<is_undefined>},
                                           {"upper", has_case<true>},
                                           {"==", compares<Comparison::equal>},
                                           {"eq", compares<Comparison::equal>},
                                           {"equalto", compares<Comparison::equal>},
                                           {"!=", compares<Comparison::not_equal>},
                                           {"ne", compares<Comparison::not_equal>},
                                           {">", compares<Comparison::greater>},
                                           {"gt", compares<Comparison::greater>},
                                           {"greaterthan", compares<Comparison::greater>},
                                           {">=", compares<Comparison::greater_equal>},
                                           {"ge", compares<Comparison::greater_equal>},
                                           {"<", compares<Comparison::less>},
                                           {"lt", compares<Comparison::less>},
                                           {"lessthan", compares<Comparison::less>},
                                           {"<=", compares<Comparison::less_equal>},
                                           {"le", compares<Comparison::less_equal>}}};

}  // namespace

std::span<const TestEntry> all_tests() { return table; }

}  // namespace headrace::text::jinja
