// The methods of str, list, tuple and dict that the sandbox allows, as bound functions.
#include <algorithm>
#include <array>

#include "text/jinja/format.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/string_methods.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {
namespace {

struct Method {
  std::string_view name;
  Value (*call)(Runtime&, const Value& self, Arguments&);
};

Value make_view(Runtime& runtime, const Dict& dict, Sequence::Kind kind) {
  std::vector<Value> items;
  items.reserve(dict.entries.size());
  for (const auto& [key, value] : dict.entries) {
    if (kind == Sequence::Kind::items) {
      items.push_back(runtime.sequence({key, value}, Sequence::Kind::tuple));
    } else {
      items.push_back(kind == Sequence::Kind::keys ? key : value);
    }
  }
  return runtime.sequence(std::move(items), kind);
}

Value dict_get(Runtime& runtime, const Value& self, Arguments& arguments) {
  if (!arguments.keyword.empty()) runtime.fail("get: expected no keyword arguments, found some");
  const Parameters parameters(runtime, "get", arguments, {"key", "default"}, 1);
  const auto* found = self.dict()->find(runtime, parameters[0]);
  if (found != nullptr) return *found;
  return parameters.has(1) ? parameters[1] : Value(None{});
}

Value dict_items(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters none(runtime, "items", arguments, {});
  return make_view(runtime, *self.dict(), Sequence::Kind::items);
}

Value dict_keys(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters none(runtime, "keys", arguments, {});
  return make_view(runtime, *self.dict(), Sequence::Kind::keys);
}

Value dict_values(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters none(runtime, "values", arguments, {});
  return make_view(runtime, *self.dict(), Sequence::Kind::values);
}

Value copy(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters none(runtime, "copy", arguments, {});
  return self;  // values do not change, so a copy is the value
}

Value sequence_count(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters parameters(runtime, "count", arguments, {"value"}, 1);
  std::int64_t count = 0;
  for (const auto& item : self.sequence()->items) count += equal(runtime, item, parameters[0]) ? 1 : 0;
  return count;
}

Value sequence_index(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters parameters(runtime, "index", arguments, {"value", "start", "stop"}, 1);
  const auto& items = self.sequence()->items;
  const auto size = static_cast<std::int64_t>(items.size());
  const auto clamp = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size); };
  const std::int64_t stop = clamp(parameters.integer(2, size));
  for (std::int64_t i = clamp(parameters.integer(1, 0)); i < stop; ++i) {
    if (equal(runtime, items[static_cast<std::size_t>(i)], parameters[0])) return i;
  }
  runtime.fail("index: expected a value that is in the {}, found none", type_name(self));
}

constexpr std::array<Method, 5> dict_methods{
    {{"get", dict_get}, {"items", dict_items}, {"keys", dict_keys}, {"values", dict_values}, {"copy", copy}}};
constexpr std::array<Method, 3> list_methods{{{"count", sequence_count}, {"index", sequence_index}, {"copy", copy}}};
constexpr std::array<Method, 2> tuple_methods{{{"count", sequence_count}, {"index", sequence_index}}};

class BoundMethod final : public Object {
 public:
  BoundMethod(Value self, Method method) : self_(std::move(self)), method_(method) {}
  [[nodiscard]] std::string describe(Runtime&) const override {
    return fmt::format("<built-in method {} of {} object>", method_.name, type_name(self_));
  }
  [[nodiscard]] bool is_callable() const noexcept override { return true; }
  Value call(Runtime& runtime, Arguments& arguments) override { return method_.call(runtime, self_, arguments); }

 private:
  Value self_;
  Method method_;
};

template <class Table>
std::optional<Value> bind(const Table& table, const Value& self, std::string_view name) {
  for (const auto& method : table) {
    if (method.name == name) {
      return Value(std::shared_ptr<Object>(std::make_shared<BoundMethod>(self, Method{method.name, method.call})));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Value> bind_method(Runtime& /*runtime*/, const Value& self, std::string_view name) {
  if (self.is_string()) return bind(string_methods(), self, name);
  if (self.dict() != nullptr) return bind(dict_methods, self, name);
  if (const auto* sequence = self.sequence()) {
    if (sequence->kind == Sequence::Kind::list) return bind(list_methods, self, name);
    if (sequence->kind == Sequence::Kind::tuple) return bind(tuple_methods, self, name);
  }
  return std::nullopt;
}

}  // namespace headrace::text::jinja
