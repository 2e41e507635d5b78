// q5_0: 32 elements to a block: an f16 scale, 32 fifth bits, then 16 bytes of nibbles; less 16.
#include "formats/block.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{
    .elements = 32, .bytes = 22, .code_bits = 5, .group_elements = 32, .code_offset = 16, .has_minimum = false};

void decode_codes(const std::byte* in, std::uint8_t* codes, float* scales, float* /*minimums*/) noexcept {
  scales[0] = load_f16(in);
  unpack_nibbles(in + 6, 16, codes);
  add_fifth_bits(load_u32(in + 2), codes);
}

}  // namespace

Format format_q5_0() { return grouped_format_of_f16_scales<block, decode_codes>("q5_0", 6); }

}  // namespace headrace::formats
