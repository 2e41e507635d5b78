// Writes small safetensors files for tests, right and wrong ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace headrace::formats::testing {

/// 8 bytes of length, the header as it is, the data.
inline std::string safetensors_file(std::string_view header, std::string_view data = "") {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file.append(header).append(data);
}

/// One entry of a header: "name":{"dtype":...}.
inline std::string safetensors_entry(std::string_view name, std::string_view dtype, std::string_view shape,
                                     std::uint64_t begin, std::uint64_t end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, dtype, shape, begin, end);
}

}  // namespace headrace::formats::testing
