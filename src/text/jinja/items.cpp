// Attributes, items, slices, lengths and iteration.
#include <algorithm>
#include <array>

#include "text/jinja/operators.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {
namespace {

using Kind = Sequence::Kind;

bool is_indexable(Kind kind) { return kind == Kind::list || kind == Kind::tuple || kind == Kind::range; }

/// Python's index of a sequence of `size`, from the end if negative; nothing if out of range.
std::optional<std::size_t> position(std::int64_t index, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size);
  if (index < -count || index >= count) return std::nullopt;
  return static_cast<std::size_t>(index < 0 ? index + count : index);
}

/// obj[key] where it works; nothing where Python raises TypeError or LookupError.
std::optional<Value> item(Runtime& runtime, const Value& value, const Value& key) {
  if (const auto* dict = value.dict()) {
    if (key.dict() != nullptr || (key.sequence() != nullptr && key.sequence()->kind == Kind::list)) return std::nullopt;
    const auto* found = dict->find(runtime, key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  const auto index = key.integer();
  if (!index) return std::nullopt;
  if (const auto* sequence = value.sequence(); sequence != nullptr && is_indexable(sequence->kind)) {
    const auto at = position(*index, sequence->items.size());
    return at ? std::optional(sequence->items[*at]) : std::nullopt;
  }
  if (const auto* string = value.string()) {
    const auto at = position(*index, string->length);
    if (!at) return std::nullopt;
    if (string->is_ascii()) return runtime.string(std::string(1, string->bytes[*at]), string->safe);
    runtime.charge_bytes(string->bytes.size());
    std::size_t offset = unicode::byte_offset(string->bytes, *at);
    const std::size_t start = offset;
    static_cast<void>(unicode::next(string->bytes, offset));
    return runtime.string(string->bytes.substr(start, offset - start), string->safe);
  }
  return std::nullopt;
}

std::optional<Value> attribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (name.starts_with("__")) return std::nullopt;  // the sandbox hides Python's own attributes
  if (auto* object = value.object()) return object->attribute(runtime, name);
  return bind_method(runtime, value, name);
}

/// Methods that would change a list or dict: the immutable sandbox hides them, even where a dict has such a key.
bool is_mutator(const Value& value, std::string_view name) {
  static constexpr std::array<std::string_view, 8> of_list{"append", "clear", "pop",    "reverse",
                                                           "insert", "sort",  "extend", "remove"};
  static constexpr std::array<std::string_view, 5> of_dict{"clear", "pop", "popitem", "setdefault", "update"};
  if (value.dict() != nullptr) return std::find(of_dict.begin(), of_dict.end(), name) != of_dict.end();
  const auto* sequence = value.sequence();
  return sequence != nullptr && sequence->kind == Kind::list &&
         std::find(of_list.begin(), of_list.end(), name) != of_list.end();
}

[[noreturn]] void fail_undefined(Runtime& runtime, const Value& value) {
  const auto& message = std::get<Undefined>(value.data()).message;
  runtime.fail("{}", message ? *message : "found an undefined value");
}

Value missing(Runtime& runtime, const Value& value, const Value& name) {
  if (const auto* text = name.string(); text != nullptr && text->bytes.size() <= 200) {
    return runtime.undefined(fmt::format("{} has no attribute or item '{}'", type_name(value), text->bytes));
  }
  if (const auto index = name.integer()) {
    return runtime.undefined(fmt::format("{} has no item {}", type_name(value), *index));
  }
  return runtime.undefined(fmt::format("{} has no such item", type_name(value)));
}

}  // namespace

Value get_attribute(Runtime& runtime, const Value& value, const Value& name) {
  runtime.charge(1);
  if (value.is_undefined()) fail_undefined(runtime, value);
  if (auto found = attribute(runtime, value, name.string()->bytes)) return std::move(*found);
  if (is_mutator(value, name.string()->bytes)) return missing(runtime, value, name);
  if (auto found = item(runtime, value, name)) return std::move(*found);
  return missing(runtime, value, name);
}

Value get_item(Runtime& runtime, const Value& value, const Value& key) {
  runtime.charge(1);
  if (value.is_undefined()) fail_undefined(runtime, value);
  if (auto found = item(runtime, value, key)) return std::move(*found);
  if (const auto* name = key.string()) {
    if (auto found = attribute(runtime, value, name->bytes)) return std::move(*found);
  }
  return missing(runtime, value, key);
}

Value get_slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop, const Value& step) {
  if (value.is_undefined()) fail_undefined(runtime, value);
  const auto* string = value.string();
  const auto* sequence = value.sequence();
  const bool sliceable = string != nullptr || (sequence != nullptr && is_indexable(sequence->kind));
  for (const auto* bound : {&start, &stop, &step}) {
    if (!bound->is_none() && !bound->integer()) {
      runtime.fail("slice: expected bounds that are int or None, found {}", type_name(*bound));
    }
  }
  if (!sliceable) runtime.fail("slice: expected a str or a sequence, found {}", type_name(value));
  // PySlice_AdjustIndices.
  const auto size = static_cast<std::int64_t>(string != nullptr ? string->length : sequence->items.size());
  const std::int64_t by = step.integer().value_or(1);
  if (by == 0) runtime.fail("slice: expected a step that is not zero, found 0");
  const std::int64_t lowest = by < 0 ? -1 : 0;
  const std::int64_t highest = by < 0 ? size - 1 : size;
  const auto clamp = [&](const Value& bound, std::int64_t absent) {
    if (!bound.integer()) return absent;
    const std::int64_t at = *bound.integer();
    if (at < 0) return at < -size ? lowest : std::max(at + size, lowest);
    return std::min(at, highest);
  };
  const std::int64_t first = clamp(start, by < 0 ? highest : lowest);
  const std::int64_t last = clamp(stop, by < 0 ? lowest : highest);
  std::vector<std::size_t> picked;
  if (by == 1 && string != nullptr) {
    runtime.charge_bytes(string->bytes.size());
    const auto from = unicode::byte_offset(string->bytes, static_cast<std::size_t>(first));
    const auto to = first < last ? unicode::byte_offset(string->bytes, static_cast<std::size_t>(last)) : from;
    return runtime.string(string->bytes.substr(from, to - from), string->safe);
  }
  for (std::int64_t i = first; by > 0 ? i < last : i > last;) {
    runtime.charge(1);
    picked.push_back(static_cast<std::size_t>(i));
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  if (string != nullptr) {
    runtime.charge(string->length);
    const auto text = unicode::decode(string->bytes);
    std::string result;
    for (const auto i : picked) unicode::append(result, text[i]);
    return runtime.string(std::move(result), string->safe);
  }
  std::vector<Value> items;
  items.reserve(picked.size());
  for (const auto i : picked) items.push_back(sequence->items[i]);
  return runtime.sequence(std::move(items), sequence->kind == Kind::range ? Kind::list : sequence->kind);
}

std::optional<std::size_t> length_of(const Value& value) noexcept {
  if (const auto* string = value.string()) return string->length;
  if (const auto* dict = value.dict()) return dict->entries.size();
  if (const auto* sequence = value.sequence(); sequence != nullptr && sequence->kind != Kind::generator) {
    return sequence->items.size();
  }
  if (value.is_undefined()) return 0;
  return std::nullopt;
}

bool is_iterable(const Value& value) noexcept {
  return value.is_string() || value.dict() != nullptr || value.sequence() != nullptr || value.is_undefined();
}

std::shared_ptr<const Sequence> iterate(Runtime& runtime, const Value& value) {
  if (auto sequence = value.shared<const Sequence>()) {
    if (sequence->kind != Kind::generator) return sequence;
    auto rest = std::make_shared<Sequence>();
    runtime.charge(sequence->items.size());
    rest->items.assign(sequence->items.begin() + static_cast<std::ptrdiff_t>(sequence->consumed),
                       sequence->items.end());
    rest->depth = sequence->depth;
    sequence->consumed = sequence->items.size();
    return rest;
  }
  auto result = std::make_shared<Sequence>();
  if (const auto* string = value.string()) {
    runtime.charge(string->length * 4);
    for (std::size_t offset = 0; offset < string->bytes.size();) {
      const std::size_t start = offset;
      static_cast<void>(unicode::next(string->bytes, offset));
      result->items.push_back(Value::constant(string->bytes.substr(start, offset - start)));
    }
  } else if (const auto* dict = value.dict()) {
    runtime.charge(dict->entries.size());
    for (const auto& [key, unused] : dict->entries) result->items.push_back(key);
    result->depth = dict->depth;
  } else if (!value.is_undefined()) {
    runtime.fail("expected something to iterate over, found {}", type_name(value));
  }
  return result;
}

}  // namespace headrace::text::jinja
