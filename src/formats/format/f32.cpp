// f32: IEEE 754 binary32, little endian.
#include <bit>
#include <cstring>

#include "formats/format.hpp"

namespace headrace::formats {

namespace {

static_assert(std::endian::native == std::endian::little, "the bytes of an f32 are taken as they are");

void decode(const std::byte* in, std::int64_t blocks, float* out) noexcept {
  if (blocks > 0) std::memcpy(out, in, static_cast<std::size_t>(blocks) * sizeof(float));
}

void encode(const float* in, std::int64_t blocks, std::byte* out) noexcept {
  if (blocks > 0) std::memcpy(out, in, static_cast<std::size_t>(blocks) * sizeof(float));
}

}  // namespace

Format format_f32() {
  return {.name = "f32",
          .gguf_type = 0,
          .kind = Format::Kind::floating,
          .block_elements = 1,
          .block_bytes = 4,
          .code_bits = 32,
          .decode = decode,
          .encode = encode};
}

}  // namespace headrace::formats
