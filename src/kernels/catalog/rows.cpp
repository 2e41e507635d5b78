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

std::optional<Kernel> make_encode(const KernelRequest& request) {
  if (!is_plain(request.operands[0], ElementType::f32) || request.attribute<std::string>("to") != "a16") {
    return std::nullopt;
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

void run_rope(const KernelCall& call) noexcept {
  const auto& data = data_of<RowData>(call);
  const View& x = call.operands[0];
  const std::int64_t heads = x.dims[1];
  const std::int64_t width = x.dims[2];
  RopeArgs args;
  args.head_width = args.rotated = args.table_stride = width;
  args.pairing = data.pairing;
  args.in_stride = args.out_stride = heads * width;
  args.table = call.operands[1].as<const float>();
  // Few rows are divided by heads.
  const bool by_rows = x.dims[0] >= call.workers;
  const Range rows = by_rows ? share(call, x.dims[0]) : Range{0, x.dims[0]};
  const Range own_heads = by_rows ? Range{0, heads} : share(call, heads);
  args.heads = own_heads.size();
  args.in = x.as<const float>() + own_heads.begin * width;
  args.out = call.results[0].as<float>() + own_heads.begin * width;
  if (rows.size() > 0 && args.heads > 0) data.table->rope(args, rows.begin, rows.end);
}

std::optional<Kernel> make_rope(const KernelRequest& request) {
  if (!is_plain(request.operands[0], ElementType::f32) || !is_plain(request.operands[1], ElementType::f32)) {
    return std::nullopt;
  }
  const bool adjacent = request.attribute<std::string>("pairing") == "adjacent";
  return row_kernel(request, "rope", run_rope,
                    {.table = &request.table, .pairing = adjacent ? RopePairing::adjacent : RopePairing::halves});
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
  return {{"encode", make_encode},
          {"rms_norm", make_rms_norm},
          {"softmax", make_softmax},
          {"rope_table", make_rope_table},
          {"rope", make_rope}};
}

}  // namespace headrace::kernels
