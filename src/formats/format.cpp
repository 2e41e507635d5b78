#include "formats/format.hpp"

#include <algorithm>

namespace headrace::formats {

const Format* find_format(std::string_view name) {
  const auto table = format_table();
  const auto found = std::ranges::find(table, name, &Format::name);
  return found == table.end() ? nullptr : &*found;
}

const Format* find_format_by_gguf_type(std::uint32_t type) {
  const auto table = format_table();
  const auto found = std::ranges::find(table, type, &Format::gguf_type);
  return found == table.end() ? nullptr : &*found;
}

}  // namespace headrace::formats
