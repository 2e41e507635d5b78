#include "stream/sharded_store.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace headrace::stream {

void ShardedStore::add(std::string weight, const std::vector<Piece>& pieces) {
  Entry entry;
  for (const Piece& piece : pieces) {
    if (piece.bytes == 0) continue;
    entry.places.push_back({entry.bytes, piece});
    entry.bytes += piece.bytes;
  }
  entries_[std::move(weight)] = std::move(entry);
}

void ShardedStore::add(std::string weight, std::uint64_t bytes, Reader reader) {
  entries_[std::move(weight)] = {bytes, {}, std::move(reader)};
}

const ShardedStore::Entry& ShardedStore::find(std::string_view weight) const {
  const auto entry = entries_.find(weight);
  if (entry == entries_.end()) fail<InputError>("sharded store: expected the weight {}, found none", weight);
  return entry->second;
}

std::uint64_t ShardedStore::bytes(std::string_view weight) const { return find(weight).bytes; }

void ShardedStore::read(std::string_view weight, std::uint64_t offset, std::span<std::byte> out) const {
  const Entry& entry = find(weight);
  if (offset > entry.bytes || out.size() > entry.bytes - offset) {
    fail<InputError>("weight {}: expected a range within {} bytes, got {} bytes at {}", weight, entry.bytes, out.size(),
                     offset);
  }
  if (entry.reader) {
    entry.reader(offset, out);
    return;
  }
  auto place = std::ranges::upper_bound(entry.places, offset, {}, &Place::begin);
  while (!out.empty()) {
    const Place& from = *(place - 1);
    const std::uint64_t inside = offset - from.begin;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(from.piece.bytes - inside, out.size()));
    from.piece.file->read(from.piece.offset + inside, out.first(count));
    out = out.subspan(count);
    offset += count;
    ++place;
  }
}

}  // namespace headrace::stream
