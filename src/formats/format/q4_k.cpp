// q4_k: 256 elements to a block: an f16 scale, an f16 minimum, which is subtracted, 12 bytes with a factor of each for
// the groups of 32, 128 bytes of nibbles.
#include "formats/block.hpp"
#include "formats/encode.hpp"
#include "formats/encode_factored.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{
    .elements = 256, .bytes = 144, .code_bits = 4, .group_elements = 32, .has_minimum = true, .factor_bits = 6};

[[gnu::always_inline]] inline void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  out.scale = load_u16(in);
  out.minimum = negated_f16(load_u16(in + 2));
  unpack_factors_of_6_bits(in + 4, out.scale_factors, out.minimum_factors);
  for (int i = 0; i < 4; ++i) unpack_nibbles<32>(in + 16 + 32 * i, out.codes + 64 * i);
}

void encode_block(const float* in, std::byte* out) noexcept {
  constexpr AffineGrid grid{.first = -0.3f, .step = 0.3f, .count = 4, .rounds = 2};
  float levels[256];
  const auto found = search_factored_affine<8, 32, UniformLevels<0, 15>, UniformLevels<0, 63>>(in, grid, levels);
  std::uint8_t codes[256];
  std::int8_t scales[8];
  std::int8_t minimums[8];
  codes_of_whole_levels<0>(levels, 256, codes);
  for (int g = 0; g < 8; ++g) {
    scales[g] = static_cast<std::int8_t>(found.scale_factors[g]);
    minimums[g] = static_cast<std::int8_t>(found.minimum_factors[g]);
  }
  store_u16(out, f32_to_f16(found.scale));
  store_u16(out + 2, f32_to_f16(-found.minimum));
  pack_factors_of_6_bits(scales, minimums, out + 4);
  for (int i = 0; i < 4; ++i) pack_nibbles(codes + 64 * i, 32, out + 16 + 32 * i);
}

}  // namespace

Format format_q4_k() {
  return grouped_format<block, unpack_block>("q4_k", 12, encode_by_search<block, encode_block>());
}

}  // namespace headrace::formats
