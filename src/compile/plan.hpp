// Plan: a lowered Program laid out for a Machine: steps over slots, where each unit lives, sizes and predicted times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compile/kernel_catalog.hpp"
#include "ir/program.hpp"
#include "machine/machine.hpp"

namespace headrace::compile {

/// Where a unit is while the Engine runs.
enum class Residence : std::uint8_t { pinned, streamed, cached };
std::string_view residence_name(Residence residence);

/// A Weight of the Program; its one unit is the whole, until experts and rows are moved alone.
struct WeightPlan {
  std::string name;
  ir::Type type;
  std::int64_t packed_bytes = 0;
  Residence residence = Residence::pinned;
};

/// A State of the Program: a part of every page.
struct StatePlan {
  std::string name;
  ir::Type type;
  std::int64_t page_offset = 0;
  std::int64_t page_bytes = 0;
};

/// Where the value of a slot lies.
struct Slot {
  enum class Kind : std::uint8_t { arena, parameter, alias, result };
  Kind kind = Kind::arena;
  /// parameter: index among the function's parameters; alias: the slot whose bytes these are; result: index among the
  /// function's results, whose bytes the caller provides.
  int index = 0;
  ir::Type type;
};

struct PlanStep {
  std::string op;
  Kernel kernel;    ///< of a step that is no call
  int callee = -1;  ///< index of a template, for a call
  std::vector<int> operands;
  std::vector<int> results;
};

/// The steps of one function; its slots are numbered as the function's values, then those that the planner added.
struct PlanTemplate {
  std::string name;
  std::vector<Slot> slots;
  std::vector<PlanStep> steps;
  std::vector<int> parameters;  ///< slots
  std::vector<int> results;     ///< slots
};

/// What must be known beside Program and Machine.
struct Limits {
  ir::Bindings sizes;              ///< the largest value of each symbol: T, S, B, P
  std::uint64_t memory_bytes = 0;  ///< for Weights, State and arena; 0: no limit
  std::int64_t pages = 0;          ///< KV pages that the Engine will hold
  std::string kv_encoding = {};    ///< of the State that attention reads: f16, bf16, q8_0; empty: as declared
};

/// What was measured before. Empty until something is measured that a Plan depends on (expert use counts, in its time);
/// it is printed with the Plan.
struct Profile {};

struct Plan {
  ir::Program program;                  ///< lowered
  std::vector<PlanTemplate> templates;  ///< as program.functions; the last one is the entry
  std::vector<WeightPlan> weights;      ///< in the order of the entry's Weight parameters
  std::vector<StatePlan> states;        ///< in the order of the entry's State parameters
  std::int64_t page_positions = 0;
  std::int64_t page_bytes = 0;
  Limits limits;
  std::string isa;

  std::int64_t weight_bytes = 0;
  std::int64_t arena_bytes = 0;  ///< at the largest sizes, with what workers share beside it
  std::int64_t state_bytes = 0;  ///< pages * page_bytes
};

/// Makes a Plan of a Program, which it lowers. A pure function. All units are pinned. Throws ResourceError, naming what
/// each part needs and the smallest limit that works, if they do not fit `limits.memory_bytes`.
Plan plan(const ir::Program& program, const KernelCatalog& catalog, const Limits& limits, const Profile& profile);

/// A step with everything in place but the addresses: what the Engine runs, calls already inlined.
struct BoundOperand {
  enum class Kind : std::uint8_t { arena, weight, state };
  Kind kind = Kind::arena;
  std::int64_t index = 0;  ///< arena: byte offset; weight, state: index in the Plan
  ir::Type type;
};

struct BoundStep {
  const PlanStep* step = nullptr;
  std::vector<BoundOperand> operands;
  std::vector<BoundOperand> results;
  bool barrier_before = true;  ///< whether all workers must have finished the steps before
};

/// A call of a bound step with sizes and no addresses, for the questions that the planner asks of a kernel.
struct SizedCall {
  SizedCall(const BoundStep& step, const ir::Bindings& sizes);
  SizedCall(const SizedCall&) = delete;
  SizedCall& operator=(const SizedCall&) = delete;
  std::vector<View> views;
  KernelCall call;
};

/// The Plan at given sizes: offsets in one arena, by lifetime. Holds pointers into the Plan.
struct BoundPlan {
  ir::Bindings sizes;
  std::vector<BoundStep> steps;
  std::vector<BoundOperand> inputs;  ///< the entry's tensor parameters, in order
  std::vector<std::string> input_names;
  std::vector<BoundOperand> outputs;  ///< the entry's tensor results, in order
  std::int64_t arena_bytes = 0;
  std::size_t scratch_bytes = 0;  ///< of one worker, at these sizes
  std::size_t shared_bytes = 0;
};

/// Lays the arena out at `sizes`; smaller sizes run in the same layout.
BoundPlan bind(const Plan& plan, const KernelCatalog& catalog, const ir::Bindings& sizes);

/// Bytes of a tensor or an encoded tensor at these sizes.
std::int64_t value_bytes(const ir::Type& type, const KernelCatalog& catalog, const ir::Bindings& sizes);

/// The view of an operand at these sizes, without its address.
View sized_view(const ir::Type& type, const ir::Bindings& sizes);

/// Predicted times of the steps of `bound` at `sizes` (one entry a step), overlapped as the machine's time model says.
std::vector<double> predict(const BoundPlan& bound, const machine::Machine& machine, const ir::Bindings& sizes);

/// The Plan as people read it: templates with their kernels, predicted times at the given sizes, and memory.
std::string print_plan(const Plan& plan, const KernelCatalog& catalog, const machine::Machine& machine,
                       const ir::Bindings& sizes);

}  // namespace headrace::compile
