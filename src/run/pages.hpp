// State pages: fixed-size, shared by reference count, and found again by the chain of tokens that they were computed
// from. A page holds every State of the model for `positions` consecutive positions of one sequence.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/memory.hpp"
#include "kernels/kernels.hpp"

namespace headrace::run {

using TokenId = std::int32_t;
using kernels::TokenClass;
using PageId = std::int32_t;

/// Links full pages into chains by their tokens and classes. Weights, numerics and encodings are those of the Engine.
/// Node 0 is the empty chain.
using ChainId = std::int64_t;

class PagePool {
 public:
  /// Throws ResourceError if the memory is not to be had.
  PagePool(std::int64_t pages, std::int64_t page_bytes, std::int64_t positions);

  [[nodiscard]] std::int64_t positions() const noexcept { return positions_; }
  [[nodiscard]] std::byte* base(PageId page) const noexcept { return memory_.data() + page * page_bytes_; }

  /// Pages that acquire() can give: free ones, and those that only the index holds.
  [[nodiscard]] std::int64_t available() const noexcept;
  /// A page with one owner and any content. Drops the chain that was used least recently if no page is free. Throws
  /// ResourceError if there is none.
  PageId acquire();
  /// One owner more.
  void share(PageId page) noexcept { ++owners_[static_cast<std::size_t>(page)]; }
  void release(PageId page);
  [[nodiscard]] bool is_shared(PageId page) const noexcept { return owners_[static_cast<std::size_t>(page)] > 1; }
  void copy(PageId from, PageId to) noexcept;

  /// The chain `parent` + these tokens: found, or remembered with `page`, which the index then owns too.
  ChainId remember(ChainId parent, std::span<const TokenId> tokens, std::span<const TokenClass> classes, PageId page);
  /// The chain that follows, or -1.
  ChainId find(ChainId parent, std::span<const TokenId> tokens, std::span<const TokenClass> classes);
  /// The page at the end of a chain (not of 0).
  [[nodiscard]] PageId page_of(ChainId chain) const { return nodes_.at(chain).page; }

 private:
  struct Node {
    ChainId parent = 0;
    PageId page = -1;
    std::string key;
    std::int64_t children = 0;
    std::int64_t used = 0;
  };
  static std::string key(ChainId parent, std::span<const TokenId> tokens, std::span<const TokenClass> classes);
  bool drop_oldest_leaf();

  std::int64_t page_bytes_;
  std::int64_t positions_;
  Buffer memory_;
  std::vector<std::int32_t> owners_;
  std::vector<PageId> free_;
  std::map<ChainId, Node> nodes_;
  std::unordered_map<std::string, ChainId> index_;
  ChainId next_ = 1;
  std::int64_t clock_ = 0;
};

}  // namespace headrace::run
