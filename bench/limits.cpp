// Plain loops over the unit in question.
#include "limits.hpp"

#include <algorithm>
#include <chrono>

#include "base/cpu_features.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace::bench {
namespace {

/// Keeps a value that nobody reads.
template <class T>
void keep(T& value) {
  __asm__ volatile("" : "+m"(value) : : "memory");
}

#if defined(__x86_64__)
constexpr std::int64_t dot_rounds = 100000;
constexpr int chains = 12;  ///< more than latency times throughput of any unit here

__attribute__((target("avx512f"))) void read_512(const std::byte* data, std::int64_t bytes) {
  __m512i a = _mm512_setzero_si512();
  __m512i b = a;
  __m512i c = a;
  __m512i d = a;
  for (std::int64_t i = 0; i + 256 <= bytes; i += 256) {
    a = _mm512_or_si512(a, _mm512_loadu_si512(data + i));
    b = _mm512_or_si512(b, _mm512_loadu_si512(data + i + 64));
    c = _mm512_or_si512(c, _mm512_loadu_si512(data + i + 128));
    d = _mm512_or_si512(d, _mm512_loadu_si512(data + i + 192));
  }
  __m512i all = _mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d));
  keep(all);
}

// Twelve independent chains of one instruction, registers named: left to itself GCC 12 keeps an array of accumulators
// in memory here, and the "limit" is then that of loads and stores. What the registers hold does not matter to the
// rate, short of subnormal numbers.
#define HEADRACE_CHAINS(name, instruction, register)                                                                  \
  void name() {                                                                                                       \
    __asm__ volatile("vzeroall");                                                                                     \
    for (std::int64_t i = 0; i < dot_rounds; ++i) {                                                                   \
      __asm__ volatile(HEADRACE_EACH(instruction, register)::                                                         \
                           : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
                             "xmm11", "xmm12");                                                                       \
    }                                                                                                                 \
  }
#define HEADRACE_ONE(instruction, r, n) instruction " %%" r "12, %%" r "12, %%" r n "\n\t"
// clang-format 19 does not settle on one form of this.
// clang-format off
#define HEADRACE_EACH(i, r) \
  HEADRACE_ONE(i, r, "0") \
  HEADRACE_ONE(i, r, "1") \
  HEADRACE_ONE(i, r, "2") \
  HEADRACE_ONE(i, r, "3") \
  HEADRACE_ONE(i, r, "4") \
  HEADRACE_ONE(i, r, "5") \
  HEADRACE_ONE(i, r, "6") \
  HEADRACE_ONE(i, r, "7") \
  HEADRACE_ONE(i, r, "8") \
  HEADRACE_ONE(i, r, "9") \
  HEADRACE_ONE(i, r, "10") \
  HEADRACE_ONE(i, r, "11")
// clang-format on

HEADRACE_CHAINS(int8_dots, "vpdpbusd", "zmm")
HEADRACE_CHAINS(bf16_dots, "vdpbf16ps", "zmm")
HEADRACE_CHAINS(fma_512, "vfmadd231ps", "zmm")
HEADRACE_CHAINS(fma_256, "vfmadd231ps", "ymm")
#endif

void read_64(const std::byte* data, std::int64_t bytes) {
  std::uint64_t all = 0;
  for (std::int64_t i = 0; i + 64 <= bytes; i += 64) {
    std::uint64_t words[8];
    __builtin_memcpy(words, data + i, 64);
    for (const std::uint64_t word : words) all |= word;
  }
  keep(all);
}

}  // namespace

double seconds_of(const std::function<void()>& call) {
  const auto before = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

double best_seconds(const std::function<void()>& call, double budget_s) {
  double best = 1e30;
  double spent = 0;
  for (int i = 0; i < 3 || spent < budget_s; ++i) {
    const double seconds = seconds_of(call);
    spent += seconds;
    best = std::min(best, seconds);
  }
  return best;
}

Reader reader() {
#if defined(__x86_64__)
  if (detect_cpu_features().avx512) return read_512;
#endif
  return read_64;
}

double read_rate(const std::byte* data, std::int64_t bytes) {
  const Reader read = reader();
  return static_cast<double>(bytes) / best_seconds([&] { read(data, bytes); });
}

double int8_dot_rate() {
#if defined(__x86_64__)
  if (detect_cpu_features().avx512_vnni) return 64.0 * chains * dot_rounds / best_seconds(int8_dots, 0.1);
#endif
  return 0;
}

double bf16_dot_rate() {
#if defined(__x86_64__)
  if (detect_cpu_features().avx512_bf16) return 32.0 * chains * dot_rounds / best_seconds(bf16_dots, 0.1);
#endif
  return 0;
}

double f32_fma_rate() {
#if defined(__x86_64__)
  if (detect_cpu_features().avx512) return 16.0 * chains * dot_rounds / best_seconds(fma_512, 0.1);
  if (detect_cpu_features().avx2) return 8.0 * chains * dot_rounds / best_seconds(fma_256, 0.1);
#endif
  return 0;
}

}  // namespace headrace::bench
