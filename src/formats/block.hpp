// What the grouped Formats share: loads from a block's bytes, unpacking of codes, and decode out of unpack.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

/// A little-endian u64 at any alignment.
[[nodiscard]] inline std::uint64_t load_u64(const std::byte* in) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, in, sizeof word);
  return word;
}

/// Half of the power of two that an OCP e8m0 exponent stands for: 2^(exponent - 128), subnormal below 2.
[[nodiscard]] inline float half_of_e8m0(std::uint16_t exponent) noexcept {
  return std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1u) << 23);
}

static_assert(std::endian::native == std::endian::little, "byte i of a word is its bits from 8 i");
inline constexpr std::uint64_t every_byte = 0x0101010101010101u;

/// Bytes taken 16 at a time: packing at the speed of memory begins with taking blocks apart.
template <int bytes>
struct Words {
  static_assert(bytes % 16 == 0);
  using Word = std::uint64_t __attribute__((vector_size(16)));

  explicit Words(const void* in) noexcept { std::memcpy(word, in, bytes); }
  void store(void* out) const noexcept { std::memcpy(out, word, bytes); }
  /// Bits of every byte: those of `mask` once it is shifted down by `shift`.
  [[nodiscard]] Words field(int shift, std::uint64_t mask) const noexcept {
    Words fields = *this;
    for (Word& w : fields.word) w = (w >> shift) & (mask * every_byte);
    return fields;
  }
  /// Of every byte `fields` shifted up by `shift`, which must not leave the byte, and these.
  [[nodiscard]] Words with(const Words& fields, int shift) const noexcept {
    Words both = *this;
    for (int i = 0; i < bytes / 16; ++i) both.word[i] |= fields.word[i] << shift;
    return both;
  }

  Word word[bytes / 16];
};

/// `count` bytes to `2 * count` codes: all low nibbles first, then all high ones.
template <int count>
void unpack_nibbles(const std::byte* in, std::uint8_t* codes) noexcept {
  const Words<count> bytes(in);
  bytes.field(0, 0x0f).store(codes);
  bytes.field(4, 0x0f).store(codes + count);
}

/// 32 bytes to 128 codes: the lowest two bits of all bytes first, then the next two.
inline void unpack_crumbs(const std::byte* in, std::uint8_t* codes) noexcept {
  const Words<32> bytes(in);
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) bytes.field(2 * s, 3).store(codes + 32 * s);
}

/// Adds the same pairs of bits to 128 codes as bits 4 and 5.
inline void add_crumbs(const std::byte* in, std::uint8_t* codes) noexcept {
  const Words<32> bytes(in);
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) Words<32>(codes + 32 * s).with(bytes.field(2 * s, 3), 4).store(codes + 32 * s);
}

/// Adds bit s of byte i to code 32 s + i as its bit `position`, for 256 codes.
inline void add_planes_of_bits(const std::byte* bits, int position, std::uint8_t* codes) noexcept {
  const Words<32> bytes(bits);
#pragma GCC unroll 8
  for (int s = 0; s < 8; ++s) Words<32>(codes + 32 * s).with(bytes.field(s, 1), position).store(codes + 32 * s);
}

/// Bit i of the index at bit 4 of byte i.
inline constexpr std::array<std::uint64_t, 256> fifth_bits = [] {
  std::array<std::uint64_t, 256> spread{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (unsigned i = 0; i < 8; ++i) spread[byte] |= static_cast<std::uint64_t>((byte >> i) & 1u) << (8 * i + 4);
  }
  return spread;
}();

/// Adds bit i of 4 bytes to code i as its bit 4, for 32 codes.
inline void add_fifth_bits(const std::byte* in, std::uint8_t* codes) noexcept {
  std::uint64_t bits[4];
  for (int i = 0; i < 4; ++i) bits[i] = fifth_bits[std::to_integer<std::size_t>(in[i])];
  Words<32>(codes).with(Words<32>(bits), 0).store(codes);
}

/// Of 6-bit numbers in every byte those less 32, as signed bytes.
[[nodiscard]] inline std::uint64_t less_32(std::uint64_t bytes) noexcept {
  // The top bit, set, pays for the borrow; flipped, it is the sign.
  return ((bytes | 0x80 * every_byte) - 0x20 * every_byte) ^ 0x80 * every_byte;
}

/// The 8 factors of scales and of minimums, 6 bits each, that q4_k and q5_k keep in 12 bytes: of the first four groups
/// in the low six bits of bytes 0 .. 3 and 4 .. 7, of the others in the nibbles of 8 .. 11 and the high bits of 0 .. 7.
inline void unpack_factors_of_6_bits(const std::byte* in, std::int8_t* scales, std::int8_t* minimums) noexcept {
  const std::uint64_t first = load_u64(in);  // 4 scales, then 4 minimums
  const std::uint64_t rest = load_u32(in + 8);
  const std::uint64_t four = first & 0x3f * every_byte;
  const std::uint64_t nibbles = (rest | rest << 28) & 0x0f * every_byte;
  const std::uint64_t last = nibbles | ((first >> 2) & 0x30 * every_byte);
  const std::uint64_t both_scales = (four & 0xffffffffu) | last << 32;
  const std::uint64_t both_minimums = four >> 32 | (last & 0xffffffff00000000u);
  std::memcpy(scales, &both_scales, 8);
  std::memcpy(minimums, &both_minimums, 8);
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

/// Where one block goes when it is taken apart. A Format's function for that is always inlined into the loops below:
/// what a call costs, for this record goes through memory, is up to a third of packing.
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
  std::int8_t scale_factors[groups] = {};
  std::int8_t minimum_factors[groups] = {};
  for (std::int64_t b = 0; b < blocks; ++b, in += block.bytes) {
    unpack_block(in, {codes, stored_scale, stored_minimum, scale_factors, minimum_factors});
    for (std::int64_t g = 0; g < groups; ++g) {
      const float scale = group_scale(block.scales, block.factor_bits, stored_scale, scale_factors[g]);
      float minimum = 0;
      if constexpr (block.has_minimum) {
        minimum = group_scale(Format::Scales::f16, block.factor_bits, stored_minimum, minimum_factors[g]);
      }
      for (std::int64_t i = g * block.group_elements; i < (g + 1) * block.group_elements; ++i) {
        // Not constexpr: to GCC's sanitizers the address of a table is no constant.
        const int level = block.codebook != nullptr ? block.codebook[codes[i]] : codes[i] - block.code_offset;
        float value = scale * static_cast<float>(level);
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
