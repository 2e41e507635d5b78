// q8_0: 32 elements to a block: an f16 scale, then 32 signed bytes.
#include "formats/block.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{.elements = 32, .bytes = 34, .code_bits = 8, .group_elements = 32, .code_offset = 128};

void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  out.scale = load_u16(in);
  for (int i = 0; i < 32; ++i) out.codes[i] = std::to_integer<std::uint8_t>(in[2 + i]) ^ 0x80;  // -128..127 to 0..255
}

}  // namespace

Format format_q8_0() { return grouped_format<block, unpack_block>("q8_0", 8); }

}  // namespace headrace::formats
