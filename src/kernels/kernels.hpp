// The interface of the fast code: one table of functions per instruction set, chosen once above the hot loop.
// docs/numerics.md says what each computes, bit for bit; every kernel is noexcept and allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "kernels/layout.hpp"

namespace headrace::kernels {

enum class Isa : std::uint8_t { portable, avx2, avx512 };
std::string_view isa_name(Isa isa) noexcept;

/// The class of a row's token; it selects the arithmetic of the row.
enum class TokenClass : std::uint8_t { prompt, generated };

/// How a linear computes; kernels of equal id give equal bits. docs/numerics.md defines each.
enum class LinearNumerics : std::uint8_t {
  two_chains,     ///< f32 activations, weights widened, two f32 FMA chains (even k, odd k)
  a16_group32,    ///< int16 codes of activations in blocks of 32, exact int32 sums, one ordered f32 FMA chain
  a16_factors32,  ///< the same within spans of 256, with the groups' integer factors for scales, then a chain of spans
  a16_factors16,  ///< the same with groups of 16
};
/// The id table: today the prompt class uses the generated class's ids on every ISA.
LinearNumerics linear_numerics(const Layout& layout, TokenClass token_class, Isa isa) noexcept;
std::string_view linear_numerics_name(LinearNumerics numerics) noexcept;

// ---- encoded activations -------------------------------------------------------------------------------------------

/// Elements that share a scale in the encoding "a16".
inline constexpr std::int64_t a16_block = 32;
/// A code is 256 * high + low, two int8 digits for int8 dots.
inline constexpr std::int32_t a16_base = 256;
inline constexpr std::int32_t a16_largest_code = a16_base * 127;
/// One encoded row of K elements (K a multiple of 32): per block int8 high[32], low[32]; then f32 scales[K / 32], i32
/// sums[K / 32] of the codes, f32 scaled_sums[K / 32] = f32(sum) * scale, and the two again for the halves of blocks:
/// i32 half_sums[K / 16], f32 half_scaled_sums[K / 16]. Rows start at multiples of 64 bytes.
struct A16Row {
  std::int64_t scales;  ///< byte offsets in the row
  std::int64_t sums;
  std::int64_t scaled_sums;
  std::int64_t half_sums;
  std::int64_t half_scaled_sums;
  std::int64_t bytes;  ///< of the row, rounded up to 64: the smallest row stride
};
[[nodiscard]] constexpr A16Row a16_row(std::int64_t inputs) noexcept {
  const std::int64_t blocks = inputs / a16_block;
  return {64 * blocks, 68 * blocks, 72 * blocks, 76 * blocks, 84 * blocks, (92 * blocks + 63) / 64 * 64};
}
/// Code k of an encoded row. For who reads rows one by one; kernels read digits.
[[nodiscard]] inline std::int32_t a16_code(const std::byte* row, std::int64_t k) noexcept {
  const std::byte* block = row + k / a16_block * 2 * a16_block;
  const auto high = static_cast<std::int8_t>(block[k % a16_block]);
  const auto low = static_cast<std::int8_t>(block[a16_block + k % a16_block]);
  return a16_base * high + low;
}
[[nodiscard]] constexpr std::int64_t a16_row_bytes(std::int64_t inputs) noexcept { return a16_row(inputs).bytes; }

// ---- linear --------------------------------------------------------------------------------------------------------

/// out[t, n] = sum over k of rows[t, k] * W[n, k]. Work items: panels of 16 outputs; any split gives the same bits.
struct LinearArgs {
  Layout layout;
  std::int64_t outputs = 0;                ///< N
  std::int64_t inputs = 0;                 ///< K; a multiple of 32 for grouped Layouts
  const std::byte* packed = nullptr;       ///< panel p at packed + p * layout.panel_bytes(inputs); 64-byte aligned
  std::int64_t rows = 0;                   ///< T
  const std::byte* activations = nullptr;  ///< a16 rows (grouped, 64-byte aligned) or f32 rows (floating)
  std::int64_t activation_stride = 0;      ///< bytes
  float* out = nullptr;
  std::int64_t out_stride = 0;  ///< elements
};
using LinearFunction = void (*)(const LinearArgs& args, std::int64_t first_panel, std::int64_t last_panel) noexcept;

// ---- rows ----------------------------------------------------------------------------------------------------------

enum class RopePairing : std::uint8_t { adjacent, halves };

struct RopeArgs {
  std::int64_t heads = 0;
  std::int64_t head_width = 0;  ///< E
  std::int64_t rotated = 0;     ///< even, <= E: the first elements of a head, which are rotated; the rest is copied
  RopePairing pairing = RopePairing::halves;
  const float* in = nullptr;  ///< [rows][heads][E]; may equal out
  std::int64_t in_stride = 0;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  const float* table = nullptr;  ///< [rows][2 * sines]: cosines, then as many sines (rope_table)
  std::int64_t table_stride = 0;
  std::int64_t sines = 0;  ///< where the sines of a row begin: rotated / 2, more where a part of each head is rotated
};

/// Fills `table` [2 * pairs]: cos and sin of position * frequencies[i] (times `magnitude`), computed in double: shared
/// by all ISAs.
void rope_table(std::int64_t position, const float* frequencies, std::int64_t pairs, float magnitude,
                float* table) noexcept;

// ---- attention -----------------------------------------------------------------------------------------------------

/// Positions of a KV page.
inline constexpr std::int64_t page_positions = 64;
/// Positions of a logical span: where the sums of attention are cut.
inline constexpr std::int64_t attention_span = 512;
/// Rows of one sequence that share loads in one tile, at most.
inline constexpr std::int64_t attention_tile_rows = 16;

/// How State holds K and V. In a page, per kv head:
///   f16, bf16   K [64 / 16][E][16], V [64][E]
///   q8_0        E in blocks of 32, each of a position: an f16 scale and 32 codes in [-127, 127].
///               K [64 / 16] panels of the Layout of q8_0, positions being its outputs: [E / 32] of 8 lines of 64 codes
///               + 128 (byte 4 o + i of line j being position o and element 4 j + i) and 16 scales; a multiple of 64
///               bytes each.
///               V [E / 32] of codes + 128, [2][64 / 4][16][4] (element / 16, position / 4, element % 16, position % 4:
///               lines as those of K, the elements being the outputs), and scales [64]; as many bytes as K.
enum class KvEncoding : std::uint8_t { f16, bf16, q8_0 };
std::string_view kv_encoding_name(KvEncoding encoding) noexcept;
/// Elements of a block of q8_0.
inline constexpr std::int64_t kv_block = 32;

/// E that the kernels compute: a multiple of 8 (q8_0: of 32) from 16 to 256.
[[nodiscard]] constexpr bool attention_supports(KvEncoding encoding, std::int64_t head_width) noexcept {
  return head_width >= 16 && head_width <= 256 && head_width % (encoding == KvEncoding::q8_0 ? kv_block : 8) == 0;
}

/// Bytes of one layer's K (or V) in a page. E is a multiple of 32 for q8_0.
[[nodiscard]] constexpr std::int64_t kv_page_bytes(KvEncoding encoding, std::int64_t kv_heads,
                                                   std::int64_t head_width) noexcept {
  const std::int64_t panel =
      encoding == KvEncoding::q8_0 ? (head_width / kv_block * 16 * 34 + 63) / 64 * 64 : 16 * 2 * head_width;
  return kv_heads * (page_positions / 16) * panel;
}

/// Consecutive rows of a step that belong to one sequence.
struct AttentionTile {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;  ///< <= attention_tile_rows
};

/// Causal attention of rows over their own sequences: row t reads positions attention_first(positions[t], window) ..
/// positions[t], which are all written. Sinks are logits that join the softmax of their head with no value.
struct AttentionArgs {
  KvEncoding encoding = KvEncoding::f16;
  Layout key_layout;  ///< of q8_0: that of the Format q8_0, and the linear of numerics a16_group32 on it
  LinearFunction key_dots = nullptr;  ///< (KernelTable::find_linear)
  std::int64_t heads = 0;             ///< H, a multiple of kv_heads
  std::int64_t kv_heads = 0;          ///< K
  std::int64_t head_width = 0;
  float scale = 1;
  std::int64_t window = 0;       ///< positions that a row sees at most, its own included; 0: all
  const float* sinks = nullptr;  ///< [H], or nullptr: none
  const float* q = nullptr;      ///< [rows][H][E]
  std::int64_t q_stride = 0;
  float* out = nullptr;  ///< [rows][H][E]
  std::int64_t out_stride = 0;
  const std::byte* const* const* pages = nullptr;  ///< [rows]: the page bases of the row's sequence, 64-byte aligned
  const std::int64_t* positions = nullptr;         ///< [rows]
  std::int64_t k_offset = 0;                       ///< bytes of this layer's K and V in a page, multiples of 64
  std::int64_t v_offset = 0;
  const AttentionTile* tiles = nullptr;  ///< whole form: item i is tile i / K, kv head i % K
  float* partials = nullptr;             ///< partial form: [rows][H][max_spans][attention_partial_floats(E)]
  std::int64_t max_spans = 0;
};

/// The first position that a row at `position` sees.
[[nodiscard]] constexpr std::int64_t attention_first(std::int64_t position, std::int64_t window) noexcept {
  return window == 0 || position < window ? 0 : position - window + 1;
}
/// Spans that a row at `position` sees a part of.
[[nodiscard]] constexpr std::int64_t attention_spans(std::int64_t position, std::int64_t window) noexcept {
  return position / attention_span - attention_first(position, window) / attention_span + 1;
}
/// Floats of one (row, head, span) in `partials`: o[E], m, l, rounded up to 16.
[[nodiscard]] constexpr std::int64_t attention_partial_floats(std::int64_t head_width) noexcept {
  return (head_width + 2 + 15) / 16 * 16;
}
/// Cuts rows into tiles: runs of rows with the same page table (rows of a sequence stand in ascending order of
/// position), at most attention_tile_rows each. Returns the number of tiles written (<= rows).
std::int64_t attention_tiles(const std::byte* const* const* pages, std::int64_t rows, AttentionTile* tiles) noexcept;

/// Writes rows' K and V, or one of them, as f16 State (to nearest even).
struct KvAppendArgs {
  std::int64_t kv_heads = 0;
  std::int64_t head_width = 0;
  const float* k = nullptr;  ///< [rows][K][E], or nullptr: no K is written
  std::int64_t k_stride = 0;
  const float* v = nullptr;  ///< [rows][K][E], or nullptr: no V is written
  std::int64_t v_stride = 0;
  std::byte* const* pages = nullptr;        ///< [rows]: the base of the page that holds the row's position
  const std::int64_t* positions = nullptr;  ///< [rows]
  std::int64_t k_offset = 0;
  std::int64_t v_offset = 0;
  std::int64_t first_column = 0;                                    ///< of [K][E]: columns are written from here on,
  std::int64_t columns = std::numeric_limits<std::int64_t>::max();  ///< so many, or as many as there are
};

// ---- the table -----------------------------------------------------------------------------------------------------

/// Strides are in elements unless they say bytes; `rows` ranges are what threads split.
struct KernelTable {
  Isa isa;

  /// The function for a Layout and numerics, or nullptr where there is none.
  LinearFunction (*find_linear)(const Layout& layout, LinearNumerics numerics) noexcept;

  /// Packs panels [first_panel, last_panel) of a Weight [outputs, inputs] in `format`.
  /// `rows`: the file's bytes of the rows from first_panel * 16 on (at least those that these panels cover);
  /// `packed`: where panel first_panel goes. `inputs` is a multiple of the Format's block.
  void (*pack_panels)(const formats::Format& format, const Layout& layout, const std::byte* rows, std::int64_t outputs,
                      std::int64_t inputs, std::int64_t first_panel, std::int64_t last_panel,
                      std::byte* packed) noexcept;

  /// in [rows][K] f32 -> a16 rows; K a multiple of 32; out_stride in bytes, a multiple of 64.
  void (*encode_a16)(const float* in, std::int64_t in_stride, std::byte* out, std::int64_t out_stride,
                     std::int64_t inputs, std::int64_t rows) noexcept;
  /// The same of blocks [first, last) of each row alone.
  void (*encode_a16_blocks)(const float* in, std::int64_t in_stride, std::byte* out, std::int64_t out_stride,
                            std::int64_t inputs, std::int64_t first, std::int64_t last, std::int64_t rows) noexcept;

  /// out [rows][K] = rows `ids` (each in [0, N)) of a packed Weight, bit for bit as the Format decodes them.
  void (*gather_rows)(const Layout& layout, const std::byte* packed, std::int64_t inputs, const std::int32_t* ids,
                      std::int64_t rows, float* out, std::int64_t out_stride) noexcept;

  /// y = x / sqrt(mean(x^2) + eps) * weight, per row of D.
  void (*rms_norm)(const float* x, std::int64_t x_stride, const float* weight, float epsilon, float* y,
                   std::int64_t y_stride, std::int64_t width, std::int64_t rows) noexcept;

  void (*rope)(const RopeArgs& args, std::int64_t first_row, std::int64_t last_row) noexcept;

  void (*kv_append)(const KvAppendArgs& args, std::int64_t first_row, std::int64_t last_row) noexcept;
  /// Writes blocks [first, last) of a row [K][E], of which `in` is the begin, to position `slot` of q8_0 keys or values
  /// in a page, which begin at `page`. E a multiple of 32.
  void (*append_keys_q8)(const float* in, std::int64_t head_width, std::int64_t first, std::int64_t last,
                         std::int64_t slot, std::byte* page) noexcept;
  void (*append_values_q8)(const float* in, std::int64_t head_width, std::int64_t first, std::int64_t last,
                           std::int64_t slot, std::byte* page) noexcept;

  /// Whole form: items [first, last) of tiles * K. Uses at most 192 KiB of stack.
  void (*attention)(const AttentionArgs& args, std::int64_t first_item, std::int64_t last_item) noexcept;
  /// Partial form, for few rows over long pasts: items are (row, kv head, span), span fastest with max_spans a row and
  /// head, from the first that the row sees on (spans that a row has not are passed over); then combine items are (row,
  /// kv head). Same bits as whole.
  void (*attention_partial)(const AttentionArgs& args, std::int64_t first_item, std::int64_t last_item) noexcept;
  void (*attention_combine)(const AttentionArgs& args, std::int64_t first_item, std::int64_t last_item) noexcept;

  // Elementwise over n elements; outputs may equal inputs.
  void (*add)(const float* a, const float* b, float* y, std::int64_t n) noexcept;
  void (*multiply)(const float* a, const float* b, float* y, std::int64_t n) noexcept;
  void (*scale)(const float* a, float s, float* y, std::int64_t n) noexcept;
  void (*add_scaled)(const float* a, float s, float* y, std::int64_t n) noexcept;  ///< y = fma(a, s, y)
  void (*exp)(const float* a, float* y, std::int64_t n) noexcept;
  void (*silu)(const float* a, float* y, std::int64_t n) noexcept;
  void (*silu_multiply)(const float* gate, const float* up, float* y, std::int64_t n) noexcept;  ///< silu(gate) * up
  /// g / (1 + exp(-(alpha * g))) * (u + 1), g = gate up to limit, u = up within +- limit
  void (*clamped_swiglu)(const float* gate, const float* up, float alpha, float limit, float* y,
                         std::int64_t n) noexcept;
};

/// The table of an ISA. Throws InternalError if the ISA is not among available_isas().
const KernelTable& kernel_table(Isa isa);

/// ISAs that this build has and this machine can run, portable first and fastest last.
std::vector<Isa> available_isas();
/// All ISAs that Headrace knows, for tests that name the absent ones.
std::vector<Isa> known_isas();

}  // namespace headrace::kernels
