// What this process may use: the CPU and memory limits of its cgroups (v1, v2 or both), its affinity, its memory.
// Follows cgroups(7), proc_pid_mountinfo(5) and the kernel's admin-guide/cgroup-v1 and cgroup-v2 pages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

/// Where the limits are read from. Tests give a fake tree and a fixed affinity.
struct LimitsSource {
  std::string sysroot;          ///< put before /proc/… and before each mount point; empty on a real machine
  std::optional<int> affinity;  ///< CPUs that the scheduler may give us; asked of the kernel if absent
};

/// The limits in force.
struct ResourceLimits {
  int threads = 1;                                  ///< to use: min(affinity, cpuset, floor of the quota), at least 1
  int affinity = 1;                                 ///< CPUs in the affinity mask
  std::optional<double> cpu_quota;                  ///< CPUs' worth of time per second, the tightest of all levels
  std::optional<int> cpuset;                        ///< CPUs in the smallest cpuset of all levels
  std::optional<std::uint64_t> memory_limit_bytes;  ///< the tightest of all levels
  std::uint64_t memory_total_bytes = 0;             ///< the machine's memory; 0 if unknown
  std::uint64_t memory_available_bytes = 0;         ///< MemAvailable; 0 if unknown
  std::vector<std::string> warnings;                ///< one plain line for each file that could not be understood

  /// What a program may plan with: the memory limit, or the available memory if that is less or there is no limit.
  [[nodiscard]] std::uint64_t usable_memory_bytes() const noexcept;
};

/// Reads the limits in force. A missing file means no limit; a malformed one means no limit and a warning. Never
/// throws because of what it reads.
ResourceLimits read_limits(const LimitsSource& source = {});

/// The number of CPUs in a list such as "0-3,8", or nothing if it is malformed or empty.
std::optional<int> count_cpu_list(std::string_view list);

}  // namespace headrace
