// Causal attention over KV pages, with grouped heads. Positions are cut in logical spans of 512, whose parts are put
// together in order, so that no sum depends on tiles, pages or threads. Limit: bytes of K and V for few rows, FMA slots
// for many.
#include "kernels/isa.hpp"

namespace headrace::kernels::HEADRACE_ISA {
namespace {

constexpr int chunk_queries = 16;  ///< query rows (a row and one of its heads) that pass over a span together
constexpr Size max_width = 256;

/// Query rows of one kv head, all of one sequence, and what the current span gave for each.
struct Chunk {
  int queries = 0;
  const std::byte* const* pages = nullptr;
  Size width = 0;   ///< E
  Size k_base = 0;  ///< bytes of the kv head's K and V in a page
  Size v_base = 0;
  float scale = 1;
  const float* q[chunk_queries];
  Size begin[chunk_queries];  ///< the query sees positions [begin, end) of the span, at least one
  Size end[chunk_queries];
  float m[chunk_queries];
  float l[chunk_queries];
  alignas(64) float scores[chunk_queries][attention_span];
  alignas(64) float o[chunk_queries][max_width];
};

/// Scores of `queries` query rows from `first` with `blocks` runs of 16 positions from position `start` on: per score
/// one ordered FMA chain over e.
template <int queries, int blocks>
void score_tile(Chunk& chunk, int first, Size start, Size span_start) {
  const std::byte* k[blocks];
  Vec sum[queries][blocks];
  for (int b = 0; b < blocks; ++b) {
    const Size position = start + 16 * b;
    k[b] = chunk.pages[position / page_positions] + chunk.k_base + position % page_positions / 16 * (chunk.width * 32);
    for (int i = 0; i < queries; ++i) sum[i][b] = zero();
  }
  for (Size e = 0; e < chunk.width; ++e) {
    Vec key[blocks];
    for (int b = 0; b < blocks; ++b) key[b] = load_f16(k[b] + 32 * e);
    for (int i = 0; i < queries; ++i) {
      const Vec q = set1(chunk.q[first + i][e]);
      for (int b = 0; b < blocks; ++b) sum[i][b] = fma(key[b], q, sum[i][b]);
    }
  }
  for (int i = 0; i < queries; ++i) {
    for (int b = 0; b < blocks; ++b) {
      store(chunk.scores[first + i] + (start - span_start) + 16 * b, mul(sum[i][b], set1(chunk.scale)));
    }
  }
}

template <int queries>
void score_queries_of(Chunk& chunk, int first, Size span_start) {
  Size begin = attention_span;
  Size end = 0;
  for (int i = 0; i < queries; ++i) {
    begin = smaller(begin, chunk.begin[first + i]);
    end = larger(end, chunk.end[first + i]);
  }
  Size done = begin / 16 * 16;
  if constexpr (queries * 2 <= score_queries) {  // few chains: more positions at a time hide the latency of FMA
    for (; done + 16 < end; done += 32) score_tile<queries, 2>(chunk, first, span_start + done, span_start);
  }
  for (; done < end; done += 16) score_tile<queries, 1>(chunk, first, span_start + done, span_start);
}

void score(Chunk& chunk, Size span_start) {
  int first = 0;
  for (; first + score_queries <= chunk.queries; first += score_queries) {
    score_queries_of<score_queries>(chunk, first, span_start);
  }
  if constexpr (score_queries > 4) {
    for (; first + 4 <= chunk.queries; first += 4) score_queries_of<4>(chunk, first, span_start);
  }
  switch (chunk.queries - first) {
    case 3:
      score_queries_of<3>(chunk, first, span_start);
      break;
    case 2:
      score_queries_of<2>(chunk, first, span_start);
      break;
    case 1:
      score_queries_of<1>(chunk, first, span_start);
      break;
    default:
      break;
  }
}

/// Turns scores into exp(score - m) in place, with m their maximum and l their sum.
void weigh(Chunk& chunk, int query) {
  float* s = chunk.scores[query];
  const Size begin = chunk.begin[query];
  const Size end = chunk.end[query];
  const Size first = begin / 16 * 16;
  const Size whole = end / 16 * 16;
  const float lowest = -__builtin_inff();
  for (Size i = first; i < begin; ++i) s[i] = lowest;  // which weighs 0
  Vec largest = set1(lowest);
  for (Size i = first; i < whole; i += 16) largest = max(load(s + i), largest);
  float m = tree_max(largest);
  for (Size i = larger(first, whole); i < end; ++i) m = s[i] > m ? s[i] : m;
  Vec sum = zero();
  for (Size i = first; i < end; i += 16) {
    Vec p = exp(sub(load(s + i), set1(m)));
    store(s + i, p);
    if (i + 16 > end) p = load_partial(s + i, end - i);
    sum = add(sum, p);
  }
  chunk.m[query] = m;
  chunk.l[query] = tree_sum(sum);
}

/// o += sum over positions [from, to) of the span of p * V: per element one FMA chain in the order of positions.
template <int queries, int vectors>
void output_tile(Chunk& chunk, int first, const Size* offsets, Size span_start, Size from, Size to) {
  Vec sum[queries][vectors];
  for (int i = 0; i < queries; ++i) {
    const bool begins = from == chunk.begin[first + i];
    for (int v = 0; v < vectors; ++v) sum[i][v] = begins ? zero() : load(chunk.o[first + i] + offsets[v]);
  }
  for (Size position = from; position < to;) {
    const Size absolute = span_start + position;
    const std::byte* value =
        chunk.pages[absolute / page_positions] + chunk.v_base + absolute % page_positions * chunk.width * 2;
    const Size last = smaller(to, position + page_positions - absolute % page_positions);
    for (; position < last; ++position, value += chunk.width * 2) {
      Vec loaded[vectors];
      for (int v = 0; v < vectors; ++v) loaded[v] = load_f16(value + 2 * offsets[v]);
      for (int i = 0; i < queries; ++i) {
        const Vec p = set1(chunk.scores[first + i][position]);
        for (int v = 0; v < vectors; ++v) sum[i][v] = fma(p, loaded[v], sum[i][v]);
      }
    }
  }
  for (int i = 0; i < queries; ++i) {
    for (int v = 0; v < vectors; ++v) store(chunk.o[first + i] + offsets[v], sum[i][v]);
  }
}

/// Some vectors of E for query rows that see different positions: those that all see together, before and behind them
/// each its own.
template <int queries, int vectors>
void output_queries_of(Chunk& chunk, int first, const Size* offsets, Size span_start) {
  Size begin = chunk.begin[first];
  Size end = chunk.end[first];
  for (int i = 1; i < queries; ++i) {
    begin = larger(begin, chunk.begin[first + i]);
    end = smaller(end, chunk.end[first + i]);
  }
  if (begin >= end) {
    for (int i = 0; i < queries; ++i) {
      output_tile<1, vectors>(chunk, first + i, offsets, span_start, chunk.begin[first + i], chunk.end[first + i]);
    }
    return;
  }
  for (int i = 0; i < queries; ++i) {
    if (chunk.begin[first + i] < begin) {
      output_tile<1, vectors>(chunk, first + i, offsets, span_start, chunk.begin[first + i], begin);
    }
  }
  output_tile<queries, vectors>(chunk, first, offsets, span_start, begin, end);
  for (int i = 0; i < queries; ++i) {
    if (chunk.end[first + i] > end) {
      output_tile<1, vectors>(chunk, first + i, offsets, span_start, end, chunk.end[first + i]);
    }
  }
}

template <int vectors>
void output_vectors_of(Chunk& chunk, const Size* offsets, Size span_start) {
  int first = 0;
  for (; first + output_queries <= chunk.queries; first += output_queries) {
    output_queries_of<output_queries, vectors>(chunk, first, offsets, span_start);
  }
  if constexpr (output_queries > 3) {
    for (; first + 3 <= chunk.queries; first += 3) output_queries_of<3, vectors>(chunk, first, offsets, span_start);
  }
  for (; first < chunk.queries; ++first) output_queries_of<1, vectors>(chunk, first, offsets, span_start);
}

void output(Chunk& chunk, Size span_start) {
  // Vector v begins at 16 v, the last at E - 16. A vector that overlaps goes into a call of its own, after the others:
  // from its first position on it computes the shared elements anew, with equal bits.
  const Size whole = chunk.width / 16;
  Size offsets[output_vectors];
  Size v = 0;
  for (; v + output_vectors <= whole; v += output_vectors) {
    for (int i = 0; i < output_vectors; ++i) offsets[i] = 16 * (v + i);
    output_vectors_of<output_vectors>(chunk, offsets, span_start);
  }
  for (; v < whole; ++v) {
    offsets[0] = 16 * v;
    output_vectors_of<1>(chunk, offsets, span_start);
  }
  if (chunk.width % 16 != 0) {
    offsets[0] = chunk.width - 16;
    output_vectors_of<1>(chunk, offsets, span_start);
  }
}

/// One span of a chunk whose q, begin and end are set: fills m, l and o.
void compute_span(Chunk& chunk, Size span_start) {
  score(chunk, span_start);
  for (int i = 0; i < chunk.queries; ++i) weigh(chunk, i);
  output(chunk, span_start);
}

/// What the spans so far gave for one query row.
struct Total {
  float m;
  float l;
  alignas(64) float o[max_width];
};

inline float exp_of(float x) {
  alignas(64) float lane[16];
  store(lane, exp(set1(x)));
  return lane[0];
}

/// Adds the next span to the total; the first is taken as it is. Rows of o are read to a multiple of 16 floats.
void fold(Total& total, bool is_first, float m, float l, const float* o, Size width) {
  if (is_first) {
    total.m = m;
    total.l = l;
    for (Size e = 0; e < width; ++e) total.o[e] = o[e];
    return;
  }
  const float both = total.m > m ? total.m : m;
  const float a = exp_of(total.m - both);
  const float b = exp_of(m - both);
  total.m = both;
  total.l = fma_scalar(total.l, a, b * l);
  for (Size e = 0; e < width; e += 16) {
    const Size count = smaller(16, width - e);
    const Vec next = fma(load_partial(total.o + e, count), set1(a), mul(set1(b), load_partial(o + e, count)));
    store_partial(total.o + e, next, count);
  }
}

/// A part with no value, m = sink and l = 1.
void fold_sink(Total& total, float sink, Size width) {
  const float both = total.m > sink ? total.m : sink;
  const float a = exp_of(total.m - both);
  total.m = both;
  total.l = fma_scalar(total.l, a, exp_of(sink - both));
  for (Size e = 0; e < width; e += 16) {
    const Size count = smaller(16, width - e);
    store_partial(total.o + e, mul(load_partial(total.o + e, count), set1(a)), count);
  }
}

void finish(const Total& total, float* out, Size width) {
  for (Size e = 0; e < width; e += 16) {
    const Size count = smaller(16, width - e);
    store_partial(out + e, div(load_partial(total.o + e, count), set1(total.l)), count);
  }
}

void set_head(Chunk& chunk, const AttentionArgs& args, Size kv_head) {
  const Size head_bytes = page_positions * args.head_width * 2;
  chunk.width = args.head_width;
  chunk.scale = args.scale;
  chunk.k_base = args.k_offset + kv_head * head_bytes;
  chunk.v_base = args.v_offset + kv_head * head_bytes;
}

/// Sets what of the span from span_start on a row at `position` sees. False if that is nothing.
inline bool set_seen(Chunk& chunk, Size query, Size position, Size window, Size span_start) {
  chunk.begin[query] = larger(attention_first(position, window) - span_start, 0);
  chunk.end[query] = smaller(position + 1 - span_start, attention_span);
  return chunk.begin[query] < chunk.end[query];
}

/// Folds the sink, if there are any, and writes the head's output.
void finish_head(const AttentionArgs& args, Total& total, Size row, Size head) {
  if (args.sinks != nullptr) fold_sink(total, args.sinks[head], args.head_width);
  finish(total, args.out + row * args.out_stride + head * args.head_width, args.head_width);
}

}  // namespace

void attention(const AttentionArgs& args, Size first_item, Size last_item) noexcept {
  const Size group = args.heads / args.kv_heads;
  Chunk chunk;
  Total totals[chunk_queries];
  for (Size item = first_item; item < last_item; ++item) {
    const AttentionTile tile = args.tiles[item / args.kv_heads];
    const Size kv_head = item % args.kv_heads;
    set_head(chunk, args, kv_head);
    chunk.pages = args.pages[tile.first_row];
    // Queries of the tile, row by row, in chunks. Positions ascend, so those that a span no longer reaches come first,
    // and those whose window begins behind it last.
    const Size queries = tile.rows * group;
    for (Size first = 0; first < queries; first += chunk_queries) {
      const Size in_chunk = smaller(chunk_queries, queries - first);
      const auto row_of = [&](Size i) { return tile.first_row + (first + i) / group; };
      const auto head_of = [&](Size i) { return kv_head * group + (first + i) % group; };
      const auto first_span = [&](Size i) {
        return attention_first(args.positions[row_of(i)], args.window) / attention_span;
      };
      const Size last_span = args.positions[row_of(in_chunk - 1)] / attention_span;
      for (Size span = first_span(0); span <= last_span; ++span) {
        const Size span_start = span * attention_span;
        Size skipped = 0;
        while (args.positions[row_of(skipped)] < span_start) ++skipped;
        chunk.queries = 0;
        for (Size i = skipped; i < in_chunk; ++i) {
          if (!set_seen(chunk, i - skipped, args.positions[row_of(i)], args.window, span_start)) break;
          chunk.q[i - skipped] = args.q + row_of(i) * args.q_stride + head_of(i) * args.head_width;
          ++chunk.queries;
        }
        compute_span(chunk, span_start);
        for (int c = 0; c < chunk.queries; ++c) {
          const Size i = skipped + c;
          fold(totals[i], span == first_span(i), chunk.m[c], chunk.l[c], chunk.o[c], args.head_width);
        }
      }
      for (Size i = 0; i < in_chunk; ++i) finish_head(args, totals[i], row_of(i), head_of(i));
    }
  }
}

void attention_partial(const AttentionArgs& args, Size first_item, Size last_item) noexcept {
  const Size group = args.heads / args.kv_heads;
  const Size floats = attention_partial_floats(args.head_width);
  Chunk chunk;
  for (Size item = first_item; item < last_item; ++item) {
    const Size part = item % args.max_spans;
    const Size kv_head = item / args.max_spans % args.kv_heads;
    const Size row = item / args.max_spans / args.kv_heads;
    if (part >= attention_spans(args.positions[row], args.window)) continue;
    const Size span = attention_first(args.positions[row], args.window) / attention_span + part;
    set_head(chunk, args, kv_head);
    chunk.pages = args.pages[row];
    for (Size first = 0; first < group; first += chunk_queries) {
      chunk.queries = static_cast<int>(smaller(chunk_queries, group - first));
      for (int i = 0; i < chunk.queries; ++i) {
        chunk.q[i] = args.q + row * args.q_stride + (kv_head * group + first + i) * args.head_width;
        set_seen(chunk, i, args.positions[row], args.window, span * attention_span);
      }
      compute_span(chunk, span * attention_span);
      for (int i = 0; i < chunk.queries; ++i) {
        float* partial =
            args.partials + ((row * args.heads + kv_head * group + first + i) * args.max_spans + part) * floats;
        memcpy(partial, chunk.o[i], static_cast<std::size_t>(4 * args.head_width));
        partial[args.head_width] = chunk.m[i];
        partial[args.head_width + 1] = chunk.l[i];
      }
    }
  }
}

void attention_combine(const AttentionArgs& args, Size first_item, Size last_item) noexcept {
  const Size group = args.heads / args.kv_heads;
  const Size floats = attention_partial_floats(args.head_width);
  Total total;
  for (Size item = first_item; item < last_item; ++item) {
    const Size row = item / args.kv_heads;
    for (Size h = 0; h < group; ++h) {
      const Size head = item % args.kv_heads * group + h;
      const float* partials = args.partials + (row * args.heads + head) * args.max_spans * floats;
      for (Size part = 0; part < attention_spans(args.positions[row], args.window); ++part) {
        const float* p = partials + part * floats;
        fold(total, part == 0, p[args.head_width], p[args.head_width + 1], p, args.head_width);
      }
      finish_head(args, total, row, head);
    }
  }
}

}  // namespace headrace::kernels::HEADRACE_ISA
