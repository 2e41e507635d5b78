#include "formats/format.hpp"

#include <algorithm>

#include "formats/block.hpp"

namespace headrace::formats {

void Format::decode_codes(const std::byte* block, std::uint8_t* codes, float* group_scales,
                          float* minimums) const noexcept {
  UnpackedBlocks unpacked{};
  unpack(block, 1, unpacked);
  std::copy_n(unpacked.codes, block_elements, codes);
  for (std::int64_t g = 0; g < block_elements / group_elements; ++g) {
    group_scales[g] = group_scale(scales, factor_bits, unpacked.scales[0], unpacked.scale_factors[g]);
    if (has_minimum) {
      minimums[g] = group_scale(Scales::f16, factor_bits, unpacked.minimums[0], unpacked.minimum_factors[g]);
    }
  }
}

const Format* find_format(std::string_view name) {
  const auto table = format_table();
  const auto found = std::ranges::find(table, name, &Format::name);
  return found == table.end() ? nullptr : &*found;
}

const Format* find_format_by_gguf_type(std::uint32_t type) {
  const auto table = format_table();
  const auto found = std::ranges::find(table, type, &Format::gguf_type);
  return found == table.end() ? nullptr : &*found;
}

}  // namespace headrace::formats
