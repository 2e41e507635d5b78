#include "run/engine_limits.hpp"

#include "base/checked.hpp"
#include "base/error.hpp"

namespace headrace::run {

compile::Limits engine_limits(const EngineOptions& options, const compile::KernelCatalog& catalog,
                              std::uint64_t memory_bytes) {
  if (options.rows < 1 || options.wanted < 1 || options.sequences < 1 || options.context < 1) {
    fail<InputError>("engine: expected at least 1 row, wanted row, sequence and position, got {}, {}, {} and {}",
                     options.rows, options.wanted, options.sequences, options.context);
  }
  const std::optional<std::int64_t> all = checked_mul(options.sequences, options.context);
  if (options.kv_positions <= 0 && !all) {
    fail<InputError>("engine: {} sequences of {} positions are more than can be counted", options.sequences,
                     options.context);
  }
  compile::Limits limits;
  limits.sizes = {{"T", options.rows}, {"S", options.wanted}, {"B", options.sequences}, {"P", options.context}};
  limits.memory_bytes = memory_bytes;
  limits.kv_encoding = kernels::kv_encoding_name(options.kv);
  // A page more for each sequence: their ends need not fill one.
  const std::int64_t positions = options.kv_positions > 0 ? options.kv_positions : *all;
  limits.pages = ceil_div(positions, catalog.page_positions()) + options.sequences;
  return limits;
}

}  // namespace headrace::run
