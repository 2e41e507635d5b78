// The inner loops of attention, per encoding of K and V: scores of query rows with keys, and sums of weighted values.
#pragma once

#include "kernels/attention_chunk.hpp"

namespace headrace::kernels::HEADRACE_ISA {

// ---- encodings -----------------------------------------------------------------------------------------------------

struct F16 {
  static Vec load(const std::byte* p) { return load_f16(p); }
};
struct Bf16 {
  static Vec load(const std::byte* p) { return load_bf16(p); }
};

/// Into L2: what waits for L1 takes the few places for misses there, and then loads stall (9.7 GB/s of 33 with neither,
/// 11.4 into L1, 23.8 into L2, Zen 4, E = 64 with groups of 3).
inline void prefetch(const std::byte* p) { __builtin_prefetch(p, 0, 2); }

// ---- keys ----------------------------------------------------------------------------------------------------------

/// Dots of `queries` query rows with `blocks` runs of 16 positions at `k`: per dot one ordered FMA chain over e.
/// `ahead` is loaded to cache, as many bytes as k has.
template <class Kv, int queries, int blocks>
void score_tile(const std::byte* k, const std::byte* ahead, Size width, const float* const* q, float* scores) {
  Vec sum[queries][blocks];
  for (int i = 0; i < queries; ++i) {
    for (int b = 0; b < blocks; ++b) sum[i][b] = zero();
  }
  const Size block_bytes = 32 * width;
  for (Size e = 0; e < width; ++e) {
    for (int b = 0; b < blocks; b += 2) prefetch(ahead + 32 * (blocks * e + b));
    Vec key[blocks];
    for (int b = 0; b < blocks; ++b) key[b] = Kv::load(k + b * block_bytes + 32 * e);
    for (int i = 0; i < queries; ++i) {
      const Vec each = set1(q[i][e]);
      for (int b = 0; b < blocks; ++b) sum[i][b] = fma(key[b], each, sum[i][b]);
    }
  }
  for (int i = 0; i < queries; ++i) {
    for (int b = 0; b < blocks; ++b) store(scores + i * attention_span + 16 * b, sum[i][b]);
  }
}

template <class Kv, int queries>
void score_queries_of(Chunk& chunk, int first) {
  Size begin = attention_span;
  Size end = 0;
  for (int i = 0; i < queries; ++i) {
    begin = smaller(begin, chunk.begin[first + i]);
    end = larger(end, chunk.end[first + i]);
  }
  // More positions at a time hide the latency of FMA and share the broadcasts of q.
  constexpr int blocks = queries * 4 <= score_sums ? 4 : queries * 2 <= score_sums ? 2 : 1;
  for (Size position = begin / 16 * 16; position < end;) {
    const Size page = position / page_positions;
    const Size offset = position % page_positions * 2 * chunk.width;
    const std::byte* k = chunk.keys(page) + offset;
    const std::byte* ahead = chunk.after_keys(page) + offset;
    const float* const* q = chunk.q + first;
    float* scores = chunk.scores[first] + position;
    if (blocks > 1 && position % (16 * blocks) == 0 && position + 16 * (blocks - 1) < end) {
      score_tile<Kv, queries, blocks>(k, ahead, chunk.width, q, scores);
      position += 16 * blocks;
    } else {
      score_tile<Kv, queries, 1>(k, ahead, chunk.width, q, scores);
      position += 16;
    }
  }
}

template <class Kv>
void score_floating(Chunk& chunk) {
  in_parts<score_queries>(chunk.queries, [&](int first, int count) {
    switch (count) {
      case 1:
        return score_queries_of<Kv, 1>(chunk, first);
      case 2:
        return score_queries_of<Kv, 2>(chunk, first);
      case 3:
        return score_queries_of<Kv, 3>(chunk, first);
      case 4:
        return score_queries_of<Kv, 4>(chunk, first);
      default:
        break;
    }
    if constexpr (score_queries > 4) {
      switch (count) {
        case 5:
          return score_queries_of<Kv, 5>(chunk, first);
        case 6:
          return score_queries_of<Kv, 6>(chunk, first);
        case 7:
          return score_queries_of<Kv, 7>(chunk, first);
        default:
          return score_queries_of<Kv, 8>(chunk, first);
      }
    }
  });
}

// ---- values --------------------------------------------------------------------------------------------------------

/// o += sum over positions [from, to) of the span of weight * V, of the elements from `element` on: per element one FMA
/// chain in the order of positions.
template <class Kv, int queries, int vectors>
void output_tile(Chunk& chunk, int first, Size element, Size from, Size to) {
  const Size stride = 2 * chunk.width;
  Vec sum[queries][vectors];
  for (int i = 0; i < queries; ++i) {
    const bool begins = from == chunk.begin[first + i];
    for (int v = 0; v < vectors; ++v) sum[i][v] = begins ? zero() : load(chunk.o[first + i] + element + 16 * v);
  }
  for (Size position = from; position < to;) {
    const Size page = position / page_positions;
    const Size offset = position % page_positions * stride + 2 * element;
    const std::byte* value = chunk.values(page) + offset;
    const std::byte* ahead = chunk.after_values(page) + offset;
    const Size last = smaller(to, (page + 1) * page_positions);
    for (; position < last; ++position, value += stride, ahead += stride) {
      for (int v = 0; v < vectors; v += 2) prefetch(ahead + 32 * v);
      Vec loaded[vectors];
      for (int v = 0; v < vectors; ++v) loaded[v] = Kv::load(value + 32 * v);
      for (int i = 0; i < queries; ++i) {
        const Vec weight = set1(chunk.scores[first + i][position]);
        for (int v = 0; v < vectors; ++v) sum[i][v] = fma(weight, loaded[v], sum[i][v]);
      }
    }
  }
  for (int i = 0; i < queries; ++i) {
    for (int v = 0; v < vectors; ++v) store(chunk.o[first + i] + element + 16 * v, sum[i][v]);
  }
}

/// For query rows that see different positions: those that all see together, before and behind them each its own.
template <class Kv, int queries, int vectors>
void output_queries_of(Chunk& chunk, int first, Size element) {
  Size begin = chunk.begin[first];
  Size end = chunk.end[first];
  for (int i = 1; i < queries; ++i) {
    begin = larger(begin, chunk.begin[first + i]);
    end = smaller(end, chunk.end[first + i]);
  }
  const auto own = [&](int query, Size from, Size to) {
    if (from < to) output_tile<Kv, 1, vectors>(chunk, query, element, from, to);
  };
  if (begin >= end) {
    for (int i = first; i < first + queries; ++i) own(i, chunk.begin[i], chunk.end[i]);
    return;
  }
  for (int i = first; i < first + queries; ++i) own(i, chunk.begin[i], begin);
  output_tile<Kv, queries, vectors>(chunk, first, element, begin, end);
  for (int i = first; i < first + queries; ++i) own(i, end, chunk.end[i]);
}

template <class Kv, int vectors>
void output_columns(Chunk& chunk, Size element) {
  in_parts<output_queries>(chunk.queries, [&](int first, int count) {
    switch (count) {
      case 1:
        return output_queries_of<Kv, 1, vectors>(chunk, first, element);
      case 2:
        return output_queries_of<Kv, 2, vectors>(chunk, first, element);
      case 3:
        return output_queries_of<Kv, 3, vectors>(chunk, first, element);
      default:
        break;
    }
    if constexpr (output_queries > 3) {
      switch (count) {
        case 4:
          return output_queries_of<Kv, 4, vectors>(chunk, first, element);
        case 5:
          return output_queries_of<Kv, 5, vectors>(chunk, first, element);
        default:
          return output_queries_of<Kv, 6, vectors>(chunk, first, element);
      }
    }
  });
}

/// Vector v begins at 16 v, the last at E - 16. A vector that overlaps goes into a call of its own, after the others:
/// from its first position on it computes the shared elements anew, with equal bits.
template <class Kv>
void output_floating(Chunk& chunk) {
  Size element = 0;
  for (; element + 16 * output_vectors <= chunk.width; element += 16 * output_vectors) {
    output_columns<Kv, output_vectors>(chunk, element);
  }
  for (; element + 16 <= chunk.width; element += 16) output_columns<Kv, 1>(chunk, element);
  if (element < chunk.width) output_columns<Kv, 1>(chunk, chunk.width - 16);
}

}  // namespace headrace::kernels::HEADRACE_ISA
