// The global functions: jinja2's, and the two that transformers adds.
#include <array>
#include <ctime>

#include "text/jinja/operators.hpp"
#include "text/jinja/registry.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {
namespace {

constexpr std::uint64_t max_range = 100'000;  // jinja2.sandbox.MAX_RANGE

Value range(Runtime& runtime, Arguments& arguments) {
  const Parameters parameters(runtime, "range", arguments, {"start", "stop", "step"}, 1);
  const bool single = !parameters.has(1);
  const std::int64_t start = single ? 0 : parameters.integer(0, 0);
  const std::int64_t stop = single ? parameters.integer(0, 0) : parameters.integer(1, 0);
  const std::int64_t step = parameters.integer(2, 1);
  if (step == 0) runtime.fail("range: expected a step that is not zero, found 0");
  // Unsigned 64 bits hold the difference of any two bounds, and the size of any step.
  const bool forward = step > 0;
  std::uint64_t count = 0;
  if (forward ? start < stop : start > stop) {
    const auto low = static_cast<std::uint64_t>(forward ? start : stop);
    const auto high = static_cast<std::uint64_t>(forward ? stop : start);
    const auto stride = forward ? static_cast<std::uint64_t>(step) : ~static_cast<std::uint64_t>(step) + 1;
    count = (high - low - 1) / stride + 1;
  }
  if (count > max_range) runtime.fail("range: expected at most {} items, found more", max_range);
  auto result = std::make_shared<Sequence>();
  result->kind = Sequence::Kind::range;
  runtime.charge(count);
  result->items.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    result->items.emplace_back(start + static_cast<std::int64_t>(i) * step);
  }
  result->range_text =
      step == 1 ? fmt::format("range({}, {})", start, stop) : fmt::format("range({}, {}, {})", start, stop, step);
  return Value(std::shared_ptr<const Sequence>(std::move(result)));
}

/// Calls set(key, value) for what dict(*args, **kwargs) holds.
template <class Set>
void dict_arguments(Runtime& runtime, std::string_view callee, Arguments& arguments, const Set& set) {
  if (arguments.positional.size() > 1) runtime.fail("{}: expected at most one argument, found more", callee);
  if (!arguments.positional.empty()) {
    const Value& first = arguments.positional.front();
    if (const auto* dict = first.dict()) {
      for (const auto& [key, value] : dict->entries) set(key, value);
    } else {
      const auto iterated = iterate(runtime, first);  // outlives the loop, which a temporary would not
      for (const auto& pair : iterated->items) {
        const auto items = iterate(runtime, pair);
        if (items->items.size() != 2) {
          runtime.fail("{}: expected pairs of a key and a value, found {} items", callee, items->items.size());
        }
        set(items->items[0], items->items[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.keyword) set(runtime.string(name), value);
}

Value make_dict(Runtime& runtime, Arguments& arguments) {
  DictBuilder builder(runtime);
  dict_arguments(runtime, "dict", arguments, [&](const Value& key, const Value& value) { builder.set(key, value); });
  return builder.finish();
}

Value make_namespace(Runtime& runtime, Arguments& arguments) {
  auto result = runtime.make_namespace();
  dict_arguments(runtime, "namespace", arguments, [&](const Value& key, const Value& value) {
    runtime.charge(4);
    if (key.is_string()) result->set(key.string()->bytes, value);
  });
  return Value(std::shared_ptr<Object>(std::move(result)));
}

Value raise_exception(Runtime& runtime, Arguments& arguments) {
  const Parameters parameters(runtime, "raise_exception", arguments, {"message"}, 1);
  runtime.fail("{}", text_of(runtime, parameters[0]));
}

Value strftime_now(Runtime& runtime, Arguments& arguments) {
  const Parameters parameters(runtime, "strftime_now", arguments, {"format"}, 1);
  const std::string& format = parameters.text(0);
  if (format.empty()) return runtime.string("");
  // The longest expansion of two format bytes (%c) is under 64 bytes; a width such as %999d is cut off here.
  std::string buffer(format.size() * 64, '\0');
  runtime.charge_bytes(buffer.size());
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), format.c_str(), &runtime.now());
  buffer.resize(size);
  if (!unicode::is_valid(buffer)) runtime.fail("strftime_now: expected a format that gives UTF-8, found another");
  return runtime.string(std::move(buffer));
}

class Cycler final : public Object, public std::enable_shared_from_this<Cycler> {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {}
  [[nodiscard]] std::string describe(Runtime&) const override { return "<Cycler>"; }
  [[nodiscard]] std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  Value step(bool reset) {
    if (reset) {
      at_ = 0;
      return None{};
    }
    return items_[std::exchange(at_, (at_ + 1) % items_.size())];
  }

 private:
  std::vector<Value> items_;
  std::size_t at_ = 0;
};

class CyclerMethod final : public Object {
 public:
  CyclerMethod(std::shared_ptr<Cycler> cycler, bool reset) : cycler_(std::move(cycler)), reset_(reset) {}
  [[nodiscard]] std::string describe(Runtime&) const override { return "<method of Cycler>"; }
  [[nodiscard]] bool is_callable() const noexcept override { return true; }
  Value call(Runtime&, Arguments&) override { return cycler_->step(reset_); }

 private:
  std::shared_ptr<Cycler> cycler_;
  bool reset_;
};

std::optional<Value> Cycler::attribute(Runtime& /*runtime*/, std::string_view name) {
  if (name == "current") return items_[at_];
  if (name != "next" && name != "reset") return std::nullopt;
  return Value(std::shared_ptr<Object>(std::make_shared<CyclerMethod>(shared_from_this(), name == "reset")));
}

Value cycler(Runtime& runtime, Arguments& arguments) {
  if (arguments.positional.empty()) runtime.fail("cycler: expected at least one item, found none");
  const Value items = runtime.sequence(std::move(arguments.positional));  // bounds the depth
  return Value(std::shared_ptr<Object>(std::make_shared<Cycler>(items.sequence()->items)));
}

class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  [[nodiscard]] std::string describe(Runtime&) const override { return "<Joiner>"; }
  [[nodiscard]] bool is_callable() const noexcept override { return true; }
  Value call(Runtime& runtime, Arguments&) override {
    return std::exchange(used_, true) ? separator_ : runtime.string("");
  }

 private:
  Value separator_;
  bool used_ = false;
};

Value joiner(Runtime& runtime, Arguments& arguments) {
  const Parameters parameters(runtime, "joiner", arguments, {"sep"});
  return Value(
      std::shared_ptr<Object>(std::make_shared<Joiner>(parameters.has(0) ? parameters[0] : runtime.string(", "))));
}

constexpr std::array<FunctionEntry, 7> table{{{"range", range},
                                              {"dict", make_dict},
                                              {"namespace", make_namespace},
                                              {"raise_exception", raise_exception},
                                              {"strftime_now", strftime_now},
                                              {"cycler", cycler},
                                              {"joiner", joiner}}};

}  // namespace

std::span<const FunctionEntry> all_functions() { return table; }

}  // namespace headrace::text::jinja
