// Filters on lists and dicts: order, parts, joining.
#include <algorithm>
#include <array>

#include "text/jinja/attribute_path.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/registry.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {

namespace {

using Kind = Sequence::Kind;

Value length(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "length", arguments, {});
  const auto result = length_of(input);
  if (!result) runtime.fail("length: expected something with a length, found {}", type_name(input));
  return static_cast<std::int64_t>(*result);
}

Value list(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "list", arguments, {});
  return runtime.sequence(iterate(runtime, input)->items);
}

Value first(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "first", arguments, {});
  if (const auto* sequence = input.sequence(); sequence != nullptr && sequence->kind == Kind::generator) {
    if (sequence->consumed < sequence->items.size()) return sequence->items[sequence->consumed++];
    return runtime.undefined("first: the sequence was empty");
  }
  if (input.is_string() && !input.string()->bytes.empty()) return get_item(runtime, input, std::int64_t{0});
  const auto items = iterate(runtime, input);
  return items->items.empty() ? runtime.undefined("first: the sequence was empty") : items->items.front();
}

Value last(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "last", arguments, {});
  if (input.sequence() != nullptr && input.sequence()->kind == Kind::generator) {
    runtime.fail("last: expected something that can be reversed, found {}", type_name(input));
  }
  if (input.is_string() && !input.string()->bytes.empty()) return get_item(runtime, input, std::int64_t{-1});
  const auto items = iterate(runtime, input);
  return items->items.empty() ? runtime.undefined("last: the sequence was empty") : items->items.back();
}

Value reverse(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "reverse", arguments, {});
  if (input.is_string()) return get_slice(runtime, input, None{}, None{}, std::int64_t{-1});
  const bool reversible =
      input.dict() != nullptr || (input.sequence() != nullptr && input.sequence()->kind != Kind::generator);
  std::vector<Value> items = iterate(runtime, input)->items;
  std::reverse(items.begin(), items.end());
  return runtime.sequence(std::move(items), reversible ? Kind::generator : Kind::list);
}

Value join(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "join", arguments, {"d", "attribute"});
  const std::string separator = parameters.has(0) ? text_of(runtime, parameters[0]) : "";
  std::optional<AttributePath> path;
  if (parameters.has(1) && !parameters[1].is_none()) path.emplace(runtime, parameters[1]);
  std::string out;
  bool is_first = true;
  const auto iterated = iterate(runtime, input);  // outlives the loop, which a temporary would not
  for (const auto& item : iterated->items) {
    runtime.charge_bytes(separator.size());
    if (!is_first) out += separator;
    is_first = false;
    append_text(runtime, out, path ? path->get(runtime, item) : item);
  }
  return runtime.string(std::move(out));
}

Value items(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "items", arguments, {});
  std::vector<Value> pairs;
  if (input.is_undefined()) return runtime.sequence({}, Kind::generator);
  if (input.dict() == nullptr) runtime.fail("items: expected a dict, found {}", type_name(input));
  for (const auto& [key, value] : input.dict()->entries) pairs.push_back(runtime.sequence({key, value}, Kind::tuple));
  return runtime.sequence(std::move(pairs), Kind::generator);
}

/// Sorts `values` by `keys`, stably, also in reverse.
std::vector<Value> sorted(Runtime& runtime, const std::vector<Value>& values, const std::vector<Value>& keys,
                          bool reversed) {
  std::vector<std::size_t> order(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return reversed ? compare(runtime, Comparison::less, keys[b], keys[a])
                    : compare(runtime, Comparison::less, keys[a], keys[b]);
  });
  std::vector<Value> result;
  result.reserve(values.size());
  for (const std::size_t i : order) result.push_back(values[i]);
  return result;
}

Value dict_sort(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = parameters.has(1) ? parameters.text(1) : "key";
  if (by != "key" && by != "value") runtime.fail("dictsort: expected to sort by 'key' or 'value', found '{}'", by);
  if (input.dict() == nullptr) runtime.fail("dictsort: expected a dict, found {}", type_name(input));
  std::vector<Value> pairs;
  std::vector<Value> keys;
  for (const auto& [key, value] : input.dict()->entries) {
    pairs.push_back(runtime.sequence({key, value}, Kind::tuple));
    keys.push_back(fold_case(runtime, by == "key" ? key : value, parameters.truth(0, false)));
  }
  return runtime.sequence(sorted(runtime, pairs, keys, parameters.truth(2, false)));
}

Value sort(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = parameters.truth(1, false);
  std::vector<AttributePath> paths;
  if (parameters.has(2) && parameters[2].is_string()) {
    std::string_view rest = parameters.text(2);
    while (true) {
      const std::size_t comma = rest.find(',');
      paths.emplace_back(runtime, runtime.string(std::string(rest.substr(0, comma))));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  } else {
    paths.emplace_back(runtime, parameters.has(2) ? parameters[2] : Value(None{}));
  }
  const auto values = iterate(runtime, input);
  std::vector<Value> keys;
  for (const auto& value : values->items) {
    std::vector<Value> key;
    for (const auto& path : paths) key.push_back(fold_case(runtime, path.get(runtime, value), case_sensitive));
    keys.push_back(runtime.sequence(std::move(key)));
  }
  return runtime.sequence(sorted(runtime, values->items, keys, parameters.truth(0, false)));
}

Value unique(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "unique", arguments, {"case_sensitive", "attribute"});
  const AttributePath path(runtime, parameters.has(1) ? parameters[1] : Value(None{}));
  std::vector<Value> kept;
  DictBuilder seen(runtime);
  std::size_t count = 0;
  const auto iterated = iterate(runtime, input);  // outlives the loop, which a temporary would not
  for (const auto& value : iterated->items) {
    Value key = fold_case(runtime, path.get(runtime, value), parameters.truth(0, false));
    seen.set(std::move(key), None{});
    if (seen.size() > count) kept.push_back(value);
    count = seen.size();
  }
  return runtime.sequence(std::move(kept), Kind::generator);
}

template <bool largest>
Value extreme(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, largest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const AttributePath path(runtime, parameters.has(1) ? parameters[1] : Value(None{}));
  const auto values = iterate(runtime, input);
  if (values->items.empty()) return runtime.undefined("min or max: the sequence was empty");
  const auto key_of = [&](const Value& value) {
    return fold_case(runtime, path.get(runtime, value), parameters.truth(0, false));
  };
  const Value* best = &values->items.front();
  Value best_key = key_of(*best);
  for (std::size_t i = 1; i < values->items.size(); ++i) {
    Value key = key_of(values->items[i]);
    if (!compare(runtime, largest ? Comparison::greater : Comparison::less, key, best_key)) continue;
    best = &values->items[i];
    best_key = std::move(key);
  }
  return *best;
}

Value sum(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "sum", arguments, {"attribute", "start"});
  const AttributePath path(runtime, parameters.has(0) ? parameters[0] : Value(None{}));
  Value total = parameters.has(1) ? parameters[1] : Value(std::int64_t{0});
  if (total.is_string()) runtime.fail("sum: expected a start that is no str, found str");
  const auto iterated = iterate(runtime, input);  // outlives the loop, which a temporary would not
  for (const auto& value : iterated->items) {
    total = arithmetic(runtime, Arithmetic::add, total, path.get(runtime, value));
  }
  return total;
}

Value batch(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "batch", arguments, {"linecount", "fill_with"}, 1);
  const std::int64_t size = parameters.integer(0, 1);
  const bool fills = parameters.has(1) && !parameters[1].is_none();
  std::vector<Value> rows;
  std::vector<Value> row;
  const auto iterated = iterate(runtime, input);  // outlives the loop, which a temporary would not
  for (const auto& value : iterated->items) {
    if (static_cast<std::int64_t>(row.size()) == size) rows.push_back(runtime.sequence(std::exchange(row, {})));
    row.push_back(value);
  }
  if (!row.empty()) {
    for (; fills && static_cast<std::int64_t>(row.size()) < size;) {
      runtime.charge(1);
      row.push_back(parameters[1]);
    }
    rows.push_back(runtime.sequence(std::move(row)));
  }
  return runtime.sequence(std::move(rows), Kind::generator);
}

Value slice(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "slice", arguments, {"slices", "fill_with"}, 1);
  const std::int64_t slices = parameters.integer(0, 1);
  const auto values = iterate(runtime, input);
  if (slices <= 0) {
    if (slices == 0) runtime.fail("slice: expected a number of slices that is not zero, found 0");
    return runtime.sequence({}, Kind::generator);
  }
  const auto size = static_cast<std::int64_t>(values->items.size());
  const std::int64_t extra = size % slices;
  std::vector<Value> result;
  auto at = values->items.begin();
  for (std::int64_t i = 0; i < slices; ++i) {
    runtime.charge(1);
    const auto end = at + (size / slices + (i < extra ? 1 : 0));
    std::vector<Value> part(at, end);
    if (parameters.has(1) && !parameters[1].is_none() && i >= extra) part.push_back(parameters[1]);
    result.push_back(runtime.sequence(std::move(part)));
    at = end;
  }
  return runtime.sequence(std::move(result), Kind::generator);
}

Value group_by(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const AttributePath path(runtime, parameters[0]);
  const bool case_sensitive = parameters.truth(2, false);
  const Value* fallback = parameters.has(1) && !parameters[1].is_none() ? &parameters[1] : nullptr;
  const auto values = iterate(runtime, input);
  std::vector<Value> keys;
  for (const auto& value : values->items) {
    keys.push_back(fold_case(runtime, path.get(runtime, value, fallback), case_sensitive));
  }
  const auto ordered = sorted(runtime, values->items, keys, false);
  std::vector<Value> groups;
  std::vector<Value> members;
  std::optional<Value> current;
  const auto flush = [&] {
    if (!members.empty()) {
      // The name of a group is its first member's own value, not the lower-cased key.
      const Value name = case_sensitive ? *current : path.get(runtime, members.front(), fallback);
      groups.push_back(runtime.sequence({name, runtime.sequence(std::exchange(members, {}))}, Kind::tuple));
    }
  };
  for (const auto& value : ordered) {
    Value key = fold_case(runtime, path.get(runtime, value, fallback), case_sensitive);
    if (!current || !equal(runtime, *current, key)) {
      flush();
      current = std::move(key);
    }
    members.push_back(value);
  }
  flush();
  return runtime.sequence(std::move(groups));
}

constexpr std::array<FilterEntry, 17> table{{{"batch", batch},
                                             {"count", length},
                                             {"dictsort", dict_sort},
                                             {"first", first},
                                             {"groupby", group_by},
                                             {"items", items},
                                             {"join", join},
                                             {"last", last},
                                             {"length", length},
                                             {"list", list},
                                             {"max", extreme<true>},
                                             {"min", extreme<false>},
                                             {"reverse", reverse},
                                             {"slice", slice},
                                             {"sort", sort},
                                             {"sum", sum},
                                             {"unique", unique}}};

}  // namespace

std::span<const FilterEntry> sequence_filters() { return table; }

}  // namespace headrace::text::jinja
