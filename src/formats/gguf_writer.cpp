#include "formats/gguf_writer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <limits>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <variant>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/quote.hpp"
#include "formats/gguf_types.hpp"

namespace headrace::formats {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

constexpr std::uint32_t version = 3;
constexpr std::uint64_t default_alignment = 32;
constexpr std::string_view alignment_key = "general.alignment";

void put_bytes(std::string& out, std::span<const std::byte> bytes) {
  const auto* begin = static_cast<const char*>(static_cast<const void*>(bytes.data()));
  out.append(begin, bytes.size());
}

template <class T>
  requires(std::integral<T> || std::floating_point<T>)
void put(std::string& out, T number) {
  put_bytes(out, std::as_bytes(std::span(&number, 1)));
}

void put(std::string& out, std::string_view text) {
  put(out, std::uint64_t{text.size()});
  out += text;
}

void put(std::string& out, GgufType type) { put(out, static_cast<std::uint32_t>(type)); }

void put_array(std::string& out, const GgufArray& array) {
  put(out, array.element);
  put(out, array.count);
  if (const auto* strings = std::get_if<StringArray>(&array.items)) {
    require(array.element == GgufType::string && array.count == strings->size(), "GgufWriter: an array of strings");
    for (std::size_t i = 0; i < strings->size(); ++i) put(out, (*strings)[i]);
  } else if (const auto* arrays = std::get_if<std::vector<GgufArray>>(&array.items)) {
    require(array.element == GgufType::array && array.count == arrays->size(), "GgufWriter: an array of arrays");
    for (const GgufArray& inner : *arrays) put_array(out, inner);
  } else {
    const auto& bytes = std::get<std::vector<std::byte>>(array.items);
    require(bytes.size() == array.count * gguf_number_bytes(array.element), "GgufWriter: an array of numbers");
    put_bytes(out, bytes);
  }
}

/// A number of the file's type T out of the wide one that an entry holds.
template <class T>
T narrow(const GgufValue& value) {
  if constexpr (std::floating_point<T>) {
    return static_cast<T>(std::get<double>(value));
  } else {
    using Wide = std::conditional_t<std::signed_integral<T>, std::int64_t, std::uint64_t>;
    const Wide wide = std::get<Wide>(value);
    require(std::in_range<T>(wide), "GgufWriter: a number beyond its type");
    return static_cast<T>(wide);
  }
}

void put_entry(std::string& out, const GgufEntry& entry) {
  put(out, std::string_view(entry.key));
  put(out, entry.type);
  switch (entry.type) {
    case GgufType::string:
      return put(out, std::string_view(std::get<std::string>(entry.value)));
    case GgufType::array:
      return put_array(out, std::get<GgufArray>(entry.value));
    case GgufType::boolean:
      return put(out, static_cast<std::uint8_t>(std::get<bool>(entry.value)));
    default:
      visit_gguf_number(entry.type, [&](auto number) { put(out, narrow<decltype(number)>(entry.value)); });
  }
}

template <class T>
GgufEntry array_entry(std::string_view key, GgufType element, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return {.key = std::string(key),
          .type = GgufType::array,
          .value = GgufArray{element, values.size(), std::vector<std::byte>(bytes.begin(), bytes.end())}};
}

void check_names(const std::string& path, const GgufContents& contents) {
  const auto check = [&](std::unordered_set<std::string_view>& seen, std::string_view what, std::string_view name) {
    if (name.size() > Gguf::max_name_bytes) {
      fail<InputError>("{}: {} {}: expected a name of at most {} bytes, found {}", path, what, quoted(name),
                       Gguf::max_name_bytes, name.size());
    }
    if (!seen.insert(name).second) {
      fail<InputError>("{}: {} {}: expected each name once, found it twice", path, what, quoted(name));
    }
  };
  std::unordered_set<std::string_view> keys;
  std::unordered_set<std::string_view> names;
  for (const GgufEntry& entry : contents.entries) check(keys, "metadata", entry.key);
  for (const GgufNewTensor& tensor : contents.tensors) check(names, "tensor", tensor.name);
}

std::uint64_t alignment_of(const std::string& path, const GgufContents& contents) {
  const auto found = std::ranges::find(contents.entries, alignment_key, &GgufEntry::key);
  if (found == contents.entries.end()) return default_alignment;
  const auto* value = std::get_if<std::uint64_t>(&found->value);
  if (found->type != GgufType::u32 || value == nullptr || !std::has_single_bit(*value)) {
    fail<InputError>("{}: metadata {}: expected a u32 that is a power of two", path, quoted(alignment_key));
  }
  return *value;
}

std::uint64_t bytes_of(const std::string& path, const GgufNewTensor& tensor) {
  require(tensor.format != nullptr, "GgufWriter: a tensor without a Format");
  const Format& format = *tensor.format;
  if (tensor.dimensions.size() > Gguf::max_dimensions) {
    fail<InputError>("{}: tensor {}: expected at most {} dimensions, found {}", path, quoted(tensor.name),
                     Gguf::max_dimensions, tensor.dimensions.size());
  }
  std::int64_t elements = 1;
  for (const std::int64_t dimension : tensor.dimensions) {
    const auto product = checked_mul(elements, dimension);
    if (dimension < 1 || !product) {
      fail<InputError>("{}: tensor {}: expected dimensions above 0 and fewer than 2^63 elements in all, found {}", path,
                       quoted(tensor.name), dimension);
    }
    elements = *product;
  }
  const std::int64_t row = tensor.dimensions.empty() ? 1 : tensor.dimensions[0];
  if (row % format.block_elements != 0) {
    fail<InputError>("{}: tensor {}: expected rows of a multiple of {} elements, as {} has them, found {}", path,
                     quoted(tensor.name), format.block_elements, format.name, row);
  }
  const auto bytes = checked_mul(elements / format.block_elements, format.block_bytes);
  if (!bytes) fail<InputError>("{}: tensor {}: expected fewer than 2^63 bytes", path, quoted(tensor.name));
  return static_cast<std::uint64_t>(*bytes);
}

}  // namespace

GgufEntry gguf_entry(std::string_view key, bool value) {
  return {.key = std::string(key), .type = GgufType::boolean, .value = value};
}
GgufEntry gguf_entry(std::string_view key, std::uint32_t value) {
  return {.key = std::string(key), .type = GgufType::u32, .value = std::uint64_t{value}};
}
GgufEntry gguf_entry(std::string_view key, std::uint64_t value) {
  return {.key = std::string(key), .type = GgufType::u64, .value = value};
}
GgufEntry gguf_entry(std::string_view key, float value) {
  return {.key = std::string(key), .type = GgufType::f32, .value = static_cast<double>(value)};
}
GgufEntry gguf_entry(std::string_view key, std::string_view value) {
  return {.key = std::string(key), .type = GgufType::string, .value = std::string(value)};
}
GgufEntry gguf_entry(std::string_view key, StringArray values) {
  const std::uint64_t count = values.size();
  return {
      .key = std::string(key), .type = GgufType::array, .value = GgufArray{GgufType::string, count, std::move(values)}};
}
GgufEntry gguf_entry(std::string_view key, std::span<const float> values) {
  return array_entry(key, GgufType::f32, values);
}
GgufEntry gguf_entry(std::string_view key, std::span<const std::int32_t> values) {
  return array_entry(key, GgufType::i32, values);
}

void GgufContents::set(GgufEntry entry) {
  const auto found = std::ranges::find(entries, entry.key, &GgufEntry::key);
  if (found == entries.end()) {
    entries.push_back(std::move(entry));
  } else {
    *found = std::move(entry);
  }
}

void GgufContents::remove(std::string_view key) {
  std::erase_if(entries, [&](const auto& e) { return e.key == key; });
}

GgufWriter::GgufWriter(std::string path, const GgufContents& contents) : file_(std::move(path)) {
  check_names(file_.path(), contents);
  const std::uint64_t alignment = alignment_of(file_.path(), contents);
  std::string header = "GGUF";
  put(header, version);
  put(header, std::uint64_t{contents.tensors.size()});
  put(header, std::uint64_t{contents.entries.size()});
  for (const GgufEntry& entry : contents.entries) put_entry(header, entry);
  std::uint64_t end = 0;  // of the data so far, from its start
  for (const GgufNewTensor& tensor : contents.tensors) {
    const auto begin = checked_align_up(end, alignment);
    const auto next = begin ? checked_add(*begin, bytes_of(file_.path(), tensor)) : std::nullopt;
    // Less than 2^62, so that the header and the last alignment cannot carry it over a file's largest offset.
    if (!next || *next >= std::uint64_t{1} << 62) {
      fail<InputError>("{}: tensor {}: expected fewer than 2^62 bytes in all", file_.path(), quoted(tensor.name));
    }
    places_.push_back({*begin, *next});
    end = *next;
    put(header, std::string_view(tensor.name));
    put(header, static_cast<std::uint32_t>(tensor.dimensions.size()));
    for (const std::int64_t dimension : tensor.dimensions) put(header, dimension);
    put(header, tensor.format->gguf_type);
    put(header, *begin);
  }
  if (header.size() > Gguf::max_header_bytes) {
    fail<InputError>("{}: expected a header of at most {} bytes, found {}", file_.path(), Gguf::max_header_bytes,
                     header.size());
  }
  const std::uint64_t data = align_up(std::uint64_t{header.size()}, alignment);
  for (Place& place : places_) place = {place.begin + data, place.end + data};
  // ggml writers pad the last tensor too.
  file_bytes_ = places_.empty() ? header.size() : align_up(places_.back().end, alignment);
  file_.reserve(file_bytes_);
  file_.write(std::as_bytes(std::span(header)));
}

void GgufWriter::pad_to(std::uint64_t offset) {
  static constexpr std::array<std::byte, 4096> zeros{};
  while (file_.size() < offset) {
    file_.write(
        std::span(zeros).first(static_cast<std::size_t>(std::min<std::uint64_t>(zeros.size(), offset - file_.size()))));
  }
}

void GgufWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    require(next_ < places_.size(), "GgufWriter: bytes beyond the last tensor");
    const Place& place = places_[next_];
    pad_to(place.begin);
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), place.end - file_.size()));
    file_.write(bytes.first(count));
    bytes = bytes.subspan(count);
    if (file_.size() == place.end) ++next_;
  }
}

void GgufWriter::finish() {
  require(next_ == places_.size(), "GgufWriter: a tensor's bytes are missing");
  pad_to(file_bytes_);
  file_.commit();
}

}  // namespace headrace::formats
