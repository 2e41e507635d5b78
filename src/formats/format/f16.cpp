// f16: IEEE 754 binary16, little endian.
#include "base/half.hpp"
#include "formats/block.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

namespace {

void decode(const std::byte* in, std::int64_t blocks, float* out) noexcept {
  for (std::int64_t i = 0; i < blocks; ++i) out[i] = f16_to_f32(load_u16(in + 2 * i));
}

}  // namespace

Format format_f16() {
  return {.name = "f16",
          .gguf_type = 1,
          .kind = Format::Kind::floating,
          .block_elements = 1,
          .block_bytes = 2,
          .code_bits = 16,
          .decode = decode};
}

}  // namespace headrace::formats
