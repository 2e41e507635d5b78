#include "compile/passes.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "compile/rewrite.hpp"
#include "ir/builder.hpp"
#include "ir/op.hpp"
#include "ir/verifier.hpp"

namespace headrace::compile {

using ir::ValueId;

namespace {

ir::Program without_functions(const ir::Program& program) { return {program.name, program.symbols, {}}; }

/// Applies one rewriting to each function in its place.
ir::Program rewrite_all(const ir::Program& program, const std::function<RewriteNode(ir::Program&)>& make) {
  ir::Program result = without_functions(program);
  for (const ir::Function& function : program.functions) {
    result.functions.push_back(rewrite(function, function.name, result, {}, make(result)));
  }
  ir::verify(result);
  return result;
}

class Specializer {
 public:
  explicit Specializer(const ir::Program& program) : program_(program), result_(without_functions(program)) {}

  ir::Program run() {
    const ir::Function& entry = program_.entry();
    ir::Function copy = rewrite(entry, entry.name, result_, {}, callback());
    result_.functions.push_back(std::move(copy));
    ir::verify(result_);
    return std::move(result_);
  }

 private:
  RewriteNode callback() {
    return [this](ir::Builder& builder, const ir::Node& node,
                  std::span<const ValueId> operands) -> std::optional<std::vector<ValueId>> {
      if (!node.is_call()) return std::nullopt;
      std::vector<ir::Type> types;
      for (const ValueId id : operands) types.push_back(builder.type(id));
      return builder.call(instance(*program_.find(node.callee), types), operands);
    };
  }

  /// The name of the copy of `function` for these types.
  const std::string& instance(const ir::Function& function, const std::vector<ir::Type>& types) {
    std::string key = function.name;
    for (const ir::Type& type : types) key += (type.is_weight() ? "|" + type.encoding : "|");
    auto [place, inserted] = instances_.try_emplace(key);
    if (inserted) {
      const int number = counts_[function.name]++;
      std::string name = number == 0 ? function.name : fmt::format("{}.{}", function.name, number);
      ir::Function copy = rewrite(function, name, result_, types, callback());
      result_.functions.push_back(std::move(copy));
      place->second = std::move(name);
    }
    return place->second;
  }

  const ir::Program& program_;
  ir::Program result_;
  std::map<std::string, std::string> instances_;
  std::map<std::string, int> counts_;
};

std::vector<ir::Type> operand_types(const ir::Builder& builder, std::span<const ValueId> operands) {
  std::vector<ir::Type> types;
  for (const ValueId id : operands) types.push_back(builder.type(id));
  return types;
}

/// Appends `op`, or what it expands to, so that the catalog has a kernel for everything.
std::vector<ValueId> emit(ir::Builder& builder, const KernelCatalog& catalog, const ir::OpDef& op,
                          std::span<const ValueId> operands, const ir::Attributes& attributes) {
  const std::vector<ir::Type> types = operand_types(builder, operands);
  if (needs_no_kernel(op, types) || catalog.find(op, types, attributes)) return builder.ops(op, operands, attributes);
  if (op.is_primitive()) {
    std::string text;
    for (const ir::Type& type : types) text += (text.empty() ? "" : ", ") + type.str();
    fail<InputError>("[{}] expected operands that the kernels of {} take, got ({})", op.name, catalog.isa(), text);
  }
  // The expansion is made in a function of its own, whose nodes are then emitted in turn.
  ir::Builder scratch(op.name, nullptr);
  std::vector<ValueId> parameters;
  for (std::size_t i = 0; i < types.size(); ++i) {
    parameters.push_back(scratch.parameter(fmt::format("operand_{}", i), types[i]));
  }
  std::vector<ValueId> results = scratch.expand(op, parameters, attributes);
  const ir::Function expansion = scratch.finish(std::move(results));
  std::vector<ValueId> copies(expansion.values.size(), -1);
  for (std::size_t i = 0; i < operands.size(); ++i) copies[i] = operands[i];
  for (const ir::Node& node : expansion.body) {
    std::vector<ValueId> inputs;
    for (const ValueId id : node.operands) inputs.push_back(copies[static_cast<std::size_t>(id)]);
    const std::vector<ValueId> outputs = emit(builder, catalog, *node.op, inputs, node.attributes);
    for (std::size_t i = 0; i < outputs.size(); ++i) copies[static_cast<std::size_t>(node.results[i])] = outputs[i];
  }
  std::vector<ValueId> final_results;
  for (const ValueId id : expansion.results) final_results.push_back(copies[static_cast<std::size_t>(id)]);
  return final_results;
}

}  // namespace

bool needs_no_kernel(const ir::OpDef& op, std::span<const ir::Type> operands) {
  return op.name == "reshape" && operands[0].is_tensor();
}

bool is_alias(const ir::OpDef& op, std::span<const ir::Type> operands) {
  return op.consumes_state || needs_no_kernel(op, operands);
}

ir::Program specialize(const ir::Program& program) { return Specializer(program).run(); }

ir::Program encode_activations(const ir::Program& program, const KernelCatalog& catalog) {
  return rewrite_all(program, [&](ir::Program&) -> RewriteNode {
    auto encoded = std::make_shared<std::map<std::pair<ValueId, std::string>, ValueId>>();
    return [&catalog, encoded](ir::Builder& builder, const ir::Node& node,
                               std::span<const ValueId> operands) -> std::optional<std::vector<ValueId>> {
      if (node.is_call() || (node.op->name != "linear" && node.op->name != "expert_linear") ||
          builder.type(operands[0]).is_encoded()) {
        return std::nullopt;
      }
      const std::string encoding = catalog.linear_encoding(builder.type(operands[1]).encoding);
      if (encoding.empty()) return std::nullopt;
      const auto [place, inserted] = encoded->try_emplace({operands[0], encoding}, -1);
      if (inserted) place->second = builder.op("encode", {operands[0]}, {{"to", encoding}});
      std::vector<ValueId> inputs(operands.begin(), operands.end());
      inputs[0] = place->second;
      return builder.ops(*node.op, inputs, node.attributes);
    };
  });
}

ir::Program decompose(const ir::Program& program, const KernelCatalog& catalog) {
  return rewrite_all(program, [&](ir::Program&) -> RewriteNode {
    return [&catalog](ir::Builder& builder, const ir::Node& node,
                      std::span<const ValueId> operands) -> std::optional<std::vector<ValueId>> {
      if (node.is_call()) return std::nullopt;
      return emit(builder, catalog, *node.op, operands, node.attributes);
    };
  });
}

ir::Program eliminate_dead_nodes(const ir::Program& program) {
  ir::Program result = without_functions(program);
  for (const ir::Function& function : program.functions) {
    std::vector<bool> live(function.values.size(), false);
    for (const ValueId id : function.results) live[static_cast<std::size_t>(id)] = true;
    std::vector<bool> keep(function.body.size(), false);
    for (std::size_t i = function.body.size(); i-- > 0;) {
      const ir::Node& node = function.body[i];
      for (const ValueId id : node.results) keep[i] = keep[i] || live[static_cast<std::size_t>(id)];
      if (!keep[i]) continue;
      for (const ValueId id : node.operands) live[static_cast<std::size_t>(id)] = true;
    }
    ir::Function pruned = function;
    pruned.body.clear();
    for (std::size_t i = 0; i < function.body.size(); ++i) {
      if (keep[i]) pruned.body.push_back(function.body[i]);
    }
    result.functions.push_back(
        rewrite(pruned, function.name, result, {},
                [](ir::Builder&, const ir::Node&, std::span<const ValueId>) { return std::nullopt; }));
  }
  ir::verify(result);
  return result;
}

ir::Program lower(const ir::Program& program, const KernelCatalog& catalog, std::string_view kv_encoding) {
  const ir::Program encoded = encode_states(encode_activations(specialize(program), catalog), catalog, kv_encoding);
  const ir::Program fused = fuse(order_states(encoded, catalog), catalog);
  return eliminate_dead_nodes(decompose(fused, catalog));
}

}  // namespace headrace::compile
