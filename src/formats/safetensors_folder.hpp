// The tensors of a directory that holds a model: model.safetensors, or the shards that its index names.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "base/file.hpp"
#include "formats/safetensors.hpp"

namespace headrace::formats {

class SafetensorsFolder {
 public:
  struct Place {
    const SafetensorsTensor* tensor = nullptr;
    const File* file = nullptr;
  };

  static constexpr std::uint64_t max_index_bytes = 100'000'000;

  /// Opens every shard and reads its header. Throws InputError if there are no weights, a shard is missing or wrong, or
  /// a tensor is not in the shard that the index says; ResourceError as File does.
  static SafetensorsFolder open(const std::string& directory);

  /// Sorted by name. References stay valid when the folder is moved.
  [[nodiscard]] const std::map<std::string_view, Place>& tensors() const noexcept { return tensors_; }
  /// A null tensor if there is none of this name.
  [[nodiscard]] Place find(std::string_view name) const;
  /// Of all files.
  [[nodiscard]] std::uint64_t file_bytes() const noexcept;

 private:
  struct Shard {
    explicit Shard(std::string path) : file(std::move(path)), header(Safetensors::read(file)) {}
    File file;
    Safetensors header;
  };

  std::deque<Shard> shards_;
  std::map<std::string_view, Place> tensors_;
};

}  // namespace headrace::formats
