// What a Session holds: the chain of (token, class) and the pages of its State.
#pragma once

#include <cstdint>
#include <vector>

#include "run/engine.hpp"
#include "run/pages.hpp"

namespace headrace::run {

struct Session::Data {
  explicit Data(PagePool& page_pool) : pool(page_pool) {}
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  ~Data() {
    for (const PageId page : pages) pool.release(page);
  }

  /// Room for `count` more positions, with no page that others see where they will be written. Throws ResourceError and
  /// leaves the session as it was.
  void reserve(std::int64_t count);
  /// Pages that reserve(count) will acquire.
  [[nodiscard]] std::int64_t pages_needed(std::int64_t count) const;
  void commit(std::int64_t accepted);
  void truncate(std::int64_t length);
  /// Gives up pages behind the first `length` positions.
  void drop_pages(std::int64_t length);
  void add_page(PageId page);

  PagePool& pool;
  std::vector<TokenId> tokens;      ///< committed, then tentative
  std::vector<TokenClass> classes;  ///< as tokens
  std::int64_t length = 0;          ///< committed
  std::vector<PageId> pages;
  std::vector<std::byte*> bases;  ///< of pages
  std::vector<ChainId> chains;    ///< of the full committed pages
};

}  // namespace headrace::run
