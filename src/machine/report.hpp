// What `doctor` says of a machine: as text for people, and as JSON.
#pragma once

#include <string>

#include "base/cgroup.hpp"
#include "base/cpu_features.hpp"
#include "machine/machine.hpp"

namespace headrace::machine {

/// Several lines: CPU, threads and why so many, memory and its limit, the rates.
std::string machine_report(const Machine& machine, const ResourceLimits& limits, const CpuFeatures& features);

/// One JSON object: `machine` (as in a machine file), `limits` and `features`.
std::string machine_report_json(const Machine& machine, const ResourceLimits& limits, const CpuFeatures& features);

}  // namespace headrace::machine
