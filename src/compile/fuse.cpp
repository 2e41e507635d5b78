// The pass that joins ops which would make workers wait between them. It knows ops by name and kernels by the catalog,
// and nothing of model families.
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "compile/passes.hpp"
#include "compile/rewrite.hpp"
#include "ir/builder.hpp"
#include "ir/op.hpp"
#include "ir/verifier.hpp"

namespace headrace::compile {

namespace {

using ir::Node;
using ir::ValueId;

/// Linears that read one value, or one encoding of it, and the norm that made it, if it has no other reader.
struct Group {
  std::string encode;
  std::vector<const Node*> linears;
  const Node* norm = nullptr;

  std::vector<ValueId> inputs;   ///< in the copy: x, and a norm's Weight
  std::vector<ValueId> results;  ///< in the copy, once the joined op is there
};

class Fuser {
 public:
  Fuser(const ir::Function& function, const KernelCatalog& catalog)
      : function_(function),
        catalog_(catalog),
        readers_(function.values.size()),
        producers_(function.values.size(), nullptr),
        is_result_(function.values.size(), false) {
    for (const Node& node : function.body) {
      for (const ValueId id : node.operands) readers_[index(id)].push_back(&node);
      for (const ValueId id : node.results) producers_[index(id)] = &node;
    }
    for (const ValueId id : function.results) is_result_[index(id)] = true;
    for (const Node& node : function.body) find_norm(node);
    for (const Node& node : function.body) find_encode(node);
    for (const Node& node : function.body) find_append(node);
  }

  std::optional<std::vector<ValueId>> operator()(ir::Builder& builder, const Node& node,
                                                 std::span<const ValueId> operands) {
    // The heads stand before the linears; what they gave up is left to eliminate_dead_nodes.
    if (const auto head = heads_.find(&node); head != heads_.end()) {
      head->second->inputs.assign(operands.begin(), operands.end());
      return std::nullopt;
    }
    if (const auto place = groups_.find(&node); place != groups_.end()) {
      Group& group = *place->second;
      if (group.results.empty()) group.results = emit(builder, group);
      for (std::size_t i = 0; i < group.linears.size(); ++i) {
        if (group.linears[i] == &node) return std::vector<ValueId>{group.results[i]};
      }
    }
    if (const auto rope = ropes_.find(&node); rope != ropes_.end()) {
      rotated_[&node].assign(operands.begin(), operands.end());
      return std::nullopt;
    }
    if (const auto append = appends_.find(&node); append != appends_.end()) {
      const std::vector<ValueId>& rotated = rotated_.at(append->second);
      const std::vector<ValueId> inputs = {operands[0], rotated[0], rotated[1], operands[2], operands[3]};
      return builder.ops(*ir::find_op("rope_append"), inputs, append->second->attributes);
    }
    return std::nullopt;
  }

 private:
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }
  static bool is(const Node* node, std::string_view op) {
    return node != nullptr && !node->is_call() && node->op->name == op;
  }
  [[nodiscard]] const std::vector<const Node*>& readers(ValueId id) const { return readers_[index(id)]; }

  [[nodiscard]] bool is_parameter(ValueId id) const { return producers_[index(id)] == nullptr; }

  /// Whether `id` is read by linears on parameters and by nothing else.
  [[nodiscard]] bool feeds_linears(ValueId id) const {
    if (is_result_[index(id)] || readers(id).empty()) return false;
    for (const Node* reader : readers(id)) {
      if (!is(reader, "linear") || reader->operands[0] != id || !is_parameter(reader->operands[1])) return false;
    }
    return true;
  }

  /// The linears behind `id`, through one encode or none.
  [[nodiscard]] std::shared_ptr<Group> group_of(ValueId id) const {
    auto group = std::make_shared<Group>();
    if (!is_result_[index(id)] && readers(id).size() == 1 && is(readers(id)[0], "encode")) {
      group->encode = std::get<std::string>(readers(id)[0]->attributes.at("to"));
      id = readers(id)[0]->results[0];
    }
    if (!feeds_linears(id)) return nullptr;
    group->linears = readers(id);
    return group;
  }

  void find_norm(const Node& node) {
    if (!is(&node, "rms_norm")) return;
    const std::shared_ptr<Group> group = group_of(node.results[0]);
    if (group == nullptr) return;
    group->norm = &node;
    add(group, node);
  }

  /// An encode whose input lies divided by columns is done on them, without a barrier. Any other would cost two: before
  /// and behind it.
  void find_encode(const Node& node) {
    if (!is(&node, "encode") || !feeds_linears(node.results[0]) || is_divided(node.operands[0])) return;
    if (groups_.contains(readers(node.results[0])[0])) return;  // a norm's
    auto group = std::make_shared<Group>();
    group->encode = std::get<std::string>(node.attributes.at("to"));
    group->linears = readers(node.results[0]);
    add(group, node);
  }

  [[nodiscard]] bool is_divided(ValueId id) const {
    const Node* producer = producers_[index(id)];
    while (is(producer, "reshape")) {
      id = producer->operands[0];
      producer = producers_[index(id)];
    }
    if (producer == nullptr || producer->is_call()) return false;
    const std::optional<Kernel> kernel =
        catalog_.find(*producer->op, types_of(producer->operands), producer->attributes);
    if (!kernel) return false;
    for (std::size_t i = 0; i < producer->results.size(); ++i) {
      const std::size_t view = producer->operands.size() + i;
      if (producer->results[i] == id) return view < kernel->column_units.size() && kernel->column_units[view] > 0;
    }
    return false;
  }

  [[nodiscard]] std::vector<ir::Type> types_of(std::span<const ValueId> ids) const {
    std::vector<ir::Type> types;
    for (const ValueId id : ids) types.push_back(function_.type(id));
    return types;
  }

  /// Columns of a linear's result that its readers want in one piece: a rotation of halves takes whole heads.
  [[nodiscard]] std::int64_t unit_of(const Node& linear) const {
    for (const Node* reader : readers(linear.results[0])) {
      if (!is(reader, "reshape")) continue;
      for (const Node* next : readers(reader->results[0])) {
        if (!is(next, "rope") || std::get<std::string>(next->attributes.at("pairing")) != "halves") continue;
        const std::int64_t width = function_.type(next->operands[0]).shape[2].constant();
        if (width % column_unit == 0) return width;
      }
    }
    return column_unit;
  }

  [[nodiscard]] static std::string_view op_of(const Group& group) {
    return group.norm != nullptr ? "norm_linears" : "linears";
  }

  [[nodiscard]] ir::Attributes attributes_of(const Group& group) const {
    ir::Attributes attributes = {{"encode", group.encode}};
    std::vector<std::int64_t> units;
    for (const Node* linear : group.linears) units.push_back(unit_of(*linear));
    attributes["units"] = std::move(units);
    if (group.norm != nullptr) attributes["epsilon"] = group.norm->attributes.at("epsilon");
    return attributes;
  }

  void add(const std::shared_ptr<Group>& group, const Node& head) {
    std::vector<ir::Type> types = types_of(head.operands);
    for (const Node* linear : group->linears) types.push_back(function_.type(linear->operands[1]));
    const ir::OpDef& op = *ir::find_op(op_of(*group));
    if (static_cast<int>(types.size()) > op.maximum_operands || !catalog_.find(op, types, attributes_of(*group)))
      return;
    heads_[&head] = group;
    for (const Node* linear : group->linears) groups_[linear] = group;
  }

  [[nodiscard]] std::vector<ValueId> emit(ir::Builder& builder, const Group& group) const {
    std::vector<ValueId> operands = group.inputs;
    // Parameters have the same numbers in the copy: they come first in both.
    for (const Node* linear : group.linears) operands.push_back(linear->operands[1]);
    return builder.ops(*ir::find_op(op_of(group)), operands, attributes_of(group));
  }

  void find_append(const Node& node) {
    if (!is(&node, "append")) return;
    const ValueId rotated = node.operands[1];
    const Node* rope = producers_[index(rotated)];
    if (!is(rope, "rope") || readers(rotated).size() != 1 || is_result_[index(rotated)]) return;
    const std::vector<ir::Type> types = types_of(std::vector<ValueId>{
        node.operands[0], rope->operands[0], rope->operands[1], node.operands[2], node.operands[3]});
    if (!catalog_.find(*ir::find_op("rope_append"), types, rope->attributes)) return;
    ropes_[rope] = &node;
    appends_[&node] = rope;
  }

  const ir::Function& function_;
  const KernelCatalog& catalog_;
  std::vector<std::vector<const Node*>> readers_;
  std::vector<const Node*> producers_;  ///< nullptr of a parameter
  std::vector<bool> is_result_;
  std::map<const Node*, std::shared_ptr<Group>> heads_;   ///< by norm, or by encode
  std::map<const Node*, std::shared_ptr<Group>> groups_;  ///< by linear
  std::map<const Node*, const Node*> ropes_;              ///< their appends
  std::map<const Node*, const Node*> appends_;            ///< their ropes
  std::map<const Node*, std::vector<ValueId>> rotated_;   ///< operands of ropes, in the copy
};

}  // namespace

ir::Program fuse(const ir::Program& program, const KernelCatalog& catalog) {
  ir::Program result{program.name, program.symbols, {}};
  for (const ir::Function& function : program.functions) {
    result.functions.push_back(rewrite(function, function.name, result, {}, Fuser(function, catalog)));
  }
  ir::verify(result);
  return result;
}

}  // namespace headrace::compile
