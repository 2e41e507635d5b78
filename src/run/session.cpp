#include "run/session_data.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace headrace::run {

void Session::Data::add_page(PageId page) {
  pages.push_back(page);
  bases.push_back(pool.base(page));
}

std::int64_t Session::Data::pages_needed(std::int64_t count) const {
  const std::int64_t held = static_cast<std::int64_t>(pages.size());
  const std::int64_t total = ceil_div(length + count, pool.positions());
  const std::int64_t tail = length / pool.positions();
  const bool copies_tail = length % pool.positions() != 0 && pool.is_shared(pages[static_cast<std::size_t>(tail)]);
  return std::max<std::int64_t>(total - held, 0) + (copies_tail ? 1 : 0);
}

void Session::Data::reserve(std::int64_t count) {
  const std::int64_t tail = length / pool.positions();
  const auto tail_index = static_cast<std::size_t>(tail);
  if (length % pool.positions() != 0 && pool.is_shared(pages[tail_index])) {
    const PageId copy = pool.acquire();
    pool.copy(pages[tail_index], copy);
    pool.release(pages[tail_index]);
    pages[tail_index] = copy;
    bases[tail_index] = pool.base(copy);
  }
  while (static_cast<std::int64_t>(pages.size()) * pool.positions() < length + count) add_page(pool.acquire());
}

void Session::Data::drop_pages(std::int64_t keep) {
  const auto count = static_cast<std::size_t>(ceil_div(keep, pool.positions()));
  while (pages.size() > count) {
    pool.release(pages.back());
    pages.pop_back();
    bases.pop_back();
  }
}

void Session::Data::commit(std::int64_t accepted) {
  const auto tentative = static_cast<std::int64_t>(tokens.size()) - length;
  if (accepted < 0) accepted = tentative;
  if (accepted > tentative) {
    fail<InternalError>("commit: expected at most the {} tentative positions, got {}", tentative, accepted);
  }
  length += accepted;
  tokens.resize(static_cast<std::size_t>(length));
  classes.resize(static_cast<std::size_t>(length));
  drop_pages(length);
  // Only full, committed pages are shared; the index remembers each by its chain.
  const std::int64_t positions = pool.positions();
  while (static_cast<std::int64_t>(chains.size() + 1) * positions <= length) {
    const std::size_t page = chains.size();
    const auto begin = static_cast<std::size_t>(static_cast<std::int64_t>(page) * positions);
    const auto count = static_cast<std::size_t>(positions);
    const ChainId chain = pool.remember(chains.empty() ? 0 : chains.back(), std::span(tokens).subspan(begin, count),
                                        std::span(classes).subspan(begin, count), pages[page]);
    const PageId known = pool.page_of(chain);
    if (known != pages[page]) {  // the same chain was computed before: equal bits, so one page is enough
      pool.share(known);
      pool.release(pages[page]);
      pages[page] = known;
      bases[page] = pool.base(known);
    }
    chains.push_back(chain);
  }
}

void Session::Data::truncate(std::int64_t new_length) {
  if (new_length < 0 || new_length > length) {
    fail<InternalError>("truncate: expected at most {} positions, got {}", length, new_length);
  }
  length = new_length;
  tokens.resize(static_cast<std::size_t>(length));
  classes.resize(static_cast<std::size_t>(length));
  drop_pages(length);
  chains.resize(std::min(chains.size(), static_cast<std::size_t>(length / pool.positions())));
}

Session::Session(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

std::int64_t Session::length() const noexcept { return data_->length; }

std::span<const TokenId> Session::tokens() const noexcept {
  return std::span(data_->tokens).first(static_cast<std::size_t>(data_->length));
}

void Session::commit(std::int64_t accepted) { data_->commit(accepted); }

void Session::abort() { data_->commit(0); }

void Session::truncate(std::int64_t length) {
  data_->commit(0);
  data_->truncate(length);
}

Session Session::fork() const {
  auto copy = std::make_unique<Data>(data_->pool);
  const std::int64_t positions = copy->pool.positions();
  const auto full = static_cast<std::size_t>(data_->length / positions);
  if (data_->length % positions != 0) {  // acquired first, so that a failure leaves no trace
    const PageId tail = copy->pool.acquire();
    copy->pool.copy(data_->pages[full], tail);
    copy->add_page(tail);
  }
  for (std::size_t i = 0; i < full; ++i) {
    copy->pool.share(data_->pages[i]);
    copy->pages.insert(copy->pages.begin() + static_cast<std::ptrdiff_t>(i), data_->pages[i]);
    copy->bases.insert(copy->bases.begin() + static_cast<std::ptrdiff_t>(i), data_->bases[i]);
  }
  copy->length = data_->length;
  copy->tokens.assign(tokens().begin(), tokens().end());
  copy->classes.assign(data_->classes.begin(), data_->classes.begin() + data_->length);
  copy->chains = data_->chains;
  return Session(std::move(copy));
}

std::int64_t Session::share_prefix(std::span<const TokenId> prompt, TokenClass token_class) {
  require(data_->tokens.empty(), "a prefix is taken over by an empty session");
  const auto positions = static_cast<std::size_t>(data_->pool.positions());
  const std::vector<TokenClass> classes(positions, token_class);
  // The last token is always computed: its logits are wanted.
  while ((data_->chains.size() + 1) * positions < prompt.size()) {
    const auto tokens = prompt.subspan(data_->chains.size() * positions, positions);
    const ChainId chain = data_->pool.find(data_->chains.empty() ? 0 : data_->chains.back(), tokens, classes);
    if (chain < 0) break;
    const PageId page = data_->pool.page_of(chain);
    data_->pool.share(page);
    data_->add_page(page);
    data_->chains.push_back(chain);
    data_->tokens.insert(data_->tokens.end(), tokens.begin(), tokens.end());
    data_->classes.insert(data_->classes.end(), positions, token_class);
    data_->length += static_cast<std::int64_t>(positions);
  }
  return data_->length;
}

}  // namespace headrace::run
