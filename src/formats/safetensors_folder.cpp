#include "formats/safetensors_folder.hpp"

#include <unistd.h>

#include "base/error.hpp"
#include "base/quote.hpp"

namespace headrace::formats {

namespace {

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

SafetensorsFolder SafetensorsFolder::open(const std::string& directory) {
  SafetensorsFolder folder;
  const std::string index = directory + "/model.safetensors.index.json";
  const std::string single = directory + "/model.safetensors";
  if (!exists(index)) {
    if (!exists(single)) {
      fail<InputError>("{}: expected model.safetensors or model.safetensors.index.json, found neither{}", directory,
                       exists(directory + "/pytorch_model.bin") ? " (pytorch_model.bin is not read)" : "");
    }
    const Shard& shard = folder.shards_.emplace_back(single);
    for (const SafetensorsTensor& tensor : shard.header.tensors()) {
      folder.tensors_.emplace(tensor.name, Place{&tensor, &shard.file});
    }
    return folder;
  }
  const auto weight_map = parse_safetensors_index(index, read_text(index, max_index_bytes));
  std::map<std::string_view, const Shard*> by_name;
  for (const auto& [tensor, file] : weight_map) {
    const Shard*& shard = by_name[file];
    if (shard == nullptr) {
      const std::string path = directory + "/" + file;
      if (!exists(path)) {
        fail<InputError>("{}: weight_map: expected the file {} beside it, which holds tensor {}, found none", index,
                         headrace::quoted(file), headrace::quoted(tensor));
      }
      shard = &folder.shards_.emplace_back(path);
    }
    const SafetensorsTensor* found = shard->header.find_tensor(tensor);
    if (found == nullptr) {
      fail<InputError>("{}: expected tensor {}, as {} says, found none", shard->file.path(), headrace::quoted(tensor),
                       index);
    }
    folder.tensors_.emplace(found->name, Place{found, &shard->file});
  }
  return folder;
}

SafetensorsFolder::Place SafetensorsFolder::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? Place{} : found->second;
}

std::uint64_t SafetensorsFolder::file_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.file.size();
  return bytes;
}

}  // namespace headrace::formats
