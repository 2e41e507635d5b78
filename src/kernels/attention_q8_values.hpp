// Attention over q8_0 values: integer dots of codes with the weights of positions, which are a16 over a whole span.
// (An FMA chain over converted codes costs three vector operations for every 16 of them beside the FMAs themselves.)
#pragma once

#include "kernels/a16.hpp"
#include "kernels/attention_q8.hpp"
#include "kernels/codes.hpp"

namespace headrace::kernels::HEADRACE_ISA {

/// Encodes weight * scale of V for a query and a block of V, over all pages that any query sees of the span: zeros
/// where this query sees nothing.
inline void encode_weights(Chunk& chunk, int query, Size block) {
  const Size first = chunk.first_page * page_positions;
  const Size last = first + chunk.page_count * page_positions;
  const Size begin = chunk.begin[query];
  const Size end = chunk.end[query];
  alignas(64) float weights[attention_span];
  Int largest = set1_int(0);
  for (Size p = first; p < last; p += 16) {
    Vec weight = zero();
    if (p + 16 > begin && p < end) {
      const std::byte* scales = chunk.values(p / page_positions) + block * q8_values_bytes + q8_values_codes;
      weight = mul(load(chunk.scores[query] + p), load_f16(scales + p % page_positions * 2));
      if (p < begin || p + 16 > end) {
        store(weights + p, weight);
        for (Size at = p; at < p + 16; ++at) weights[at] = at < begin || at >= end ? 0 : weights[at];
        weight = load(weights + p);
      }
    }
    largest = max_int(largest, absolute_bits(weight));
    store(weights + p, weight);
  }
  const auto [scale, inverse] = a16_scale(reduce_max(largest));
  if (inverse == 0) memset(weights, 0, sizeof weights);
  Int sum = set1_int(0);
  for (Size page = chunk.first_page; page < chunk.first_page + chunk.page_count; ++page) {
    fetch_ahead(chunk, 8);
    for (Size p = page * page_positions; p < (page + 1) * page_positions; p += 16) {
      std::byte* digits = chunk.codes.unit(block, p / a16_block, chunk.queries) + query * 2 * a16_block + p % a16_block;
      sum = add(sum, encode_digits(load(weights + p), set1(inverse), digits));
    }
  }
  // V's codes are held + 128. From this offset on no partial sum leaves int32: those of n positions are at most
  // 127 * 32512 * n away from what is still to come, 128 * 32512 * (512 - n).
  const Int offset = set1_int(-128 * reduce_sum(sum));
  for (Size v = 0; v < q8_block / 16; ++v) chunk.codes.sums[query][block * (q8_block / 16) + v] = offset;
  chunk.codes.scales[query][block] = scale;
}

/// Adds a page's products to the sums of some queries.
template <int queries>
void add_page(Chunk& chunk, int first, Size page) {
  const std::byte* values = chunk.values(page);
  for (Size block = 0; block < chunk.width / q8_block; ++block) {
    for (Size v = 0; v < q8_block / 16; ++v) {
      const Size vector = block * (q8_block / 16) + v;
      if (first == 0) fetch_ahead(chunk, q8_values_bytes / 128 + 1);
      Int sum[queries];
      for (int i = 0; i < queries; ++i) sum[i] = chunk.codes.sums[first + i][vector];
      for (Size unit = 0; unit < page_positions / a16_block; ++unit) {
        const Size offset = block * q8_values_bytes + q8_value_place(unit * a16_block, 16 * v);
        const std::byte* weights = chunk.codes.unit(block, page * (page_positions / a16_block) + unit, chunk.queries);
        Digits<8, queries> digits;
        for (int i = 0; i < queries; ++i) digits.set(i, weights + (first + i) * 2 * a16_block);
        Part<8> line[8];
        unpack<8>(values + offset, line);
        dots<8, 0, 8, 0>(line, digits, sum);
      }
      for (int i = 0; i < queries; ++i) chunk.codes.sums[first + i][vector] = sum[i];
    }
  }
}

inline void output_q8(Chunk& chunk) {
  const Size blocks = chunk.width / q8_block;
  for (int query = 0; query < chunk.queries; ++query) {
    for (Size block = 0; block < blocks; ++block) encode_weights(chunk, query, block);
  }
  if (chunk.ahead.page < chunk.page_count) chunk.ahead = {chunk.page_count, 0};
  for (Size page = chunk.first_page; page < chunk.first_page + chunk.page_count; ++page) {
    in_parts<4>(chunk.queries, [&](int first, int count) {
      switch (count) {
        case 1:
          return add_page<1>(chunk, first, page);
        case 2:
          return add_page<2>(chunk, first, page);
        case 3:
          return add_page<3>(chunk, first, page);
        default:
          return add_page<4>(chunk, first, page);
      }
    });
  }
  for (int query = 0; query < chunk.queries; ++query) {
    for (Size v = 0; v < chunk.width / 16; ++v) {
      const Vec scale = set1(chunk.codes.scales[query][v / (q8_block / 16)]);
      store(chunk.o[query] + 16 * v, mul(to_float(chunk.codes.sums[query][v]), scale));
    }
  }
}

}  // namespace headrace::kernels::HEADRACE_ISA
