// Kernels that work row by row: encoding of activations, norms, softmax, rope.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/adapter.hpp"

namespace headrace::kernels {
namespace {

using ir::ElementType;

struct RowData {
  const KernelTable* table = nullptr;
  float epsilon = 0;
  float magnitude = 1;
  RopePairing pairing = RopePairing::halves;
  std::int64_t unit = 0;  ///< columns that stay with one worker
};

Kernel row_kernel(const KernelRequest& request, std::string numerics, void (*run)(const KernelCall&) noexcept,
                  const RowData& data) {
  Kernel kernel;
  kernel.name = request.op.name + "." + std::string(isa_name(request.table.isa));
  kernel.numerics = std::move(numerics);
  kernel.run = run;
  kernel.data = share_data(data);
  return kernel;
}

void run_encode(const KernelCall& call) noexcept {
  const View& x = call.operands[0];
  const std::int64_t width = row_width(x);
  const std::int64_t stride = a16_row_bytes(width);
  const Range rows = share(call, row_count(x));
  if (rows.size() == 0) return;
  data_of<RowData>(call).table->encode_a16(x.as<const float>() + rows.begin * width, width,
                                           call.results[0].data + rows.begin * stride, stride, width, rows.size());
}

/// The blocks of this worker's columns, of each row: a block's parts lie where its number says.
void run_encode_columns(const KernelCall& call) noexcept {
  const View& x = call.operands[0];
  const std::int64_t width = x.dims[1];
  const std::int64_t stride = a16_row_bytes(width);
  const Range own = own_columns(call, width, compile::column_unit);
  if (own.size() == 0) return;
  data_of<RowData>(call).table->encode_a16_blocks(x.as<const float>(), width, call.results[0].data, stride, width,
                                                  own.begin / a16_block, own.end / a16_block, x.dims[0]);
}

std::optional<Kernel> make_encode(const KernelRequest& request) {
  const ir::Type& x = request.operands[0];
  if (!is_plain(x, ElementType::f32) || request.attribute<std::string>("to") != "a16") return std::nullopt;
  if (x.shape.size() == 2 && divisible_columns(x) > 0) {
    Kernel kernel = row_kernel(request, "a16", run_encode_columns, {.table = &request.table});
    kernel.column_units = {compile::column_unit, compile::column_unit};
    return kernel;
  }
  return row_kernel(request, "a16", run_encode, {.table = &request.table});
}

void run_rms_norm(const KernelCall& call) noexcept {
  const auto& data = data_of<RowData>(call);
  const View& x = call.operands[0];
  const std::int64_t width = x.dims[1];
  const Range rows = share(call, x.dims[0]);
  if (rows.size() == 0) return;
  data.table->rms_norm(x.as<const float>() + rows.begin * width, width, call.operands[1].as<const float>(),
                       data.epsilon, call.results[0].as<float>() + rows.begin * width, width, width, rows.size());
}

std::optional<Kernel> make_rms_norm(const KernelRequest& request) {
  if (!is_plain(request.operands[0], ElementType::f32) || !is_plain(request.operands[1], ElementType::f32)) {
    return std::nullopt;
  }
  const auto epsilon = static_cast<float>(request.attribute<double>("epsilon"));
  return row_kernel(request, "rms_norm", run_rms_norm, {.table = &request.table, .epsilon = epsilon});
}

void run_rope_table(const KernelCall& call) noexcept {
  const auto* positions = call.operands[0].as<const std::int32_t>();
  const auto* frequencies = call.operands[1].as<const float>();
  const std::int64_t pairs = call.operands[1].dims[0];
  const Range rows = share(call, call.operands[0].dims[0]);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    rope_table(positions[row], frequencies, pairs, data_of<RowData>(call).magnitude,
               call.results[0].as<float>() + row * 2 * pairs);
  }
}

std::optional<Kernel> make_rope_table(const KernelRequest& request) {
  if (!is_plain(request.operands[0], ElementType::i32) || !is_plain(request.operands[1], ElementType::f32)) {
    return std::nullopt;
  }
  const auto magnitude = static_cast<float>(request.attribute<double>("magnitude"));
  return row_kernel(request, "rope_table", run_rope_table, {.table = &request.table, .magnitude = magnitude});
}

RopeArgs rope_args(const KernelCall& call, const View& x, const View& table, float* out) noexcept {
  RopeArgs args;
  args.head_width = args.rotated = args.table_stride = x.dims[2];
  args.sines = x.dims[2] / 2;
  args.pairing = data_of<RowData>(call).pairing;
  args.heads = x.dims[1];
  args.in_stride = args.out_stride = x.dims[1] * x.dims[2];
  args.in = x.as<const float>();
  args.out = out;
  args.table = table.as<const float>();
  return args;
}

void run_rope(const KernelCall& call) noexcept {
  const View& x = call.operands[0];
  RopeArgs args = rope_args(call, x, call.operands[1], call.results[0].as<float>());
  // Few rows are divided by heads.
  const bool by_rows = x.dims[0] >= call.workers;
  const Range rows = by_rows ? share(call, x.dims[0]) : Range{0, x.dims[0]};
  const Range own_heads = by_rows ? Range{0, args.heads} : share(call, args.heads);
  args.heads = own_heads.size();
  args.in += own_heads.begin * args.head_width;
  args.out += own_heads.begin * args.head_width;
  if (rows.size() > 0 && args.heads > 0) data_of<RowData>(call).table->rope(args, rows.begin, rows.end);
}

/// Rotates columns of whole heads; of adjacent pairs any even part of a head may be first or last.
void rope_columns(const KernelTable& table, const RopeArgs& all, Range columns, Range rows) noexcept {
  const std::int64_t width = all.head_width;
  while (columns.begin < columns.end) {
    const std::int64_t in_head = columns.begin % width;
    RopeArgs args = all;
    args.in += columns.begin;
    args.out += columns.begin;
    if (in_head == 0 && columns.size() >= width) {
      args.heads = columns.size() / width;
      columns.begin += args.heads * width;
    } else {
      args.heads = 1;
      args.head_width = args.rotated = std::min(width - in_head, columns.size());
      args.table += in_head / 2;
      columns.begin += args.rotated;
    }
    table.rope(args, rows.begin, rows.end);
  }
}

/// Columns that stay with one worker in a rotation: any for adjacent pairs, heads for pairs across them. 0: none do.
std::int64_t rope_unit(const ir::Type& x, RopePairing pairing) {
  if (divisible_columns(x) == 0) return 0;
  if (pairing == RopePairing::adjacent) return compile::column_unit;
  const std::int64_t width = x.shape[2].constant();
  return width % compile::column_unit == 0 ? width : 0;
}

void run_rope_columns(const KernelCall& call) noexcept {
  const auto& data = data_of<RowData>(call);
  const View& x = call.operands[0];
  const RopeArgs args = rope_args(call, x, call.operands[1], call.results[0].as<float>());
  rope_columns(*data.table, args, own_columns(call, columns_of(x), data.unit), {0, x.dims[0]});
}

std::optional<Kernel> make_rope(const KernelRequest& request) {
  if (!is_plain(request.operands[0], ElementType::f32) || !is_plain(request.operands[1], ElementType::f32)) {
    return std::nullopt;
  }
  const bool adjacent = request.attribute<std::string>("pairing") == "adjacent";
  RowData data = {.table = &request.table, .pairing = adjacent ? RopePairing::adjacent : RopePairing::halves};
  data.unit = rope_unit(request.operands[0], data.pairing);
  if (data.unit == 0) return row_kernel(request, "rope", run_rope, data);
  Kernel kernel = row_kernel(request, "rope", run_rope_columns, data);
  kernel.column_units = {data.unit, 0, data.unit};
  return kernel;
}

/// Each worker rotates its columns of a row into scratch and appends them.
void run_rope_append(const KernelCall& call) noexcept {
  const auto& data = data_of<RowData>(call);
  const View& state = call.operands[0];
  const View& x = call.operands[1];
  const auto* sequences = call.operands[3].as<const std::int32_t>();
  const auto* positions = call.operands[4].as<const std::int32_t>();
  const Range own = own_columns(call, columns_of(x), data.unit);
  if (own.size() == 0) return;
  auto* rotated = as_array<float>(call.scratch.data());
  RopeArgs rope = rope_args(call, x, call.operands[2], rotated);
  KvAppendArgs append;
  append.kv_heads = x.dims[1];
  append.head_width = x.dims[2];
  append.first_column = own.begin;
  append.columns = own.size();
  append.k = rotated;
  append.k_offset = state.state.offset;
  for (std::int64_t row = 0; row < x.dims[0]; ++row) {
    std::byte* page = state_page(call, state.state, sequences[row], positions[row]);
    if (page == nullptr) continue;
    rope.in = x.as<const float>() + row * rope.in_stride;
    rope.table = call.operands[2].as<const float>() + row * rope.table_stride;
    rope_columns(*data.table, rope, own, {0, 1});
    const std::int64_t position = positions[row];
    append.pages = &page;
    append.positions = &position;
    data.table->kv_append(append, 0, 1);
  }
}

std::size_t rope_append_scratch(const KernelCall& sizes) {
  return static_cast<std::size_t>(columns_of(sizes.operands[1])) * sizeof(float);
}

std::optional<Kernel> make_rope_append(const KernelRequest& request) {
  const ir::Type& state = request.operands[0];
  const ir::Type& x = request.operands[1];
  if (state.element != ElementType::f16 || state.order != "columns16") return std::nullopt;
  for (const ir::Type& type : request.operands.subspan(1)) {
    if (!is_plain(type)) return std::nullopt;
  }
  const bool adjacent = request.attribute<std::string>("pairing") == "adjacent";
  RowData data = {.table = &request.table, .pairing = adjacent ? RopePairing::adjacent : RopePairing::halves};
  data.unit = rope_unit(x, data.pairing);
  if (data.unit == 0) return std::nullopt;
  Kernel kernel = row_kernel(request, "rope, append.f16", run_rope_append, data);
  kernel.column_units = {data.unit, data.unit, 0, 0, 0, data.unit};
  kernel.scratch_bytes = rope_append_scratch;
  return kernel;
}

/// exp(x - max) with the exponential that all kernels share, divided by its sum, which is taken in order in f64.
void run_softmax(const KernelCall& call) noexcept {
  const auto& data = data_of<RowData>(call);
  const View& x = call.operands[0];
  const std::int64_t width = x.dims[x.rank - 1];
  if (width == 0) return;
  const Range rows = share(call, x.elements() / width);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* in = x.as<const float>() + row * width;
    float* out = call.results[0].as<float>() + row * width;
    float largest = -std::numeric_limits<float>::infinity();
    for (std::int64_t i = 0; i < width; ++i) largest = std::isnan(in[i]) || in[i] > largest ? in[i] : largest;
    for (std::int64_t i = 0; i < width; ++i) out[i] = in[i] - largest;
    data.table->exp(out, out, width);
    double sum = 0;
    for (std::int64_t i = 0; i < width; ++i) sum += static_cast<double>(out[i]);
    for (std::int64_t i = 0; i < width; ++i) out[i] = static_cast<float>(static_cast<double>(out[i]) / sum);
  }
}

std::optional<Kernel> make_softmax(const KernelRequest& request) {
  if (!is_plain(request.operands[0], ElementType::f32)) return std::nullopt;
  return row_kernel(request, "softmax", run_softmax, {.table = &request.table});
}

}  // namespace

CatalogFamily catalog_rows() {
  return {{"encode", make_encode},         {"rms_norm", make_rms_norm}, {"softmax", make_softmax},
          {"rope_table", make_rope_table}, {"rope", make_rope},         {"rope_append", make_rope_append}};
}

}  // namespace headrace::kernels
