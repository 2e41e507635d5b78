// The measured loops in AVX2 and FMA. 12 independent sums: more than latency times ports (4 x 2) of any such CPU.
#include "machine/measure_loops.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#define HEADRACE_AVX2 __attribute__((target("avx2,fma")))

namespace headrace::machine {

namespace {

constexpr int kSums = 12;

HEADRACE_AVX2 std::uint64_t read(const std::byte* data, std::size_t bytes) noexcept {
  __m256i sums[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
  for (std::size_t i = 0; i < bytes; i += 256) {
#pragma GCC unroll 8
    for (std::size_t k = 0; k < 8; ++k) {
      const void* const at = data + i + 32 * k;
      sums[k % 4] = _mm256_xor_si256(sums[k % 4], _mm256_load_si256(static_cast<const __m256i*>(at)));
    }
  }
  alignas(32) std::uint64_t words[4];
  void* const out = words;
  _mm256_store_si256(static_cast<__m256i*>(out),
                     _mm256_xor_si256(_mm256_xor_si256(sums[0], sums[1]), _mm256_xor_si256(sums[2], sums[3])));
  return words[0] ^ words[1] ^ words[2] ^ words[3];
}

HEADRACE_AVX2 void f32(std::int64_t iterations) noexcept {
  __m256 sums[kSums];
#pragma GCC unroll 12
  for (auto& sum : sums) sum = _mm256_setzero_ps();
  __m256 a = _mm256_set1_ps(0.5f);
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kSums; ++k) {
      __asm__ volatile("" : "+x"(a));  // unknown to the compiler each time, so that nothing is folded or hoisted
      sums[k] = _mm256_fmadd_ps(sums[k], a, a);
    }
  }
#pragma GCC unroll 12
  for (auto& sum : sums) __asm__ volatile("" : : "x"(sum));
}

// What int8 dots take without VNNI: products summed in pairs to 16 bits, those to 32, and the sum.
HEADRACE_AVX2 void int8(std::int64_t iterations) noexcept {
  __m256i sums[kSums];
#pragma GCC unroll 12
  for (auto& sum : sums) sum = _mm256_setzero_si256();
  __m256i a = _mm256_set1_epi8(3);
  const __m256i ones = _mm256_set1_epi16(1);
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kSums; ++k) {
      __asm__ volatile("" : "+x"(a));
      sums[k] = _mm256_add_epi32(sums[k], _mm256_madd_epi16(_mm256_maddubs_epi16(a, a), ones));
    }
  }
#pragma GCC unroll 12
  for (auto& sum : sums) __asm__ volatile("" : : "x"(sum));
}

}  // namespace

MeasureLoops measure_loops_avx2() noexcept {
  return {.isa = "avx2", .read = read, .f32 = {f32, 2.0 * 8 * kSums}, .int8 = {int8, 2.0 * 32 * kSums}, .bf16 = {}};
}

}  // namespace headrace::machine
#endif
