// q2_k: 256 elements to a block: 16 bytes with a factor of the scale (low nibble) and one of the minimum for each group
// of 16, 64 bytes of 2-bit codes, an f16 scale, an f16 minimum, which is subtracted.
#include "formats/block.hpp"
#include "formats/encode.hpp"
#include "formats/encode_factored.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{.elements = 256,
                             .bytes = 84,
                             .code_bits = 2,
                             .group_elements = 16,
                             .has_minimum = true,
                             .factor_bits = 4,
                             .scale_at = 80,
                             .minimum_at = 82};

[[gnu::always_inline]] inline void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  const Words<16> factors(in);
  factors.field(0, 0x0f).store(out.scale_factors);
  factors.field(4, 0x0f).store(out.minimum_factors);
  unpack_crumbs(in + 16, out.codes);
  unpack_crumbs(in + 48, out.codes + 128);
  out.scale = load_u16(in + 80);
  out.minimum = negated_f16(load_u16(in + 82));
}

void encode_block(const float* in, std::byte* out) noexcept {
  constexpr AffineGrid grid{.first = -0.1f, .step = 0.15f, .count = 5, .rounds = 3};
  float levels[256];
  const auto found = search_factored_affine<16, 16, UniformLevels<0, 3>, UniformLevels<0, 15>>(in, grid, levels);
  std::uint8_t codes[256];
  codes_of_whole_levels<0>(levels, 256, codes);
  for (int g = 0; g < 16; ++g) {
    out[g] = static_cast<std::byte>(static_cast<unsigned>(found.scale_factors[g]) |
                                    static_cast<unsigned>(found.minimum_factors[g]) << 4);
  }
  pack_crumbs(codes, out + 16);
  pack_crumbs(codes + 128, out + 48);
  store_u16(out + 80, f32_to_f16(found.scale));
  store_u16(out + 82, f32_to_f16(-found.minimum));
}

}  // namespace

Format format_q2_k() {
  return grouped_format<block, unpack_block>("q2_k", 10, encode_by_search<block, encode_block>());
}

}  // namespace headrace::formats
