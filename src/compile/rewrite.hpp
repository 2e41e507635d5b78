// Copies a function node by node; passes say which nodes become something else.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/builder.hpp"
#include "ir/program.hpp"

namespace headrace::compile {

/// What stands for a node's results in the copy, or nothing: the node is copied as it is. `operands` are values of the
/// copy.
using RewriteNode = std::function<std::optional<std::vector<ir::ValueId>>(ir::Builder&, const ir::Node&,
                                                                          std::span<const ir::ValueId> operands)>;

/// `program`: where the copy's calls find their callees. `parameter_types`: of the copy, or empty for the same.
ir::Function rewrite(const ir::Function& function, const std::string& name, const ir::Program& program,
                     std::span<const ir::Type> parameter_types, const RewriteNode& rewrite_node);

}  // namespace headrace::compile
