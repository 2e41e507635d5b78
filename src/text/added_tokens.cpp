// Aho and Corasick, "Efficient string matching" (1975), over reversed tokens; see added_tokens.hpp.
#include "text/added_tokens.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace headrace::text {

namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 24;

std::uint64_t child_key(std::uint32_t node, unsigned char byte) { return std::uint64_t{node} << 8 | byte; }

std::size_t total_size(const std::vector<AddedTokens::Entry>& entries) {
  std::size_t total = 0;
  for (const auto& entry : entries) total += entry.content.size();
  // Real vocabularies have some kilobytes; a state takes about 100 bytes.
  if (total > kMaxBytes) fail<InputError>("special tokens: expected at most {} bytes, found {}", kMaxBytes, total);
  return total;
}

}  // namespace

AddedTokens::AddedTokens(const std::vector<Entry>& entries)
    : states_(1), children_(total_size(entries)), root_(256, 0) {
  struct Edge {
    Node parent;
    unsigned char byte;
    Node child;
    std::size_t depth;
  };
  std::vector<Edge> edges;
  for (const Entry& entry : entries) {
    if (entry.content.empty()) continue;
    Node node = 0;
    for (std::size_t i = entry.content.size(); i-- > 0;) {
      const auto byte = static_cast<unsigned char>(entry.content[i]);
      if (const Node* child = children_.find(child_key(node, byte))) {
        node = *child;
        continue;
      }
      const auto child = static_cast<Node>(states_.size());
      states_.emplace_back();
      children_.insert(child_key(node, byte), child);
      edges.push_back({node, byte, child, entry.content.size() - i});
      if (node == 0) root_[byte] = child;
      node = child;
    }
    if (states_[node].id < 0) {
      states_[node].id = entry.id;
      states_[node].size = entry.content.size();
    }
  }
  // By depth, since a fallback is always nearer to the root than its state.
  std::ranges::sort(edges, {}, &Edge::depth);
  for (const Edge& edge : edges) {
    if (edge.parent == 0) continue;
    State& state = states_[edge.child];
    state.fallback = step(states_[edge.parent].fallback, edge.byte);
    if (state.id < 0) {
      state.id = states_[state.fallback].id;
      state.size = states_[state.fallback].size;
    }
  }
}

AddedTokens::Node AddedTokens::step(Node node, unsigned char byte) const noexcept {
  while (node != 0) {
    if (const Node* child = children_.find(child_key(node, byte))) return *child;
    node = states_[node].fallback;
  }
  return root_[byte];
}

std::vector<AddedTokens::Match> AddedTokens::find(std::string_view text) const {
  std::vector<Match> found;
  if (states_.size() == 1) return found;
  Node node = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    node = step(node, static_cast<unsigned char>(text[i]));
    if (states_[node].id >= 0) found.push_back({i, states_[node].size, states_[node].id});
  }
  std::reverse(found.begin(), found.end());
  std::size_t end = 0;
  std::erase_if(found, [&](const Match& match) {
    if (match.begin < end) return true;
    end = match.begin + match.size;
    return false;
  });
  return found;
}

}  // namespace headrace::text
