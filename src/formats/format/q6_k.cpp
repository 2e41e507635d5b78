// q6_k: 256 elements to a block: 128 bytes of nibbles, 64 bytes with the upper two bits, 16 signed factors of the
// scale, one a group of 16, an f16 scale; codes less 32.
#include "formats/block.hpp"
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

void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  for (int half = 0; half < 2; ++half) {
    std::uint8_t* codes = out.codes + 128 * half;
    std::uint8_t high[128];
    unpack_nibbles(in + 64 * half, 64, codes);
    unpack_crumbs(in + 128 + 32 * half, high);
    for (int i = 0; i < 128; ++i) codes[i] = static_cast<std::uint8_t>(codes[i] | high[i] << 4);
  }
  for (int g = 0; g < 16; ++g) out.scale_factors[g] = std::to_integer<std::int8_t>(in[192 + g]);
  out.scale = load_u16(in + 208);
}

}  // namespace

Format format_q6_k() { return grouped_format<block, unpack_block>("q6_k", 14, nullptr); }

}  // namespace headrace::formats
