#include "formats/gguf.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "base/quote.hpp"
#include "formats/gguf_types.hpp"

namespace headrace::formats {

namespace {

/// The item of that name, by binary search over sorted indices.
template <class Item>
const Item* find_by_name(const std::vector<Item>& items, const std::vector<std::size_t>& sorted, std::string_view name,
                         std::string Item::* member) {
  const auto found = std::ranges::lower_bound(sorted, name, std::less<>(),
                                              [&](std::size_t i) -> std::string_view { return items[i].*member; });
  return found == sorted.end() || items[*found].*member != name ? nullptr : &items[*found];
}

std::string describe(const GgufEntry& entry) {
  return std::visit(
      [&](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return fmt::format("the string {}", quoted(value));
        } else if constexpr (std::is_same_v<T, GgufArray>) {
          return fmt::format("an array of {} {}", value.count, to_string(value.element));
        } else {
          return fmt::format("the {} {}", to_string(entry.type), value);
        }
      },
      entry.value);
}

}  // namespace

std::string_view to_string(GgufType type) {
  static constexpr std::array<std::string_view, gguf_type_count> names = {
      "u8", "i8", "u16", "i16", "u32", "i32", "f32", "boolean", "string", "array", "u64", "i64", "f64"};
  const auto index = static_cast<std::size_t>(type);
  return index < names.size() ? names[index] : "unknown";
}

std::string gguf_type_name(std::uint32_t gguf_type) {
  if (const Format* format = find_format_by_gguf_type(gguf_type)) {
    return fmt::format("{} (GGUF type {})", format->name, gguf_type);
  }
  // Names only, so that a message says what a user knows from the file's name. Ids without a name were withdrawn.
  static constexpr std::array<std::string_view, 43> names = {
      "f32",   "f16",    "q4_0",  "q4_1", "",     "",        "q5_0",   "q5_1",    "q8_0",  "q8_1",   "q2_k",
      "q3_k",  "q4_k",   "q5_k",  "q6_k", "q8_k", "iq2_xxs", "iq2_xs", "iq3_xxs", "iq1_s", "iq4_nl", "iq3_s",
      "iq2_s", "iq4_xs", "i8",    "i16",  "i32",  "i64",     "f64",    "iq1_m",   "bf16",  "",       "",
      "",      "tq1_0",  "tq2_0", "",     "",     "",        "mxfp4",  "nvfp4",   "q1_0",  "q2_0"};
  const std::string_view name = gguf_type < names.size() ? names[gguf_type] : "";
  return name.empty() ? fmt::format("GGUF type {}", gguf_type) : fmt::format("{} (GGUF type {})", name, gguf_type);
}

const GgufEntry* Gguf::find(std::string_view key) const {
  return find_by_name(entries_, entries_by_key_, key, &GgufEntry::key);
}

const GgufEntry& Gguf::entry(std::string_view key, std::string_view expected) const {
  const GgufEntry* found = find(key);
  if (found == nullptr) {
    fail<InputError>("{}: metadata {} is missing: expected {}", file_name_, quoted(key), expected);
  }
  return *found;
}

void Gguf::fail_type(const GgufEntry& entry, std::string_view expected) const {
  fail<InputError>("{}: metadata {} at offset {}: expected {}, found {}", file_name_, quoted(entry.key), entry.offset,
                   expected, describe(entry));
}

const std::string& Gguf::string(std::string_view key) const {
  constexpr std::string_view expected = "a string";
  const GgufEntry& found = entry(key, expected);
  if (const auto* value = std::get_if<std::string>(&found.value)) return *value;
  fail_type(found, expected);
}

std::uint64_t Gguf::u64(std::string_view key) const {
  constexpr std::string_view expected = "an integer >= 0";
  const GgufEntry& found = entry(key, expected);
  if (const auto* value = std::get_if<std::uint64_t>(&found.value)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&found.value); value != nullptr && *value >= 0) {
    return static_cast<std::uint64_t>(*value);
  }
  fail_type(found, expected);
}

std::int64_t Gguf::i64(std::string_view key) const {
  constexpr std::string_view expected = "a signed 64-bit integer";
  const GgufEntry& found = entry(key, expected);
  if (const auto* value = std::get_if<std::int64_t>(&found.value)) return *value;
  if (const auto* value = std::get_if<std::uint64_t>(&found.value);
      value != nullptr && std::in_range<std::int64_t>(*value)) {
    return static_cast<std::int64_t>(*value);
  }
  fail_type(found, expected);
}

float Gguf::f32(std::string_view key) const {
  constexpr std::string_view expected = "an f32 or f64";
  const GgufEntry& found = entry(key, expected);
  if (const auto* value = std::get_if<double>(&found.value)) return static_cast<float>(*value);
  fail_type(found, expected);
}

bool Gguf::boolean(std::string_view key) const {
  constexpr std::string_view expected = "a boolean";
  const GgufEntry& found = entry(key, expected);
  if (const auto* value = std::get_if<bool>(&found.value)) return *value;
  fail_type(found, expected);
}

std::string Gguf::string(std::string_view key, std::string_view fallback) const {
  return has(key) ? string(key) : std::string(fallback);
}
std::uint64_t Gguf::u64(std::string_view key, std::uint64_t fallback) const { return has(key) ? u64(key) : fallback; }
std::int64_t Gguf::i64(std::string_view key, std::int64_t fallback) const { return has(key) ? i64(key) : fallback; }
float Gguf::f32(std::string_view key, float fallback) const { return has(key) ? f32(key) : fallback; }
bool Gguf::boolean(std::string_view key, bool fallback) const { return has(key) ? boolean(key) : fallback; }

const GgufArray& Gguf::array(std::string_view key, std::string_view expected) const {
  const GgufEntry& found = entry(key, expected);
  if (const auto* value = std::get_if<GgufArray>(&found.value)) return *value;
  fail_type(found, expected);
}

const StringArray& Gguf::strings(std::string_view key) const {
  constexpr std::string_view expected = "an array of strings";
  const auto* strings = std::get_if<StringArray>(&array(key, expected).items);
  if (strings == nullptr) fail_type(*find(key), expected);
  return *strings;
}

std::vector<float> Gguf::floats(std::string_view key) const {
  constexpr std::string_view expected = "an array of f32 or f64";
  const GgufArray& found = array(key, expected);
  if (found.element != GgufType::f32 && found.element != GgufType::f64) fail_type(*find(key), expected);
  const auto& bytes = std::get<std::vector<std::byte>>(found.items);
  std::vector<float> values(static_cast<std::size_t>(found.count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = found.element == GgufType::f32 ? load_number<float>(bytes, i)
                                               : static_cast<float>(load_number<double>(bytes, i));
  }
  return values;
}

std::vector<std::int64_t> Gguf::integers(std::string_view key) const {
  constexpr std::string_view expected = "an array of integers that fit an i64";
  const GgufArray& found = array(key, expected);
  const auto* bytes = std::get_if<std::vector<std::byte>>(&found.items);
  if (bytes == nullptr || found.element == GgufType::boolean) fail_type(*find(key), expected);
  std::vector<std::int64_t> values(static_cast<std::size_t>(found.count));
  visit_gguf_number(found.element, [&](auto number) {
    using T = decltype(number);
    if constexpr (std::floating_point<T>) {
      fail_type(*find(key), expected);
    } else {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const T value = load_number<T>(*bytes, i);
        if (!std::in_range<std::int64_t>(value)) {
          fail<InputError>("{}: metadata {} at offset {}: item {}: expected an integer that fits an i64, found {}",
                           file_name_, quoted(key), find(key)->offset, i, value);
        }
        values[i] = static_cast<std::int64_t>(value);
      }
    }
  });
  return values;
}

std::vector<bool> Gguf::booleans(std::string_view key) const {
  constexpr std::string_view expected = "an array of booleans";
  const GgufArray& found = array(key, expected);
  if (found.element != GgufType::boolean) fail_type(*find(key), expected);
  const auto& bytes = std::get<std::vector<std::byte>>(found.items);
  std::vector<bool> values(static_cast<std::size_t>(found.count));
  std::transform(bytes.begin(), bytes.end(), values.begin(), [](std::byte byte) { return byte != std::byte{0}; });
  return values;
}

const GgufTensor* Gguf::find_tensor(std::string_view name) const {
  return find_by_name(tensors_, tensors_by_name_, name, &GgufTensor::name);
}

const GgufTensor& Gguf::tensor(std::string_view name) const {
  const GgufTensor* found = find_tensor(name);
  if (found == nullptr) {
    fail<InputError>("{}: tensor {} is missing: expected it among the file's {} tensors", file_name_, quoted(name),
                     tensors_.size());
  }
  return *found;
}

const Format& Gguf::format(const GgufTensor& tensor) const {
  if (tensor.format != nullptr) return *tensor.format;
  std::string known;
  for (const Format& format : format_table()) known += fmt::format("{}{}", known.empty() ? "" : " ", format.name);
  fail<InputError>("{}: tensor {} at offset {}: expected one of the Formats {}, found {}", file_name_,
                   quoted(tensor.name), tensor.info_offset, known, gguf_type_name(tensor.gguf_type));
}

}  // namespace headrace::formats
