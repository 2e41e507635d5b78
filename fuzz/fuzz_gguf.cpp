// Fuzzes the GGUF reader on any bytes. Beyond what the sanitizers see: a header that is taken keeps what Gguf promises,
// every accessor throws InputError or gives a value, and a message is one line.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "checks.hpp"
#include "formats/gguf.hpp"

namespace {

using headrace::formats::Gguf;
using headrace::formats::GgufTensor;
using headrace::fuzz::allow_input_error;
using headrace::fuzz::check;

void use(const Gguf& gguf, std::size_t file_bytes) {
  for (const auto& entry : gguf.entries()) {
    check(gguf.find(entry.key) == &entry);
    allow_input_error([&] { (void)gguf.string(entry.key); });
    allow_input_error([&] { (void)gguf.u64(entry.key); });
    allow_input_error([&] { (void)gguf.i64(entry.key); });
    allow_input_error([&] { (void)gguf.f32(entry.key); });
    allow_input_error([&] { (void)gguf.boolean(entry.key); });
    allow_input_error([&] { (void)gguf.floats(entry.key); });
    allow_input_error([&] { (void)gguf.integers(entry.key); });
    allow_input_error([&] { (void)gguf.booleans(entry.key); });
    allow_input_error([&] {
      const auto& strings = gguf.strings(entry.key);
      std::size_t bytes = 0;
      for (std::size_t i = 0; i < strings.size(); ++i) bytes += strings[i].size();
      check(bytes + 8 * strings.size() <= file_bytes);
    });
  }
  for (const GgufTensor& tensor : gguf.tensors()) {
    check(gguf.find_tensor(tensor.name) == &tensor);
    check(tensor.elements > 0 && tensor.offset % gguf.alignment() == 0 && tensor.offset >= gguf.data_offset());
    check(tensor.offset < file_bytes && tensor.bytes.value_or(1) <= file_bytes - tensor.offset);
    allow_input_error([&] { (void)gguf.format(tensor); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  allow_input_error([&] {
    const headrace::formats::MemorySource source("fuzz", std::as_bytes(std::span(data, size)));
    use(Gguf::read(source), size);
  });
  return 0;
}
