// The experiment behind docs/layout.md, standalone on purpose: can one packed order serve T = 1 by int8 dots from
// memory, T = 16 by the same dots with equal bits, and T = 512 by bf16 dots after a transcode into L2?
//
// One q4_0 matrix of 8192 outputs x 2048 inputs. Panels of 16 outputs; per block of 32 inputs 256 bytes of nibbles,
// then 32 bytes of f16 scales. Needs AVX-512 VNNI and BF16; one core. AMX tiles are not tried here: this was written on
// a machine without them, and unrun AMX code proves nothing.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include <immintrin.h>
#include <sys/mman.h>

#include "base/cpu_features.hpp"
#include "base/half.hpp"
#include "limits.hpp"

namespace headrace::bench {
namespace {

using Size = std::int64_t;

constexpr Size outputs = 8192;
constexpr Size inputs = 2048;
constexpr Size blocks = inputs / 32;
constexpr Size panels = outputs / 16;
constexpr Size group_bytes = 256 + 32;
constexpr Size panel_bytes = blocks * group_bytes;
constexpr Size cold_copies = 8;   // 75 MB: more than the L3 of a small server
constexpr Size warm_panels = 40;  // 737 KB: inside a 1 MB L2
constexpr Size largest_rows = 512;
constexpr Size bf16_stride = inputs + 32;  // rows a power of two apart would share the sets of L1

struct FreeAligned {
  void operator()(void* p) const { ::operator delete[](p, std::align_val_t{64}); }
};
constexpr std::size_t huge_page = std::size_t{2} << 20;
struct FreeHuge {
  void operator()(void* p) const { ::operator delete[](p, std::align_val_t{huge_page}); }
};
template <class T>
using Array = std::unique_ptr<T[], FreeAligned>;
template <class T>
Array<T> make_array(Size count) {
  return Array<T>(new (std::align_val_t{64}) T[static_cast<std::size_t>(count)]());
}

/// Activations: per row int8 codes, block scales, and block sums of the codes.
struct Rows {
  Array<std::int8_t> codes = make_array<std::int8_t>(largest_rows * inputs);
  Array<float> scales = make_array<float>(largest_rows * blocks);
  Array<std::int32_t> sums = make_array<std::int32_t>(largest_rows * blocks);
  Array<std::uint16_t> bf16 = make_array<std::uint16_t>(largest_rows * bf16_stride);
};

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512bf16,f16c,fma")))

TARGET inline __m512 load_scales(const std::byte* panel, Size block) {
  __m256i halves;
  std::memcpy(&halves, panel + group_bytes * block + 256, 32);
  return _mm512_cvtph_ps(halves);
}

/// out[t][16] of `count` rows from `row` on: exact int32 dots a block, one FMA chain an output.
template <int count>
TARGET void dots(const std::byte* panel, const Rows& rows, Size row, float* out) {
  const __m512i mask = _mm512_set1_epi8(15);
  __m512 sum[count];
  for (auto& s : sum) s = _mm512_setzero_ps();
  for (Size b = 0; b < blocks; ++b) {
    __m512i line[8];
    for (int l = 0; l < 4; ++l) {
      const __m512i both = _mm512_loadu_si512(panel + group_bytes * b + 64 * l);
      line[2 * l] = _mm512_and_si512(both, mask);
      line[2 * l + 1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), mask);
    }
    __m512i dot[count];
    for (int t = 0; t < count; ++t) dot[t] = _mm512_set1_epi32(-8 * rows.sums[(row + t) * blocks + b]);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
#pragma GCC unroll 8
      for (int t = 0; t < count; ++t) {
        std::int32_t word = 0;
        std::memcpy(&word, rows.codes.get() + (row + t) * inputs + 32 * b + 4 * j, 4);
        dot[t] = _mm512_dpbusd_epi32(dot[t], line[j], _mm512_set1_epi32(word));
      }
    }
    const __m512 scale = load_scales(panel, b);
    for (int t = 0; t < count; ++t) {
      const __m512 scaled =
          _mm512_mul_ps(_mm512_cvtepi32_ps(dot[t]), _mm512_set1_ps(rows.scales[(row + t) * blocks + b]));
      sum[t] = _mm512_fmadd_ps(scale, scaled, sum[t]);
    }
  }
  for (int t = 0; t < count; ++t) _mm512_storeu_ps(out + t * outputs, sum[t]);
}

/// One panel to bf16 pairs [k / 2][16][2].
TARGET void transcode(const std::byte* panel, std::uint16_t* pairs) {
  const __m512i mask = _mm512_set1_epi32(15);
  const __m512i eight = _mm512_set1_epi32(8);
  for (Size b = 0; b < blocks; ++b) {
    const __m512 scale = load_scales(panel, b);
    for (int l = 0; l < 4; ++l) {
      const __m512i both = _mm512_loadu_si512(panel + group_bytes * b + 64 * l);
      for (int h = 0; h < 2; ++h) {
        __m512 value[4];  // k = 8 l + 4 h + i, from byte i of each output's word
        for (unsigned i = 0; i < 4; ++i) {
          const __m512i code = _mm512_and_si512(_mm512_srli_epi32(both, 8 * i + 4 * static_cast<unsigned>(h)), mask);
          value[i] = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(code, eight)), scale);
        }
        std::uint16_t* out = pairs + (b * 16 + 4 * l + 2 * h) * 32;
        for (int i = 0; i < 2; ++i) {  // the low half of each lane is the even k
          const __m256i even = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value[2 * i]));
          const __m256i odd = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value[2 * i + 1]));
          const __m512i pair =
              _mm512_or_si512(_mm512_cvtepu16_epi32(even), _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
          _mm512_storeu_si512(out + 32 * i, pair);
        }
      }
    }
  }
}

/// 8 rows x 2 transcoded panels.
TARGET void bf16_tile(const std::uint16_t* pairs, const Rows& rows, Size row, float* out) {
  __m512 sum[8][2];
  for (auto& s : sum) s[0] = s[1] = _mm512_setzero_ps();
  for (Size k = 0; k < inputs / 2; ++k) {
    const auto w0 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(pairs + 32 * k));
    const auto w1 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(pairs + 16 * inputs + 32 * k));
#pragma GCC unroll 8
    for (int t = 0; t < 8; ++t) {
      std::int32_t word = 0;
      std::memcpy(&word, rows.bf16.get() + (row + t) * bf16_stride + 2 * k, 4);
      const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(word));
      sum[t][0] = _mm512_dpbf16_ps(sum[t][0], w0, x);
      sum[t][1] = _mm512_dpbf16_ps(sum[t][1], w1, x);
    }
  }
  for (int t = 0; t < 8; ++t) {
    _mm512_storeu_ps(out + t * outputs, sum[t][0]);
    _mm512_storeu_ps(out + t * outputs + 16, sum[t][1]);
  }
}

void run() {
  std::mt19937 random(1);
  const Size cold_bytes = cold_copies * panels * panel_bytes;
  std::unique_ptr<std::byte[], FreeHuge> packed(
      static_cast<std::byte*>(::operator new[](static_cast<std::size_t>(cold_bytes), std::align_val_t{huge_page})));
  // The Engine asks for huge pages too: with 4 KB ones the walks of the page table halve the read limit itself.
  madvise(packed.get(), static_cast<std::size_t>(cold_bytes), MADV_HUGEPAGE);
  for (Size p = 0; p < panels; ++p) {
    std::byte* panel = packed.get() + p * panel_bytes;
    for (Size i = 0; i < panel_bytes; ++i) panel[i] = static_cast<std::byte>(random() & 0xff);
    for (Size i = 0; i < blocks * 16; ++i) {
      const std::uint16_t half = f32_to_f16(0.001F * static_cast<float>(1 + random() % 50));
      std::memcpy(panel + i / 16 * group_bytes + 256 + 2 * (i % 16), &half, 2);
    }
  }
  const Size matrix_bytes = panels * panel_bytes;
  for (Size c = 1; c < cold_copies; ++c) {
    std::memcpy(packed.get() + c * matrix_bytes, packed.get(), static_cast<std::size_t>(matrix_bytes));
  }
  Rows rows;
  for (Size i = 0; i < largest_rows * inputs; ++i) {
    const auto code = static_cast<std::int8_t>(static_cast<int>(random() % 255) - 127);
    rows.codes[i] = code;
    rows.sums[i / 32] += code;
    rows.scales[i / 32] = 0.01F;
    rows.bf16[i / inputs * bf16_stride + i % inputs] = f32_to_bf16(0.01F * static_cast<float>(code));
  }
  auto out = make_array<float>(largest_rows * outputs);
  auto one = make_array<float>(16 * outputs);

  const auto pass_1 = [&](const std::byte* from, Size count, Size row, float* to) {
    for (Size p = 0; p < count; ++p) dots<1>(from + p * panel_bytes, rows, row, to + p % panels * 16);
  };
  const auto pass_16 = [&](Size first, Size last) {
    for (Size p = first; p < last; ++p) {
      for (Size row = 0; row < 16; row += 8) {
        dots<8>(packed.get() + p * panel_bytes, rows, row, out.get() + row * outputs + 16 * p);
      }
    }
  };
  auto pairs = make_array<std::uint16_t>(2 * 16 * inputs);
  const auto pass_512 = [&](Size first, Size last) {
    for (Size p = first; p < last; p += 2) {
      transcode(packed.get() + p * panel_bytes, pairs.get());
      transcode(packed.get() + (p + 1) * panel_bytes, pairs.get() + 16 * inputs);
      for (Size row = 0; row < largest_rows; row += 8) {
        bf16_tile(pairs.get(), rows, row, out.get() + row * outputs + 16 * p);
      }
    }
  };

  pass_16(0, panels);
  Size differing = 0;
  for (Size row = 0; row < 16; ++row) pass_1(packed.get(), panels, row, one.get() + row * outputs);
  for (Size i = 0; i < 16 * outputs; ++i) differing += std::memcmp(&one[i], &out[i], 4) != 0 ? 1 : 0;
  std::printf("T = 1 == T = 16 over %lld outputs: %s (%lld differ)\n", static_cast<long long>(16 * outputs),
              differing == 0 ? "equal bits" : "NOT EQUAL", static_cast<long long>(differing));

  // Everything is timed in slices of under a millisecond, best of many, so that a process that shares the core shows
  // less; from memory the median, going round the copies: what one call reads has left the caches when its turn comes
  // again.
  Size turn = 0;
  const auto next_copy = [&] { return packed.get() + turn++ % cold_copies * matrix_bytes; };
  const auto share = [](const char* what, double rate, const char* unit, double limit) {
    std::printf("%-34s %8.1f %s, limit %8.1f: %5.1f %%\n", what, rate * 1e-9, unit, limit * 1e-9, 100 * rate / limit);
  };
  const Size warm_bytes = warm_panels * panel_bytes;
  const Reader read = reader();
  std::vector<double> seconds[2];  // of the plain read, of the dots: in turn, so that a noisy neighbour hits both
  for (int i = 0; i < 800; ++i) {
    const std::byte* from = next_copy();
    const auto call = [&] { i % 2 == 0 ? read(from, matrix_bytes) : pass_1(from, panels, 0, one.get()); };
    seconds[i % 2].push_back(seconds_of(call));
  }
  double median_rate[2];
  for (int i = 0; i < 2; ++i) {
    std::nth_element(seconds[i].begin(), seconds[i].begin() + 200, seconds[i].end());
    median_rate[i] = static_cast<double>(matrix_bytes) / seconds[i][200];
  }
  const double cold_limit = median_rate[0];
  const double cold = median_rate[1];
  share("T = 1, 75 MB, int8 dots", cold, "GB/s", cold_limit);
  const double warm =
      static_cast<double>(warm_bytes) / best_seconds([&] { pass_1(packed.get(), warm_panels, 0, one.get()); });
  share("T = 1, in L2, int8 dots", warm, "GB/s", read_rate(packed.get(), warm_bytes));
  constexpr auto panel_multiply_adds = static_cast<double>(16 * inputs);
  const double int8_limit = int8_dot_rate();
  const double bf16_limit = bf16_dot_rate();
  const double dots_16 = 16 * 32 * panel_multiply_adds / best_seconds([&] { pass_16(0, 32); });
  const double dots_512 = 512 * 2 * panel_multiply_adds / best_seconds([&] { pass_512(0, 2); }, 1);
  share("T = 16, int8 dots", dots_16, "GMAC/s", int8_limit);
  share("T = 512, bf16 dots after transcode", dots_512, "GMAC/s", bf16_limit);
  std::printf("the limit of bf16 dots is %.2f of the rate of T = 16 by int8 dots\n", bf16_limit / dots_16);
}

}  // namespace
}  // namespace headrace::bench

int main() {
  const auto features = headrace::detect_cpu_features();
  std::printf("%s: %s\n", headrace::cpu_brand().c_str(), headrace::describe(features).c_str());
  if (!features.avx512_vnni || !features.avx512_bf16) {
    std::printf("this machine lacks AVX-512 VNNI or BF16: nothing measured\n");
    return 1;
  }
  headrace::bench::run();
  return 0;
}
