// The measured loops in plain C++, for CPUs without an ISA file of their own; and the choice among all.
#include <cstring>

#include "machine/measure_loops.hpp"

namespace headrace::machine {

namespace {

constexpr int kLanes = 16;

// Makes the compiler forget what it knows of memory, so that no iteration is folded into another.
void forget(void* data) noexcept { __asm__ volatile("" : : "r"(data) : "memory"); }

std::uint64_t read(const std::byte* data, std::size_t bytes) noexcept {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i < bytes; i += sizeof sums) {
    for (std::size_t k = 0; k < 8; ++k) {
      std::uint64_t word = 0;
      std::memcpy(&word, data + i + 8 * k, 8);
      sums[k] ^= word;
    }
  }
  std::uint64_t all = 0;
  for (const std::uint64_t sum : sums) all ^= sum;
  return all;
}

void f32(std::int64_t iterations) noexcept {
  float sums[kLanes] = {};
  float a[kLanes];
  for (float& value : a) value = 0.5f;
  for (std::int64_t i = 0; i < iterations; ++i) {
    forget(a);
    for (int k = 0; k < kLanes; ++k) sums[k] = sums[k] * a[k] + a[k];
  }
  forget(sums);
}

void int8(std::int64_t iterations) noexcept {
  std::int32_t sums[kLanes / 4] = {};
  std::int8_t a[kLanes];
  for (std::int8_t& value : a) value = 3;
  for (std::int64_t i = 0; i < iterations; ++i) {
    forget(a);
    for (int k = 0; k < kLanes; ++k) sums[k / 4] += a[k] * a[kLanes - 1 - k];
  }
  forget(sums);
}

}  // namespace

MeasureLoops measure_loops_portable() noexcept {
  return {.isa = "portable", .read = read, .f32 = {f32, 2.0 * kLanes}, .int8 = {int8, 2.0 * kLanes}, .bf16 = {}};
}

MeasureLoops choose_measure_loops(const CpuFeatures& features) noexcept {
#if defined(__x86_64__)
  if (features.avx512_vnni) return measure_loops_avx512(features);
  if (features.avx2) return measure_loops_avx2();
#else
  (void)features;
#endif
  return measure_loops_portable();
}

}  // namespace headrace::machine
