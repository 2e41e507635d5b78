// The loops whose rates are measured. They are no production kernels and share no code with them: a limit that a
// kernel is compared with must not be the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/cpu_features.hpp"

namespace headrace::machine {

/// A loop on registers alone.
struct RateLoop {
  void (*run)(std::int64_t iterations) noexcept = nullptr;  ///< null if the ISA has none
  double ops_per_iteration = 0;                             ///< a multiply-add counts as 2
};

struct MeasureLoops {
  std::string_view isa;
  /// Reads `bytes` (a multiple of 1024) from `data` (64-byte aligned) and returns something that depends on all.
  std::uint64_t (*read)(const std::byte* data, std::size_t bytes) noexcept = nullptr;
  RateLoop f32;   ///< multiply-adds
  RateLoop int8;  ///< dots with int32 sums
  RateLoop bf16;  ///< dots of pairs with f32 sums
};

MeasureLoops measure_loops_portable() noexcept;
#if defined(__x86_64__)
MeasureLoops measure_loops_avx2() noexcept;
/// Needs VNNI; `features` tells whether BF16 is there.
MeasureLoops measure_loops_avx512(const CpuFeatures& features) noexcept;
#endif

/// The best that `features` allow. AVX-512 without VNNI counts as AVX2: its int8 dots would need kernels of their own.
MeasureLoops choose_measure_loops(const CpuFeatures& features) noexcept;

}  // namespace headrace::machine
