// q5_1: 32 elements to a block: an f16 scale, an f16 minimum, 32 fifth bits, then 16 bytes of nibbles.
#include "formats/block.hpp"
#include "formats/encode.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{.elements = 32, .bytes = 24, .code_bits = 5, .group_elements = 32, .has_minimum = true};

[[gnu::always_inline]] inline void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  out.scale = load_u16(in);
  out.minimum = load_u16(in + 2);
  unpack_nibbles<16>(in + 8, out.codes);
  add_fifth_bits(in + 4, out.codes);
}

void encode_block(const float* in, std::byte* out) noexcept {
  std::uint8_t codes[32];
  const ScaleAndMinimum found = encode_by_range<31>(in, codes);
  store_u16(out, f32_to_f16(found.scale));
  store_u16(out + 2, f32_to_f16(found.minimum));
  pack_fifth_bits(codes, out + 4);
  pack_nibbles(codes, 16, out + 8);
}

}  // namespace

Format format_q5_1() { return grouped_format<block, unpack_block>("q5_1", 7, encode_blocks<block, encode_block>); }

}  // namespace headrace::formats
