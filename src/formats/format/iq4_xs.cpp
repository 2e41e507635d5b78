// iq4_xs: 256 elements to a block: an f16 scale, 8 factors of 6 bits less 32, one a group of 32 (the upper two bits of
// all in a u16, then 4 bytes with the lower four), 128 bytes of nibbles, which stand for the levels of iq4_nl.
#include "formats/block.hpp"
#include "formats/encode.hpp"
#include "formats/encode_factored.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{
    .elements = 256, .bytes = 136, .code_bits = 4, .group_elements = 32, .codebook = iq4_levels, .factor_bits = 6};

[[gnu::always_inline]] inline void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  out.scale = load_u16(in);
  const unsigned high = load_u16(in + 2);
  for (int g = 0; g < 8; ++g) {
    const unsigned low = (std::to_integer<unsigned>(in[4 + g / 2]) >> (g % 2 * 4)) & 0x0fu;
    out.scale_factors[g] = static_cast<std::int8_t>(static_cast<int>(low | ((high >> (2 * g)) & 3u) << 4) - 32);
    unpack_nibbles<16>(in + 8 + 16 * g, out.codes + 32 * g);
  }
}

void encode_block(const float* in, std::byte* out) noexcept {
  constexpr ScaleGrid grid{.first = 0.8f, .step = 0.03f, .count = 12};
  float levels[256];
  const auto found = search_factored<8, 32, CodebookLevels<iq4_levels, 16>, UniformLevels<-32, 31>>(in, grid, levels);
  std::uint8_t codes[256];
  CodebookLevels<iq4_levels, 16>::codes_of(levels, 256, codes);
  unsigned high = 0;
  for (int g = 0; g < 8; ++g) high |= (static_cast<unsigned>(found.factors[g] + 32) >> 4) << (2 * g);
  store_u16(out, f32_to_f16(found.scale));
  store_u16(out + 2, static_cast<std::uint16_t>(high));
  for (int i = 0; i < 4; ++i) {
    const auto low = [&](int g) { return static_cast<unsigned>(found.factors[g] + 32) & 0x0fu; };
    out[4 + i] = static_cast<std::byte>(low(2 * i) | low(2 * i + 1) << 4);
  }
  for (int g = 0; g < 8; ++g) pack_nibbles(codes + 32 * g, 16, out + 8 + 16 * g);
}

}  // namespace

Format format_iq4_xs() {
  return grouped_format<block, unpack_block>("iq4_xs", 23, encode_by_search<block, encode_block>());
}

}  // namespace headrace::formats
