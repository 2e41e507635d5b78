// Parses a GGUF header. Every number of the file is checked before it is used; see Gguf for what is promised.
#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/quote.hpp"
#include "formats/byte_reader.hpp"
#include "formats/gguf.hpp"
#include "formats/gguf_types.hpp"

namespace headrace::formats {

namespace {

constexpr std::uint32_t magic = 0x46554747;  // "GGUF"

// The fewest bytes that one of each takes in a file: they bound counts before anything is allocated.
constexpr std::uint64_t min_entry_bytes = 8 + 4 + 1;       // key length, type, a u8
constexpr std::uint64_t min_tensor_bytes = 8 + 4 + 4 + 8;  // name length, number of dimensions, type, offset
constexpr std::uint64_t min_string_bytes = 8;              // length
constexpr std::uint64_t min_array_bytes = 4 + 8;           // element type, count

/// Indices of `items` sorted by name.
template <class Item>
std::vector<std::size_t> sorted_by_name(const std::vector<Item>& items, std::string Item::* member) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Equal names in the file's order, so that a duplicate is reported at its second place.
  std::ranges::sort(order, std::less<>(),
                    [&](std::size_t i) { return std::pair(std::string_view(items[i].*member), i); });
  return order;
}

/// The second of the first two equal names, or `order.end()`.
template <class Item>
auto find_duplicate(const std::vector<Item>& items, const std::vector<std::size_t>& order, std::string Item::* member) {
  const auto first = std::ranges::adjacent_find(order, std::equal_to<>(),
                                                [&](std::size_t i) -> std::string_view { return items[i].*member; });
  return first == order.end() ? first : first + 1;
}

}  // namespace

class GgufParser {
 public:
  explicit GgufParser(const ByteSource& source) : source_(source), reader_(source, Gguf::max_header_bytes) {
    gguf_.file_name_ = source.name();
  }

  Gguf parse() {
    reader_.set_subject("the header");
    parse_version();
    const auto tensor_count = reader_.number<std::uint64_t>("the number of tensors");
    const auto entry_count = reader_.number<std::uint64_t>("the number of metadata entries");
    reader_.need(entry_count, min_entry_bytes, "metadata");
    reader_.need(tensor_count, min_tensor_bytes, "the tensor table");
    for (std::uint64_t i = 0; i < entry_count; ++i) {
      reader_.set_subject(fmt::format("metadata entry {} of {}", i + 1, entry_count));
      gguf_.entries_.push_back(parse_entry());
    }
    index_entries();
    take_alignment();
    for (std::uint64_t i = 0; i < tensor_count; ++i) {
      reader_.set_subject(fmt::format("tensor {} of {}", i + 1, tensor_count));
      gguf_.tensors_.push_back(parse_tensor());
    }
    index_tensors();
    place_tensors();
    return std::move(gguf_);
  }

 private:
  void parse_version() {
    const auto found_magic = reader_.number<std::uint32_t>("the magic");
    if (found_magic != magic) {
      reader_.fail_at(0, "expected a GGUF file, which starts with 'GGUF', found {}",
                      quoted(std::string_view(reinterpret_cast<const char*>(&found_magic), sizeof found_magic)));
    }
    const auto version = reader_.number<std::uint32_t>("the version");
    if ((version & 0xffff) == 0 && version != 0) {
      reader_.fail_at(4, "expected a little-endian file, found a big-endian one (version {:#010x})", version);
    }
    if (version != 2 && version != 3) reader_.fail_at(4, "expected GGUF version 2 or 3, found {}", version);
    gguf_.version_ = version;
  }

  std::string parse_name(std::string_view what) {
    const std::uint64_t at = reader_.offset();
    const auto bytes = reader_.number<std::uint64_t>(what);
    if (bytes > Gguf::max_name_bytes) {
      reader_.fail_at(at, "{}: expected at most {} bytes, found {}", what, Gguf::max_name_bytes, bytes);
    }
    return parse_characters(bytes, what);
  }

  std::string parse_characters(std::uint64_t bytes, std::string_view what) {
    reader_.need(bytes, 1, what);
    std::string text(static_cast<std::size_t>(bytes), '\0');
    reader_.read(std::as_writable_bytes(std::span(text)), what);
    return text;
  }

  GgufType parse_type(std::string_view what) {
    const std::uint64_t at = reader_.offset();
    const auto type = reader_.number<std::uint32_t>(what);
    if (type >= gguf_type_count) {
      reader_.fail_at(at, "{}: expected a type id below {}, found {}", what, gguf_type_count, type);
    }
    return static_cast<GgufType>(type);
  }

  GgufEntry parse_entry() {
    GgufEntry entry;
    entry.offset = reader_.offset();
    entry.key = parse_name("the key");
    reader_.set_subject(fmt::format("metadata {}", quoted(entry.key)));
    entry.type = parse_type("the type");
    if (entry.type == GgufType::string) {
      const auto bytes = reader_.number<std::uint64_t>("the string's length");
      entry.value = parse_characters(bytes, "the string");
    } else if (entry.type == GgufType::array) {
      entry.value = parse_array(1);
    } else if (entry.type == GgufType::boolean) {
      const std::uint64_t at = reader_.offset();
      entry.value = check_boolean(at, reader_.number<std::uint8_t>("the value"));
    } else {
      visit_gguf_number(entry.type, [&](auto number) {
        using T = decltype(number);
        using Wide = std::conditional_t<std::floating_point<T>, double,
                                        std::conditional_t<std::signed_integral<T>, std::int64_t, std::uint64_t>>;
        entry.value = static_cast<Wide>(reader_.number<T>("the value"));
      });
    }
    return entry;
  }

  bool check_boolean(std::uint64_t at, std::uint8_t value) {
    if (value > 1) reader_.fail_at(at, "expected a boolean, which is 0 or 1, found {}", value);
    return value == 1;
  }

  GgufArray parse_array(int depth) {
    const std::uint64_t at = reader_.offset();
    if (depth > Gguf::max_array_depth) {
      reader_.fail_at(at, "expected arrays nested at most {} deep, found more", Gguf::max_array_depth);
    }
    GgufArray array;
    array.element = parse_type("the array's element type");
    array.count = reader_.number<std::uint64_t>("the array's count");
    if (array.element == GgufType::string) {
      reader_.need(array.count, min_string_bytes, "the array");
      array.items = parse_strings(array.count);
    } else if (array.element == GgufType::array) {
      reader_.need(array.count, min_array_bytes, "the array");
      std::vector<GgufArray> arrays;
      for (std::uint64_t i = 0; i < array.count; ++i) arrays.push_back(parse_array(depth + 1));
      array.items = std::move(arrays);
    } else {
      const std::size_t bytes_each = gguf_number_bytes(array.element);
      reader_.need(array.count, bytes_each, "the array");
      const std::uint64_t values_at = reader_.offset();
      std::vector<std::byte> bytes(static_cast<std::size_t>(array.count * bytes_each));
      reader_.read(bytes, "the array");
      if (array.element == GgufType::boolean) {
        for (std::size_t i = 0; i < bytes.size(); ++i) {
          check_boolean(values_at + i, std::to_integer<std::uint8_t>(bytes[i]));
        }
      }
      array.items = std::move(bytes);
    }
    return array;
  }

  StringArray parse_strings(std::uint64_t count) {
    StringArray strings;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto bytes = reader_.number<std::uint64_t>("the length of an item");
      reader_.need(bytes, 1, "an item");
      char* place = strings.append_uninitialized(static_cast<std::size_t>(bytes));
      reader_.read(std::as_writable_bytes(std::span(place, static_cast<std::size_t>(bytes))), "an item");
    }
    return strings;
  }

  void index_entries() {
    gguf_.entries_by_key_ = sorted_by_name(gguf_.entries_, &GgufEntry::key);
    const auto duplicate = find_duplicate(gguf_.entries_, gguf_.entries_by_key_, &GgufEntry::key);
    if (duplicate == gguf_.entries_by_key_.end()) return;
    const GgufEntry& second = gguf_.entries_[*duplicate];
    reader_.set_subject(fmt::format("metadata {}", quoted(second.key)));
    reader_.fail_at(second.offset, "expected each key once, found it also at offset {}",
                    gguf_.entries_[*(duplicate - 1)].offset);
  }

  void take_alignment() {
    constexpr std::string_view key = "general.alignment";
    const GgufEntry* entry = gguf_.find(key);
    if (entry == nullptr) return;
    if (entry->type != GgufType::u32) gguf_.fail_type(*entry, "a u32");
    const std::uint64_t alignment = std::get<std::uint64_t>(entry->value);
    if (!std::has_single_bit(alignment)) gguf_.fail_type(*entry, "a power of two");
    gguf_.alignment_ = alignment;
  }

  GgufTensor parse_tensor() {
    GgufTensor tensor;
    tensor.info_offset = reader_.offset();
    tensor.name = parse_name("the name");
    reader_.set_subject(fmt::format("tensor {}", quoted(tensor.name)));
    const std::uint64_t rank_at = reader_.offset();
    const auto rank = reader_.number<std::uint32_t>("the number of dimensions");
    if (rank > Gguf::max_dimensions) {
      reader_.fail_at(rank_at, "expected at most {} dimensions, found {}", Gguf::max_dimensions, rank);
    }
    for (std::uint32_t i = 0; i < rank; ++i) parse_dimension(tensor);
    tensor.gguf_type = reader_.number<std::uint32_t>("the type");
    tensor.format = find_format_by_gguf_type(tensor.gguf_type);
    const std::uint64_t offset_at = reader_.offset();
    tensor.offset = reader_.number<std::uint64_t>("the offset");  // from the start of the data until place_tensors
    if (tensor.offset % gguf_.alignment_ != 0) {
      reader_.fail_at(offset_at, "expected an offset that is a multiple of the alignment {}, found {}",
                      gguf_.alignment_, tensor.offset);
    }
    if (tensor.format != nullptr) tensor.bytes = tensor_bytes(tensor);
    return tensor;
  }

  void parse_dimension(GgufTensor& tensor) {
    const std::uint64_t at = reader_.offset();
    const auto dimension = reader_.number<std::uint64_t>("the dimensions");
    const auto elements = std::in_range<std::int64_t>(dimension)
                              ? checked_mul(tensor.elements, static_cast<std::int64_t>(dimension))
                              : std::nullopt;
    if (dimension == 0 || !elements) {
      reader_.fail_at(at, "dimension {}: expected a number above 0 and fewer than 2^63 elements in all, found {}",
                      tensor.dimensions.size(), dimension);
    }
    tensor.dimensions.push_back(static_cast<std::int64_t>(dimension));
    tensor.elements = *elements;
  }

  std::uint64_t tensor_bytes(const GgufTensor& tensor) {
    const Format& format = *tensor.format;
    const std::int64_t row = tensor.dimensions.empty() ? 1 : tensor.dimensions[0];
    if (row % format.block_elements != 0) {
      reader_.fail_at(tensor.info_offset, "expected rows of a multiple of {} elements, as {} has them, found {}",
                      format.block_elements, format.name, row);
    }
    const auto bytes = checked_mul(tensor.elements / format.block_elements, format.block_bytes);
    if (!bytes) {
      reader_.fail_at(tensor.info_offset, "expected fewer than 2^63 bytes, found {} elements of {}", tensor.elements,
                      format.name);
    }
    return static_cast<std::uint64_t>(*bytes);
  }

  void index_tensors() {
    gguf_.tensors_by_name_ = sorted_by_name(gguf_.tensors_, &GgufTensor::name);
    const auto duplicate = find_duplicate(gguf_.tensors_, gguf_.tensors_by_name_, &GgufTensor::name);
    if (duplicate == gguf_.tensors_by_name_.end()) return;
    const GgufTensor& second = gguf_.tensors_[*duplicate];
    reader_.set_subject(fmt::format("tensor {}", quoted(second.name)));
    reader_.fail_at(second.info_offset, "expected each name once, found it also at offset {}",
                    gguf_.tensors_[*(duplicate - 1)].info_offset);
  }

  /// Makes offsets absolute, and checks that every tensor lies in the file and that none overlap.
  void place_tensors() {
    gguf_.data_offset_ = align_up(reader_.offset(), gguf_.alignment_);  // small: both are below 2^32
    for (GgufTensor& tensor : gguf_.tensors_) {
      const auto offset = checked_add(gguf_.data_offset_, tensor.offset);
      const auto end = offset ? checked_add(*offset, min_data_bytes(tensor)) : std::nullopt;
      if (!end) {
        reader_.set_subject(fmt::format("tensor {}", quoted(tensor.name)));
        reader_.fail_at(tensor.info_offset, "expected data within 2^64 bytes, found the offset {} and {} bytes",
                        tensor.offset, min_data_bytes(tensor));
      }
      tensor.offset = *offset;
    }
    std::vector<std::size_t> order(gguf_.tensors_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, std::less<>(), [&](std::size_t i) { return std::pair(gguf_.tensors_[i].offset, i); });
    check_within_file();
    for (std::size_t i = 1; i < order.size(); ++i) {
      check_no_overlap(gguf_.tensors_[order[i - 1]], gguf_.tensors_[order[i]]);
    }
  }

  /// A tensor whose Format is unknown has at least a byte.
  static std::uint64_t min_data_bytes(const GgufTensor& tensor) { return tensor.bytes.value_or(1); }

  void check_within_file() const {
    if (gguf_.tensors_.empty()) return;
    // The one that ends last says how much of a truncated file is missing.
    const auto last = std::ranges::max_element(
        gguf_.tensors_, std::less<>(), [](const GgufTensor& tensor) { return tensor.offset + min_data_bytes(tensor); });
    const std::uint64_t end = last->offset + min_data_bytes(*last);
    if (end <= source_.size()) return;
    fail<InputError>(
        "{}: the file ends at offset {}, tensor {} (listed at offset {}) needs {}{} bytes until {}: {} bytes "
        "are missing",
        source_.name(), source_.size(), quoted(last->name), last->info_offset, last->bytes ? "" : "at least ",
        min_data_bytes(*last), end, end - source_.size());
  }

  void check_no_overlap(const GgufTensor& before, const GgufTensor& after) {
    const std::uint64_t end = before.offset + min_data_bytes(before);
    if (end <= after.offset) return;
    reader_.set_subject(fmt::format("tensor {}", quoted(after.name)));
    reader_.fail_at(after.info_offset, "expected its data after that of tensor {}, which ends at {}, found it at {}",
                    quoted(before.name), end, after.offset);
  }

  const ByteSource& source_;
  ByteReader reader_;
  Gguf gguf_;
};

Gguf Gguf::read(const ByteSource& source) { return GgufParser(source).parse(); }

}  // namespace headrace::formats
