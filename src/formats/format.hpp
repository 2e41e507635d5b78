// Format: how bytes encode numbers in a file. One file in formats/format/ a Format; a generated table lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace headrace::formats {

/// What kernels and the packer need to know of a Format, beyond its name.
///
/// A *float* Format holds one number of `code_bits` bits per element (f32, f16, bf16; block_elements is 1).
/// A *grouped* Format decodes to unsigned integer codes in groups of `group_elements` along a row, each group with an
/// f32 scale and, if `has_minimum`, an f32 minimum:
///     value = scale * (code - code_offset)           without minimums
///     value = scale * code + minimum                 with minimums (code_offset is 0)
/// in the reals; `decode` rounds in the order that PyPI `gguf` does.
struct Format {
  enum class Kind { floating, grouped };

  std::string_view name;        ///< as in the design: "q4_1", "bf16"
  std::uint32_t gguf_type = 0;  ///< type id of a tensor in a GGUF file
  Kind kind = Kind::floating;
  std::int64_t block_elements = 1;  ///< elements of the smallest unit of the file's bytes
  std::int64_t block_bytes = 4;     ///< its size
  int code_bits = 32;               ///< bits per code (grouped) or per number (floating)
  std::int64_t group_elements = 1;  ///< elements that share a scale; divides block_elements
  int code_offset = 0;
  bool has_minimum = false;
  bool scales_are_f16 = false;  ///< every scale and minimum that decode_codes gives is exactly an f16

  /// Decodes `blocks` whole blocks to `blocks * block_elements` numbers, bit for bit as PyPI `gguf` dequantizes.
  void (*decode)(const std::byte* in, std::int64_t blocks, float* out) noexcept = nullptr;

  /// Grouped only: decodes one block to block_elements codes and block_elements / group_elements scales and minimums
  /// (minimums are left alone without has_minimum).
  void (*decode_codes)(const std::byte* block, std::uint8_t* codes, float* scales, float* minimums) noexcept = nullptr;

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
