// Attention over q8_0 keys and values: scores by the integer dots of linear,
// values by FMA chains over codes.
#pragma once

#include "kernels/attention_tiles.hpp"

namespace headrace::kernels::HEADRACE_ISA {

#if defined(HEADRACE_ISA_AVX512)
/// Dots of `queries` query rows, which are a16, with `panels` panels of 16
/// positions: numerics a16_group32.
template <int queries, int panels>
void dot_tile(const Chunk& chunk, int first, const std::byte* keys, const std::byte* ahead, Size panel_bytes,
              float* scores) {
  const A16Row encoded = a16_row(chunk.width);
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
    const std::byte* group_ahead = ahead + g * q8_keys_bytes;
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      __m512i line[panels];
      for (int p = 0; p < panels; ++p) {
        prefetch(group_ahead + p * panel_bytes + 64 * j);
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
void dot_panels(Chunk& chunk, int first, Size page, Size panel, Size panel_bytes, bool both) {
  const std::byte* keys = chunk.keys(page) + panel * panel_bytes;
  const std::byte* ahead = chunk.after_keys(page) + panel * panel_bytes;
  float* scores = chunk.scores[first] + page * page_positions + 16 * panel;
  if (both) return dot_tile<queries, 2>(chunk, first, keys, ahead, panel_bytes, scores);
  dot_tile<queries, 1>(chunk, first, keys, ahead, panel_bytes, scores);
}

/// Panels [panel, last) of a page, two at most.
inline void dot_keys(Chunk& chunk, const AttentionArgs&, Size page, Size panel, Size last, Size panel_bytes) {
  const bool both = last - panel == 2;
  in_parts<4>(chunk.queries, [&](int first, int count) {
    switch (count) {
      case 1:
        return dot_panels<1>(chunk, first, page, panel, panel_bytes, both);
      case 2:
        return dot_panels<2>(chunk, first, page, panel, panel_bytes, both);
      case 3:
        return dot_panels<3>(chunk, first, page, panel, panel_bytes, both);
      default:
        return dot_panels<4>(chunk, first, page, panel, panel_bytes, both);
    }
  });
}
#else
/// Panels [panel, last) of a page. They are panels of a Weight [64 positions,
/// E], and the query rows its activations.
inline void dot_keys(Chunk& chunk, const AttentionArgs& args, Size page, Size panel, Size last, Size panel_bytes) {
  const std::byte* ahead = chunk.after_keys(page);
  for (Size at = panel * panel_bytes; at < last * panel_bytes; at += 64) prefetch(ahead + at);
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
  const Size panel_bytes = kv_page_bytes(KvEncoding::q8_0, 1, chunk.width) / (page_positions / 16);
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
      dot_keys(chunk, args, page, panel, next, panel_bytes);
      panel = next;
    }
  }
}

/// scaled = score * the scales of a block of V, for the positions that each
/// query sees.
inline void scale_weights(Chunk& chunk, Size block, int place) {
  for (int i = 0; i < chunk.queries; ++i) {
    for (Size position = chunk.begin[i] / 16 * 16; position < chunk.end[i]; position += 16) {
      const std::byte* values = chunk.values(position / page_positions) + block * q8_values_bytes;
      const Vec scales = load_f16(values + q8_values_codes + position % page_positions * 2);
      store(chunk.scaled[place][i] + position, mul(load(chunk.scores[i] + position), scales));
    }
  }
}

inline void output_q8(Chunk& chunk) {
  const auto columns = [&]<int vectors>(Size first_block, Columns<vectors> at) {
    at.stride = q8_block;
    for (int v = 0; v < vectors; ++v) {
      const Size block = first_block + v / 2;
      at.bytes[v] = block * q8_values_bytes + v % 2 * 16;
      at.elements[v] = block * q8_block + v % 2 * 16;
      if (v % 2 == 0) scale_weights(chunk, block, v / 2);
    }
    output_columns<Q8, vectors>(chunk, at);
  };
  const Size blocks = chunk.width / q8_block;
  Size block = 0;
  if constexpr (output_vectors == 4) {
    for (; block + 2 <= blocks; block += 2) columns(block, Columns<4>{});
  }
  for (; block < blocks; ++block) columns(block, Columns<2>{});
}

}  // namespace headrace::kernels::HEADRACE_ISA
