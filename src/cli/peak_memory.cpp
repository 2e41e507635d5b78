#include "cli/peak_memory.hpp"

#include <fstream>
#include <string>

namespace headrace::cli {

std::uint64_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  std::string field;
  while (status >> field) {
    std::uint64_t kib = 0;
    if (field == "VmHWM:" && status >> kib) return kib * 1024;
    status.ignore(4096, '\n');
  }
  return 0;
}

}  // namespace headrace::cli
