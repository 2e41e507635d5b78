// Passes on the State that attention reads: its encoding, which is an option, and its order, which the kernels want.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "compile/passes.hpp"
#include "compile/rewrite.hpp"
#include "ir/builder.hpp"
#include "ir/op.hpp"
#include "ir/verifier.hpp"

namespace headrace::compile {

using ir::ValueId;

namespace {

std::vector<ir::Type> operand_types(const ir::Function& function, const ir::Node& node) {
  std::vector<ir::Type> types;
  for (const ValueId id : node.operands) types.push_back(function.type(id));
  return types;
}

/// Which parameters of a function attention reads, there or in what it calls.
struct Roles {
  std::vector<bool> keys;
  std::vector<bool> values;
};

class RoleFinder {
 public:
  RoleFinder(const ir::Program& program, const std::map<std::string, Roles>& known, const ir::Function& function)
      : program_(program),
        known_(known),
        function_(function),
        keys_(function.values.size(), false),
        values_(function.values.size(), false) {
    for (std::size_t i = 0; i < function.values.size(); ++i) root_.push_back(static_cast<ValueId>(i));
  }

  Roles run(const std::function<bool(const ir::Function&, const ir::Node&)>& counts) {
    for (const ir::Node& node : function_.body) {
      if (node.is_call()) {
        follow_call(node);
      } else if (node.op->consumes_state) {
        grow(node.results[0], node.operands[0]);
      } else if (node.op->name == "attention" && counts(function_, node)) {
        mark(keys_, node.operands[1]);
        mark(values_, node.operands[2]);
      }
    }
    Roles roles;
    for (const ValueId id : function_.parameters) {
      roles.keys.push_back(keys_[static_cast<std::size_t>(id)]);
      roles.values.push_back(values_[static_cast<std::size_t>(id)]);
    }
    return roles;
  }

 private:
  void grow(ValueId to, ValueId from) { root_[static_cast<std::size_t>(to)] = root_[static_cast<std::size_t>(from)]; }
  void mark(std::vector<bool>& marks, ValueId id) const {
    marks[static_cast<std::size_t>(root_[static_cast<std::size_t>(id)])] = true;
  }

  /// A callee's last results are its State parameters, in order.
  void follow_call(const ir::Node& node) {
    const ir::Function& callee = *program_.find(node.callee);
    const Roles& roles = known_.at(node.callee);
    std::size_t state = node.results.size();
    for (std::size_t i = node.operands.size(); i-- > 0;) {
      if (!callee.type(callee.parameters[i]).is_state()) continue;
      grow(node.results[--state], node.operands[i]);
      if (roles.keys[i]) mark(keys_, node.operands[i]);
      if (roles.values[i]) mark(values_, node.operands[i]);
    }
  }

  const ir::Program& program_;
  const std::map<std::string, Roles>& known_;
  const ir::Function& function_;
  std::vector<bool> keys_;
  std::vector<bool> values_;
  std::vector<ValueId> root_;  ///< of a state: the parameter that it grew from
};

/// Gives the State parameters of all functions other types, by what the attention nodes that count read.
ir::Program retype_states(const ir::Program& program,
                          const std::function<bool(const ir::Function&, const ir::Node&)>& counts,
                          const std::function<void(ir::Type&, bool is_key, bool is_value)>& retype) {
  ir::Program result = {program.name, program.symbols, {}};
  std::map<std::string, Roles> roles;
  for (const ir::Function& function : program.functions) {
    const Roles& own = roles[function.name] = RoleFinder(program, roles, function).run(counts);
    std::vector<ir::Type> types;
    for (std::size_t i = 0; i < function.parameters.size(); ++i) {
      types.push_back(function.type(function.parameters[i]));
      retype(types.back(), own.keys[i], own.values[i]);
    }
    result.functions.push_back(
        rewrite(function, function.name, result, types,
                [](ir::Builder&, const ir::Node&, std::span<const ValueId>) { return std::nullopt; }));
  }
  ir::verify(result);
  return result;
}

void set_encoding(ir::Type& type, std::string_view encoding) {
  type.encoding = encoding == "q8_0" ? encoding : "";
  type.element = encoding == "q8_0"   ? ir::ElementType::f32
                 : encoding == "bf16" ? ir::ElementType::bf16
                                      : ir::ElementType::f16;
}

}  // namespace

ir::Program encode_states(const ir::Program& program, const KernelCatalog& catalog, std::string_view encoding) {
  if (encoding.empty()) return program;
  if (encoding != "f16" && encoding != "bf16" && encoding != "q8_0") {
    fail<InputError>("KV encoding: expected f16, bf16 or q8_0, got {}", encoding);
  }
  const auto counts = [&](const ir::Function& function, const ir::Node& node) {
    std::vector<ir::Type> types = operand_types(function, node);
    set_encoding(types[1], encoding);
    set_encoding(types[2], encoding);
    types[1].order = "columns16";
    // Elements can be read by what attention expands to, blocks only by a kernel.
    if (!types[1].encoding.empty() && !catalog.find(*node.op, types, node.attributes)) {
      fail<InputError>("KV encoding {}: expected heads of a width that is a multiple of 32 and at most 256, got {}",
                       encoding, types[0].shape[2].str());
    }
    return true;
  };
  return retype_states(program, counts, [&](ir::Type& type, bool is_key, bool is_value) {
    if (is_key || is_value) set_encoding(type, encoding);
  });
}

ir::Program order_states(const ir::Program& program, const KernelCatalog& catalog) {
  const auto counts = [&](const ir::Function& function, const ir::Node& node) {
    std::vector<ir::Type> types = operand_types(function, node);
    types[1].order = "columns16";
    return catalog.find(*node.op, types, node.attributes).has_value();
  };
  return retype_states(program, counts, [](ir::Type& type, bool is_key, bool) {
    if (is_key) type.order = "columns16";
  });
}

}  // namespace headrace::compile
