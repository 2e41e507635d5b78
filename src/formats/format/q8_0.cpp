// q8_0: 32 elements to a block: an f16 scale, then 32 signed bytes.
#include "formats/block.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{.elements = 32, .bytes = 34, .code_bits = 8, .group_elements = 32, .code_offset = 128};

void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  out.scale = load_u16(in);
  Words<32> codes(in + 2);
  for (auto& word : codes.word) word ^= 0x80 * every_byte;  // -128..127 to 0..255
  codes.store(out.codes);
}

}  // namespace

Format format_q8_0() { return grouped_format<block, unpack_block>("q8_0", 8); }

}  // namespace headrace::formats
