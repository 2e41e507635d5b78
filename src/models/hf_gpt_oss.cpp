#include "models/hf_gpt_oss.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/quote.hpp"

namespace headrace::models {

namespace {

using Place = formats::SafetensorsFolder::Place;

constexpr std::string_view infix = ".mlp.experts.";
/// Of a batch of rows that is read at once: a part of the 8 MB that a thread may stage.
constexpr std::uint64_t batch_bytes = std::uint64_t{1} << 20;

[[noreturn]] void refuse(const Place& place, std::string_view expected) {
  fail<InputError>("{}: tensor {}: expected {}, found {} [{}]", place.file->path(),
                   headrace::quoted(place.tensor->name), expected, place.tensor->dtype,
                   fmt::join(place.tensor->shape, ", "));
}

/// Makes whole rows: make(first, count, out) fills count rows from `first` of all experts' rows.
template <class Make>
void read_rows(std::uint64_t offset, std::span<std::byte> out, std::uint64_t row_bytes, const Make& make) {
  const std::uint64_t end = offset + out.size();
  std::vector<std::byte> rows;
  const std::uint64_t most = std::max<std::uint64_t>(batch_bytes / row_bytes, 1);
  for (std::uint64_t first = offset / row_bytes; first * row_bytes < end;) {
    const std::uint64_t last = (end + row_bytes - 1) / row_bytes;
    const std::uint64_t count = std::min(most, last - first);
    rows.resize(static_cast<std::size_t>(count * row_bytes));
    make(first, count, std::span(rows));
    const std::uint64_t from = std::max(offset, first * row_bytes);
    const std::uint64_t to = std::min(end, (first + count) * row_bytes);
    std::memcpy(out.data() + (from - offset), rows.data() + (from - first * row_bytes),
                static_cast<std::size_t>(to - from));
    first += count;
  }
}

/// Element (x, row, column) of [X, rows, columns] at expert * x + row_step * row + column_step * column + start of a
/// tensor of floats; row_step is small, so that a run of rows lies together.
struct Strides {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t expert = 0;
  std::uint64_t row_step = 0;
  std::uint64_t column_step = 0;
  std::uint64_t start = 0;
};

stream::ShardedStore::Reader gather(const Place& place, const Strides& s) {
  const auto size = static_cast<std::uint64_t>(place.tensor->format->block_bytes);
  return [place, s, size](std::uint64_t offset, std::span<std::byte> out) {
    std::vector<std::byte> run;
    read_rows(offset, out, s.columns * size, [&](std::uint64_t first, std::uint64_t count, std::span<std::byte> rows) {
      for (std::uint64_t done = 0; done < count;) {
        const std::uint64_t expert = (first + done) / s.rows;
        const std::uint64_t row = (first + done) % s.rows;
        const std::uint64_t some = std::min(count - done, s.rows - row);  // of this expert
        run.resize(static_cast<std::size_t>(((some - 1) * s.row_step + 1) * size));
        for (std::uint64_t column = 0; column < s.columns; ++column) {
          const std::uint64_t at = expert * s.expert + row * s.row_step + column * s.column_step + s.start;
          place.file->read(place.tensor->offset + at * size, run);
          for (std::uint64_t i = 0; i < some; ++i) {
            std::memcpy(rows.data() + ((done + i) * s.columns + column) * size, run.data() + i * s.row_step * size,
                        static_cast<std::size_t>(size));
          }
        }
        done += some;
      }
    });
  };
}

/// 32 codes of MXFP4: there the codes 2 i and 2 i + 1 share byte i, in GGUF's block i and i + 16 do, behind the scale.
void repack_block(const std::byte* codes, std::byte scale, std::byte* block) {
  const auto code = [&](std::size_t i) {
    const auto byte = std::to_integer<unsigned>(codes[i / 2]);
    return i % 2 == 0 ? byte & 15U : byte >> 4;
  };
  block[0] = scale;
  for (std::size_t i = 0; i < 16; ++i) block[1 + i] = static_cast<std::byte>(code(i) | code(i + 16) << 4);
}

/// Rows `step * row + start` of each expert's rows in blocks u8 [X, R, G, 16] and scales u8 [X, R, G].
stream::ShardedStore::Reader repack(const Place& blocks, const Place& scales, std::uint64_t step, std::uint64_t start) {
  const auto source_rows = static_cast<std::uint64_t>(blocks.tensor->shape[1]);
  const auto groups = static_cast<std::uint64_t>(blocks.tensor->shape[2]);
  return [=](std::uint64_t offset, std::span<std::byte> out) {
    const std::uint64_t rows_each = source_rows / step;
    std::vector<std::byte> codes(static_cast<std::size_t>(groups * 16));
    std::vector<std::byte> exponents(static_cast<std::size_t>(groups));
    read_rows(offset, out, groups * 17, [&](std::uint64_t first, std::uint64_t count, std::span<std::byte> rows) {
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t expert = (first + i) / rows_each;
        const std::uint64_t row = expert * source_rows + (first + i) % rows_each * step + start;
        blocks.file->read(blocks.tensor->offset + row * groups * 16, codes);
        scales.file->read(scales.tensor->offset + row * groups, exponents);
        for (std::uint64_t group = 0; group < groups; ++group) {
          repack_block(codes.data() + group * 16, exponents[group], rows.data() + (i * groups + group) * 17);
        }
      }
    });
  };
}

class Deriver {
 public:
  explicit Deriver(const formats::SafetensorsFolder& folder) : folder_(folder) {}

  std::vector<DerivedTensor> derive() {
    for (const auto& [name, place] : folder_.tensors()) {
      if (!is_gpt_oss_expert_tensor(name)) continue;
      const std::size_t at = name.find(infix);
      const std::string_view kind = name.substr(at + infix.size());
      const std::size_t layer = name.substr(0, at).rfind("layers.");
      if (layer == std::string_view::npos) refuse(place, "a name with the number of a layer");
      block_ = fmt::format("blk.{}.", name.substr(layer + 7, at - layer - 7));
      const bool is_down = kind.starts_with("down");
      if (kind.ends_with("_blocks")) {
        add_blocks(place, is_down);
      } else if (kind.ends_with("_bias")) {
        add_bias(place, is_down);
      } else if (!kind.ends_with("_scales")) {
        add_floats(place, is_down);
      }
    }
    return std::move(derived_);
  }

 private:
  void add(std::string_view name, std::vector<std::int64_t> shape, const formats::Format* format,
           stream::ShardedStore::Reader reader) {
    DerivedTensor tensor;
    tensor.name = block_ + std::string(name);
    tensor.bytes = 1;
    for (const std::int64_t size : shape) tensor.bytes *= static_cast<std::uint64_t>(size);  // no more than the source
    tensor.bytes = tensor.bytes / static_cast<std::uint64_t>(format->block_elements) *
                   static_cast<std::uint64_t>(format->block_bytes);
    tensor.shape = std::move(shape);
    tensor.format = format;
    tensor.reader = std::move(reader);
    derived_.push_back(std::move(tensor));
  }

  static void check_floats(const Place& place, std::size_t rank) {
    if (place.tensor->format == nullptr || place.tensor->shape.size() != rank || place.tensor->elements == 0) {
      refuse(place, fmt::format("floats of {} dimensions", rank));
    }
  }

  /// [X, K, N], of which GGUF has [X, N, K].
  void add_floats(const Place& place, bool is_down) {
    check_floats(place, 3);
    const std::vector<std::int64_t>& shape = place.tensor->shape;
    const auto inputs = static_cast<std::uint64_t>(shape[1]);
    const auto outputs = static_cast<std::uint64_t>(shape[2]);
    if (is_down) {
      add("ffn_down_exps.weight", {shape[0], shape[2], shape[1]}, place.tensor->format,
          gather(place, {outputs, inputs, inputs * outputs, 1, outputs, 0}));
      return;
    }
    check_even(place, shape[2]);
    for (const std::uint64_t part : {0U, 1U}) {
      add(part == 0 ? "ffn_gate_exps.weight" : "ffn_up_exps.weight", {shape[0], shape[2] / 2, shape[1]},
          place.tensor->format, gather(place, {outputs / 2, inputs, inputs * outputs, 2, outputs, part}));
    }
  }

  void add_bias(const Place& place, bool is_down) {
    check_floats(place, 2);
    const std::vector<std::int64_t>& shape = place.tensor->shape;
    const auto outputs = static_cast<std::uint64_t>(shape[1]);
    if (is_down) {
      add("ffn_down_exps.bias", shape, place.tensor->format, gather(place, {outputs, 1, outputs, 1, 0, 0}));
      return;
    }
    check_even(place, shape[1]);
    for (const std::uint64_t part : {0U, 1U}) {
      add(part == 0 ? "ffn_gate_exps.bias" : "ffn_up_exps.bias", {shape[0], shape[1] / 2}, place.tensor->format,
          gather(place, {outputs / 2, 1, outputs, 2, 0, part}));
    }
  }

  void add_blocks(const Place& blocks, bool is_down) {
    const std::vector<std::int64_t>& shape = blocks.tensor->shape;
    if (blocks.tensor->dtype != "U8" || shape.size() != 4 || shape[3] != 16 || blocks.tensor->elements == 0) {
      refuse(blocks, "U8 [experts, outputs, groups, 16]");
    }
    std::string name = blocks.tensor->name;
    name.replace(name.size() - 6, 6, "scales");
    const Place scales = folder_.find(name);
    if (scales.tensor == nullptr) refuse(blocks, fmt::format("the tensor {} with it", headrace::quoted(name)));
    if (scales.tensor->dtype != "U8" || scales.tensor->shape != std::vector(shape.begin(), shape.begin() + 3)) {
      refuse(scales, fmt::format("U8 [{}, {}, {}]", shape[0], shape[1], shape[2]));
    }
    const formats::Format* format = formats::find_format("mxfp4");
    require(format != nullptr && format->block_bytes == 17, "mxfp4 has blocks of 17 bytes");
    if (is_down) {
      add("ffn_down_exps.weight", {shape[0], shape[1], shape[2] * 32}, format, repack(blocks, scales, 1, 0));
      return;
    }
    check_even(blocks, shape[1]);
    for (const std::uint64_t part : {0U, 1U}) {
      add(part == 0 ? "ffn_gate_exps.weight" : "ffn_up_exps.weight", {shape[0], shape[1] / 2, shape[2] * 32}, format,
          repack(blocks, scales, 2, part));
    }
  }

  static void check_even(const Place& place, std::int64_t outputs) {
    if (outputs % 2 != 0) refuse(place, "an even number of outputs, gate and up in turn");
  }

  const formats::SafetensorsFolder& folder_;
  std::string block_;  ///< "blk.3."
  std::vector<DerivedTensor> derived_;
};

}  // namespace

bool is_gpt_oss_expert_tensor(std::string_view hf_name) {
  const std::size_t at = hf_name.find(infix);
  if (at == std::string_view::npos) return false;
  std::string_view kind = hf_name.substr(at + infix.size());
  if (kind.starts_with("gate_up_proj")) {
    kind.remove_prefix(12);
  } else if (kind.starts_with("down_proj")) {
    kind.remove_prefix(9);
  } else {
    return false;
  }
  return kind.empty() || kind == "_bias" || kind == "_blocks" || kind == "_scales";
}

std::vector<DerivedTensor> derive_gpt_oss_experts(const formats::SafetensorsFolder& folder) {
  return Deriver(folder).derive();
}

}  // namespace headrace::models
