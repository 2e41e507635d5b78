// Interpreter: runs any Program, slowly, with bounds checks and double accumulation. It is the semantics, and the
// oracle of every target.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/program.hpp"

namespace headrace::ir {

/// A concrete tensor. Values are kept as doubles that are exactly representable in the element type; those of an
/// encoded tensor are what its codes decode to. Row-major. i64 values beyond 2^53 are not representable.
struct Tensor {
  ElementType element = ElementType::f32;
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

/// Append State of all sequences: sequences[b] holds rows of `shape` one after the other.
struct StateValue {
  ElementType element = ElementType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::vector<double>> sequences;
  std::string encoding = {};  ///< as the type's; values are what the codes stand for

  [[nodiscard]] std::int64_t row_elements() const;
  [[nodiscard]] std::int64_t positions(std::size_t sequence) const;
};

using RuntimeValue = std::variant<std::shared_ptr<const Tensor>, std::shared_ptr<const StateValue>>;

/// Product of a concrete shape.
std::int64_t element_count(std::span<const std::int64_t> shape);
/// `value` as `element` represents it: rounded to nearest even; integers wrap to their width, bool is 0 or 1.
double round_to(ElementType element, double value);

/// What the reference of a primitive sees: operands, attributes, and results whose shapes are already set.
class EvaluateContext {
 public:
  EvaluateContext(const Node& node, const Function& function, std::vector<RuntimeValue> operands, Bindings& bindings);

  [[nodiscard]] std::size_t count() const noexcept { return operands_.size(); }
  [[nodiscard]] const Tensor& tensor(std::size_t index) const;
  [[nodiscard]] const StateValue& state(std::size_t index) const;
  template <class T>
  [[nodiscard]] const T& attribute(std::string_view name) const {
    return std::get<T>(node_.attributes.find(name)->second);
  }
  [[nodiscard]] std::string_view op_name() const;
  /// Binds a symbol that only the run knows (the length of a State); InputError if it has another value already.
  void bind(std::string_view symbol, std::int64_t value);
  /// The one result, allocated with the shape that its type has under the bindings.
  Tensor& result();
  void set_state(std::shared_ptr<const StateValue> state) { result_state_ = std::move(state); }
  /// Rounds the result to its element type and hands it over.
  RuntimeValue finish();

 private:
  const Node& node_;
  const Function& function_;
  std::vector<RuntimeValue> operands_;
  Bindings& bindings_;
  std::shared_ptr<Tensor> result_;
  std::shared_ptr<const StateValue> result_state_;
};

class Interpreter {
 public:
  /// `weights` gives each Weight of the entry by name, decoded; it is asked once a name.
  using WeightSource = std::function<Tensor(const std::string& name, const Type& type)>;
  Interpreter(const Program& program, WeightSource weights);

  /// Runs the entry. `inputs`: every tensor and State parameter by name. Returns the results in order.
  /// Throws InputError if an input is missing or has another type, a size is out of its symbol's range, or an index is
  /// out of bounds.
  std::vector<RuntimeValue> run(const std::map<std::string, RuntimeValue>& inputs);

 private:
  std::vector<RuntimeValue> run_function(const Function& function, std::vector<RuntimeValue> arguments);
  std::vector<RuntimeValue> run_node(const Function& function, const Node& node, std::vector<RuntimeValue> operands);
  void bind_shape(const Value& parameter, std::span<const std::int64_t> shape);

  const Program& program_;
  WeightSource weights_;
  std::map<std::string, std::shared_ptr<const Tensor>> weight_cache_;
  std::map<const Node*, Function> expansions_;
  Bindings bindings_;
};

}  // namespace headrace::ir
