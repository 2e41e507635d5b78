// Fuzzes the safetensors reader, and its index reader, on any bytes. Beyond what the sanitizers see: a header that is
// taken keeps what Safetensors promises, and a message is one line.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "checks.hpp"
#include "formats/safetensors.hpp"

namespace {

using headrace::formats::Safetensors;
using headrace::formats::SafetensorsTensor;
using headrace::fuzz::allow_input_error;
using headrace::fuzz::check;

void use(const Safetensors& file, std::size_t file_bytes) {
  std::uint64_t bytes = 0;
  for (const SafetensorsTensor& tensor : file.tensors()) {
    check(file.find_tensor(tensor.name) == &tensor);
    check(tensor.elements >= 0 && tensor.offset <= file_bytes && tensor.bytes <= file_bytes - tensor.offset);
    if (tensor.format != nullptr) {
      check(tensor.bytes == static_cast<std::uint64_t>(tensor.elements * tensor.format->block_bytes));
    }
    bytes += tensor.bytes;
  }
  check(bytes + 8 < file_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  allow_input_error([&] {
    const headrace::formats::MemorySource source("fuzz", std::as_bytes(std::span(data, size)));
    use(Safetensors::read(source), size);
  });
  allow_input_error([&] {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const auto& [tensor, file] : headrace::formats::parse_safetensors_index("fuzz", text)) {
      check(!file.empty() && file != ".." && file.find('/') == std::string::npos);
    }
  });
  return 0;
}
