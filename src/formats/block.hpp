// What the grouped Formats share: loads from a block's bytes, unpacking of nibbles, and decode out of decode_codes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/half.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

/// A little-endian u16 at any alignment.
[[nodiscard]] inline std::uint16_t load_u16(const std::byte* in) noexcept {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(in[0]) | std::to_integer<unsigned>(in[1]) << 8);
}

/// A little-endian u32 at any alignment.
[[nodiscard]] inline std::uint32_t load_u32(const std::byte* in) noexcept {
  return load_u16(in) | static_cast<std::uint32_t>(load_u16(in + 2)) << 16;
}

/// A little-endian f16 at any alignment, widened.
[[nodiscard]] inline float load_f16(const std::byte* in) noexcept { return f16_to_f32(load_u16(in)); }

/// `count` bytes to `2 * count` codes: all low nibbles first, then all high ones.
inline void unpack_nibbles(const std::byte* in, int count, std::uint8_t* codes) noexcept {
  for (int i = 0; i < count; ++i) {
    const auto byte = std::to_integer<std::uint8_t>(in[i]);
    codes[i] = byte & 0x0f;
    codes[count + i] = byte >> 4;
  }
}

/// Adds bit i of `high` to code i as its bit 4, for 32 codes.
inline void add_fifth_bits(std::uint32_t high, std::uint8_t* codes) noexcept {
  for (int i = 0; i < 32; ++i) codes[i] = static_cast<std::uint8_t>(codes[i] | ((high >> i) & 1u) << 4);
}

/// The compile-time part of a grouped Format, so that its decode loop has constant bounds.
struct GroupedBlock {
  std::int64_t elements;
  std::int64_t bytes;
  int code_bits;
  std::int64_t group_elements;
  int code_offset;
  bool has_minimum;
};

using DecodeCodes = void (*)(const std::byte* block, std::uint8_t* codes, float* scales, float* minimums) noexcept;

/// Format::decode: the product is rounded before the minimum is added, as `gguf.quants` does.
template <GroupedBlock block, DecodeCodes decode_codes>
void decode_grouped(const std::byte* in, std::int64_t blocks, float* out) noexcept {
  constexpr std::int64_t groups = block.elements / block.group_elements;
  std::uint8_t codes[block.elements];
  float scales[groups];
  float minimums[groups];
  for (std::int64_t b = 0; b < blocks; ++b, in += block.bytes) {
    decode_codes(in, codes, scales, minimums);
    for (std::int64_t i = 0; i < block.elements; ++i) {
      const std::int64_t group = i / block.group_elements;
      float value = scales[group] * static_cast<float>(codes[i] - block.code_offset);
      if constexpr (block.has_minimum) value += minimums[group];
      *out++ = value;
    }
  }
}

/// A grouped Format whose scales and minimums are stored as f16.
template <GroupedBlock block, DecodeCodes codes_of>
Format grouped_format_of_f16_scales(std::string_view name, std::uint32_t gguf_type) {
  return {.name = name,
          .gguf_type = gguf_type,
          .kind = Format::Kind::grouped,
          .block_elements = block.elements,
          .block_bytes = block.bytes,
          .code_bits = block.code_bits,
          .group_elements = block.group_elements,
          .code_offset = block.code_offset,
          .has_minimum = block.has_minimum,
          .scales_are_f16 = true,
          .decode = decode_grouped<block, codes_of>,
          .decode_codes = codes_of};
}

}  // namespace headrace::formats
