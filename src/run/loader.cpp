#include "run/loader.hpp"

#include <algorithm>
#include <atomic>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "formats/format.hpp"
#include "kernels/layout.hpp"

namespace headrace::run {

namespace {

constexpr std::int64_t chunk_bytes = std::int64_t{512} << 10;  ///< what L2 holds between the read and the packing

/// A run of panels of one matrix of a Weight (of a vector: the whole), small enough to stage.
struct Chunk {
  std::size_t weight = 0;
  std::int64_t matrix = 0;
  std::int64_t first_panel = 0;
  std::int64_t last_panel = 0;
  std::uint64_t offset = 0;  ///< of its rows in the store
  std::uint64_t bytes = 0;
};

struct Source {
  const formats::Format* format = nullptr;
  std::optional<kernels::Layout> layout;  ///< of a matrix
  std::int64_t matrices = 1;              ///< X, packed one after the other
  std::int64_t outputs = 1;               ///< N
  std::int64_t inputs = 1;                ///< K
};

Source source_of(const compile::WeightPlan& weight) {
  Source source;
  source.format = formats::find_format(weight.type.encoding);
  require(source.format != nullptr, "a planned Weight has a Format");
  const ir::Shape& shape = weight.type.shape;
  source.inputs = shape.back().constant();
  if (shape.size() >= 2) {
    source.outputs = shape[shape.size() - 2].constant();
    if (shape.size() == 3) source.matrices = shape[0].constant();
    source.layout = kernels::layout_of(*source.format);
    require(source.layout.has_value(), "a planned matrix has a Layout");
  }
  return source;
}

void pack(const kernels::KernelTable& kernels, const Source& source, const Chunk& chunk, const std::byte* rows,
          std::byte* packed) {
  if (!source.layout) {
    source.format->decode(rows, source.inputs / source.format->block_elements,
                          static_cast<float*>(static_cast<void*>(packed)));
    return;
  }
  const std::int64_t panel = chunk.matrix * kernels::panel_count(source.outputs) + chunk.first_panel;
  kernels.pack_panels(*source.format, *source.layout, rows, source.outputs, source.inputs, chunk.first_panel,
                      chunk.last_panel, packed + panel * source.layout->panel_bytes(source.inputs));
}

}  // namespace

LoadedWeights load_weights(const compile::Plan& plan, const stream::WeightStore& store,
                           const kernels::KernelTable& kernels, ThreadPool& threads,
                           const std::function<void(std::uint64_t done, std::uint64_t total)>& progress) {
  LoadedWeights loaded;
  loaded.memory = Buffer(static_cast<std::size_t>(plan.weight_bytes), "weights");
  std::vector<Source> sources;
  std::vector<Chunk> chunks;
  std::uint64_t total = 0;
  std::uint64_t largest = 0;
  std::int64_t place = 0;
  for (std::size_t i = 0; i < plan.weights.size(); ++i) {
    const compile::WeightPlan& weight = plan.weights[i];
    loaded.weights.push_back(loaded.memory.data() + place);
    place += align_up<std::int64_t>(weight.packed_bytes, 64);
    sources.push_back(source_of(weight));
    const Source& source = sources.back();
    const std::int64_t row_bytes = source.format->row_bytes(source.inputs);
    const std::int64_t matrix_bytes = row_bytes * source.outputs;
    const auto expected = static_cast<std::uint64_t>(matrix_bytes * source.matrices);
    if (store.bytes(weight.name) != expected) {
      fail<InputError>("weight {}: expected {} bytes of {}, got {}", weight.name, expected, weight.type.str(),
                       store.bytes(weight.name));
    }
    total += expected;
    const std::int64_t panel_rows = source.layout ? kernels::panel_outputs : source.outputs;
    const std::int64_t panels = ceil_div(source.outputs, panel_rows);
    const std::int64_t step =
        std::max<std::int64_t>(chunk_bytes / std::max<std::int64_t>(row_bytes * panel_rows, 1), 1);
    for (std::int64_t matrix = 0; matrix < source.matrices; ++matrix) {
      for (std::int64_t panel = 0; panel < panels; panel += step) {
        Chunk chunk;
        chunk.weight = i;
        chunk.matrix = matrix;
        chunk.first_panel = panel;
        chunk.last_panel = std::min(panel + step, panels);
        chunk.offset = static_cast<std::uint64_t>(matrix * matrix_bytes + panel * panel_rows * row_bytes);
        chunk.bytes = static_cast<std::uint64_t>(
            (std::min(chunk.last_panel * panel_rows, source.outputs) - panel * panel_rows) * row_bytes);
        largest = std::max(largest, chunk.bytes);
        chunks.push_back(chunk);
      }
    }
  }
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> done{0};
  threads.run([&](int worker, int) {
    const Buffer staging(static_cast<std::size_t>(largest), "staging of weights");
    for (std::size_t i = next++; i < chunks.size(); i = next++) {
      const Chunk& chunk = chunks[i];
      store.read(plan.weights[chunk.weight].name, chunk.offset,
                 std::span(staging.data(), static_cast<std::size_t>(chunk.bytes)));
      pack(kernels, sources[chunk.weight], chunk, staging.data(), loaded.weights[chunk.weight]);
      const std::uint64_t sum = done.fetch_add(chunk.bytes) + chunk.bytes;
      if (worker == 0 && progress) progress(sum, total);
    }
  });
  if (progress) progress(total, total);
  return loaded;
}

}  // namespace headrace::run
