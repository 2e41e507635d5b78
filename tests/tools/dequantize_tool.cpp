// dequantize_tool FORMAT < blocks > f32: decodes raw blocks, so that Python can compare the values with an oracle.
// With --codes, values come from decode_codes by the formula of Format, in double, rounded once.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "formats/format.hpp"

namespace {

using headrace::formats::Format;

std::vector<float> decode_by_codes(const Format& format, const std::byte* in, std::int64_t blocks) {
  std::vector<float> values;
  const auto elements = static_cast<std::size_t>(format.block_elements);
  const auto group = static_cast<std::size_t>(format.group_elements);
  std::vector<std::uint8_t> codes(elements);
  std::vector<float> scales(elements / group);
  std::vector<float> minimums(elements / group);
  for (std::int64_t b = 0; b < blocks; ++b) {
    format.decode_codes(in + b * format.block_bytes, codes.data(), scales.data(), minimums.data());
    for (std::size_t i = 0; i < elements; ++i) {
      double value = static_cast<double>(scales[i / group]) * format.level(codes[i]);
      if (format.has_minimum) value += static_cast<double>(minimums[i / group]);
      values.push_back(static_cast<float>(value));
    }
  }
  return values;
}

int convert(const std::string& name, bool by_codes) {
  const Format* format = headrace::formats::find_format(name);
  if (format == nullptr) headrace::fail<headrace::UsageError>("no Format is named {}", name);
  const std::string bytes((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  if (std::ssize(bytes) % format->block_bytes != 0) {
    headrace::fail<headrace::InputError>("standard input: expected blocks of {} bytes, found {} bytes",
                                         format->block_bytes, bytes.size());
  }
  const auto blocks = std::ssize(bytes) / format->block_bytes;
  const auto* in = reinterpret_cast<const std::byte*>(bytes.data());
  std::vector<float> values(static_cast<std::size_t>(blocks * format->block_elements));
  if (by_codes) {
    values = decode_by_codes(*format, in, blocks);
  } else {
    format->decode(in, blocks, values.data());
  }
  const std::size_t written = std::fwrite(values.data(), sizeof(float), values.size(), stdout);
  return written == values.size() ? 0 : 4;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const bool by_codes = argc == 3 && std::strcmp(argv[2], "--codes") == 0;
    if (argc != 2 && !by_codes) headrace::fail<headrace::UsageError>("dequantize_tool FORMAT [--codes]");
    return convert(argv[1], by_codes);
  } catch (const headrace::Error& error) {
    std::cerr << error.what() << '\n';
    return static_cast<int>(error.code());
  }
}
