// gguf_copy IN OUT [BYTES]: reads a GGUF file and writes it with GgufWriter, its data in pieces of BYTES, so that
// Python can compare both files by an oracle.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "formats/gguf.hpp"
#include "formats/gguf_writer.hpp"

namespace {

using headrace::File;
using headrace::formats::Gguf;
using headrace::formats::GgufContents;
using headrace::formats::GgufTensor;
using headrace::formats::GgufWriter;

void copy(const char* in, const char* out, std::size_t piece) {
  const File file(in);
  const Gguf gguf = Gguf::read(file);
  GgufContents contents;
  contents.entries.assign(gguf.entries().begin(), gguf.entries().end());
  for (const GgufTensor& tensor : gguf.tensors()) {
    contents.tensors.push_back({tensor.name, tensor.dimensions, &gguf.format(tensor)});
  }
  GgufWriter writer(out, contents);
  std::vector<std::byte> bytes;
  for (const GgufTensor& tensor : gguf.tensors()) {
    for (std::uint64_t begin = 0; begin < *tensor.bytes; begin += piece) {
      bytes.resize(std::min<std::uint64_t>(piece, *tensor.bytes - begin));
      file.read(tensor.offset + begin, bytes);
      writer.write(bytes);
    }
  }
  writer.finish();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::size_t piece = 1 << 20;
    const bool good =
        argc == 3 ||
        (argc == 4 && std::from_chars(argv[3], argv[3] + std::strlen(argv[3]), piece).ec == std::errc{} && piece > 0);
    if (!good) headrace::fail<headrace::UsageError>("gguf_copy IN OUT [BYTES]");
    copy(argv[1], argv[2], piece);
    return 0;
  } catch (const headrace::Error& error) {
    std::cerr << error.what() << '\n';
    return static_cast<int>(error.code());
  }
}
