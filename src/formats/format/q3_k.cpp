// q3_k: 256 elements to a block: 32 bytes of third bits, 64 bytes with the lower two, 12 bytes with a factor of 6 bits,
// less 32, for each group of 16, an f16 scale; codes less 4.
#include "formats/block.hpp"
#include "formats/encode.hpp"
#include "formats/encode_factored.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{.elements = 256,
                             .bytes = 110,
                             .code_bits = 3,
                             .group_elements = 16,
                             .code_offset = 4,
                             .factor_bits = 6,
                             .scale_at = 108};

[[gnu::always_inline]] inline void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  unpack_crumbs(in + 32, out.codes);
  unpack_crumbs(in + 64, out.codes + 128);
  add_planes_of_bits(in, 2, out.codes);
  // Of the factors, four bits in the nibbles of 8 bytes, two more in the quarters of 4.
  const std::uint64_t nibbles = load_u64(in + 96);
  const std::uint64_t quarters = load_u32(in + 104);
  const std::uint64_t factors[2] = {
      less_32((nibbles & 0x0f * every_byte) | ((quarters | quarters << 30) & 0x03 * every_byte) << 4),
      less_32(((nibbles >> 4) & 0x0f * every_byte) | ((quarters >> 4 | quarters << 26) & 0x03 * every_byte) << 4)};
  std::memcpy(out.scale_factors, factors, sizeof factors);
  out.scale = load_u16(in + 108);
}

void encode_block(const float* in, std::byte* out) noexcept {
  constexpr ScaleGrid grid{.first = 0.7f, .step = 0.05f, .count = 12};
  float levels[256];
  const auto found = search_factored<16, 16, UniformLevels<-4, 3>, UniformLevels<-32, 31>>(in, grid, levels);
  std::uint8_t codes[256];
  codes_of_whole_levels<-4>(levels, 256, codes);
  pack_planes_of_bits(codes, 2, out);
  pack_crumbs(codes, out + 32);
  pack_crumbs(codes + 128, out + 64);
  unsigned factors[16];
  for (int g = 0; g < 16; ++g) factors[g] = static_cast<unsigned>(found.factors[g] + 32);
  for (int g = 0; g < 8; ++g)
    out[96 + g] = static_cast<std::byte>((factors[g] & 0x0fu) | (factors[8 + g] & 0x0fu) << 4);
  for (int g = 0; g < 4; ++g) {
    unsigned byte = 0;
    for (int q = 0; q < 4; ++q) byte |= (factors[4 * q + g] >> 4) << (2 * q);
    out[104 + g] = static_cast<std::byte>(byte);
  }
  store_u16(out + 108, f32_to_f16(found.scale));
}

}  // namespace

Format format_q3_k() {
  return grouped_format<block, unpack_block>("q3_k", 11, encode_by_search<block, encode_block>());
}

}  // namespace headrace::formats
