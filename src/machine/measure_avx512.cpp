// The measured loops in AVX-512 with VNNI, and BF16 where it is. 12 independent sums, as for AVX2.
#include "machine/measure_loops.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#define HEADRACE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define HEADRACE_AVX512_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define HEADRACE_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace headrace::machine {

namespace {

constexpr int kSums = 12;

HEADRACE_AVX512 std::uint64_t read(const std::byte* data, std::size_t bytes) noexcept {
  __m512i sums[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  for (std::size_t i = 0; i < bytes; i += 512) {
#pragma GCC unroll 8
    for (std::size_t k = 0; k < 8; ++k) {
      sums[k % 4] = _mm512_xor_si512(sums[k % 4], _mm512_load_si512(data + i + 64 * k));
    }
  }
  alignas(64) std::uint64_t words[8];
  _mm512_store_si512(words, _mm512_xor_si512(_mm512_xor_si512(sums[0], sums[1]), _mm512_xor_si512(sums[2], sums[3])));
  std::uint64_t all = 0;
  for (const std::uint64_t word : words) all ^= word;
  return all;
}

HEADRACE_AVX512 void f32(std::int64_t iterations) noexcept {
  __m512 sums[kSums];
#pragma GCC unroll 12
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  __m512 a = _mm512_set1_ps(0.5f);
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kSums; ++k) {
      __asm__ volatile("" : "+v"(a));  // unknown to the compiler each time, so that nothing is folded or hoisted
      sums[k] = _mm512_fmadd_ps(sums[k], a, a);
    }
  }
#pragma GCC unroll 12
  for (auto& sum : sums) __asm__ volatile("" : : "v"(sum));
}

HEADRACE_AVX512_VNNI void int8(std::int64_t iterations) noexcept {
  __m512i sums[kSums];
#pragma GCC unroll 12
  for (auto& sum : sums) sum = _mm512_setzero_si512();
  __m512i a = _mm512_set1_epi8(3);
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kSums; ++k) {
      __asm__ volatile("" : "+v"(a));
      sums[k] = _mm512_dpbusd_epi32(sums[k], a, a);
    }
  }
#pragma GCC unroll 12
  for (auto& sum : sums) __asm__ volatile("" : : "v"(sum));
}

HEADRACE_AVX512_BF16 void bf16(std::int64_t iterations) noexcept {
  __m512 sums[kSums];
#pragma GCC unroll 12
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.5f));
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kSums; ++k) {
      __asm__ volatile("" : "+v"(a));
      sums[k] = _mm512_dpbf16_ps(sums[k], a, a);
    }
  }
#pragma GCC unroll 12
  for (auto& sum : sums) __asm__ volatile("" : : "v"(sum));
}

}  // namespace

MeasureLoops measure_loops_avx512(const CpuFeatures& features) noexcept {
  MeasureLoops loops{
      .isa = "avx512", .read = read, .f32 = {f32, 2.0 * 16 * kSums}, .int8 = {int8, 2.0 * 64 * kSums}, .bf16 = {}};
  if (features.avx512_bf16) loops.bf16 = {bf16, 2.0 * 32 * kSums};
  return loops;
}

}  // namespace headrace::machine
#endif
