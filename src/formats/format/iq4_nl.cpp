// iq4_nl: 32 elements to a block: an f16 scale, then 16 bytes of nibbles, which stand for 16 unequal steps.
#include "formats/block.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{.elements = 32, .bytes = 18, .code_bits = 4, .group_elements = 32, .codebook = iq4_levels};

void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  out.scale = load_u16(in);
  unpack_nibbles<16>(in + 2, out.codes);
}

}  // namespace

Format format_iq4_nl() { return grouped_format<block, unpack_block>("iq4_nl", 20); }

}  // namespace headrace::formats
