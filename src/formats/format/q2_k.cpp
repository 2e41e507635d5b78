// q2_k: 256 elements to a block: 16 bytes with a factor of the scale (low nibble) and one of the minimum for each group
// of 16, 64 bytes of 2-bit codes, an f16 scale, an f16 minimum, which is subtracted.
#include "formats/block.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{.elements = 256,
                             .bytes = 84,
                             .code_bits = 2,
                             .group_elements = 16,
                             .has_minimum = true,
                             .factor_bits = 4,
                             .scale_at = 80,
                             .minimum_at = 82};

void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  const Words<16> factors(in);
  factors.field(0, 0x0f).store(out.scale_factors);
  factors.field(4, 0x0f).store(out.minimum_factors);
  unpack_crumbs(in + 16, out.codes);
  unpack_crumbs(in + 48, out.codes + 128);
  out.scale = load_u16(in + 80);
  out.minimum = negated_f16(load_u16(in + 82));
}

}  // namespace

Format format_q2_k() { return grouped_format<block, unpack_block>("q2_k", 10); }

}  // namespace headrace::formats
