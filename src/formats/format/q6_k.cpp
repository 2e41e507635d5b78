// q6_k: 256 elements to a block: 128 bytes of nibbles, 64 bytes with the upper two bits, 16 signed factors of the
// scale, one a group of 16, an f16 scale; codes less 32.
#include "formats/block.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{.elements = 256,
                             .bytes = 210,
                             .code_bits = 6,
                             .group_elements = 16,
                             .code_offset = 32,
                             .factor_bits = 8,
                             .scale_at = 208};

void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  for (int half = 0; half < 2; ++half) {
    unpack_nibbles<64>(in + 64 * half, out.codes + 128 * half);
    add_crumbs(in + 128 + 32 * half, out.codes + 128 * half);
  }
  std::memcpy(out.scale_factors, in + 192, 16);
  out.scale = load_u16(in + 208);
}

}  // namespace

Format format_q6_k() { return grouped_format<block, unpack_block>("q6_k", 14); }

}  // namespace headrace::formats
