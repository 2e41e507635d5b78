// The limit of what memory gives: a plain loop of all threads over a buffer of the size in question. It shares no code
// with kernels.
#pragma once

#include <cstdint>

#include "base/context.hpp"
#include "base/memory.hpp"
#include "machine/measure_loops.hpp"

namespace headrace::measure {

class ReadLoop {
 public:
  /// A buffer of `bytes`, or of half of what the memory budget has left if that is less, which each thread has written
  /// its part of. Throws ResourceError if there is no memory at all.
  ReadLoop(Context& context, std::uint64_t bytes);

  /// The largest size that rate() can read.
  [[nodiscard]] std::uint64_t capacity_bytes() const noexcept { return capacity_bytes_; }

  /// Bytes per second of all threads that together read the first `bytes` (at most the capacity) from end to end, as
  /// often as it takes to read 256 MB, after one pass that is not timed.
  double rate(std::uint64_t bytes);

 private:
  Context& context_;
  machine::MeasureLoops loops_;
  std::uint64_t capacity_bytes_;
  MemoryReservation reservation_;
  Buffer buffer_;
};

}  // namespace headrace::measure
