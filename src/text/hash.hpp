// Open hash tables for vocabularies: 64-bit keys to values, and strings to ids. Keys come from files, so the hash is
// seeded: a file made to collide would otherwise make loading quadratic.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

namespace headrace::text {

/// A keyed hash. What the tables answer does not depend on the seed.
class SeededHash {
 public:
  SeededHash() {
    std::random_device device;
    for (std::uint64_t& word : seed_) word = std::uint64_t{device()} << 32 | device();
  }
  [[nodiscard]] std::uint64_t operator()(std::uint64_t key) const noexcept { return mix(key ^ seed_[0], seed_[1]); }
  [[nodiscard]] std::uint64_t operator()(std::string_view key) const noexcept {
    std::uint64_t state = seed_[0] ^ key.size();
    while (key.size() > 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, key.data(), 8);
      state = mix(state ^ word, seed_[1]);
      key.remove_prefix(8);
    }
    std::uint64_t word = 0;
    if (!key.empty()) std::memcpy(&word, key.data(), key.size());
    return mix(state ^ word, seed_[1]);
  }

 private:
  /// Both halves of the 128-bit product, folded.
  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{a} * (b | 1u);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  std::uint64_t seed_[2];
};

/// Slots of a table for `count` entries: a power of two, at most half full.
[[nodiscard]] inline std::size_t slot_count(std::size_t count) { return std::bit_ceil(count * 2 + 2); }

/// 64-bit keys to values, filled up to a number of entries that is known beforehand. The key ~0 is not allowed.
template <class Value>
class IntegerMap {
 public:
  explicit IntegerMap(std::size_t capacity = 0) : slots_(slot_count(capacity)) {}

  /// Adds an entry unless the key is there already.
  void insert(std::uint64_t key, Value value) {
    Slot& slot = slots_[find_slot(key)];
    if (slot.key == kEmpty) slot = {key, value};
  }
  /// The value, or null.
  [[nodiscard]] const Value* find(std::uint64_t key) const noexcept {
    const Slot& slot = slots_[find_slot(key)];
    return slot.key == kEmpty ? nullptr : &slot.value;
  }

 private:
  static constexpr std::uint64_t kEmpty = std::numeric_limits<std::uint64_t>::max();
  struct Slot {
    std::uint64_t key = kEmpty;
    Value value{};
  };
  [[nodiscard]] std::size_t find_slot(std::uint64_t key) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = hash_(key) & mask;
    while (slots_[i].key != kEmpty && slots_[i].key != key) i = (i + 1) & mask;
    return i;
  }
  SeededHash hash_;
  std::vector<Slot> slots_;
};

/// Strings to ids >= 0. It stores no characters: `Text` is a callable id -> string_view.
class StringIndex {
 public:
  explicit StringIndex(std::size_t capacity = 0) : slots_(slot_count(capacity), -1) {}

  /// Adds id, whose string is text(id), unless an equal string is there already.
  template <class Text>
  void insert(std::int32_t id, const Text& text) {
    std::int32_t& slot = slots_[find_slot(text(id), text)];
    if (slot < 0) slot = id;
  }
  /// The id, or -1.
  template <class Text>
  [[nodiscard]] std::int32_t find(std::string_view key, const Text& text) const noexcept {
    return slots_[find_slot(key, text)];
  }

 private:
  template <class Text>
  [[nodiscard]] std::size_t find_slot(std::string_view key, const Text& text) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = hash_(key) & mask;
    while (slots_[i] >= 0 && text(slots_[i]) != key) i = (i + 1) & mask;
    return i;
  }
  SeededHash hash_;
  std::vector<std::int32_t> slots_;
};

}  // namespace headrace::text
