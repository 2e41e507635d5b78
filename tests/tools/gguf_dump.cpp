// gguf_dump FILE: the parsed header of a GGUF file as JSON, so that Python can compare it with an oracle.
// Floats that JSON lacks are the strings "nan", "inf", "-inf".
#include <cmath>
#include <iostream>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "formats/gguf.hpp"
#include "formats/gguf_types.hpp"

namespace {

using headrace::StringArray;
using headrace::formats::Gguf;
using headrace::formats::GgufArray;
using headrace::formats::GgufType;
using nlohmann::json;

template <class T>
json number(T value) {
  if constexpr (std::floating_point<T>) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  }
  return value;
}

json array(const GgufArray& array) {
  json items = json::array();
  if (const auto* strings = std::get_if<StringArray>(&array.items)) {
    for (std::size_t i = 0; i < strings->size(); ++i) items.push_back((*strings)[i]);
  } else if (const auto* arrays = std::get_if<std::vector<GgufArray>>(&array.items)) {
    for (const GgufArray& inner : *arrays) items.push_back(::array(inner));
  } else {
    const auto& bytes = std::get<std::vector<std::byte>>(array.items);
    headrace::formats::visit_gguf_number(array.element, [&](auto kind) {
      for (std::size_t i = 0; i < array.count; ++i) {
        const auto value = headrace::formats::load_number<decltype(kind)>(bytes, i);
        items.push_back(array.element == GgufType::boolean ? json(value != 0) : number(value));
      }
    });
  }
  return items;
}

json dump(const Gguf& gguf) {
  json metadata = json::array();
  for (const auto& entry : gguf.entries()) {
    json item = {{"key", entry.key}, {"offset", entry.offset}, {"type", to_string(entry.type)}};
    if (const auto* values = std::get_if<GgufArray>(&entry.value)) {
      item["element"] = to_string(values->element);
      item["value"] = array(*values);
    } else {
      std::visit(
          [&](const auto& value) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, GgufArray>) item["value"] = number(value);
          },
          entry.value);
    }
    metadata.push_back(std::move(item));
  }
  json tensors = json::array();
  for (const auto& tensor : gguf.tensors()) {
    tensors.push_back({{"name", tensor.name},
                       {"dimensions", tensor.dimensions},
                       {"elements", tensor.elements},
                       {"type", tensor.gguf_type},
                       {"format", tensor.format == nullptr ? json() : json(tensor.format->name)},
                       {"offset", tensor.offset},
                       {"bytes", tensor.bytes ? json(*tensor.bytes) : json()}});
  }
  return {{"version", gguf.version()},
          {"alignment", gguf.alignment()},
          {"data_offset", gguf.data_offset()},
          {"metadata", std::move(metadata)},
          {"tensors", std::move(tensors)}};
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) headrace::fail<headrace::UsageError>("gguf_dump FILE");
    const headrace::File file(argv[1]);
    std::cout << dump(Gguf::read(file)).dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
    return std::cout.good() ? 0 : 4;
  } catch (const headrace::Error& error) {
    std::cerr << error.what() << '\n';
    return static_cast<int>(error.code());
  }
}
