// Makes a Machine of the machine that we run on: measured, loaded from an earlier measurement, or estimated.
#pragma once

#include <string>

#include "base/context.hpp"
#include "machine/machine.hpp"

namespace headrace::machine {

/// Measures with all threads of `context`, for about `budget_s` seconds in all: sequential reads from L2, L3 and ram,
/// and the rates of f32 FMA, int8 dots and bf16 dots. Each rate is the best of several short tries: a limit is what
/// the machine can do, and other programs only take from it. Uses memory within the Context's budget (ResourceError if
/// not even 256 KiB per thread are left). Calls Context::threads(), so it must not run inside a run().
Machine measure(Context& context, double budget_s = 0.5);

/// As measure(), but without running anything: cores and caches as the system tells, rates by rules of thumb for the
/// ISA, on the low side. For a quick start.
Machine estimate(const Context& context, int threads);

/// The measurement kept in `folder` for this CPU, ISA and number of threads; measured and kept there if there is none.
/// A broken or foreign file is measured anew, and a folder that cannot be written is a warning.
Machine load_or_measure(Context& context, const std::string& folder, double budget_s = 0.5);

}  // namespace headrace::machine
