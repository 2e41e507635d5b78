#include "compile/rewrite.hpp"

namespace headrace::compile {

using ir::ValueId;

ir::Function rewrite(const ir::Function& function, const std::string& name, const ir::Program& program,
                     std::span<const ir::Type> parameter_types, const RewriteNode& rewrite_node) {
  ir::Builder builder(name, &program);
  std::vector<ValueId> copies(function.values.size(), -1);
  for (std::size_t i = 0; i < function.parameters.size(); ++i) {
    const ValueId id = function.parameters[i];
    const ir::Value& value = function.values[static_cast<std::size_t>(id)];
    copies[static_cast<std::size_t>(id)] =
        builder.parameter(value.name, parameter_types.empty() ? value.type : parameter_types[i]);
  }
  for (const ir::Node& node : function.body) {
    std::vector<ValueId> operands;
    for (const ValueId id : node.operands) operands.push_back(copies[static_cast<std::size_t>(id)]);
    std::optional<std::vector<ValueId>> results = rewrite_node(builder, node, operands);
    if (!results) {
      results = node.is_call() ? builder.call(node.callee, operands) : builder.ops(*node.op, operands, node.attributes);
    }
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      const std::string& value_name = function.values[static_cast<std::size_t>(node.results[i])].name;
      if (!value_name.empty() && builder.is_unnamed((*results)[i])) builder.name((*results)[i], value_name);
      copies[static_cast<std::size_t>(node.results[i])] = (*results)[i];
    }
  }
  std::vector<ValueId> results;
  for (const ValueId id : function.results) results.push_back(copies[static_cast<std::size_t>(id)]);
  return builder.finish(std::move(results));
}

}  // namespace headrace::compile
