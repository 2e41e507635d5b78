#include "stream/weight_store.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace headrace::stream {

namespace {

void check_range(std::string_view weight, std::uint64_t offset, std::uint64_t count, std::uint64_t size) {
  if (offset > size || count > size - offset) {
    fail<InputError>("weight {}: expected a range within {} bytes, got {} bytes at {}", weight, size, count, offset);
  }
}

}  // namespace

void FileStore::add(std::string weight, std::uint64_t offset, std::uint64_t bytes) {
  ranges_[std::move(weight)] = {offset, bytes};
}

const FileStore::Range& FileStore::find(std::string_view weight) const {
  const auto place = ranges_.find(weight);
  if (place == ranges_.end()) fail<InputError>("{}: expected the tensor {}, found none", file_.path(), weight);
  return place->second;
}

std::uint64_t FileStore::bytes(std::string_view weight) const { return find(weight).bytes; }

void FileStore::read(std::string_view weight, std::uint64_t offset, std::span<std::byte> out) const {
  const Range& range = find(weight);
  check_range(weight, offset, out.size(), range.bytes);
  file_.read(range.offset + offset, out);
}

void MemoryStore::add(std::string weight, std::vector<std::byte> bytes) {
  weights_[std::move(weight)] = std::move(bytes);
}

const std::vector<std::byte>& MemoryStore::find(std::string_view weight) const {
  const auto place = weights_.find(weight);
  if (place == weights_.end()) fail<InputError>("memory store: expected the weight {}, found none", weight);
  return place->second;
}

std::uint64_t MemoryStore::bytes(std::string_view weight) const { return find(weight).size(); }

void MemoryStore::read(std::string_view weight, std::uint64_t offset, std::span<std::byte> out) const {
  const std::vector<std::byte>& bytes = find(weight);
  check_range(weight, offset, out.size(), bytes.size());
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
}

}  // namespace headrace::stream
