// q8_0: 32 elements to a block: an f16 scale, then 32 signed bytes.
#include "formats/block.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{
    .elements = 32, .bytes = 34, .code_bits = 8, .group_elements = 32, .code_offset = 128, .has_minimum = false};

void decode_codes(const std::byte* in, std::uint8_t* codes, float* scales, float* /*minimums*/) noexcept {
  scales[0] = load_f16(in);
  for (int i = 0; i < 32; ++i) codes[i] = std::to_integer<std::uint8_t>(in[2 + i]) ^ 0x80;  // -128..127 to 0..255
}

}  // namespace

Format format_q8_0() { return grouped_format_of_f16_scales<block, decode_codes>("q8_0", 8); }

}  // namespace headrace::formats
