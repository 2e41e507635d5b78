// What the parts of attention share: the query rows that pass over a span of positions together, and the order in which
// the pages of K and V are read.
#pragma once

#include "kernels/isa.hpp"

namespace headrace::kernels::HEADRACE_ISA {

// Parts of a kv head's q8_0 page (KvEncoding), of 32 elements each.
inline constexpr Size q8_block = 32;
inline constexpr Size q8_keys_codes = 16 * q8_block;  ///< of 16 positions
inline constexpr Size q8_keys_bytes = q8_keys_codes + 2 * 16;
/// Bytes of a panel of keys, 16 positions.
constexpr Size q8_panel_bytes(Size width) { return kv_page_bytes(KvEncoding::q8_0, 1, width) / (page_positions / 16); }
inline constexpr Size q8_values_codes = page_positions * q8_block;
inline constexpr Size q8_values_bytes = q8_values_codes + 2 * page_positions;
inline constexpr Size q8_values_unit = 16 * q8_block;  ///< codes of 32 positions and 16 elements
/// Where the code of an element lies in a block of V.
constexpr Size q8_value_place(Size slot, Size element) {
  return element / 16 * (2 * q8_values_unit) + slot / 4 * 64 + element % 16 * 4 + slot % 4;
}

inline constexpr int chunk_queries = 16;  ///< query rows (a row and one of its heads) that pass over a span together
inline constexpr Size max_width = 256;
inline constexpr Size span_pages = attention_span / page_positions;
/// Pages that loads run ahead of what is computed. Two of E = 64 outlast the exponentials between K and V.
inline constexpr Size pages_ahead = 2;

/// Where loads ahead stand in V of the span's pages and then K of as many pages on, of q8_0.
struct Ahead {
  Size page = 0;  ///< of V, then of K
  Size line = 0;
};

/// The weights of positions times the scales of blocks of V, as a16 of one scale per query and block.
struct WeightCodes {
  static constexpr Size units = attention_span / a16_block;
  alignas(64) std::byte digits[chunk_queries * units * (max_width / q8_block) * 2 * a16_block];
  float scales[chunk_queries][max_width / q8_block];
  Int sums[chunk_queries][max_width / 16];  ///< of the products with V's codes so far

  /// The digits of a block's unit of 32 positions: those of the queries one behind the other.
  [[nodiscard]] std::byte* unit(Size block, Size unit, int queries) {
    return digits + (block * units + unit) * queries * 2 * a16_block;
  }
};

/// Query rows of one kv head, all of one sequence, and what the current span gave for each.
struct Chunk {
  int queries = 0;
  const std::byte* const* pages = nullptr;
  Size last_page = 0;  ///< of the row's positions: where loads ahead end
  Size width = 0;      ///< E
  Size k_base = 0;     ///< bytes of the kv head's K and V in a page
  Size v_base = 0;
  Size span_start = 0;
  const float* q[chunk_queries];
  const std::byte* encoded_q = nullptr;  ///< q as a16 rows, where K is q8_0
  Size begin[chunk_queries];             ///< the query sees positions [begin, end) of the span, at least one
  Size end[chunk_queries];
  float m[chunk_queries];
  float l[chunk_queries];
  alignas(64) float scores[chunk_queries][attention_span];
  WeightCodes codes;  ///< of the scores, where V is q8_0
  Ahead ahead;        ///< likewise
  alignas(64) float o[chunk_queries][max_width];
  /// In the order of reading: K of the span's pages from first_page on, their V, K of the next.
  const std::byte* reads[2 * span_pages + pages_ahead];
  Size first_page = 0;  ///< of the span's that any query sees, counted from the span's start
  Size page_count = 0;

  [[nodiscard]] const std::byte* keys(Size page) const { return reads[page - first_page]; }
  [[nodiscard]] const std::byte* values(Size page) const { return reads[page_count + page - first_page]; }
  /// What is read `pages_ahead` pages after the page's K or V.
  [[nodiscard]] const std::byte* after_keys(Size page) const { return reads[page - first_page + pages_ahead]; }
  [[nodiscard]] const std::byte* after_values(Size page) const {
    return reads[page_count + page - first_page + pages_ahead];
  }
};

/// Sets the order of reads for what the queries see of the span.
inline void set_reads(Chunk& chunk) {
  Size begin = attention_span;
  Size end = 0;
  for (int i = 0; i < chunk.queries; ++i) {
    begin = smaller(begin, chunk.begin[i]);
    end = larger(end, chunk.end[i]);
  }
  chunk.first_page = begin / page_positions;
  chunk.page_count = (end + page_positions - 1) / page_positions - chunk.first_page;
  const Size first = chunk.span_start / page_positions + chunk.first_page;
  Size next = 0;
  for (Size i = 0; i < chunk.page_count; ++i) chunk.reads[next++] = chunk.pages[first + i] + chunk.k_base;
  for (Size i = 0; i < chunk.page_count; ++i) chunk.reads[next++] = chunk.pages[first + i] + chunk.v_base;
  for (Size i = 0; i < pages_ahead; ++i) {
    chunk.reads[next++] = chunk.pages[smaller(first + chunk.page_count + i, chunk.last_page)] + chunk.k_base;
  }
}

/// Calls function<n>() for each part of `count` queries: as few parts as `most` allows, of about equal size.
template <int most, class Function>
inline void in_parts(int count, Function function) {
  int first = 0;
  for (int parts = (count + most - 1) / most; parts > 0; --parts) {
    const int size = (count - first + parts - 1) / parts;
    function(first, size);
    first += size;
  }
}

}  // namespace headrace::kernels::HEADRACE_ISA
