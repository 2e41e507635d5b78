// Many strings in two allocations: vocabularies hold hundreds of thousands of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

/// A list of strings as one blob and the offset of each end. It costs 8 bytes a string beyond the text.
class StringArray {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }
  [[nodiscard]] bool empty() const noexcept { return ends_.empty(); }

  /// String `i` < size(); valid until the next append.
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(blob_).substr(begin, ends_[i] - begin);
  }

  void append(std::string_view text) {
    blob_ += text;
    ends_.push_back(blob_.size());
  }

  /// Appends a string of `bytes` bytes; gives the place to fill, valid until the next append.
  char* append_uninitialized(std::size_t bytes) {
    const std::size_t begin = blob_.size();
    blob_.resize(begin + bytes);
    ends_.push_back(blob_.size());
    return blob_.data() + begin;
  }

 private:
  std::string blob_;
  std::vector<std::size_t> ends_;
};

}  // namespace headrace
