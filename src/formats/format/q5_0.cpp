// q5_0: 32 elements to a block: an f16 scale, 32 fifth bits, then 16 bytes of nibbles; less 16.
#include "formats/block.hpp"
#include "formats/encode.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{.elements = 32, .bytes = 22, .code_bits = 5, .group_elements = 32, .code_offset = 16};

[[gnu::always_inline]] inline void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  out.scale = load_u16(in);
  unpack_nibbles<16>(in + 6, out.codes);
  add_fifth_bits(in + 2, out.codes);
}

void encode_block(const float* in, std::byte* out) noexcept {
  std::uint8_t codes[32];
  store_u16(out, f32_to_f16(encode_by_largest<16>(in, codes)));
  pack_fifth_bits(codes, out + 2);
  pack_nibbles(codes, 16, out + 6);
}

}  // namespace

Format format_q5_0() { return grouped_format<block, unpack_block>("q5_0", 6, encode_blocks<block, encode_block>); }

}  // namespace headrace::formats
