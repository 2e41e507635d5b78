// Weights as ranges of several files: a Weight may be one after the other of many, such as experts of which each lies
// in a place of its own, or be made from them while it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "stream/weight_store.hpp"

namespace headrace::stream {

class ShardedStore : public WeightStore {
 public:
  struct Piece {
    const File* file = nullptr;  ///< must outlive the store
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  /// Fills its second argument from byte `offset` of a Weight; thread-safe.
  using Reader = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;

  /// The pieces one after the other; fewer than 2^64 bytes in all.
  void add(std::string weight, const std::vector<Piece>& pieces);
  void add(std::string weight, std::uint64_t bytes, Reader reader);

  [[nodiscard]] std::uint64_t bytes(std::string_view weight) const override;
  void read(std::string_view weight, std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  struct Place {
    std::uint64_t begin = 0;  ///< in the Weight
    Piece piece;
  };
  struct Entry {
    std::uint64_t bytes = 0;
    std::vector<Place> places;  ///< by begin; empty if a reader makes it
    Reader reader;
  };
  [[nodiscard]] const Entry& find(std::string_view weight) const;

  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace headrace::stream
