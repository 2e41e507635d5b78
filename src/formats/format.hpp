// Format: how bytes encode numbers in a file. One file in formats/format/ a Format; a generated table lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace headrace::formats {

/// Up to 256 elements of a grouped Format, taken apart: what its bytes hold, before any arithmetic.
struct UnpackedBlocks {
  static constexpr std::int64_t max_elements = 256;

  std::uint8_t codes[max_elements];
  std::uint16_t scales[max_elements / 32];         ///< one a block: f16, or the exponent of an e8m0
  std::uint16_t minimums[max_elements / 32];       ///< one a block: f16
  std::int8_t scale_factors[max_elements / 16];    ///< one a group, with factor_bits
  std::int8_t minimum_factors[max_elements / 16];  ///< one a group, with factor_bits
};

/// What kernels and the packer need to know of a Format, beyond its name.
///
/// A *float* Format holds one number of `code_bits` bits per element (f32, f16, bf16; block_elements is 1).
/// A *grouped* Format decodes to unsigned integer codes in groups of `group_elements` along a row, each group with an
/// f32 scale and, if `has_minimum`, an f32 minimum:
///     value = scale * level(code)               without minimums
///     value = scale * level(code) + minimum     with minimums
/// in the reals, where level(code) is code - code_offset, or codebook[code] where there is a codebook; `decode` rounds
/// in the order that PyPI `gguf` does. A scale is what the block stores (f16, e8m0), or with `factor_bits` the block's
/// f16 times a small integer of the group; that product is exact in f32. Minimums likewise.
struct Format {
  enum class Kind { floating, grouped };
  enum class Scales { f16, e8m0 };

  std::string_view name;        ///< as in the design: "q4_1", "bf16"
  std::uint32_t gguf_type = 0;  ///< type id of a tensor in a GGUF file
  Kind kind = Kind::floating;
  std::int64_t block_elements = 1;  ///< elements of the smallest unit of the file's bytes
  std::int64_t block_bytes = 4;     ///< its size
  int code_bits = 32;               ///< bits per code (grouped) or per number (floating)
  std::int64_t group_elements = 1;  ///< elements that share a scale, 16 or 32; the block if there are no factors
  int code_offset = 0;
  const std::int8_t* codebook = nullptr;  ///< 2^code_bits levels; code_offset is 0 then
  bool has_minimum = false;
  Scales scales =
      Scales::f16;      ///< how a block stores its scale (e8m0: 2^(exponent - 128), half of OCP's); a minimum is f16
  int factor_bits = 0;  ///< bits that hold a group's factor of the scale (and of the minimum); 0: no factors
  std::int64_t scale_at = 0;    ///< where in a block its scale stands,
  std::int64_t minimum_at = 0;  ///< and its minimum: for who makes up blocks

  /// Decodes `blocks` whole blocks to `blocks * block_elements` numbers, bit for bit as PyPI `gguf` dequantizes.
  void (*decode)(const std::byte* in, std::int64_t blocks, float* out) noexcept = nullptr;

  /// Encodes `blocks * block_elements` numbers to whole blocks: bit for bit as PyPI `gguf` quantizes, where it does;
  /// else with a least squared error as far as a search finds it (docs/quantize.md). Infinities, NaNs and numbers that
  /// a block's scale cannot reach give blocks that decode to something else: who cares looks at the decoded numbers.
  void (*encode)(const float* in, std::int64_t blocks, std::byte* out) noexcept = nullptr;

  /// Grouped only: takes apart `blocks` whole blocks, of at most 256 elements together.
  void (*unpack)(const std::byte* in, std::int64_t blocks, UnpackedBlocks& out) noexcept = nullptr;

  /// Grouped only: one block to block_elements codes and block_elements / group_elements scales and minimums (minimums
  /// are left alone without has_minimum), by way of `unpack`.
  void decode_codes(const std::byte* block, std::uint8_t* codes, float* scales, float* minimums) const noexcept;

  /// What a code stands for, in units of the scale.
  [[nodiscard]] constexpr int level(std::uint8_t code) const noexcept {
    return codebook != nullptr ? codebook[code] : code - code_offset;
  }

  /// Bytes of one row of `elements` (a multiple of block_elements) in a file.
  [[nodiscard]] constexpr std::int64_t row_bytes(std::int64_t elements) const noexcept {
    return elements / block_elements * block_bytes;
  }
};

/// All Formats, generated from the files in formats/format/: each defines `Format format_NAME()`.
std::span<const Format> format_table();

/// The Format of that name or GGUF type id, or nullptr.
const Format* find_format(std::string_view name);
const Format* find_format_by_gguf_type(std::uint32_t type);

}  // namespace headrace::formats
