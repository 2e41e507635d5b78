// q8_0: 32 elements to a block: an f16 scale, then 32 signed bytes.
#include "formats/block.hpp"
#include "formats/encode.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

constexpr GroupedBlock block{.elements = 32, .bytes = 34, .code_bits = 8, .group_elements = 32, .code_offset = 128};

[[gnu::always_inline]] inline void unpack_block(const std::byte* in, UnpackedBlock out) noexcept {
  out.scale = load_u16(in);
  Words<32> codes(in + 2);
  for (auto& word : codes.word) word ^= 0x80 * every_byte;  // -128..127 to 0..255
  codes.store(out.codes);
}

void encode_block(const float* in, std::byte* out) noexcept {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::fabs(in[i]) > largest ? std::fabs(in[i]) : largest;
  const float scale = largest / 127;
  const float inverse = scale == 0 ? 0 : 1 / scale;
  store_u16(out, f32_to_f16(scale));
  for (int i = 0; i < 32; ++i) {  // to the nearest, halves away from zero
    const float code = std::fabs(in[i] * inverse);
    const int whole = truncated_code(code, 127);
    const int magnitude = whole < 127 && code - static_cast<float>(whole) >= 0.5f ? whole + 1 : whole;
    out[2 + i] = static_cast<std::byte>(static_cast<std::uint8_t>(in[i] < 0 ? -magnitude : magnitude));
  }
}

}  // namespace

Format format_q8_0() { return grouped_format<block, unpack_block>("q8_0", 8, encode_blocks<block, encode_block>); }

}  // namespace headrace::formats
