// What an Engine of given options plans with. Apart from the Engine, since a Plan can be made without one.
#pragma once

#include <cstdint>

#include "compile/plan.hpp"
#include "run/engine.hpp"

namespace headrace::run {

/// The sizes and pages that an Engine of these options needs. `memory_bytes` 0: no limit. Throws InputError if an
/// option is below 1 or all positions together exceed what can be counted.
compile::Limits engine_limits(const EngineOptions& options, const compile::KernelCatalog& catalog,
                              std::uint64_t memory_bytes);

}  // namespace headrace::run
