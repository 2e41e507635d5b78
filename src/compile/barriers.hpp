// Where the workers of a bound Plan must wait for one another.
#pragma once

#include "compile/plan.hpp"

namespace headrace::compile {

/// Sets `barrier_before` of each step: where it touches what a step since the last barrier wrote, or writes what one
/// touched, unless both divide it by columns in the same way, so that each worker meets only its own part again.
void place_barriers(BoundPlan& bound, const KernelCatalog& catalog);

}  // namespace headrace::compile
