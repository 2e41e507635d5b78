// safetensors_dump: reads lines with a path each, and answers each with one line: the parsed header as JSON, or
// {"error"}. So Python can compare it with an oracle.
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "formats/safetensors.hpp"

namespace {

nlohmann::json dump(const std::string& path) {
  using nlohmann::json;
  try {
    const headrace::File opened(path);
    const auto file = headrace::formats::Safetensors::read(opened);
    json tensors = json::object();
    for (const auto& tensor : file.tensors()) {
      tensors[tensor.name] = {{"dtype", tensor.dtype},
                              {"shape", tensor.shape},
                              {"offset", tensor.offset},
                              {"bytes", tensor.bytes},
                              {"format", tensor.format == nullptr ? json() : json(tensor.format->name)}};
    }
    return {{"metadata", file.metadata()}, {"tensors", std::move(tensors)}};
  } catch (const headrace::InputError& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

int main() {
  std::string path;
  while (std::getline(std::cin, path)) {
    std::cout << dump(path).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  }
  return 0;
}
