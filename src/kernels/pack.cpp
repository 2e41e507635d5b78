// Packing of a file's rows into panels. It runs once a Weight (or once a pass, when streamed); kernels never see a
// file's own order. Limit: memory, which reads the rows and writes the panels. A block is first taken apart by its
// Format, into L1; the rest is transposition of 4-byte words between 16 rows, whatever the Format.
#include "kernels/grouped.hpp"

namespace headrace::kernels::HEADRACE_ISA {
namespace {

using formats::UnpackedBlocks;

/// The inverse of unpack (codes.hpp).
template <int code_bits>
inline void pack_codes(const Line (&line)[8], std::byte* out) {
  static_assert(code_bits >= 2 && code_bits <= 8 && code_bits != 7);
  Line y[code_bits];
  if constexpr (code_bits == 2) {
    for (int l = 0; l < 2; ++l) {
      const Line* c = line + 4 * l;
      y[l] = add_bits<0, 6, 3>(add_bits<0, 4, 3>(add_bits<0, 2, 3>(c[0], c[1]), c[2]), c[3]);
    }
  } else if constexpr (code_bits == 3) {
    for (int l = 0; l < 3; ++l) y[l] = add_bits<0, 3, 7>(line[2 * l], line[2 * l + 1]);
    y[0] = add_bits<0, 6, 3>(y[0], line[6]);
    y[1] = add_bits<0, 6, 3>(y[1], line[7]);
    y[2] = add_bits<2, 7, 1>(add_bits<2, 6, 1>(y[2], line[6]), line[7]);
  } else if constexpr (code_bits == 4) {
    for (int l = 0; l < 4; ++l) y[l] = add_bits<0, 4, 15>(line[2 * l], line[2 * l + 1]);
  } else if constexpr (code_bits == 5) {
    y[0] = add_bits<0, 5, 7>(line[0], line[5]);
    y[1] = add_bits<3, 7, 1>(add_bits<3, 5, 3>(line[1], line[5]), line[7]);
    y[2] = add_bits<0, 5, 7>(line[2], line[6]);
    y[3] = add_bits<4, 7, 1>(add_bits<3, 5, 3>(line[3], line[6]), line[7]);
    y[4] = add_bits<0, 5, 7>(line[4], line[7]);
  } else if constexpr (code_bits == 6) {
    for (int l = 0; l < 2; ++l) {
      y[3 * l] = add_bits<0, 6, 3>(line[3 * l], line[6 + l]);
      y[3 * l + 1] = add_bits<2, 6, 3>(line[3 * l + 1], line[6 + l]);
      y[3 * l + 2] = add_bits<4, 6, 3>(line[3 * l + 2], line[6 + l]);
    }
  } else {
    for (int l = 0; l < 8; ++l) y[l] = line[l];
  }
  for (int l = 0; l < code_bits; ++l) store_line(out + 64 * l, y[l]);
}

/// 16 rows of the blocks of up to 256 k.
struct Rows {
  alignas(64) UnpackedBlocks blocks[panel_outputs];
};

/// What 16 rows of blocks store of scales, by output: [scale, minimum][block][output] and [scale,
/// minimum][group][output].
struct Scales {
  alignas(64) std::uint16_t halves[2][UnpackedBlocks::max_elements / 32][panel_outputs];
  alignas(64) std::uint8_t factors[2][UnpackedBlocks::max_elements / 16][panel_outputs];
};

inline const std::uint8_t* bytes_of(const void* p) { return static_cast<const std::uint8_t*>(p); }

template <class G>
inline void transpose_scales(const Rows& rows, Scales& scales) {
  static_assert(offsetof(UnpackedBlocks, minimums) == offsetof(UnpackedBlocks, scales) + 16 &&
                offsetof(UnpackedBlocks, minimum_factors) == offsetof(UnpackedBlocks, scale_factors) + 16);
  const std::uint8_t* words[panel_outputs];
  Line line[8];
  for (int o = 0; o < panel_outputs; ++o) words[o] = bytes_of(rows.blocks[o].scales);
  transpose(words, line);
  for (int j = 0; j < 8; ++j) store_halves(scales.halves[j / 4][j % 4 * 2], line[j]);
  if constexpr (G::has_factors) {
    for (int o = 0; o < panel_outputs; ++o) words[o] = bytes_of(rows.blocks[o].scale_factors);
    transpose(words, line);
    for (int j = 0; j < 8; ++j) store_quarters(scales.factors[j / 4][j % 4 * 4], line[j]);
  }
}

/// The scales of a span that starts at block `block`.
template <class G>
inline void put_scales(const Scales& scales, Size block, std::byte* out) {
  if constexpr (G::scales == Layout::Scales::e8m0) {
    for (int o = 0; o < panel_outputs; ++o) out[o] = static_cast<std::byte>(scales.halves[0][block][o]);
    return;
  }
  memcpy(out, scales.halves[0][block], 32);
  if constexpr (G::has_minimum) memcpy(out + 32, scales.halves[1][block], 32);
  if constexpr (G::has_factors) {
    out += G::half_bytes;
    for (int g = 0; g < G::span_units * G::unit_groups; ++g, out += G::factor_bytes) {
      if constexpr (G::scales == Layout::Scales::nibbles) {
        for (int o = 0; o < panel_outputs; ++o) {
          out[o] = static_cast<std::byte>(scales.factors[0][g][o] | scales.factors[1][g][o] << 4);
        }
      } else {
        memcpy(out, scales.factors[0][g], 16);
        if constexpr (G::has_minimum) memcpy(out + 16, scales.factors[1][g], 16);
      }
    }
  }
}

template <class G>
struct Pack {
  /// `source`: the rows of a panel, of which the first `outputs` are there.
  static void run(const formats::Format& format, const std::byte* source, Size outputs, Size inputs,
                  std::byte* panel) noexcept {
    const Size row_bytes = inputs / format.block_elements * format.block_bytes;
    const Size blocks_per_span = UnpackedBlocks::max_elements / format.block_elements;
    Rows rows;
    memset(&rows, 0, sizeof rows);  // also for the outputs that are not there
    Scales scales;
    for (Size k0 = 0; k0 < inputs; k0 += UnpackedBlocks::max_elements, source += blocks_per_span * format.block_bytes) {
      const Size elements = smaller(UnpackedBlocks::max_elements, inputs - k0);
      for (Size o = 0; o < outputs; ++o) {
        format.unpack(source + o * row_bytes, elements / format.block_elements, rows.blocks[o]);
      }
      transpose_scales<G>(rows, scales);
      for (Size k = 0; k < elements; k += unit_inputs) {
        if constexpr (G::has_factors) {
          if (k == 0) {
            put_scales<G>(scales, 0, panel);
            panel += G::scale_bytes;
          }
        } else {
          put_scales<G>(scales, k / unit_inputs, panel + G::unit_bytes);
        }
        const std::uint8_t* words[panel_outputs];
        for (int o = 0; o < panel_outputs; ++o) words[o] = rows.blocks[o].codes + k;
        Line line[8];
        transpose(words, line);
        pack_codes<G::code_bits>(line, panel);
        panel += G::has_factors ? G::unit_bytes : G::span_bytes;
      }
    }
  }
};

/// Rows of 4-byte words to [word][output]: f32, and bf16 as pairs of k; f16 as pairs, too, which are then put apart.
template <Layout::Codes codes>
void pack_floating(const std::byte* source, Size outputs, Size inputs, std::byte* panel) {
  constexpr Size width = codes == Layout::Codes::f32 ? 4 : 2;
  constexpr Size pair = codes == Layout::Codes::bf16 ? 2 : 1;
  const Size row_bytes = inputs * width;
  Size k = 0;
  if (outputs == panel_outputs) {
    for (; k * width + 32 <= row_bytes; k += 32 / width) {
      const std::uint8_t* words[panel_outputs];
      for (int o = 0; o < panel_outputs; ++o) {
        words[o] = bytes_of(source + o * row_bytes + k * width);
      }
      Line line[8];
      transpose(words, line);
      for (int j = 0; j < 8; ++j) {
        if constexpr (codes == Layout::Codes::f16) {
          store_halves(panel + 64 * (k / 2 + j), line[j]);
        } else {
          store_line(panel + 64 * (k * width / 4 + j), line[j]);
        }
      }
    }
  }
  for (; k < inputs; ++k) {
    for (Size o = 0; o < outputs; ++o) {
      const Size index = (k / pair * panel_outputs + o) * pair + k % pair;
      memcpy(panel + index * width, source + (o * inputs + k) * width, width);
    }
  }
}

}  // namespace

void pack_panels(const formats::Format& format, const Layout& layout, const std::byte* rows, Size outputs, Size inputs,
                 Size first_panel, Size last_panel, std::byte* packed) noexcept {
  const Size panel_bytes = layout.panel_bytes(inputs);
  const Size row_bytes = inputs / format.block_elements * format.block_bytes;
  const auto pack_grouped = layout.grouped() ? find_instance<Pack>(layout, GroupedLayouts{}) : nullptr;
  for (Size p = first_panel; p < last_panel; ++p) {
    const Size count = smaller(panel_outputs, outputs - p * panel_outputs);
    std::byte* panel = packed + (p - first_panel) * panel_bytes;
    const std::byte* source = rows + (p - first_panel) * panel_outputs * row_bytes;
    // What no output fills is zero, the panel's last line included, so that equal Weights have equal packed bytes.
    const bool whole = layout.grouped() || (count == panel_outputs && layout.codes != Layout::Codes::bf16);
    const Size cleared = whole ? smaller(panel_bytes, 64) : panel_bytes;
    memset(panel + panel_bytes - cleared, 0, static_cast<std::size_t>(cleared));
    switch (layout.codes) {
      case Layout::Codes::f32:
        pack_floating<Layout::Codes::f32>(source, count, inputs, panel);
        break;
      case Layout::Codes::f16:
        pack_floating<Layout::Codes::f16>(source, count, inputs, panel);
        break;
      case Layout::Codes::bf16:
        pack_floating<Layout::Codes::bf16>(source, count, inputs, panel);
        break;
      case Layout::Codes::grouped:
        pack_grouped(format, source, count, inputs, panel);
        break;
    }
  }
}

}  // namespace headrace::kernels::HEADRACE_ISA
