// loop.index, loop.first, loop.previtem and so on, after jinja2's LoopContext.
#include "text/jinja/loop.hpp"

#include "text/jinja/operators.hpp"

namespace headrace::text::jinja {
namespace {

class LoopMethod final : public Object {
 public:
  LoopMethod(std::shared_ptr<Loop> loop, bool cycles) : loop_(std::move(loop)), cycles_(cycles) {}
  [[nodiscard]] std::string describe(Runtime&) const override { return "<method of loop>"; }
  [[nodiscard]] bool is_callable() const noexcept override { return true; }
  Value call(Runtime& runtime, Arguments& arguments) override {
    return cycles_ ? loop_->cycle(runtime, arguments) : loop_->changed(runtime, arguments);
  }

 private:
  std::shared_ptr<Loop> loop_;
  bool cycles_;
};

}  // namespace

std::string Loop::describe(Runtime& /*runtime*/) const {
  return fmt::format("<LoopContext {}/{}>", index_ + 1, items_->items.size());
}

std::optional<Value> Loop::attribute(Runtime& runtime, std::string_view name) {
  const std::size_t size = items_->items.size();
  const auto number = [](std::size_t n) { return Value(static_cast<std::int64_t>(n)); };
  if (name == "index") return number(index_ + 1);
  if (name == "index0") return number(index_);
  if (name == "first") return Value(index_ == 0);
  if (name == "last") return Value(index_ + 1 == size);
  if (name == "length") return number(size);
  if (name == "revindex") return number(size - index_);
  if (name == "revindex0") return number(size - index_ - 1);
  if (name == "depth") return number(depth_ + 1);
  if (name == "depth0") return number(depth_);
  if (name == "previtem")
    return index_ > 0 ? items_->items[index_ - 1] : runtime.undefined("there is no previous item");
  if (name == "nextitem") {
    return index_ + 1 < size ? items_->items[index_ + 1] : runtime.undefined("there is no next item");
  }
  if (name == "cycle" || name == "changed") {
    return Value(std::shared_ptr<Object>(std::make_shared<LoopMethod>(shared_from_this(), name == "cycle")));
  }
  return std::nullopt;
}

Value Loop::call(Runtime& runtime, Arguments& arguments) {
  if (!statement_.recursive) runtime.fail("loop: expected a loop marked 'recursive' to call, found another");
  const Parameters parameters(runtime, "loop", arguments, {"iterable"}, 1);
  return evaluator_.call_loop(statement_, closure_, parameters[0], depth_ + 1);
}

Value Loop::cycle(Runtime& runtime, Arguments& arguments) const {
  if (arguments.positional.empty()) runtime.fail("loop.cycle: expected items to cycle through, found none");
  return arguments.positional[index_ % arguments.positional.size()];
}

Value Loop::changed(Runtime& runtime, Arguments& arguments) {
  Value now = runtime.sequence(std::move(arguments.positional), Sequence::Kind::tuple);
  if (last_ && equal(runtime, *last_, now)) return false;
  last_ = std::move(now);
  return true;
}

}  // namespace headrace::text::jinja
