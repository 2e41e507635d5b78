// Work accounting, errors with places, argument binding.
#include "text/jinja/runtime.hpp"

#include <algorithm>

#include "text/jinja/operators.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {

void raise_at(std::string_view name, std::size_t line, const std::string& message) {
  std::string plain = fmt::format("{}:{}: {}", name, line, message);
  std::replace_if(plain.begin(), plain.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  // A message may quote a part of a character; it stays printable.
  if (!unicode::is_valid(plain)) {
    std::replace_if(plain.begin(), plain.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  }
  throw InputError(plain);
}

Runtime::Runtime(std::string name, const Limits& limits, std::tm now)
    : name_(std::move(name)), limits_(limits), now_(now), work_left_(limits.work) {}

void Runtime::out_of_work() const {
  fail("expected at most {} units of work (nodes, items, 16-byte pieces of text), found more", limits_.work);
}

void Runtime::too_deep() const {
  fail("expected evaluation nested at most {} deep, found more", limits_.evaluation_depth);
}

Value Runtime::string(std::string bytes, bool safe) {
  charge_bytes(bytes.size());
  return Value::constant(std::move(bytes), safe);
}

void Runtime::check_depth(std::size_t depth) const {
  if (depth > limits_.value_depth) {
    fail("expected containers nested at most {} deep, found {}", limits_.value_depth, depth);
  }
}

Value Runtime::sequence(std::vector<Value> items, Sequence::Kind kind) {
  charge(items.size() + 1);
  auto result = std::make_shared<Sequence>();
  result->kind = kind;
  for (const auto& item : items) result->depth = std::max(result->depth, depth_of(item) + 1);
  check_depth(result->depth);
  result->items = std::move(items);
  return Value(std::shared_ptr<const Sequence>(std::move(result)));
}

Value Runtime::undefined(std::string message) const {
  return Value(Undefined{std::make_shared<const std::string>(std::move(message))});
}

std::shared_ptr<Namespace> Runtime::make_namespace() {
  charge(4);
  namespaces_.push_back(std::make_shared<Namespace>());
  return namespaces_.back();
}

void Runtime::clear_namespaces() noexcept {
  for (auto& each : namespaces_) each->clear();
  namespaces_.clear();
}

Parameters::Parameters(Runtime& runtime, std::string_view callee, Arguments& arguments,
                       std::initializer_list<std::string_view> names, std::size_t required)
    : runtime_(runtime), callee_(callee), values_(names.size()), given_(names.size(), false), names_(names) {
  if (arguments.positional.size() > names_.size()) {
    runtime.fail("{}: expected at most {} arguments, found {}", callee, names_.size(), arguments.positional.size());
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = std::move(arguments.positional[i]);
    given_[i] = true;
  }
  for (auto& [name, value] : arguments.keyword) {
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end()) runtime.fail("{}: found an unexpected argument '{}'", callee, name);
    const auto i = static_cast<std::size_t>(at - names_.begin());
    if (given_[i]) runtime.fail("{}: found two values for the argument '{}'", callee, name);
    values_[i] = std::move(value);
    given_[i] = true;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (!given_[i]) runtime.fail("{}: expected the argument '{}', found none", callee, names_[i]);
  }
}

std::int64_t Parameters::integer(std::size_t i, std::int64_t fallback) const {
  if (!given_[i]) return fallback;
  const auto result = values_[i].integer();
  if (!result) runtime_.fail("{}: expected an int for '{}', found {}", callee_, names_[i], type_name(values_[i]));
  return *result;
}

bool Parameters::truth(std::size_t i, bool fallback) const { return given_[i] ? is_true(values_[i]) : fallback; }

const std::string& Parameters::text(std::size_t i) const {
  const auto* result = values_[i].string();
  if (result == nullptr) {
    runtime_.fail("{}: expected a str for '{}', found {}", callee_, names_[i], type_name(values_[i]));
  }
  return result->bytes;
}

}  // namespace headrace::text::jinja
