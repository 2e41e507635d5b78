// The cores and caches of this machine, as Linux tells of them under /sys/devices/system/cpu (the kernel's
// Documentation/ABI/testing/sysfs-devices-system-cpu).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace::machine {

struct CacheLevel {
  int level = 0;                     ///< 1 (data), 2, 3 …
  std::uint64_t instance_bytes = 0;  ///< of one cache
  int instances = 0;
  bool operator==(const CacheLevel&) const = default;
};

struct Topology {
  int cores = 0;                   ///< physical ones that are online; 0 if unknown
  std::vector<CacheLevel> caches;  ///< by level; empty if unknown

  /// The cache of that level, or one of size 0.
  [[nodiscard]] CacheLevel cache(int level) const noexcept;
};

/// `sysroot` is put before /sys. What is missing or malformed is left out; never throws because of what it reads.
Topology read_topology(const std::string& sysroot = {});

}  // namespace headrace::machine
