// Attention over q8_0 keys and values: scores by the integer dots of linear, values by FMA chains over codes.
#pragma once

#include "kernels/attention_tiles.hpp"

namespace headrace::kernels::HEADRACE_ISA {

/// The keys of a page are panels of a Weight [64 positions, E], and the query rows its activations.
inline void score_q8(Chunk& chunk, const AttentionArgs& args) {
  constexpr Size together = 2;  ///< panels of a call
  LinearArgs dots;
  dots.layout = args.key_layout;
  dots.outputs = page_positions;
  dots.inputs = chunk.width;
  dots.rows = chunk.queries;
  dots.activations = chunk.encoded_q;
  dots.activation_stride = a16_row_bytes(chunk.width);
  dots.out_stride = attention_span;
  const Size panel_bytes = chunk.width / q8_block * q8_keys_bytes;
  Size begin = attention_span;
  Size end = 0;
  for (int i = 0; i < chunk.queries; ++i) {
    begin = smaller(begin, chunk.begin[i]);
    end = larger(end, chunk.end[i]);
  }
  for (Size page = chunk.first_page; page < chunk.first_page + chunk.page_count; ++page) {
    dots.packed = chunk.keys(page);
    dots.out = chunk.scores[0] + page * page_positions;
    const Size last = smaller((end - page * page_positions + 15) / 16, page_positions / 16);
    Size panel = larger(begin - page * page_positions, 0) / 16;
    while (panel < last) {
      const Size next = smaller(panel + together, last);
      const std::byte* ahead = chunk.after_keys(page);
      for (Size at = panel * panel_bytes; at < next * panel_bytes; at += 64) prefetch(ahead + at);
      args.key_dots(dots, panel, next);
      panel = next;
    }
  }
}

/// scaled = score * the scales of a block of V, for the positions that each query sees.
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
