// Detection of CPU features by CPUID and XGETBV (Intel SDM vol. 2, CPUID leaves 1 and 7; vol. 1, chapter 13).
#include "base/cpu_features.hpp"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace headrace {
namespace {

#if defined(__x86_64__)
struct Registers {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(std::uint32_t leaf, std::uint32_t subleaf) noexcept {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

std::uint64_t xcr0() noexcept {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

constexpr bool bit(std::uint32_t word, int index) noexcept { return ((word >> index) & 1u) != 0; }
#endif

}  // namespace

CpuFeatures detect_cpu_features() noexcept {
  CpuFeatures features;
#if defined(__x86_64__)
  const Registers leaf1 = cpuid(1, 0);
  if (!bit(leaf1.c, 27)) return features;  // OSXSAVE: without it XGETBV faults
  const std::uint64_t saved = xcr0();
  const bool ymm = (saved & 0x6) == 0x6;            // SSE and AVX state
  const bool zmm = (saved & 0xe6) == 0xe6;          // and opmask, upper halves, zmm16..31
  const bool tiles = (saved & 0x60000) == 0x60000;  // TILECFG and TILEDATA
  const Registers leaf7 = cpuid(7, 0);
  const Registers leaf7_1 = leaf7.a >= 1 ? cpuid(7, 1) : Registers{};

  features.avx2 = ymm && bit(leaf1.c, 28) && bit(leaf7.b, 5) && bit(leaf1.c, 12) && bit(leaf1.c, 29);
  features.avx512 =
      features.avx2 && zmm && bit(leaf7.b, 16) && bit(leaf7.b, 30) && bit(leaf7.b, 31) && bit(leaf7.b, 17);
  features.avx512_vnni = features.avx512 && bit(leaf7.c, 11);
  features.avx512_vbmi = features.avx512 && bit(leaf7.c, 1);
  features.avx512_bf16 = features.avx512 && bit(leaf7_1.a, 5);
  features.amx_int8 = tiles && bit(leaf7.d, 24) && bit(leaf7.d, 25);
  features.amx_bf16 = tiles && bit(leaf7.d, 24) && bit(leaf7.d, 22);
#endif
  return features;
}

std::string describe(const CpuFeatures& features) {
  const std::pair<bool, std::string_view> names[] = {
      {features.avx2, "avx2"},
      {features.avx512, "avx512"},
      {features.avx512_vnni, "avx512_vnni"},
      {features.avx512_vbmi, "avx512_vbmi"},
      {features.avx512_bf16, "avx512_bf16"},
      {features.amx_int8, "amx_int8"},
      {features.amx_bf16, "amx_bf16"},
  };
  std::string text;
  for (const auto& [present, name] : names) {
    if (!present) continue;
    if (!text.empty()) text += ' ';
    text += name;
  }
  return text.empty() ? "none" : text;
}

std::string cpu_brand() {
#if defined(__x86_64__)
  if (cpuid(0x80000000u, 0).a >= 0x80000004u) {
    char brand[49] = {};
    for (std::uint32_t i = 0; i < 3; ++i) {
      const Registers r = cpuid(0x80000002u + i, 0);
      std::memcpy(brand + 16 * i, &r, 16);
    }
    std::string text = brand;
    while (!text.empty() && text.back() == ' ') text.pop_back();
    if (!text.empty()) return text;
  }
#endif
  return "unknown";
}

}  // namespace headrace
