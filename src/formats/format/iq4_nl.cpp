// iq4_nl: 32 elements to a block: an f16 scale, then 16 bytes of nibbles, which stand for 16 unequal steps.
#include "formats/block.hpp"
#include "formats/encode.hpp"
#include "formats/encode_search.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{.elements = 32, .bytes = 18, .code_bits = 4, .group_elements = 32, .codebook = iq4_levels};

[[gnu::always_inline]] inline void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  out.scale = load_u16(in);
  unpack_nibbles<16>(in + 2, out.codes);
}

using Levels = CodebookLevels<iq4_levels, 16>;

void encode_block(const float* in, std::byte* out) noexcept {
  constexpr ScaleGrid grid{.first = 0.8f, .step = 0.03f, .count = 12};
  float scale = f16_scale(best_scale<32, Levels>(in, grid));
  // No level is 0: numbers far below the least scale are best as zeros of the scale 0.
  if (!(squared_error<32, Levels>(in, scale, 0) < squared_error<32, Levels>(in, 0, 0))) scale = 0;
  float levels[32];
  nearest_levels<32, Levels>(in, scale, 0, levels);
  std::uint8_t codes[32];
  Levels::codes_of(levels, 32, codes);
  store_u16(out, f32_to_f16(scale));
  pack_nibbles(codes, 16, out + 2);
}

}  // namespace

Format format_iq4_nl() {
  return grouped_format<block, unpack_block>("iq4_nl", 20, encode_by_search<block, encode_block>());
}

}  // namespace headrace::formats
