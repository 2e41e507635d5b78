#include "run/pages.hpp"

#include <cstring>

#include "base/error.hpp"

namespace headrace::run {

PagePool::PagePool(std::int64_t pages, std::int64_t page_bytes, std::int64_t positions)
    : page_bytes_(page_bytes),
      positions_(positions),
      memory_(static_cast<std::size_t>(pages * page_bytes), "KV pages"),
      owners_(static_cast<std::size_t>(pages), 0) {
  for (auto page = static_cast<PageId>(pages); page-- > 0;) free_.push_back(page);
}

std::int64_t PagePool::available() const noexcept {
  auto count = static_cast<std::int64_t>(free_.size());
  // A chain that a session still uses may end in pages that only the index holds; those can be dropped, leaf by leaf.
  for (const auto& [id, node] : nodes_) count += owners_[static_cast<std::size_t>(node.page)] == 1;
  return count;
}

PageId PagePool::acquire() {
  while (free_.empty()) {
    if (!drop_oldest_leaf()) {
      fail<ResourceError>("KV pages: all {} pages of {} positions are in use", owners_.size(), positions_);
    }
  }
  const PageId page = free_.back();
  free_.pop_back();
  owners_[static_cast<std::size_t>(page)] = 1;
  return page;
}

void PagePool::release(PageId page) {
  if (--owners_[static_cast<std::size_t>(page)] == 0) free_.push_back(page);
}

void PagePool::copy(PageId from, PageId to) noexcept {
  std::memcpy(base(to), base(from), static_cast<std::size_t>(page_bytes_));
}

std::string PagePool::key(ChainId parent, std::span<const TokenId> tokens, std::span<const TokenClass> classes) {
  std::string key(sizeof parent + tokens.size_bytes() + classes.size_bytes(), '\0');
  std::memcpy(key.data(), &parent, sizeof parent);
  std::memcpy(key.data() + sizeof parent, tokens.data(), tokens.size_bytes());
  std::memcpy(key.data() + sizeof parent + tokens.size_bytes(), classes.data(), classes.size_bytes());
  return key;
}

ChainId PagePool::remember(ChainId parent, std::span<const TokenId> tokens, std::span<const TokenClass> classes,
                           PageId page) {
  const ChainId found = find(parent, tokens, classes);
  if (found >= 0) return found;
  require(parent == 0 || nodes_.contains(parent), "a chain whose pages are held is kept");
  Node node;
  node.parent = parent;
  node.page = page;
  node.key = key(parent, tokens, classes);
  node.used = ++clock_;
  share(page);
  if (parent != 0) ++nodes_.at(parent).children;
  index_.emplace(node.key, next_);
  nodes_.emplace(next_, std::move(node));
  return next_++;
}

ChainId PagePool::find(ChainId parent, std::span<const TokenId> tokens, std::span<const TokenClass> classes) {
  const auto place = index_.find(key(parent, tokens, classes));
  if (place == index_.end()) return -1;
  nodes_.at(place->second).used = ++clock_;
  return place->second;
}

bool PagePool::drop_oldest_leaf() {
  auto oldest = nodes_.end();
  for (auto node = nodes_.begin(); node != nodes_.end(); ++node) {
    // Dropping a page that a session holds too would free nothing.
    const bool droppable = node->second.children == 0 && owners_[static_cast<std::size_t>(node->second.page)] == 1;
    if (droppable && (oldest == nodes_.end() || node->second.used < oldest->second.used)) oldest = node;
  }
  if (oldest == nodes_.end()) return false;
  if (oldest->second.parent != 0) --nodes_.at(oldest->second.parent).children;
  index_.erase(oldest->second.key);
  const PageId page = oldest->second.page;
  nodes_.erase(oldest);
  release(page);
  return true;
}

}  // namespace headrace::run
