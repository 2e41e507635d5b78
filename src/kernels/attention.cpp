// Causal attention over KV pages, with grouped heads. Positions are cut in logical spans of 512, whose parts are put
// together in order, so that no sum depends on tiles, pages or threads. Limit: bytes of K and V for few rows, FMA slots
// for many.
#include "kernels/attention_q8.hpp"
#include "kernels/attention_q8_values.hpp"

namespace headrace::kernels::HEADRACE_ISA {
namespace {

/// Turns dots into exp(dot * scale - m) in place, with m the maximum of dot * scale and l their sum.
void weigh(Chunk& chunk, int query, float scale) {
  float* s = chunk.scores[query];
  const Size begin = chunk.begin[query];
  const Size end = chunk.end[query];
  const Size first = begin / 16 * 16;
  const Size whole = end / 16 * 16;
  const float lowest = -__builtin_inff();
  Vec largest = set1(lowest);
  for (Size i = first; i < end; i += 16) store(s + i, mul(load(s + i), set1(scale)));
  for (Size i = first; i < begin; ++i) s[i] = lowest;  // which weighs 0
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

/// One span of a chunk whose span_start, q, begin and end are set: fills m, l and o.
void compute_span(Chunk& chunk, const AttentionArgs& args) {
  set_reads(chunk);
  switch (args.encoding) {
    case KvEncoding::f16:
      score_floating<F16>(chunk);
      break;
    case KvEncoding::bf16:
      score_floating<Bf16>(chunk);
      break;
    case KvEncoding::q8_0:
      score_q8(chunk, args);
      break;
  }
  for (int i = 0; i < chunk.queries; ++i) weigh(chunk, i, args.scale);
  switch (args.encoding) {
    case KvEncoding::f16:
      return output_floating<F16>(chunk);
    case KvEncoding::bf16:
      return output_floating<Bf16>(chunk);
    case KvEncoding::q8_0:
      return output_q8(chunk);
  }
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
  const Size head_bytes = kv_page_bytes(args.encoding, 1, args.head_width);
  chunk.width = args.head_width;
  chunk.k_base = args.k_offset + kv_head * head_bytes;
  chunk.v_base = args.v_offset + kv_head * head_bytes;
}

/// q of a chunk's queries as a16 rows, where the keys are dotted by integers.
struct EncodedQueries {
  alignas(64) std::byte rows[chunk_queries][a16_row_bytes(max_width)];

  void set(const AttentionArgs& args, Size query, const float* q) {
    if (args.encoding != KvEncoding::q8_0) return;
    encode_a16(q, args.head_width, row(args, query), a16_row_bytes(args.head_width), args.head_width, 1);
  }
  std::byte* row(const AttentionArgs& args, Size query) { return rows[0] + query * a16_row_bytes(args.head_width); }
};

/// Sets what of the span a row at `position` sees. False if that is nothing.
inline bool set_seen(Chunk& chunk, Size query, Size position, Size window) {
  chunk.begin[query] = larger(attention_first(position, window) - chunk.span_start, 0);
  chunk.end[query] = smaller(position + 1 - chunk.span_start, attention_span);
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
  EncodedQueries encoded;
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
      const Size last_position = args.positions[row_of(in_chunk - 1)];
      chunk.last_page = last_position / page_positions;
      const auto q_of = [&](Size i) { return args.q + row_of(i) * args.q_stride + head_of(i) * args.head_width; };
      for (Size i = 0; i < in_chunk; ++i) encoded.set(args, i, q_of(i));
      for (Size span = first_span(0); span <= last_position / attention_span; ++span) {
        chunk.span_start = span * attention_span;
        Size skipped = 0;
        while (args.positions[row_of(skipped)] < chunk.span_start) ++skipped;
        chunk.queries = 0;
        chunk.encoded_q = encoded.row(args, skipped);
        for (Size i = skipped; i < in_chunk; ++i) {
          if (!set_seen(chunk, i - skipped, args.positions[row_of(i)], args.window)) break;
          chunk.q[i - skipped] = q_of(i);
          ++chunk.queries;
        }
        if (chunk.queries == 0) continue;
        compute_span(chunk, args);
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
  EncodedQueries encoded;
  for (Size item = first_item; item < last_item; ++item) {
    const Size part = item % args.max_spans;
    const Size kv_head = item / args.max_spans % args.kv_heads;
    const Size row = item / args.max_spans / args.kv_heads;
    if (part >= attention_spans(args.positions[row], args.window)) continue;
    const Size span = attention_first(args.positions[row], args.window) / attention_span + part;
    set_head(chunk, args, kv_head);
    chunk.pages = args.pages[row];
    chunk.last_page = args.positions[row] / page_positions;
    chunk.span_start = span * attention_span;
    for (Size first = 0; first < group; first += chunk_queries) {
      chunk.queries = static_cast<int>(smaller(chunk_queries, group - first));
      chunk.encoded_q = encoded.row(args, 0);
      for (int i = 0; i < chunk.queries; ++i) {
        chunk.q[i] = args.q + row * args.q_stride + (kv_head * group + first + i) * args.head_width;
        encoded.set(args, i, chunk.q[i]);
        set_seen(chunk, i, args.positions[row], args.window);
      }
      compute_span(chunk, args);
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
