// What the grouped Formats share: loads from a block's bytes, unpacking of codes, and decode out of unpack.
#pragma once

#include <bit>
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

/// Half of the power of two that an OCP e8m0 exponent stands for: 2^(exponent - 128), subnormal below 2.
[[nodiscard]] inline float half_of_e8m0(std::uint16_t exponent) noexcept {
  return std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1u) << 23);
}

/// `count` bytes to `2 * count` codes: all low nibbles first, then all high ones.
inline void unpack_nibbles(const std::byte* in, int count, std::uint8_t* codes) noexcept {
  for (int i = 0; i < count; ++i) {
    const auto byte = std::to_integer<std::uint8_t>(in[i]);
    codes[i] = byte & 0x0f;
    codes[count + i] = byte >> 4;
  }
}

/// 32 bytes to 128 codes: the lowest two bits of all bytes first, then the next two.
inline void unpack_crumbs(const std::byte* in, std::uint8_t* codes) noexcept {
  for (int shift = 0; shift < 4; ++shift) {
    for (int i = 0; i < 32; ++i) codes[32 * shift + i] = (std::to_integer<unsigned>(in[i]) >> (2 * shift)) & 3u;
  }
}

/// Adds bit i of `high` to code i as its bit 4, for 32 codes.
inline void add_fifth_bits(std::uint32_t high, std::uint8_t* codes) noexcept {
  for (int i = 0; i < 32; ++i) codes[i] = static_cast<std::uint8_t>(codes[i] | ((high >> i) & 1u) << 4);
}

/// Adds bit s of byte i to code 32 s + i as its bit `position`, for 256 codes.
inline void add_planes_of_bits(const std::byte* bits, int position, std::uint8_t* codes) noexcept {
  for (int s = 0; s < 8; ++s) {
    for (int i = 0; i < 32; ++i) {
      const unsigned bit = (std::to_integer<unsigned>(bits[i]) >> s) & 1u;
      codes[32 * s + i] = static_cast<std::uint8_t>(codes[32 * s + i] | bit << position);
    }
  }
}

/// The 8 factors of scales and of minimums, 6 bits each, that q4_k and q5_k keep in 12 bytes: of the first four groups
/// in the low six bits of bytes 0 .. 3 and 4 .. 7, of the others in the nibbles of 8 .. 11 and the high bits of 0 .. 7.
inline void unpack_factors_of_6_bits(const std::byte* in, std::int8_t* scales, std::int8_t* minimums) noexcept {
  const auto byte = [&](int i) { return std::to_integer<unsigned>(in[i]); };
  for (int i = 0; i < 4; ++i) {
    scales[i] = static_cast<std::int8_t>(byte(i) & 0x3fu);
    minimums[i] = static_cast<std::int8_t>(byte(4 + i) & 0x3fu);
    scales[4 + i] = static_cast<std::int8_t>((byte(8 + i) & 0x0fu) | ((byte(i) >> 2) & 0x30u));
    minimums[4 + i] = static_cast<std::int8_t>((byte(8 + i) >> 4) | ((byte(4 + i) >> 2) & 0x30u));
  }
}

/// The levels of the non-linear 4-bit Formats.
inline constexpr std::int8_t iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

/// The bits of -x for an f16: some Formats subtract what they store where Format adds.
[[nodiscard]] inline std::uint16_t negated_f16(std::uint16_t half) noexcept {
  return static_cast<std::uint16_t>(half ^ 0x8000u);
}

/// The compile-time part of a grouped Format, so that its loops have constant bounds.
struct GroupedBlock {
  std::int64_t elements;
  std::int64_t bytes;
  int code_bits;
  std::int64_t group_elements;
  int code_offset = 0;
  const std::int8_t* codebook = nullptr;
  bool has_minimum = false;
  Format::Scales scales = Format::Scales::f16;
  int factor_bits = 0;
  std::int64_t scale_at = 0;
  std::int64_t minimum_at = 2;
};

/// Where one block goes when it is taken apart.
struct UnpackedBlock {
  std::uint8_t* codes;
  std::uint16_t& scale;
  std::uint16_t& minimum;
  std::int8_t* scale_factors;
  std::int8_t* minimum_factors;
};
using UnpackBlock = void (*)(const std::byte* block, UnpackedBlock out) noexcept;

/// Format::unpack.
template <GroupedBlock block, UnpackBlock unpack_block>
void unpack_grouped(const std::byte* in, std::int64_t blocks, UnpackedBlocks& out) noexcept {
  constexpr std::int64_t groups = block.elements / block.group_elements;
  for (std::int64_t b = 0; b < blocks; ++b) {
    unpack_block(in + b * block.bytes, {out.codes + b * block.elements, out.scales[b], out.minimums[b],
                                        out.scale_factors + b * groups, out.minimum_factors + b * groups});
  }
}

/// The scale or minimum of a group.
[[nodiscard]] inline float group_scale(Format::Scales scales, int factor_bits, std::uint16_t stored,
                                       std::int8_t factor) noexcept {
  const float scale = scales == Format::Scales::e8m0 ? half_of_e8m0(stored) : f16_to_f32(stored);
  return factor_bits == 0 ? scale : scale * static_cast<float>(factor);
}

/// Format::decode: the product is rounded before the minimum is added, as `gguf.quants` does.
template <GroupedBlock block, UnpackBlock unpack_block>
void decode_grouped(const std::byte* in, std::int64_t blocks, float* out) noexcept {
  constexpr std::int64_t groups = block.elements / block.group_elements;
  std::uint8_t codes[block.elements];
  std::uint16_t stored_scale = 0;
  std::uint16_t stored_minimum = 0;
  std::int8_t scale_factors[groups];
  std::int8_t minimum_factors[groups];
  for (std::int64_t b = 0; b < blocks; ++b, in += block.bytes) {
    unpack_block(in, {codes, stored_scale, stored_minimum, scale_factors, minimum_factors});
    for (std::int64_t g = 0; g < groups; ++g) {
      const float scale = group_scale(block.scales, block.factor_bits, stored_scale, scale_factors[g]);
      float minimum = 0;
      if constexpr (block.has_minimum) {
        minimum = group_scale(Format::Scales::f16, block.factor_bits, stored_minimum, minimum_factors[g]);
      }
      for (std::int64_t i = g * block.group_elements; i < (g + 1) * block.group_elements; ++i) {
        float level = 0;
        if constexpr (block.codebook != nullptr) {
          level = static_cast<float>(block.codebook[codes[i]]);
        } else {
          level = static_cast<float>(codes[i] - block.code_offset);
        }
        float value = scale * level;
        if constexpr (block.has_minimum) value += minimum;
        *out++ = value;
      }
    }
  }
}

using EncodeBlocks = void (*)(const float* in, std::int64_t blocks, std::byte* out) noexcept;

template <GroupedBlock block, UnpackBlock unpack_block>
Format grouped_format(std::string_view name, std::uint32_t gguf_type, EncodeBlocks encode) {
  static_assert(block.elements <= UnpackedBlocks::max_elements && block.elements % block.group_elements == 0);
  static_assert(block.factor_bits > 0 || block.group_elements == block.elements);
  return {.name = name,
          .gguf_type = gguf_type,
          .kind = Format::Kind::grouped,
          .block_elements = block.elements,
          .block_bytes = block.bytes,
          .code_bits = block.code_bits,
          .group_elements = block.group_elements,
          .code_offset = block.code_offset,
          .codebook = block.codebook,
          .has_minimum = block.has_minimum,
          .scales = block.scales,
          .factor_bits = block.factor_bits,
          .scale_at = block.scale_at,
          .minimum_at = block.has_minimum ? block.minimum_at : 0,
          .decode = decode_grouped<block, unpack_block>,
          .encode = encode,
          .unpack = unpack_grouped<block, unpack_block>};
}

}  // namespace headrace::formats
