// bf16: the upper half of a binary32, little endian.
#include "base/half.hpp"
#include "formats/block.hpp"
#include "formats/encode.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

void decode(const std::byte* in, std::int64_t blocks, float* out) noexcept {
  for (std::int64_t i = 0; i < blocks; ++i) out[i] = bf16_to_f32(load_u16(in + 2 * i));
}

void encode(const float* in, std::int64_t blocks, std::byte* out) noexcept {
  for (std::int64_t i = 0; i < blocks; ++i) store_u16(out + 2 * i, f32_to_bf16(in[i]));
}

}  // namespace

Format format_bf16() {
  return {.name = "bf16",
          .gguf_type = 30,
          .kind = Format::Kind::floating,
          .block_elements = 1,
          .block_bytes = 2,
          .code_bits = 16,
          .decode = decode,
          .encode = encode};
}

}  // namespace headrace::formats
