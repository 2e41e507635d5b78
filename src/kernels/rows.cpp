// Kernels that work row by row: encoding of activations, gather, rms_norm, rope, the append to KV pages.
// Limit of all: memory bytes read and written.
#include "kernels/a16.hpp"
#include "kernels/grouped.hpp"

namespace headrace::kernels::HEADRACE_ISA {
namespace {

inline float lane_of(Vec v, Size lane) {
  alignas(64) float values[16];
  store(values, v);
  return values[lane];
}

/// One output of a floating panel, all k.
void gather_floating(const Layout& layout, const std::byte* panel, Size output, Size inputs, float* out) {
  if (layout.codes == Layout::Codes::f32) {
    for (Size k = 0; k < inputs; ++k) memcpy(out + k, panel + 4 * (k * 16 + output), 4);
    return;
  }
  if (layout.codes == Layout::Codes::bf16) {
    for (Size k = 0; k < inputs; ++k) {
      std::uint16_t half = 0;
      memcpy(&half, panel + 2 * ((k / 2 * 16 + output) * 2 + k % 2), 2);
      const std::uint32_t wide = static_cast<std::uint32_t>(half) << 16;
      memcpy(out + k, &wide, 4);
    }
    return;
  }
  std::uint16_t halves[16] = {};
  for (Size k = 0; k < inputs; k += 16) {
    const Size count = smaller(16, inputs - k);
    for (Size i = 0; i < count; ++i) memcpy(&halves[i], panel + 2 * ((k + i) * 16 + output), 2);
    std::byte bytes[32];
    memcpy(bytes, halves, 32);
    store_partial(out + k, load_f16(bytes), count);
  }
}

/// The codes of one output of a unit.
template <int code_bits>
void codes_of_output(const std::byte* unit, Size output, std::uint8_t (&codes)[unit_inputs]) {
  Line line[8];
  unpack<code_bits>(unit, line);
  for (int j = 0; j < 8; ++j) {
    std::uint8_t bytes[64];
    store_line(bytes, line[j]);
    memcpy(codes + 4 * j, bytes + 4 * output, 4);
  }
}

template <class G>
struct Gather {
  /// One output of a panel: the product is rounded before the minimum is added, as Format::decode does.
  static void run(const Layout& layout, const std::byte* panel, Size output, Size inputs, float* out) noexcept {
    for (Size k = 0; k < inputs; panel += G::span_bytes) {
      const Span<G> span(panel);
      const float scale = lane_of(span.scale(), output);
      const float minimum = G::has_minimum ? lane_of(span.minimum(), output) : 0;
      const std::byte* unit = span.codes;
      for (Size g = 0; g < G::span_units * G::unit_groups; g += G::unit_groups, unit += G::unit_bytes) {
        std::uint8_t codes[unit_inputs];
        codes_of_output<G::code_bits>(unit, output, codes);
        for (Size half = 0; half < G::unit_groups; ++half) {
          float group_scale = scale;
          float group_minimum = minimum;
          if constexpr (G::has_factors) {
            group_scale *= lane_of(span.scale_factor(g + half), output);
            if constexpr (G::has_minimum) group_minimum *= lane_of(span.minimum_factor(g + half), output);
          }
          for (Size i = 0; i < G::group_elements; ++i, ++k) {
            float value = group_scale * static_cast<float>(layout.level(codes[half * G::group_elements + i]));
            if constexpr (G::has_minimum) value += group_minimum;
            out[k] = value;
          }
        }
      }
    }
  }
};

}  // namespace

void encode_a16(const float* in, Size in_stride, std::byte* out, Size out_stride, Size inputs, Size rows) noexcept {
  encode_a16_blocks(in, in_stride, out, out_stride, inputs, 0, inputs / a16_block, rows);
}

void encode_a16_blocks(const float* in, Size in_stride, std::byte* out, Size out_stride, Size inputs, Size first,
                       Size last, Size rows) noexcept {
  const A16Row layout = a16_row(inputs);
  for (Size row = 0; row < rows; ++row) {
    const float* x = in + row * in_stride;
    std::byte* y = out + row * out_stride;
    for (Size b = first; b < last; ++b) {
      const Vec low = load(x + 32 * b);
      const Vec high = load(x + 32 * b + 16);
      const auto [scale, inverse] = a16_scale(reduce_max(max_int(absolute_bits(low), absolute_bits(high))));
      std::int32_t half_sums[2] = {};
      std::byte* digits = y + 64 * b;
      if (inverse == 0) {
        memset(digits, 0, 64);
      } else {
        half_sums[0] = reduce_sum(encode_digits(low, set1(inverse), digits));
        half_sums[1] = reduce_sum(encode_digits(high, set1(inverse), digits + 16));
      }
      const std::int32_t sum = half_sums[0] + half_sums[1];
      const float scaled_sum = static_cast<float>(sum) * scale;
      const float half_scaled_sums[2] = {static_cast<float>(half_sums[0]) * scale,
                                         static_cast<float>(half_sums[1]) * scale};
      memcpy(y + layout.scales + 4 * b, &scale, 4);
      memcpy(y + layout.sums + 4 * b, &sum, 4);
      memcpy(y + layout.scaled_sums + 4 * b, &scaled_sum, 4);
      memcpy(y + layout.half_sums + 8 * b, half_sums, 8);
      memcpy(y + layout.half_scaled_sums + 8 * b, half_scaled_sums, 8);
    }
  }
}

void gather_rows(const Layout& layout, const std::byte* packed, Size inputs, const std::int32_t* ids, Size rows,
                 float* out, Size out_stride) noexcept {
  const Size panel_bytes = layout.panel_bytes(inputs);
  const auto gather_grouped = find_instance<Gather>(layout, GroupedLayouts{});
  for (Size row = 0; row < rows; ++row) {
    const std::byte* panel = packed + ids[row] / panel_outputs * panel_bytes;
    const Size output = ids[row] % panel_outputs;
    float* y = out + row * out_stride;
    if (layout.grouped()) {
      gather_grouped(layout, panel, output, inputs, y);
    } else {
      gather_floating(layout, panel, output, inputs, y);
    }
  }
}

void rms_norm(const float* x, Size x_stride, const float* weight, float epsilon, float* y, Size y_stride, Size width,
              Size rows) noexcept {
  for (Size row = 0; row < rows; ++row) {
    const float* in = x + row * x_stride;
    float* out = y + row * y_stride;
    Vec squares = zero();
    Size i = 0;
    for (; i + 16 <= width; i += 16) squares = fma(load(in + i), load(in + i), squares);
    if (i < width) {
      const Vec tail = load_partial(in + i, width - i);
      squares = fma(tail, tail, squares);
    }
    const float mean = tree_sum(squares) / static_cast<float>(width);
    const Vec r = set1(1.0f / __builtin_sqrtf(mean + epsilon));
    for (i = 0; i + 16 <= width; i += 16) store(out + i, mul(mul(load(in + i), r), load(weight + i)));
    if (i < width) {
      const Vec tail = mul(mul(load_partial(in + i, width - i), r), load_partial(weight + i, width - i));
      store_partial(out + i, tail, width - i);
    }
  }
}

void rope(const RopeArgs& args, Size first_row, Size last_row) noexcept {
  const Size pairs = args.rotated / 2;
  for (Size row = first_row; row < last_row; ++row) {
    const float* cosines = args.table + row * args.table_stride;
    const float* sines = cosines + args.sines;
    for (Size head = 0; head < args.heads; ++head) {
      const float* in = args.in + row * args.in_stride + head * args.head_width;
      float* out = args.out + row * args.out_stride + head * args.head_width;
      if (args.pairing == RopePairing::halves) {
        for (Size i = 0; i < pairs; i += 16) {
          const Size count = smaller(16, pairs - i);
          const Vec c = load_partial(cosines + i, count);
          const Vec s = load_partial(sines + i, count);
          const Vec x0 = load_partial(in + i, count);
          const Vec x1 = load_partial(in + pairs + i, count);
          store_partial(out + i, fma(x0, c, sub(set1(-0.0f), mul(x1, s))), count);
          store_partial(out + pairs + i, fma(x1, c, mul(x0, s)), count);
        }
      } else {
        for (Size i = 0; i < pairs; ++i) {
          const float x0 = in[2 * i];
          const float x1 = in[2 * i + 1];
          out[2 * i] = fma_scalar(x0, cosines[i], -(x1 * sines[i]));
          out[2 * i + 1] = fma_scalar(x1, cosines[i], x0 * sines[i]);
        }
      }
      if (in != out) {
        for (Size i = args.rotated; i < args.head_width; ++i) out[i] = in[i];
      }
    }
  }
}

void kv_append(const KvAppendArgs& args, Size first_row, Size last_row) noexcept {
  const Size width = args.head_width;
  const Size head_bytes = page_positions * width * 2;
  const Size last_column = args.first_column + smaller(args.columns, args.kv_heads * width - args.first_column);
  for (Size row = first_row; row < last_row; ++row) {
    const Size slot = args.positions[row] % page_positions;
    for (Size head = args.first_column / width; head * width < last_column; ++head) {
      const Size source = head * width;
      const Size begin = source < args.first_column ? args.first_column - source : 0;
      const Size end = smaller(width, last_column - source);
      std::byte* head_page = args.pages[row] + head * head_bytes;
      if (args.k != nullptr) {  // [slot / 16][E][16]
        const float* k = args.k + row * args.k_stride + source;
        std::byte* out = head_page + args.k_offset + slot / 16 * (width * 32) + slot % 16 * 2;
        for (Size e = begin; e < end; e += 16) {
          const Size count = smaller(16, end - e);
          std::byte halves[32];
          store_f16(halves, load_partial(k + e, count));
          for (Size i = 0; i < count; ++i) memcpy(out + (e + i) * 32, halves + 2 * i, 2);
        }
      }
      if (args.v != nullptr) {  // [slot][E]
        const float* v = args.v + row * args.v_stride + source;
        std::byte* out = head_page + args.v_offset + slot * width * 2;
        for (Size e = begin; e < end; e += 16) {
          const Size count = smaller(16, end - e);
          std::byte halves[32];
          store_f16(halves, load_partial(v + e, count));
          memcpy(out + 2 * e, halves, static_cast<std::size_t>(2 * count));
        }
      }
    }
  }
}

}  // namespace headrace::kernels::HEADRACE_ISA
