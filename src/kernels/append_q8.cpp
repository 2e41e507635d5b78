// The append of rows to q8_0 State (docs/numerics.md says how they are rounded, KvEncoding where they lie).
// Limit: memory bytes read and written.
#include "kernels/attention_chunk.hpp"

namespace headrace::kernels::HEADRACE_ISA {
namespace {

struct Block {
  std::byte codes[q8_block];  ///< int8
  std::byte scale[2];         ///< f16
};

inline Int codes_of(Vec x, Vec scale) { return round_to_int(min(set1(127.0f), max(set1(-127.0f), div(x, scale)))); }

Block encode(const float* in) {
  const Vec low = load(in);
  const Vec high = load(in + 16);
  // As integers, magnitudes order like numbers, with infinity and then NaN above all.
  const std::int32_t largest = reduce_max(max_int(absolute_bits(low), absolute_bits(high)));
  float amax = 0;
  memcpy(&amax, &largest, 4);
  Block block{};
  std::byte halves[32];
  alignas(64) float scales[16];
  store_f16(halves, set1(amax / 127.0f));
  store(scales, load_f16(halves));
  const bool is_finite = largest < 0x7f800000 && scales[0] < __builtin_inff();
  if (!is_finite) {
    const std::uint16_t nan = 0x7e00;
    memcpy(block.scale, &nan, 2);
    return block;
  }
  memcpy(block.scale, halves, 2);
  if (scales[0] == 0) return block;
  store_i8(block.codes, codes_of(low, set1(scales[0])));
  store_i8(block.codes + 16, codes_of(high, set1(scales[0])));
  return block;
}

}  // namespace

void append_keys_q8(const float* in, Size head_width, Size first, Size last, Size slot, std::byte* page) noexcept {
  const Size head_blocks = head_width / q8_block;
  const Size panel_bytes = q8_panel_bytes(head_width);
  for (Size b = first; b < last; ++b) {
    const Block block = encode(in + b * q8_block);
    const Size panel = b / head_blocks * (page_positions / 16) + slot / 16;
    std::byte* group = page + panel * panel_bytes + b % head_blocks * q8_keys_bytes;
    for (Size j = 0; j < q8_block / 4; ++j) {
      for (Size i = 0; i < 4; ++i) {
        group[64 * j + slot % 16 * 4 + i] = block.codes[4 * j + i] ^ std::byte{0x80};  // + 128
      }
    }
    memcpy(group + q8_keys_codes + slot % 16 * 2, block.scale, 2);
  }
}

void append_values_q8(const float* in, Size head_width, Size first, Size last, Size slot, std::byte* page) noexcept {
  const Size head_blocks = head_width / q8_block;
  const Size head_bytes = kv_page_bytes(KvEncoding::q8_0, 1, head_width);
  for (Size b = first; b < last; ++b) {
    const Block block = encode(in + b * q8_block);
    std::byte* values = page + b / head_blocks * head_bytes + b % head_blocks * q8_values_bytes;
    for (Size e = 0; e < q8_block; ++e) {
      values[q8_value_place(slot, e)] = block.codes[e] ^ std::byte{0x80};  // + 128
    }
    memcpy(values + q8_values_codes + slot * 2, block.scale, 2);
  }
}

}  // namespace headrace::kernels::HEADRACE_ISA
