// q6_k: 256 elements to a block: 128 bytes of nibbles, 64 bytes with the upper two bits, 16 signed factors of the
// scale, one a group of 16, an f16 scale; codes less 32.
#include "formats/block.hpp"
#include "formats/encode.hpp"
#include "formats/encode_factored.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{.elements = 256,
                             .bytes = 210,
                             .code_bits = 6,
                             .group_elements = 16,
                             .code_offset = 32,
                             .factor_bits = 8,
                             .scale_at = 208};

[[gnu::always_inline]] inline void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  for (int half = 0; half < 2; ++half) {
    unpack_nibbles<64>(in + 64 * half, out.codes + 128 * half);
    add_crumbs(in + 128 + 32 * half, out.codes + 128 * half);
  }
  std::memcpy(out.scale_factors, in + 192, 16);
  out.scale = load_u16(in + 208);
}

void encode_block(const float* in, std::byte* out) noexcept {
  constexpr ScaleGrid grid{.first = 0.94f, .step = 0.02f, .count = 6};
  float levels[256];
  const auto found = search_factored<16, 16, UniformLevels<-32, 31>, UniformLevels<-128, 127>>(in, grid, levels);
  for (int half = 0; half < 2; ++half) {
    std::uint8_t codes[128];
    std::uint8_t high[128];
    codes_of_whole_levels<-32>(levels + 128 * half, 128, codes);
    for (int i = 0; i < 128; ++i) high[i] = static_cast<std::uint8_t>(codes[i] >> 4);
    pack_nibbles(codes, 64, out + 64 * half);
    pack_crumbs(high, out + 128 + 32 * half);
  }
  for (int g = 0; g < 16; ++g)
    out[192 + g] = static_cast<std::byte>(static_cast<std::uint8_t>(static_cast<int>(found.factors[g])));
  store_u16(out + 208, f32_to_f16(found.scale));
}

}  // namespace

Format format_q6_k() {
  return grouped_format<block, unpack_block>("q6_k", 14, encode_by_search<block, encode_block>());
}

}  // namespace headrace::formats
