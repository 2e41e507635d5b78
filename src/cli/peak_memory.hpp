// What this process has used at most.
#pragma once

#include <cstdint>

namespace headrace::cli {

/// The largest resident size so far, in bytes: VmHWM of proc_pid_status(5). getrusage() would also count what the
/// process was before exec. 0 if unknown.
std::uint64_t peak_memory_bytes();

}  // namespace headrace::cli
