// The values of a template: Python's bool, int (64-bit), float, str, list, tuple, dict, None and jinja2's Undefined.
// Values are immutable and shared; only namespaces and loop objects change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headrace::text::jinja {

class Runtime;
class Value;

/// A missing variable, attribute or item: prints as nothing, is false, and raises `message` on most other uses.
struct Undefined {
  std::shared_ptr<const std::string> message;
};

struct None {};

/// Well-formed UTF-8 with its number of code points. `safe` marks jinja2's Markup.
struct String {
  std::string bytes;
  std::size_t length = 0;
  bool safe = false;
  [[nodiscard]] bool is_ascii() const noexcept { return length == bytes.size(); }
};

struct Sequence;
struct Dict;

/// Arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;
};

/// Everything else: functions, bound methods, macros, namespaces, loops. Compared by identity.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  /// What str() gives.
  [[nodiscard]] virtual std::string describe(Runtime& runtime) const = 0;
  /// The attribute `name`, or nothing if there is none.
  [[nodiscard]] virtual std::optional<Value> attribute(Runtime& runtime, std::string_view name);
  [[nodiscard]] virtual bool is_callable() const noexcept { return false; }
  /// Calls the object; the default raises that it is not callable.
  virtual Value call(Runtime& runtime, Arguments& arguments);
};

class Value {
 public:
  using Variant = std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const String>,
                               std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>, std::shared_ptr<Object>>;

  Value() = default;
  Value(None) : data_(None{}) {}
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  Value(bool value) : data_(value) {}
  Value(std::int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(std::shared_ptr<const String> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<const Sequence> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<const Dict> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<Object> value) : data_(std::move(value)) {}
  Value(const char*) = delete;  // would become bool
  Value(int) = delete;

  /// A str that is charged to no render: for constants. `bytes` must be well-formed UTF-8.
  [[nodiscard]] static Value constant(std::string bytes, bool safe = false);

  [[nodiscard]] bool is_undefined() const noexcept { return std::holds_alternative<Undefined>(data_); }
  [[nodiscard]] bool is_none() const noexcept { return std::holds_alternative<None>(data_); }
  [[nodiscard]] bool is_bool() const noexcept { return std::holds_alternative<bool>(data_); }
  [[nodiscard]] bool is_float() const noexcept { return std::holds_alternative<double>(data_); }
  [[nodiscard]] bool is_string() const noexcept { return string() != nullptr; }

  [[nodiscard]] const String* string() const noexcept { return get<const String>(); }
  [[nodiscard]] const Sequence* sequence() const noexcept { return get<const Sequence>(); }
  [[nodiscard]] const Dict* dict() const noexcept { return get<const Dict>(); }
  [[nodiscard]] Object* object() const noexcept { return get<Object>(); }
  /// The integer of an int or a bool (which is an int in Python).
  [[nodiscard]] std::optional<std::int64_t> integer() const noexcept;
  /// The number of an int, a bool or a float.
  [[nodiscard]] std::optional<double> number() const noexcept;

  [[nodiscard]] const Variant& data() const noexcept { return data_; }

  template <class T>
  [[nodiscard]] std::shared_ptr<T> shared() const {
    const auto* pointer = std::get_if<std::shared_ptr<T>>(&data_);
    return pointer == nullptr ? nullptr : *pointer;
  }

 private:
  template <class T>
  [[nodiscard]] T* get() const noexcept {
    const auto* pointer = std::get_if<std::shared_ptr<T>>(&data_);
    return pointer == nullptr ? nullptr : pointer->get();
  }
  Variant data_;
};

/// list, tuple, and the iterables that behave like them except for their name.
struct Sequence {
  enum class Kind { list, tuple, range, generator, keys, values, items };
  Kind kind = Kind::list;
  std::vector<Value> items;
  std::size_t depth = 1;             ///< levels of containers, this one included
  std::string range_text;            ///< repr of a range
  mutable std::size_t consumed = 0;  ///< items of a generator that were taken already
};

/// dict: entries in order of insertion.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  std::size_t depth = 1;
  /// The value of `key`, or nullptr. Charges the search; raises for an unhashable key.
  [[nodiscard]] const Value* find(Runtime& runtime, const Value& key) const;
  [[nodiscard]] const Value* find(std::string_view key) const noexcept;

 private:
  friend class DictBuilder;
  std::unordered_map<std::string_view, std::size_t> index_;  // str keys, once there are more than a few
};

/// Builds a dict; a repeated key keeps its place and takes the new value.
class DictBuilder {
 public:
  explicit DictBuilder(Runtime& runtime) : runtime_(runtime), dict_(std::make_shared<Dict>()) {}
  void set(Value key, Value value);
  [[nodiscard]] std::size_t size() const noexcept { return dict_->entries.size(); }
  [[nodiscard]] Value finish();

 private:
  Runtime& runtime_;
  std::shared_ptr<Dict> dict_;
};

/// namespace(): the one thing that a template can change.
class Namespace : public Object {
 public:
  [[nodiscard]] std::string describe(Runtime& runtime) const override;
  [[nodiscard]] std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  void set(std::string_view name, Value value);
  void clear() noexcept { members_.clear(); }

 private:
  std::vector<std::pair<std::string, Value>> members_;
};

/// Python's name of the value's type, for messages.
[[nodiscard]] std::string_view type_name(const Value& value) noexcept;

/// Levels of containers: 0 for a scalar.
[[nodiscard]] std::size_t depth_of(const Value& value) noexcept;

/// Converts JSON. Raises InputError through `runtime` on nesting, integers beyond 64 bits, or invalid UTF-8.
[[nodiscard]] Value from_json(Runtime& runtime, const nlohmann::ordered_json& json);

}  // namespace headrace::text::jinja
