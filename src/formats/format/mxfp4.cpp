// mxfp4 (OCP Microscaling 1.0): 32 elements to a block: an e8m0 exponent, then 16 bytes of e2m1 numbers. Levels are the
// numbers doubled, so that they are integers; the scale is halved.
#include "formats/block.hpp"
#include "formats/encode.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr std::int8_t levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

constexpr GroupedBlock block{.elements = 32,
                             .bytes = 17,
                             .code_bits = 4,
                             .group_elements = 32,
                             .codebook = levels,
                             .scales = Format::Scales::e8m0};

[[gnu::always_inline]] inline void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  out.scale = std::to_integer<std::uint16_t>(in[0]);
  unpack_nibbles<16>(in + 1, out.codes);
}

/// The exponent that OCP gives: of the largest magnitude, less 2, which is that of the largest level, 6. The logarithm
/// is rounded to f32, as PyPI gguf does: just below a power of two it is one more.
std::uint8_t exponent_of(float largest) noexcept {
  if (!(largest > 0)) return 0;
  const float exponent = std::floor(static_cast<float>(std::log2(static_cast<double>(largest)))) + (127 - 2);
  return truncated_code(exponent, 254);
}

void encode_block(const float* in, std::byte* out) noexcept {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::fabs(in[i]) > largest ? std::fabs(in[i]) : largest;
  const std::uint8_t exponent = exponent_of(largest);
  const float scale = half_of_e8m0(exponent);
  std::uint8_t codes[32];
  for (int i = 0; i < 32; ++i) {
    // The nearest level, the lower code of two that are equally near.
    std::uint8_t best = 0;
    float least = std::fabs(in[i]);
    for (std::uint8_t code = 1; code < 8; ++code) {
      const float error = std::fabs(scale * static_cast<float>(levels[code]) - std::fabs(in[i]));
      best = error < least ? code : best;
      least = error < least ? error : least;
    }
    codes[i] = static_cast<std::uint8_t>(in[i] < 0 && best > 0 ? best | 8 : best);
  }
  out[0] = static_cast<std::byte>(exponent);
  pack_nibbles(codes, 16, out + 1);
}

}  // namespace

Format format_mxfp4() { return grouped_format<block, unpack_block>("mxfp4", 39, encode_blocks<block, encode_block>); }

}  // namespace headrace::formats
