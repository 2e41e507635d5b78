// dump_weight MODEL NAME CHUNK: the bytes of a tensor as the model's store gives them, read in chunks of so many bytes;
// its Format and shape to stderr. So Python can compare them with an oracle.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "models/checkpoint.hpp"

int main(int argc, char** argv) {
  try {
    if (argc != 4) headrace::fail<headrace::UsageError>("dump_weight MODEL NAME CHUNK");
    const auto checkpoint = headrace::models::open_checkpoint(argv[1]);
    const auto* tensor = checkpoint->find_tensor(argv[2]);
    if (tensor == nullptr) headrace::fail<headrace::InputError>("{}: no tensor {}", argv[1], argv[2]);
    fmt::print(stderr, "{} {}\n", tensor->format_name, fmt::join(tensor->shape, " "));
    const auto store = checkpoint->store();
    const std::uint64_t bytes = store->bytes(tensor->name);
    const std::uint64_t chunk = std::strtoull(argv[3], nullptr, 10);
    std::vector<std::byte> buffer;
    for (std::uint64_t at = 0; at < bytes; at += chunk) {
      buffer.resize(static_cast<std::size_t>(std::min(chunk, bytes - at)));
      store->read(tensor->name, at, buffer);
      std::fwrite(buffer.data(), 1, buffer.size(), stdout);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
