// q5_1: 32 elements to a block: an f16 scale, an f16 minimum, 32 fifth bits, then 16 bytes of nibbles.
#include "formats/block.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{
    .elements = 32, .bytes = 24, .code_bits = 5, .group_elements = 32, .code_offset = 0, .has_minimum = true};

void decode_codes(const std::byte* in, std::uint8_t* codes, float* scales, float* minimums) noexcept {
  scales[0] = load_f16(in);
  minimums[0] = load_f16(in + 2);
  unpack_nibbles(in + 8, 16, codes);
  add_fifth_bits(load_u32(in + 4), codes);
}

}  // namespace

Format format_q5_1() { return grouped_format_of_f16_scales<block, decode_codes>("q5_1", 7); }

}  // namespace headrace::formats
