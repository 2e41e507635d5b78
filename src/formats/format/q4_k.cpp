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
  std::uint8_t codes[256];
  encode_factored_affine<15>(in, out, codes);
  for (int i = 0; i < 4; ++i) pack_nibbles(codes + 64 * i, 32, out + 16 + 32 * i);
}

}  // namespace

Format format_q4_k() {
  return grouped_format<block, unpack_block>("q4_k", 12, encode_by_search<block, encode_block>());
}

}  // namespace headrace::formats
