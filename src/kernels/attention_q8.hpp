// Attention over q8_0 keys: scores by the integer dots of linear.
#pragma once

#include "kernels/attention_tiles.hpp"

namespace headrace::kernels::HEADRACE_ISA {

/// Loads some more lines to cache. Dots with keys take a sixth of the time of a span on Zen 4, for half its bytes: if
/// the loads of V kept to them, memory would idle while weights are computed.
inline void fetch_ahead(Chunk& chunk, Size lines) {
  Ahead& ahead = chunk.ahead;
  while (lines > 0 && ahead.page < 2 * chunk.page_count) {
    const Size on = chunk.span_start / page_positions + chunk.first_page + ahead.page;
    const std::byte* page = ahead.page < chunk.page_count ? chunk.values(chunk.first_page + ahead.page)
                                                          : chunk.pages[smaller(on, chunk.last_page)] + chunk.k_base;
    const Size page_lines = kv_page_bytes(KvEncoding::q8_0, 1, chunk.width) / 64;
    const Size last = smaller(ahead.line + lines, page_lines);
    lines -= last - ahead.line;
    for (; ahead.line < last; ++ahead.line) prefetch(page + 64 * ahead.line);
    if (ahead.line == page_lines) ahead = {ahead.page + 1, 0};
  }
}

#if defined(HEADRACE_ISA_AVX512)
/// Dots of `queries` query rows, which are a16, with `panels` panels of 16
/// positions: numerics a16_group32.
template <int queries, int panels>
void dot_tile(Chunk& chunk, int first, const std::byte* keys, float* scores) {
  const A16Row encoded = a16_row(chunk.width);
  const Size panel_bytes = q8_panel_bytes(chunk.width);
  const std::byte* x[queries];
  Vec sum[queries][panels];
  for (int i = 0; i < queries; ++i) {
    x[i] = chunk.encoded_q + (first + i) * encoded.bytes;
    for (int p = 0; p < panels; ++p) sum[i][p] = zero();
  }
  const auto word = [](const std::byte* at) {
    std::int32_t value = 0;
    memcpy(&value, at, 4);
    return value;
  };
  const auto number = [](const std::byte* at) {
    float value = 0;
    memcpy(&value, at, 4);
    return set1(value);
  };
  for (Size g = 0; g < chunk.width / q8_block; ++g) {
    if (first == 0) fetch_ahead(chunk, 8);
    __m512i high[queries][panels];
    __m512i low[queries][panels];
    for (int i = 0; i < queries; ++i) {
      const __m512i offset = _mm512_set1_epi32(-128 * word(x[i] + encoded.sums + 4 * g));
      for (int p = 0; p < panels; ++p) {
        high[i][p] = _mm512_setzero_si512();
        low[i][p] = offset;
      }
    }
    const std::byte* group = keys + g * q8_keys_bytes;
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      __m512i line[panels];
      for (int p = 0; p < panels; ++p) {
        line[p] = _mm512_loadu_si512(group + p * panel_bytes + 64 * j);
      }
#pragma GCC unroll 4
      for (int i = 0; i < queries; ++i) {
        const __m512i high_digits = _mm512_set1_epi32(word(x[i] + 64 * g + 4 * j));
        const __m512i low_digits = _mm512_set1_epi32(word(x[i] + 64 * g + 32 + 4 * j));
        for (int p = 0; p < panels; ++p) {
          high[i][p] = _mm512_dpbusd_epi32(high[i][p], line[p], high_digits);
          low[i][p] = _mm512_dpbusd_epi32(low[i][p], line[p], low_digits);
        }
      }
    }
    for (int p = 0; p < panels; ++p) {
      const Vec scale = load_f16(group + p * panel_bytes + q8_keys_codes);
      for (int i = 0; i < queries; ++i) {
        const Int dots = add(times_256({high[i][p]}), {low[i][p]});
        sum[i][p] = fma(scale, mul(to_float(dots), number(x[i] + encoded.scales + 4 * g)), sum[i][p]);
      }
    }
  }
  for (int i = 0; i < queries; ++i) {
    for (int p = 0; p < panels; ++p) store(scores + i * attention_span + 16 * p, sum[i][p]);
  }
}

template <int queries>
void dot_panels(Chunk& chunk, int first, Size page, Size panel, bool both) {
  const std::byte* keys = chunk.keys(page) + panel * q8_panel_bytes(chunk.width);
  float* scores = chunk.scores[first] + page * page_positions + 16 * panel;
  if (both) return dot_tile<queries, 2>(chunk, first, keys, scores);
  dot_tile<queries, 1>(chunk, first, keys, scores);
}

/// Panels [panel, last) of a page, two at most.
inline void dot_keys(Chunk& chunk, [[maybe_unused]] const AttentionArgs& args, Size page, Size panel, Size last) {
  const bool both = last - panel == 2;
  in_parts<4>(chunk.queries, [&](int first, int count) {
    switch (count) {
      case 1:
        return dot_panels<1>(chunk, first, page, panel, both);
      case 2:
        return dot_panels<2>(chunk, first, page, panel, both);
      case 3:
        return dot_panels<3>(chunk, first, page, panel, both);
      default:
        return dot_panels<4>(chunk, first, page, panel, both);
    }
  });
}
#else
/// Panels [panel, last) of a page. They are panels of a Weight [64 positions,
/// E], and the query rows its activations.
inline void dot_keys(Chunk& chunk, const AttentionArgs& args, Size page, Size panel, Size last) {
  fetch_ahead(chunk, chunk.width / q8_block * 8);
  LinearArgs dots;
  dots.layout = args.key_layout;
  dots.outputs = page_positions;
  dots.inputs = chunk.width;
  dots.packed = chunk.keys(page);
  dots.rows = chunk.queries;
  dots.activations = chunk.encoded_q;
  dots.activation_stride = a16_row_bytes(chunk.width);
  dots.out = chunk.scores[0] + page * page_positions;
  dots.out_stride = attention_span;
  args.key_dots(dots, panel, last);
}
#endif

/// K of q8_0 is dotted with q as a16.
inline void score_q8(Chunk& chunk, const AttentionArgs& args) {
  chunk.ahead = {};
  Size begin = attention_span;
  Size end = 0;
  for (int i = 0; i < chunk.queries; ++i) {
    begin = smaller(begin, chunk.begin[i]);
    end = larger(end, chunk.end[i]);
  }
  for (Size page = chunk.first_page; page < chunk.first_page + chunk.page_count; ++page) {
    const Size last = smaller((end - page * page_positions + 15) / 16, page_positions / 16);
    for (Size block = 0; block < chunk.width / q8_block; ++block) {  // the scales of V are read before its codes
      const std::byte* scales = chunk.values(page) + block * q8_values_bytes + q8_values_codes;
      prefetch(scales);
      prefetch(scales + 64);
    }
    Size panel = larger(begin - page * page_positions, 0) / 16;
    while (panel < last) {
      const Size next = smaller(panel + 2, last);
      dot_keys(chunk, args, page, panel, next);
      panel = next;
    }
  }
}

}  // namespace headrace::kernels::HEADRACE_ISA
