// Construction of values, dicts and namespaces.
#include "text/jinja/value.hpp"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "text/jinja/operators.hpp"
#include "text/jinja/runtime.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {
namespace {

constexpr std::size_t small_dict = 8;

Value convert(Runtime& runtime, const nlohmann::ordered_json& json, std::size_t depth) {
  runtime.check_depth(depth);
  const std::size_t bytes = json.is_string() ? json.get_ref<const std::string&>().size() : 0;
  runtime.grant((bytes + 8) * runtime.limits().work_per_input_byte);
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Type::null:
      return None{};
    case Type::boolean:
      return json.get<bool>();
    case Type::number_integer:
      return json.get<std::int64_t>();
    case Type::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        runtime.fail("expected integers of at most 64 bits in the variables, found {}", number);
      }
      return static_cast<std::int64_t>(number);
    }
    case Type::number_float:
      return json.get<double>();
    case Type::string: {
      const auto& text = json.get_ref<const std::string&>();
      if (!unicode::is_valid(text)) runtime.fail("expected UTF-8 text in the variables, found invalid bytes");
      return runtime.string(text);
    }
    case Type::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(convert(runtime, item, depth + 1));
      return runtime.sequence(std::move(items));
    }
    case Type::object: {
      DictBuilder builder(runtime);
      for (const auto& [key, value] : json.items()) {
        if (!unicode::is_valid(key)) runtime.fail("expected UTF-8 keys in the variables, found invalid bytes");
        builder.set(runtime.string(key), convert(runtime, value, depth + 1));
      }
      return builder.finish();
    }
    case Type::binary:
    case Type::discarded:
      break;
  }
  runtime.fail("expected JSON values in the variables, found binary data");
}

}  // namespace

std::optional<Value> Object::attribute(Runtime& /*runtime*/, std::string_view /*name*/) { return std::nullopt; }

Value Object::call(Runtime& runtime, Arguments& /*arguments*/) {
  runtime.fail("expected something callable, found {}", describe(runtime));
}

Value Value::constant(std::string bytes, bool safe) {
  auto result = std::make_shared<String>();
  result->length = unicode::length(bytes);
  result->bytes = std::move(bytes);
  result->safe = safe;
  return Value(std::shared_ptr<const String>(std::move(result)));
}

std::optional<std::int64_t> Value::integer() const noexcept {
  if (const auto* b = std::get_if<bool>(&data_)) return *b ? 1 : 0;
  if (const auto* i = std::get_if<std::int64_t>(&data_)) return *i;
  return std::nullopt;
}

std::optional<double> Value::number() const noexcept {
  if (const auto* d = std::get_if<double>(&data_)) return *d;
  if (const auto i = integer()) return static_cast<double>(*i);
  return std::nullopt;
}

const Value* Dict::find(std::string_view key) const noexcept {
  if (!index_.empty()) {
    const auto at = index_.find(key);
    return at == index_.end() ? nullptr : &entries[at->second].second;
  }
  for (const auto& [name, value] : entries) {
    if (const auto* text = name.string(); text != nullptr && text->bytes == key) return &value;
  }
  return nullptr;
}

const Value* Dict::find(Runtime& runtime, const Value& key) const {
  if (const auto* text = key.string()) {
    runtime.charge_bytes(text->bytes.size());
    return find(text->bytes);
  }
  require_hashable(runtime, key);
  for (const auto& [name, value] : entries) {
    runtime.charge(1);
    if (equal(runtime, name, key)) return &value;
  }
  return nullptr;
}

void DictBuilder::set(Value key, Value value) {
  runtime_.charge(4);
  dict_->depth = std::max({dict_->depth, depth_of(value) + 1, depth_of(key) + 1});
  if (const auto* known = dict_->find(runtime_, key)) {
    for (auto& entry : dict_->entries) {
      if (&entry.second == known) {
        entry.second = std::move(value);
        return;
      }
      runtime_.charge(1);
    }
  }
  dict_->entries.emplace_back(std::move(key), std::move(value));
  const auto index = [&](std::size_t i) {
    if (const auto* text = dict_->entries[i].first.string()) dict_->index_.emplace(text->bytes, i);
  };
  const std::size_t count = dict_->entries.size();
  if (!dict_->index_.empty()) {
    index(count - 1);
  } else if (count > small_dict) {
    for (std::size_t i = 0; i < count; ++i) index(i);
  }
}

Value DictBuilder::finish() {
  runtime_.check_depth(dict_->depth);
  return Value(std::shared_ptr<const Dict>(std::move(dict_)));
}

std::string Namespace::describe(Runtime& runtime) const {
  DictBuilder builder(runtime);
  for (const auto& [name, value] : members_) {
    builder.set(runtime.string(name), value);
  }
  return fmt::format("<Namespace {}>", repr(runtime, builder.finish()));
}

std::optional<Value> Namespace::attribute(Runtime& runtime, std::string_view name) {
  runtime.charge(members_.size());
  for (const auto& [known, value] : members_) {
    if (known == name) return value;
  }
  return std::nullopt;
}

void Namespace::set(std::string_view name, Value value) {
  for (auto& [known, old] : members_) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  members_.emplace_back(name, std::move(value));
}

std::string_view type_name(const Value& value) noexcept {
  struct Visitor {
    std::string_view operator()(const Undefined&) const noexcept { return "an undefined value"; }
    std::string_view operator()(const None&) const noexcept { return "None"; }
    std::string_view operator()(bool) const noexcept { return "bool"; }
    std::string_view operator()(std::int64_t) const noexcept { return "int"; }
    std::string_view operator()(double) const noexcept { return "float"; }
    std::string_view operator()(const std::shared_ptr<const String>&) const noexcept { return "str"; }
    std::string_view operator()(const std::shared_ptr<const Dict>&) const noexcept { return "dict"; }
    std::string_view operator()(const std::shared_ptr<Object>& object) const noexcept {
      return object->is_callable() ? "a function" : "an object";
    }
    std::string_view operator()(const std::shared_ptr<const Sequence>& sequence) const noexcept {
      switch (sequence->kind) {
        case Sequence::Kind::list:
          return "list";
        case Sequence::Kind::tuple:
          return "tuple";
        case Sequence::Kind::range:
          return "range";
        case Sequence::Kind::generator:
          return "generator";
        case Sequence::Kind::keys:
          return "dict_keys";
        case Sequence::Kind::values:
          return "dict_values";
        case Sequence::Kind::items:
          return "dict_items";
      }
      return "list";
    }
  };
  return std::visit(Visitor{}, value.data());
}

std::size_t depth_of(const Value& value) noexcept {
  if (const auto* sequence = value.sequence()) return sequence->depth;
  if (const auto* dict = value.dict()) return dict->depth;
  return 0;
}

Value from_json(Runtime& runtime, const nlohmann::ordered_json& json) { return convert(runtime, json, 1); }

}  // namespace headrace::text::jinja
