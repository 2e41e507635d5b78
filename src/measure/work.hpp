// What a step must do, whatever computes it: bytes to read and operations; and the least time that a machine of given
// rates takes for them.
#pragma once

#include <cstdint>
#include <string_view>

#include "compile/plan.hpp"
#include "ir/program.hpp"

namespace headrace::measure {

/// One step in numbers.
struct StepSize {
  std::int64_t rows = 1;       ///< T: new tokens of all sequences together
  std::int64_t wanted = 1;     ///< S: rows whose logits are wanted
  std::int64_t sequences = 1;  ///< B
  double past = 0;             ///< committed positions of a sequence, the mean over all steps that are meant
};

struct Work {
  double weight_bytes = 0;
  double kv_bytes = 0;
  double int8_ops = 0;
  double bf16_flops = 0;
  double f32_flops = 0;
  [[nodiscard]] double bytes() const noexcept { return weight_bytes + kv_bytes; }
};

/// What one step reads and computes.
///  - Weights in bytes of their Formats, as the file holds them: those that only an embedding reads count `rows` rows,
///    all others whole and once, also if an embedding reads them too. Of a Weight with experts [X, N, K] a step reads
///    the share that rows taking `experts_used` of the X at random each are expected to touch.
///  - KV bytes as pages hold them: all of a sequence's positions up to its last row.
///  - Operations as the Plan's kernels count them, a multiply-add as 2, in the unit that the kernel uses; how many
///    instructions a kernel spends on one does not enter. Attention counts the positions that a row sees.
/// `program` is the one that `plan` was made of.
Work step_work(const ir::Program& program, const compile::Plan& plan, const compile::KernelCatalog& catalog,
               const StepSize& step, std::int64_t experts_used);

/// The share of `experts` that `rows` rows touch in the mean if each takes `used` different ones at random.
double touched_share(std::int64_t experts, std::int64_t used, std::int64_t rows);

/// All threads together; a unit that is not there has rate 0.
struct Rates {
  double read_bytes_per_s = 0;
  double int8_ops_per_s = 0;
  double bf16_flops_per_s = 0;
  double f32_flops_per_s = 0;
};

struct StepLimit {
  double seconds = 0;
  std::string_view by;  ///< what takes them: "memory", "int8", "bf16" or "f32"
};

/// Reading and computing overlap, so that the longer one is the least time; kinds of arithmetic share their ports, so
/// that their times add. Operations of a unit that the machine lacks are done in f32.
StepLimit step_limit(const Work& work, const Rates& rates);

}  // namespace headrace::measure
