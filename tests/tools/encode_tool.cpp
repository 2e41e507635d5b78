// encode_tool FORMAT < f32 > blocks: encodes raw numbers, so that Python can compare the blocks with an oracle.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "formats/format.hpp"

namespace {

int convert(const char* name) {
  const headrace::formats::Format* format = headrace::formats::find_format(name);
  if (format == nullptr) headrace::fail<headrace::UsageError>("no Format is named {}", name);
  const std::string bytes((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  const std::int64_t blocks = std::ssize(bytes) / 4 / format->block_elements;
  if (blocks * format->block_elements * 4 != std::ssize(bytes)) {
    headrace::fail<headrace::InputError>("standard input: expected numbers of 4 bytes in blocks of {}, found {} bytes",
                                         format->block_elements, bytes.size());
  }
  std::vector<float> numbers(bytes.size() / 4);
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  std::vector<std::byte> out(static_cast<std::size_t>(blocks * format->block_bytes));
  format->encode(numbers.data(), blocks, out.data());
  return std::fwrite(out.data(), 1, out.size(), stdout) == out.size() ? 0 : 4;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) headrace::fail<headrace::UsageError>("encode_tool FORMAT");
    return convert(argv[1]);
  } catch (const headrace::Error& error) {
    std::cerr << error.what() << '\n';
    return static_cast<int>(error.code());
  }
}
