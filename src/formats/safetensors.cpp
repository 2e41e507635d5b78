// Parses a safetensors header and index. Every number of the file is checked before it is used; see Safetensors.
#include "formats/safetensors.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/quote.hpp"
#include "formats/byte_reader.hpp"
#include "formats/json.hpp"

namespace headrace::formats {

namespace {

constexpr std::uint64_t length_bytes = 8;

struct Dtype {
  std::string_view name;
  std::int64_t bits;
  std::string_view format;  ///< ours, or ""
};

constexpr std::array dtypes = {
    Dtype{"F64", 64, ""},    Dtype{"F32", 32, "f32"},     Dtype{"F16", 16, "f16"},     Dtype{"BF16", 16, "bf16"},
    Dtype{"I64", 64, ""},    Dtype{"I32", 32, ""},        Dtype{"I16", 16, ""},        Dtype{"I8", 8, ""},
    Dtype{"U64", 64, ""},    Dtype{"U32", 32, ""},        Dtype{"U16", 16, ""},        Dtype{"U8", 8, ""},
    Dtype{"BOOL", 8, ""},    Dtype{"C64", 64, ""},        Dtype{"F8_E4M3", 8, ""},     Dtype{"F8_E5M2", 8, ""},
    Dtype{"F8_E8M0", 8, ""}, Dtype{"F8_E4M3FNUZ", 8, ""}, Dtype{"F8_E5M2FNUZ", 8, ""}, Dtype{"F6_E2M3", 6, ""},
    Dtype{"F6_E3M2", 6, ""}, Dtype{"F4", 4, ""},
};

}  // namespace

class SafetensorsParser {
 public:
  explicit SafetensorsParser(const ByteSource& source) : source_(source) { result_.file_name_ = source.name(); }

  Safetensors parse() {
    const std::string header = read_header();
    const nlohmann::json root = parse_json(source_.name(), header);
    const JsonField fields(source_.name(), root);
    fields.require_object();
    for (const auto& [name, value] : root.get_ref<const nlohmann::json::object_t&>()) {
      if (name == "__metadata__") {
        take_metadata(JsonField(source_.name(), value, name));
      } else {
        take_tensor(name, JsonField(source_.name(), value, "tensor " + headrace::quoted(name)));
      }
    }
    check_ranges();
    return std::move(result_);
  }

 private:
  std::string read_header() {
    ByteReader reader(source_, source_.size());
    reader.set_subject("the header");
    const auto length = reader.number<std::uint64_t>("its length");
    if (length > Safetensors::max_header_bytes) {
      reader.fail_at(0, "expected a header of at most {} bytes, found {}; is this a safetensors file?",
                     Safetensors::max_header_bytes, length);
    }
    reader.need(length, 1, "JSON");
    std::string header(static_cast<std::size_t>(length), '\0');
    reader.read(std::as_writable_bytes(std::span(header)), "JSON");
    if (!header.starts_with('{')) {
      reader.fail_at(length_bytes, "expected a JSON object, which starts with '{{', found {}",
                     headrace::quoted(std::string_view(header).substr(0, 16)));
    }
    data_begin_ = length_bytes + length;
    data_bytes_ = source_.size() - data_begin_;
    return header;
  }

  void take_metadata(const JsonField& field) {
    field.require_object();
    for (const auto& [key, value] : field.json().get_ref<const nlohmann::json::object_t&>()) {
      if (!value.is_string()) field.at(key).refuse("a string");
      result_.metadata_.emplace(key, value.get_ref<const std::string&>());
    }
  }

  void take_tensor(const std::string& name, const JsonField& field) {
    SafetensorsTensor tensor;
    tensor.name = name;
    const JsonField dtype = field.at("dtype");
    tensor.dtype = dtype.string();
    const auto known = std::ranges::find(dtypes, std::string_view(tensor.dtype), &Dtype::name);
    if (known == dtypes.end()) dtype.refuse("a dtype of the safetensors format");
    if (!known->format.empty()) tensor.format = find_format(known->format);
    take_shape(tensor, field.at("shape"));
    const std::uint64_t bytes = expected_bytes(tensor, known->bits, field.at("shape"));

    const JsonField offsets = field.at("data_offsets");
    if (offsets.size() != 2) offsets.refuse("two offsets, [begin, end]");
    const std::uint64_t begin = offsets[0].u64();
    const std::uint64_t end = offsets[1].u64();
    if (begin > end) fail_range(offsets, "begin <= end", begin, end);
    if (end > data_bytes_) {
      fail_range(offsets, fmt::format("an end within the {} bytes of data", data_bytes_), begin, end);
    }
    if (end - begin != bytes) {
      fail_range(offsets, fmt::format("{} bytes, as shape and dtype {} say", bytes, tensor.dtype), begin, end);
    }
    tensor.offset = data_begin_ + begin;
    tensor.bytes = bytes;
    result_.tensors_.push_back(std::move(tensor));
  }

  [[noreturn]] static void fail_range(const JsonField& offsets, const std::string& expected, std::uint64_t begin,
                                      std::uint64_t end) {
    fail<InputError>("{}: {}: expected {}, found [{}, {}]", offsets.file(), offsets.path(), expected, begin, end);
  }

  static void take_shape(SafetensorsTensor& tensor, const JsonField& shape) {
    if (shape.size() > Safetensors::max_dimensions) {
      shape.refuse(fmt::format("at most {} dimensions", Safetensors::max_dimensions));
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::uint64_t dimension = shape[i].u64();
      const auto elements = std::in_range<std::int64_t>(dimension)
                                ? checked_mul(tensor.elements, static_cast<std::int64_t>(dimension))
                                : std::nullopt;
      if (!elements) shape[i].refuse("fewer than 2^63 elements in all");
      tensor.shape.push_back(static_cast<std::int64_t>(dimension));
      tensor.elements = *elements;
    }
  }

  static std::uint64_t expected_bytes(const SafetensorsTensor& tensor, std::int64_t bits, const JsonField& shape) {
    const auto total = checked_mul(tensor.elements, bits);
    if (!total) shape.refuse(fmt::format("fewer than 2^63 bits, of {} each", bits));
    if (*total % 8 != 0) shape.refuse(fmt::format("whole bytes of {}", tensor.dtype));
    return static_cast<std::uint64_t>(*total / 8);
  }

  /// Checks that the tensors, in the order of the data, are all of it: no overlap and no hole.
  void check_ranges() const {
    const std::vector<SafetensorsTensor>& tensors = result_.tensors_;
    std::vector<std::size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(tensors[i].offset, tensors[i].bytes); });
    std::uint64_t end = data_begin_;
    std::string before = "the header";
    for (const std::size_t i : order) {
      const SafetensorsTensor& tensor = tensors[i];
      if (tensor.offset != end) {
        fail<InputError>("{}: tensor {}: data_offsets: expected data right behind {}, which ends at {}, found {} at {}",
                         source_.name(), headrace::quoted(tensor.name), before, end - data_begin_,
                         tensor.offset < end ? "an overlap" : "a hole before it", tensor.offset - data_begin_);
      }
      end += tensor.bytes;
      before = "tensor " + headrace::quoted(tensor.name);
    }
    if (end != source_.size()) {
      fail<InputError>("{}: expected the file to end at offset {}, where {} ends, found it to end at {}",
                       source_.name(), end, before, source_.size());
    }
  }

  const ByteSource& source_;
  std::uint64_t data_begin_ = 0;
  std::uint64_t data_bytes_ = 0;
  Safetensors result_;
};

Safetensors Safetensors::read(const ByteSource& source) { return SafetensorsParser(source).parse(); }

const SafetensorsTensor* Safetensors::find_tensor(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors_, name, {}, &SafetensorsTensor::name);
  return found == tensors_.end() || found->name != name ? nullptr : &*found;
}

std::map<std::string, std::string, std::less<>> parse_safetensors_index(const std::string& name,
                                                                        std::string_view text) {
  const nlohmann::json root = parse_json(name, text);
  const JsonField map = JsonField(name, root).at("weight_map");
  map.require_object();
  std::map<std::string, std::string, std::less<>> files;
  for (const auto& [tensor, value] : map.json().get_ref<const nlohmann::json::object_t&>()) {
    const JsonField field = map.at(tensor);
    const std::string& file = field.string();
    // Only a plain name: a path could lead out of the directory.
    if (file.empty() || file == "." || file == ".." || file.size() > 255 ||
        file.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
      field.refuse("the plain name of a file beside it");
    }
    files.emplace(tensor, file);
  }
  return files;
}

}  // namespace headrace::formats
