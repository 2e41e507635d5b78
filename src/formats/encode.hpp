// What encoders share: stores into a block's bytes, packing of codes (the inverse of block.hpp), and the codes that
// ggml's reference quantizer gives, which PyPI gguf repeats.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/half.hpp"
#include "formats/block.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

/// A little-endian u16 at any alignment.
inline void store_u16(std::byte* out, std::uint16_t value) noexcept {
  out[0] = static_cast<std::byte>(value & 0xffu);
  out[1] = static_cast<std::byte>(value >> 8);
}

/// `2 * count` codes to `count` bytes: the inverse of unpack_nibbles. Bits above the fourth are left out.
inline void pack_nibbles(const std::uint8_t* codes, int count, std::byte* out) noexcept {
  for (int i = 0; i < count; ++i) out[i] = static_cast<std::byte>((codes[i] & 0x0fu) | (codes[count + i] & 0x0fu) << 4);
}

/// 128 codes to 32 bytes: the inverse of unpack_crumbs. Bits above the second are left out.
inline void pack_crumbs(const std::uint8_t* codes, std::byte* out) noexcept {
  for (int i = 0; i < 32; ++i) {
    unsigned byte = 0;
    for (int s = 0; s < 4; ++s) byte |= (codes[32 * s + i] & 3u) << (2 * s);
    out[i] = static_cast<std::byte>(byte);
  }
}

/// Bit 4 of 32 codes to 4 bytes: the inverse of add_fifth_bits.
inline void pack_fifth_bits(const std::uint8_t* codes, std::byte* out) noexcept {
  for (int i = 0; i < 4; ++i) {
    unsigned byte = 0;
    for (int bit = 0; bit < 8; ++bit) byte |= ((codes[8 * i + bit] >> 4) & 1u) << bit;
    out[i] = static_cast<std::byte>(byte);
  }
}

/// Bit `position` of 256 codes to 32 bytes: the inverse of add_planes_of_bits.
inline void pack_planes_of_bits(const std::uint8_t* codes, int position, std::byte* out) noexcept {
  for (int i = 0; i < 32; ++i) {
    unsigned byte = 0;
    for (int s = 0; s < 8; ++s) byte |= ((codes[32 * s + i] >> position) & 1u) << s;
    out[i] = static_cast<std::byte>(byte);
  }
}

/// The inverse of unpack_factors_of_6_bits.
inline void pack_factors_of_6_bits(const std::int8_t* scales, const std::int8_t* minimums, std::byte* out) noexcept {
  const auto bits = [](std::int8_t factor) { return static_cast<unsigned>(static_cast<std::uint8_t>(factor)); };
  for (int i = 0; i < 4; ++i) {
    out[i] = static_cast<std::byte>((bits(scales[i]) & 0x3fu) | (bits(scales[4 + i]) & 0x30u) << 2);
    out[4 + i] = static_cast<std::byte>((bits(minimums[i]) & 0x3fu) | (bits(minimums[4 + i]) & 0x30u) << 2);
    out[8 + i] = static_cast<std::byte>((bits(scales[4 + i]) & 0x0fu) | (bits(minimums[4 + i]) & 0x0fu) << 4);
  }
}

/// `value` cut to a whole number from 0 to `largest`; 0 for NaN, which arises from numbers that no block can hold.
[[nodiscard]] inline std::uint8_t truncated_code(float value, int largest) noexcept {
  if (!(value >= 0)) return 0;
  return static_cast<std::uint8_t>(value < static_cast<float>(largest) ? static_cast<int>(value) : largest);
}

/// Codes without minimums, as q4_0 and q5_0 take them: the number of the largest magnitude gets the code 0, which
/// stands for -`offset`. Gives the scale, before it is rounded to what the block stores.
template <int offset>
float encode_by_largest(const float* in, std::uint8_t* codes) noexcept {
  float largest = in[0];
  for (int i = 1; i < 32; ++i) largest = std::fabs(in[i]) > std::fabs(largest) ? in[i] : largest;
  const float scale = largest / static_cast<float>(-offset);
  const float inverse = scale == 0 ? 0 : 1 / scale;
  for (int i = 0; i < 32; ++i) {
    codes[i] = truncated_code(in[i] * inverse + (static_cast<float>(offset) + 0.5f), 2 * offset - 1);
  }
  return scale;
}

struct ScaleAndMinimum {
  float scale;
  float minimum;
};

/// Codes with a minimum, as q4_1 and q5_1 take them: the least number gets the code 0, the greatest `largest_code`.
template <int largest_code>
ScaleAndMinimum encode_by_range(const float* in, std::uint8_t* codes) noexcept {
  float least = in[0];
  float greatest = in[0];
  for (int i = 1; i < 32; ++i) {
    least = in[i] < least ? in[i] : least;
    greatest = in[i] > greatest ? in[i] : greatest;
  }
  const float scale = (greatest - least) / static_cast<float>(largest_code);
  const float inverse = scale == 0 ? 0 : 1 / scale;
  for (int i = 0; i < 32; ++i) codes[i] = truncated_code((in[i] - least) * inverse + 0.5f, largest_code);
  return {scale, least};
}

using EncodeBlock = void (*)(const float* in, std::byte* out) noexcept;

/// Format::encode.
template <GroupedBlock block, EncodeBlock encode_block>
void encode_blocks(const float* in, std::int64_t blocks, std::byte* out) noexcept {
  for (std::int64_t b = 0; b < blocks; ++b) encode_block(in + b * block.elements, out + b * block.bytes);
}

}  // namespace headrace::formats
