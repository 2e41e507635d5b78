// q4_0: 32 elements to a block: an f16 scale, then 16 bytes of nibbles, less 8.
#include "formats/block.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{
    .elements = 32, .bytes = 18, .code_bits = 4, .group_elements = 32, .code_offset = 8, .has_minimum = false};

void decode_codes(const std::byte* in, std::uint8_t* codes, float* scales, float* /*minimums*/) noexcept {
  scales[0] = load_f16(in);
  unpack_nibbles(in + 2, 16, codes);
}

}  // namespace

Format format_q4_0() { return grouped_format_of_f16_scales<block, decode_codes>("q4_0", 2); }

}  // namespace headrace::formats
