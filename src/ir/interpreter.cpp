#include "ir/interpreter.hpp"

#include <cmath>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/half.hpp"
#include "ir/builder.hpp"
#include "ir/op.hpp"

namespace headrace::ir {

std::int64_t element_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) {
    const auto product = checked_mul(count, dim);
    if (!product) fail<InputError>("shape: expected fewer than 2^63 elements, got an overflow");
    count = *product;
  }
  return count;
}

std::int64_t StateValue::row_elements() const { return element_count(shape); }

std::int64_t StateValue::positions(std::size_t sequence) const {
  const std::int64_t row = row_elements();
  return row == 0 ? 0 : static_cast<std::int64_t>(sequences.at(sequence).size()) / row;
}

double round_to(ElementType element, double value) {
  const auto wrapped = [&](int bits) {
    if (!std::isfinite(value)) fail<InputError>("conversion to an integer: expected a finite number, got {}", value);
    const double modulus = std::ldexp(1.0, bits);
    double rest = std::fmod(std::trunc(value), modulus);
    if (rest < 0) rest += modulus;
    return rest;
  };
  const auto wrapped_signed = [&](int bits) {
    const double rest = wrapped(bits);
    return rest >= std::ldexp(1.0, bits - 1) ? rest - std::ldexp(1.0, bits) : rest;
  };
  switch (element) {
    case ElementType::f64:
      return value;
    case ElementType::f32:
      return static_cast<double>(static_cast<float>(value));
    case ElementType::f16:
      return static_cast<double>(f16_to_f32(f32_to_f16(static_cast<float>(value))));
    case ElementType::bf16:
      return static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(value))));
    case ElementType::boolean:
      return value != 0 ? 1.0 : 0.0;
    case ElementType::u8:
      return wrapped(8);
    case ElementType::i8:
      return wrapped_signed(8);
    case ElementType::i32:
      return wrapped_signed(32);
    case ElementType::i64:
      return std::trunc(value);
  }
  throw InternalError("unknown element type");
}

EvaluateContext::EvaluateContext(const Node& node, const Function& function, std::vector<RuntimeValue> operands,
                                 Bindings& bindings)
    : node_(node), function_(function), operands_(std::move(operands)), bindings_(bindings) {}

const Tensor& EvaluateContext::tensor(std::size_t index) const {
  return *std::get<std::shared_ptr<const Tensor>>(operands_.at(index));
}

const StateValue& EvaluateContext::state(std::size_t index) const {
  return *std::get<std::shared_ptr<const StateValue>>(operands_.at(index));
}

std::string_view EvaluateContext::op_name() const { return node_.op->name; }

void EvaluateContext::bind(std::string_view symbol, std::int64_t value) {
  const auto [place, inserted] = bindings_.try_emplace(std::string(symbol), value);
  if (!inserted && place->second != value) {
    fail<InputError>("[{}] expected {} = {}, got {}", op_name(), symbol, place->second, value);
  }
}

Tensor& EvaluateContext::result() {
  if (!result_) {
    const Type& type = function_.type(node_.results.at(0));
    result_ = std::make_shared<Tensor>();
    result_->element = type.element;
    for (const Dim& dim : type.shape) result_->shape.push_back(dim.evaluate(bindings_));
    result_->values.assign(static_cast<std::size_t>(element_count(result_->shape)), 0.0);
  }
  return *result_;
}

RuntimeValue EvaluateContext::finish() {
  if (result_state_) return result_state_;
  require(result_ != nullptr, "a reference gives a result");
  // The values of an encoded tensor are what its codes decode to; their scales are f32 already.
  if (!function_.type(node_.results.at(0)).is_encoded()) {
    for (double& value : result_->values) value = round_to(result_->element, value);
  }
  return std::shared_ptr<const Tensor>(std::move(result_));
}

Interpreter::Interpreter(const Program& program, WeightSource weights)
    : program_(program), weights_(std::move(weights)) {}

void Interpreter::bind_shape(const Value& parameter, std::span<const std::int64_t> shape) {
  const auto refuse = [&](const std::string& got) {
    fail<InputError>("input %{}: expected {}, got {}", parameter.name, parameter.type.str(), got);
  };
  if (shape.size() != parameter.type.shape.size()) refuse(fmt::format("rank {}", shape.size()));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Dim& dim = parameter.type.shape[i];
    for (const Symbol& symbol : program_.symbols) {
      if (dim == Dim::symbol(symbol.name) && bindings_.find(symbol.name) == bindings_.end()) {
        if (shape[i] < symbol.minimum || shape[i] > symbol.maximum) {
          refuse(fmt::format("{} = {} outside [{}, {}]", symbol.name, shape[i], symbol.minimum, symbol.maximum));
        }
        bindings_[symbol.name] = shape[i];
      }
    }
    if (dim.evaluate(bindings_) != shape[i])
      refuse(fmt::format("{} where {} = {}", shape[i], dim.str(), dim.evaluate(bindings_)));
  }
}

std::vector<RuntimeValue> Interpreter::run(const std::map<std::string, RuntimeValue>& inputs) {
  bindings_.clear();
  const Function& entry = program_.entry();
  std::vector<RuntimeValue> arguments;
  for (const ValueId id : entry.parameters) {
    const Value& parameter = entry.values[static_cast<std::size_t>(id)];
    if (parameter.type.is_weight()) {
      auto& cached = weight_cache_[parameter.name];
      if (!cached) {
        auto tensor = std::make_shared<Tensor>(weights_(parameter.name, parameter.type));
        bind_shape(parameter, tensor->shape);
        cached = std::move(tensor);
      }
      arguments.emplace_back(cached);
      continue;
    }
    const auto place = inputs.find(parameter.name);
    if (place == inputs.end())
      fail<InputError>("input %{}: expected {}, got none", parameter.name, parameter.type.str());
    const bool is_state = std::holds_alternative<std::shared_ptr<const StateValue>>(place->second);
    if (is_state != parameter.type.is_state()) {
      fail<InputError>("input %{}: expected {}, got {}", parameter.name, parameter.type.str(),
                       is_state ? "a State" : "a tensor");
    }
    const ElementType element = is_state ? std::get<1>(place->second)->element : std::get<0>(place->second)->element;
    if (is_state && std::get<1>(place->second)->encoding != parameter.type.encoding) {
      fail<InputError>("input %{}: expected {}, got a State of another encoding", parameter.name, parameter.type.str());
    }
    if (element != parameter.type.element) {
      fail<InputError>("input %{}: expected {}, got {}", parameter.name, parameter.type.str(), element_name(element));
    }
    bind_shape(parameter, is_state ? std::get<1>(place->second)->shape : std::get<0>(place->second)->shape);
    arguments.push_back(place->second);
  }
  return run_function(entry, std::move(arguments));
}

std::vector<RuntimeValue> Interpreter::run_function(const Function& function, std::vector<RuntimeValue> arguments) {
  std::vector<RuntimeValue> values(function.values.size());
  std::vector<std::size_t> last_use(function.values.size(), 0);
  for (std::size_t i = 0; i < function.body.size(); ++i) {
    for (const ValueId id : function.body[i].operands) last_use[static_cast<std::size_t>(id)] = i;
  }
  for (const ValueId id : function.results) last_use[static_cast<std::size_t>(id)] = function.body.size();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    values[static_cast<std::size_t>(function.parameters[i])] = std::move(arguments[i]);
  }
  for (std::size_t i = 0; i < function.body.size(); ++i) {
    const Node& node = function.body[i];
    std::vector<RuntimeValue> operands;
    for (const ValueId id : node.operands) operands.push_back(values[static_cast<std::size_t>(id)]);
    std::vector<RuntimeValue> results = run_node(function, node, std::move(operands));
    for (std::size_t r = 0; r < results.size(); ++r) {
      values[static_cast<std::size_t>(node.results[r])] = std::move(results[r]);
    }
    for (const ValueId id : node.operands) {
      if (last_use[static_cast<std::size_t>(id)] == i) values[static_cast<std::size_t>(id)] = {};
    }
  }
  std::vector<RuntimeValue> results;
  for (const ValueId id : function.results) results.push_back(values[static_cast<std::size_t>(id)]);
  return results;
}

std::vector<RuntimeValue> Interpreter::run_node(const Function& function, const Node& node,
                                                std::vector<RuntimeValue> operands) {
  if (node.is_call()) return run_function(*program_.find(node.callee), std::move(operands));
  if (node.op->is_primitive()) {
    EvaluateContext context(node, function, std::move(operands), bindings_);
    node.op->evaluate(context);
    return {context.finish()};
  }
  auto place = expansions_.find(&node);
  if (place == expansions_.end()) {
    Builder builder(node.op->name, nullptr);
    std::vector<ValueId> parameters;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      parameters.push_back(builder.parameter(fmt::format("operand_{}", i), function.type(node.operands[i])));
    }
    std::vector<ValueId> results = builder.expand(*node.op, parameters, node.attributes);
    place = expansions_.emplace(&node, builder.finish(std::move(results))).first;
  }
  return run_function(place->second, std::move(operands));
}

}  // namespace headrace::ir
