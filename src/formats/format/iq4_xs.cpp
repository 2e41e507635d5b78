// iq4_xs: 256 elements to a block: an f16 scale, 8 factors of 6 bits less 32, one a group of 32 (the upper two bits of
// all in a u16, then 4 bytes with the lower four), 128 bytes of nibbles, which stand for the levels of iq4_nl.
#include "formats/block.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{
    .elements = 256, .bytes = 136, .code_bits = 4, .group_elements = 32, .codebook = iq4_levels, .factor_bits = 6};

void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  out.scale = load_u16(in);
  const unsigned high = load_u16(in + 2);
  for (int g = 0; g < 8; ++g) {
    const unsigned low = (std::to_integer<unsigned>(in[4 + g / 2]) >> (g % 2 * 4)) & 0x0fu;
    out.scale_factors[g] = static_cast<std::int8_t>(static_cast<int>(low | ((high >> (2 * g)) & 3u) << 4) - 32);
    unpack_nibbles<16>(in + 8 + 16 * g, out.codes + 32 * g);
  }
}

}  // namespace

Format format_iq4_xs() { return grouped_format<block, unpack_block>("iq4_xs", 23); }

}  // namespace headrace::formats
