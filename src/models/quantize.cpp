#include "models/quantize.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/quote.hpp"
#include "formats/gguf_writer.hpp"

namespace headrace::models {

namespace {

using formats::Format;
using formats::Gguf;
using formats::GgufTensor;

/// Numbers that a thread takes at once, a multiple of every Format's block; and pieces of a chunk, between writes.
constexpr std::int64_t piece_elements = std::int64_t{1} << 15;
constexpr std::int64_t chunk_pieces = 128;

/// From here on numbers may be beyond a Format's reach: the largest f16.
constexpr float large = 65504;

/// An element that cannot be encoded.
struct Fault {
  std::int64_t element;
  float number;
  float decoded;
};

/// Sums of a piece, for the error of its tensor and for faults.
struct PieceResult {
  double squared_error = 0;
  double squares = 0;
  double max_error = 0;
  std::optional<Fault> fault;
};

/// What a thread works with.
struct Buffers {
  std::vector<std::byte> in;
  std::vector<float> numbers;
  std::vector<float> decoded;
};

void measure(std::span<const float> numbers, std::span<const float> decoded, PieceResult& result) {
  float largest = 0;
  bool finite = true;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double number = static_cast<double>(numbers[i]);
    const double error = static_cast<double>(decoded[i]) - number;
    result.squared_error += error * error;
    result.squares += number * number;
    result.max_error = std::max(result.max_error, std::fabs(error));
    largest = std::max(largest, std::fabs(numbers[i]));
    finite = finite && std::isfinite(numbers[i]) && std::isfinite(decoded[i]);
  }
  if (finite && largest < large) return;
  for (std::size_t i = 0; i < numbers.size() && !result.fault; ++i) {
    const float number = numbers[i];
    const bool far_off =
        std::fabs(number) == largest && largest >= large && !(std::fabs(decoded[i] - number) <= std::fabs(number) / 2);
    if (!std::isfinite(number) || !std::isfinite(decoded[i]) || far_off) {
      result.fault = Fault{static_cast<std::int64_t>(i), number, decoded[i]};
    }
  }
}

class Quantizer {
 public:
  Quantizer(const File& in, const Gguf& gguf, const std::string& out, const QuantizeOptions& options, Context& context)
      : in_(in), gguf_(gguf), out_(out), options_(options), context_(context) {}

  std::optional<QuantizeReport> run() {
    refuse_parts();
    plan();
    warn_of_requantizing();
    const std::size_t workers = static_cast<std::size_t>(context_.threads().workers());
    const MemoryReservation reservation = context_.memory().reserve(
        (static_cast<std::uint64_t>(chunk_pieces) + 3 * workers) * piece_elements * sizeof(float),
        "the numbers that are encoded at once");
    buffers_.resize(workers);
    formats::GgufWriter writer(out_, contents());
    report_.in_bytes = in_.size();
    report_.out_bytes = writer.file_bytes();
    for (QuantizedTensor& tensor : report_.tensors) {
      const GgufTensor& source = gguf_.tensor(tensor.name);
      const bool goes_on = tensor.from == tensor.to ? copy(source, writer) : encode(source, tensor, writer);
      if (!goes_on) return std::nullopt;
    }
    writer.finish();
    return std::move(report_);
  }

 private:
  void refuse_parts() const {
    constexpr std::string_view key = "split.count";
    if (gguf_.has(key) && gguf_.u64(key) > 1) {
      fail<InputError>("{}: expected a whole model, found one of {} parts: join them first", in_.path(),
                       gguf_.u64(key));
    }
  }

  void plan() {
    const RecipeModel model = recipe_model(gguf_);
    for (const GgufTensor& tensor : gguf_.tensors()) {
      const FormatChoice choice = choose_format(*options_.recipe, options_.pure, model, gguf_, tensor);
      require(choice.format->encode != nullptr, "quantize: a Format without an encoder");
      total_bytes_ += *tensor.bytes;
      report_.tensors.push_back({.name = tensor.name,
                                 .elements = tensor.elements,
                                 .from = &gguf_.format(tensor),
                                 .to = choice.format,
                                 .wanted = choice.wanted,
                                 .bytes = static_cast<std::uint64_t>(choice.format->row_bytes(tensor.elements)),
                                 .error = std::nullopt});
    }
  }

  void warn_of_requantizing() {
    for (const QuantizedTensor& tensor : report_.tensors) {
      const bool few_bits = tensor.from->kind == Format::Kind::grouped && tensor.from->code_bits < 8;
      if (few_bits && tensor.to != tensor.from && tensor.to->kind == Format::Kind::grouped) {
        context_.log().warn(
            "{}: its tensors are {} already, and what they lost is not in the reported errors; better start from a "
            "file "
            "of f16 or bf16",
            in_.path(), tensor.from->name);
        return;
      }
    }
  }

  [[nodiscard]] formats::GgufContents contents() const {
    formats::GgufContents contents;
    contents.entries.assign(gguf_.entries().begin(), gguf_.entries().end());
    // They tell of how the old file was made.
    std::erase_if(contents.entries, [](const auto& entry) { return entry.key.starts_with("quantize.imatrix."); });
    contents.set(formats::gguf_entry("general.file_type", options_.recipe->file_type));
    contents.set(formats::gguf_entry("general.quantization_version", std::uint32_t{2}));
    for (const QuantizedTensor& tensor : report_.tensors) {
      contents.tensors.push_back({tensor.name, gguf_.tensor(tensor.name).dimensions, tensor.to});
    }
    return contents;
  }

  bool advance(std::uint64_t bytes) {
    done_bytes_ += bytes;
    return !options_.progress || options_.progress(done_bytes_, total_bytes_);
  }

  bool copy(const GgufTensor& source, formats::GgufWriter& writer) {
    constexpr std::uint64_t most = piece_elements * chunk_pieces;
    for (std::uint64_t begin = 0; begin < *source.bytes; begin += most) {
      chunk_.resize(std::min(most, *source.bytes - begin));
      in_.read(source.offset + begin, chunk_);
      writer.write(chunk_);
      if (!advance(chunk_.size())) return false;
    }
    return true;
  }

  bool encode(const GgufTensor& source, QuantizedTensor& tensor, formats::GgufWriter& writer) {
    PieceResult sum;
    for (std::int64_t begin = 0; begin < source.elements; begin += piece_elements * chunk_pieces) {
      const std::int64_t count = std::min(source.elements - begin, piece_elements * chunk_pieces);
      encode_chunk(source, tensor, begin, count);
      // In the order of the pieces, so that sums do not depend on the threads.
      for (std::size_t i = 0; i < pieces_.size(); ++i) {
        const PieceResult& piece = pieces_[i];
        if (piece.fault) fail_at(tensor, begin + static_cast<std::int64_t>(i) * piece_elements, *piece.fault);
        sum.squared_error += piece.squared_error;
        sum.squares += piece.squares;
        sum.max_error = std::max(sum.max_error, piece.max_error);
      }
      writer.write(chunk_);
      if (!advance(static_cast<std::uint64_t>(tensor.from->row_bytes(count)))) return false;
    }
    tensor.error = EncodeError{sum.squares > 0 ? std::sqrt(sum.squared_error / sum.squares) : 0, sum.max_error};
    return true;
  }

  /// Encodes `count` numbers from `begin` to chunk_; threads take the next piece as they come.
  void encode_chunk(const GgufTensor& source, const QuantizedTensor& tensor, std::int64_t begin, std::int64_t count) {
    chunk_.resize(static_cast<std::size_t>(tensor.to->row_bytes(count)));
    const std::int64_t pieces = (count + piece_elements - 1) / piece_elements;
    pieces_.assign(static_cast<std::size_t>(pieces), {});
    std::atomic<std::int64_t> next{0};
    context_.threads().run([&](int worker, int /*workers*/) {
      Buffers& buffers = buffers_[static_cast<std::size_t>(worker)];
      for (std::int64_t piece = next.fetch_add(1); piece < pieces; piece = next.fetch_add(1)) {
        const std::int64_t at = piece * piece_elements;
        encode_piece(source, tensor, begin + at, std::min(piece_elements, count - at),
                     chunk_.data() + tensor.to->row_bytes(at), buffers, pieces_[static_cast<std::size_t>(piece)]);
      }
    });
  }

  void encode_piece(const GgufTensor& source, const QuantizedTensor& tensor, std::int64_t begin, std::int64_t count,
                    std::byte* out, Buffers& buffers, PieceResult& result) const {
    buffers.in.resize(static_cast<std::size_t>(tensor.from->row_bytes(count)));
    buffers.numbers.resize(static_cast<std::size_t>(count));
    buffers.decoded.resize(static_cast<std::size_t>(count));
    in_.read(source.offset + static_cast<std::uint64_t>(tensor.from->row_bytes(begin)), buffers.in);
    tensor.from->decode(buffers.in.data(), count / tensor.from->block_elements, buffers.numbers.data());
    tensor.to->encode(buffers.numbers.data(), count / tensor.to->block_elements, out);
    tensor.to->decode(out, count / tensor.to->block_elements, buffers.decoded.data());
    measure(buffers.numbers, buffers.decoded, result);
  }

  [[noreturn]] void fail_at(const QuantizedTensor& tensor, std::int64_t piece_begin, const Fault& fault) const {
    const std::int64_t element = piece_begin + fault.element;
    if (!std::isfinite(fault.number)) {
      fail<InputError>("{}: tensor {}: element {}: expected a finite number, found {:g}", in_.path(),
                       headrace::quoted(tensor.name), element, fault.number);
    }
    fail<InputError>(
        "{}: tensor {}: element {}: expected a number that {} can hold, found {:g}, which would become {:g}",
        in_.path(), headrace::quoted(tensor.name), element, tensor.to->name, fault.number, fault.decoded);
  }

  const File& in_;
  const Gguf& gguf_;
  const std::string& out_;
  const QuantizeOptions& options_;
  Context& context_;
  QuantizeReport report_;
  std::uint64_t total_bytes_ = 0;
  std::uint64_t done_bytes_ = 0;
  std::vector<std::byte> chunk_;
  std::vector<PieceResult> pieces_;
  std::vector<Buffers> buffers_;
};

}  // namespace

std::optional<QuantizeReport> quantize(const File& in, const Gguf& gguf, const std::string& out,
                                       const QuantizeOptions& options, Context& context) {
  require(options.recipe != nullptr, "quantize: no recipe");
  return Quantizer(in, gguf, out, options, context).run();
}

}  // namespace headrace::models
