// mxfp4 (OCP Microscaling 1.0): 32 elements to a block: an e8m0 exponent, then 16 bytes of e2m1 numbers. Levels are the
// numbers doubled, so that they are integers; the scale is halved.
#include "formats/block.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr std::int8_t levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

constexpr GroupedBlock block{.elements = 32,
                             .bytes = 17,
                             .code_bits = 4,
                             .group_elements = 32,
                             .codebook = levels,
                             .scales = Format::Scales::e8m0};

void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  out.scale = std::to_integer<std::uint16_t>(in[0]);
  unpack_nibbles<16>(in + 1, out.codes);
}

}  // namespace

Format format_mxfp4() { return grouped_format<block, unpack_block>("mxfp4", 39); }

}  // namespace headrace::formats
