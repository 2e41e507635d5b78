// Filters that call other filters and tests on every item: map, select, reject, selectattr, rejectattr; and attr.
#include <algorithm>
#include <array>

#include "text/jinja/attribute_path.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/registry.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {

AttributePath::AttributePath(Runtime& runtime, const Value& attribute) {
  if (attribute.is_none()) return;
  const auto* text = attribute.string();
  if (text == nullptr) {
    parts_.push_back(attribute);
    return;
  }
  std::string_view rest = text->bytes;
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    const bool digits = !part.empty() && part.size() < 18 &&
                        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    parts_.push_back(digits ? Value(static_cast<std::int64_t>(std::stoll(part))) : runtime.string(part));
    if (dot == std::string_view::npos) return;
    rest.remove_prefix(dot + 1);
  }
}

Value AttributePath::get(Runtime& runtime, Value item, const Value* fallback) const {
  for (const auto& part : parts_) {
    item = get_item(runtime, item, part);
    if (fallback != nullptr && item.is_undefined()) item = *fallback;
  }
  return item;
}

Value fold_case(Runtime& runtime, Value value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  return runtime.string(unicode::lower(value.string()->bytes));
}

const FilterEntry* find_filter(std::string_view name) {
  for (const auto table : {text_filters(), number_filters(), sequence_filters(), select_filters()}) {
    for (const auto& entry : table) {
      if (entry.name == name) return &entry;
    }
  }
  return nullptr;
}

const TestEntry* find_test(std::string_view name) {
  for (const auto& entry : all_tests()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

namespace {

Value map(Runtime& runtime, const Value& input, Arguments& arguments) {
  std::vector<Value> results;
  const auto items = iterate(runtime, input);
  const bool by_attribute =
      arguments.positional.empty() && std::any_of(arguments.keyword.begin(), arguments.keyword.end(),
                                                  [](const auto& each) { return each.first == "attribute"; });
  if (by_attribute) {
    const Parameters parameters(runtime, "map", arguments, {"attribute", "default"});
    const AttributePath path(runtime, parameters[0]);
    const Value* fallback = parameters.has(1) && !parameters[1].is_none() ? &parameters[1] : nullptr;
    for (const auto& item : items->items) results.push_back(path.get(runtime, item, fallback));
    return runtime.sequence(std::move(results), Sequence::Kind::generator);
  }
  if (arguments.positional.empty() || !arguments.positional.front().is_string()) {
    runtime.fail("map: expected the name of a filter or attribute=…, found neither");
  }
  const std::string& name = arguments.positional.front().string()->bytes;
  const auto* filter = find_filter(name);
  if (filter == nullptr) runtime.fail("map: expected a known filter, found '{}'", name);
  for (const auto& item : items->items) {
    const Runtime::Level level(runtime);
    runtime.charge(arguments.positional.size() + arguments.keyword.size());
    Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.keyword};
    results.push_back(filter->apply(runtime, item, rest));
  }
  return runtime.sequence(std::move(results), Sequence::Kind::generator);
}

template <bool keeps, bool by_attribute>
Value select(Runtime& runtime, const Value& input, Arguments& arguments) {
  std::vector<Value> kept;
  std::optional<AttributePath> path;
  const TestEntry* test = nullptr;
  auto& given = arguments.positional;
  std::size_t used = 0;
  if (is_true(input)) {
    if (by_attribute) {
      if (given.empty()) runtime.fail("selectattr: expected the name of an attribute, found none");
      path.emplace(runtime, given.front());
      used = 1;
    }
    if (given.size() > used) {
      const std::string name = given[used].is_string() ? given[used].string()->bytes : "";
      test = find_test(name);
      if (test == nullptr) runtime.fail("select: expected a known test, found '{}'", name);
      ++used;
    }
    const auto iterated = iterate(runtime, input);  // outlives the loop, which a temporary would not
    for (const auto& item : iterated->items) {
      const Runtime::Level level(runtime);
      runtime.charge(given.size() + arguments.keyword.size());
      const Value subject = path ? path->get(runtime, item) : item;
      Arguments rest{{given.begin() + static_cast<std::ptrdiff_t>(used), given.end()}, arguments.keyword};
      const bool holds = test == nullptr ? is_true(subject) : test->apply(runtime, subject, rest);
      if (holds == keeps) kept.push_back(item);
    }
  }
  return runtime.sequence(std::move(kept), Sequence::Kind::generator);
}

Value attribute(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "attr", arguments, {"name"}, 1);
  const std::string& name = parameters.text(0);
  if (auto* object = input.object(); object != nullptr && !name.starts_with("__")) {
    if (auto found = object->attribute(runtime, name)) return std::move(*found);
  } else if (auto method = bind_method(runtime, input, name)) {
    return std::move(*method);
  }
  if (input.is_undefined()) return get_attribute(runtime, input, parameters[0]);
  return runtime.undefined(fmt::format("{} has no attribute '{}'", type_name(input), name));
}

constexpr std::array<FilterEntry, 6> table{{{"attr", attribute},
                                            {"map", map},
                                            {"reject", select<false, false>},
                                            {"rejectattr", select<false, true>},
                                            {"select", select<true, false>},
                                            {"selectattr", select<true, true>}}};

}  // namespace

std::span<const FilterEntry> select_filters() { return table; }

}  // namespace headrace::text::jinja
