// q3_k: 256 elements to a block: 32 bytes of third bits, 64 bytes with the lower two, 12 bytes with a factor of 6 bits,
// less 32, for each group of 16, an f16 scale; codes less 4.
#include "formats/block.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{.elements = 256,
                             .bytes = 110,
                             .code_bits = 3,
                             .group_elements = 16,
                             .code_offset = 4,
                             .factor_bits = 6,
                             .scale_at = 108};

void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  unpack_crumbs(in + 32, out.codes);
  unpack_crumbs(in + 64, out.codes + 128);
  add_planes_of_bits(in, 2, out.codes);
  // Of the factors, four bits in the nibbles of 8 bytes, two more in the quarters of 4.
  const std::uint64_t nibbles = load_u64(in + 96);
  const std::uint64_t quarters = load_u32(in + 104);
  const std::uint64_t factors[2] = {
      less_32((nibbles & 0x0f * every_byte) | ((quarters | quarters << 30) & 0x03 * every_byte) << 4),
      less_32(((nibbles >> 4) & 0x0f * every_byte) | ((quarters >> 4 | quarters << 26) & 0x03 * every_byte) << 4)};
  std::memcpy(out.scale_factors, factors, sizeof factors);
  out.scale = load_u16(in + 108);
}

}  // namespace

Format format_q3_k() { return grouped_format<block, unpack_block>("q3_k", 11); }

}  // namespace headrace::formats
