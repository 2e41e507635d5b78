// The `loop` variable of a for loop.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/jinja/ast.hpp"
#include "text/jinja/evaluator.hpp"

namespace headrace::text::jinja {

class Loop final : public Object, public std::enable_shared_from_this<Loop> {
 public:
  Loop(Evaluator& evaluator, const node::For& statement, std::shared_ptr<const Sequence> items,
       std::shared_ptr<Scope> closure, std::size_t depth)
      : evaluator_(evaluator),
        statement_(statement),
        items_(std::move(items)),
        closure_(std::move(closure)),
        depth_(depth) {}

  void set_index(std::size_t index) noexcept { index_ = index; }
  [[nodiscard]] std::string describe(Runtime& runtime) const override;
  [[nodiscard]] std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  [[nodiscard]] bool is_callable() const noexcept override { return statement_.recursive; }
  Value call(Runtime& runtime, Arguments& arguments) override;
  /// loop.cycle(a, b, …): one of the arguments in turn.
  Value cycle(Runtime& runtime, Arguments& arguments) const;
  /// loop.changed(value): whether it differs from the last call's.
  Value changed(Runtime& runtime, Arguments& arguments);

 private:
  Evaluator& evaluator_;
  const node::For& statement_;
  std::shared_ptr<const Sequence> items_;
  std::shared_ptr<Scope> closure_;
  std::size_t depth_;
  std::size_t index_ = 0;
  std::optional<Value> last_;
};

}  // namespace headrace::text::jinja
