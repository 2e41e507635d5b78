// The joined linears of compile/fuse: every worker prepares few rows for itself (norm, encoding), which costs less than
// a barrier; many rows are prepared together, before one.
#include <algorithm>
#include <vector>

#include "formats/format.hpp"
#include "kernels/adapter.hpp"

namespace headrace::kernels {
namespace {

using ir::ElementType;

/// Elements of all rows up to which each worker prepares them all. Measured (docs/fusion.md): a barrier costs about
/// what 500 elements do on a quiet machine and far more on a busy one.
constexpr std::int64_t alone_elements = 4096;

struct Output {
  Layout layout;
  LinearFunction run = nullptr;
  std::int64_t unit = compile::column_unit;
};

struct LinearsData {
  const KernelTable* table = nullptr;
  bool normalized = false;
  bool encoded = false;
  float epsilon = 0;
  std::vector<Output> outputs;

  [[nodiscard]] bool prepares() const noexcept { return normalized || encoded; }
  [[nodiscard]] std::int64_t row_bytes(std::int64_t width) const noexcept {
    return encoded ? a16_row_bytes(width) : align_up<std::int64_t>(4 * width, 64);
  }
  [[nodiscard]] std::size_t first_weight() const noexcept { return normalized ? 2 : 1; }
};

bool prepares_alone(const View& x) noexcept { return x.dims[0] == 1 || x.dims[0] * x.dims[1] <= alone_elements; }

/// Rows [begin, end) of x as the linears read them, to `out`. `normal`: room for one row, where both steps are taken.
void prepare(const KernelCall& call, Range rows, std::byte* out, float* normal) noexcept {
  const auto& data = data_of<LinearsData>(call);
  const View& x = call.operands[0];
  const std::int64_t width = x.dims[1];
  const std::int64_t stride = data.row_bytes(width);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* in = x.as<const float>() + row * width;
    std::byte* to = out + row * stride;
    if (data.normalized) {
      float* y = data.encoded ? normal : as_array<float>(to);
      data.table->rms_norm(in, width, call.operands[1].as<const float>(), data.epsilon, y, width, width, 1);
      in = y;
    }
    if (data.encoded) data.table->encode_a16(in, width, to, stride, width, 1);
  }
}

void multiply(const KernelCall& call, const std::byte* rows, std::int64_t stride) noexcept {
  const auto& data = data_of<LinearsData>(call);
  const View& x = call.operands[0];
  for (std::size_t i = 0; i < data.outputs.size(); ++i) {
    const Output& output = data.outputs[i];
    const View& w = call.operands[data.first_weight() + i];
    LinearArgs args;
    args.layout = output.layout;
    args.outputs = w.dims[0];
    args.inputs = w.dims[1];
    args.packed = w.data;
    args.rows = x.dims[0];
    args.activations = rows;
    args.activation_stride = stride;
    args.out = call.results[i].as<float>();
    args.out_stride = args.outputs;
    const Range own = own_columns(call, args.outputs, output.unit);
    if (own.size() > 0) output.run(args, own.begin / panel_outputs, ceil_div(own.end, panel_outputs));
  }
}

int linears_phases(const KernelCall& call) noexcept {
  const auto& data = data_of<LinearsData>(call);
  return data.prepares() && call.workers > 1 && !prepares_alone(call.operands[0]) ? 2 : 1;
}

void run_linears(const KernelCall& call) noexcept {
  const auto& data = data_of<LinearsData>(call);
  const View& x = call.operands[0];
  const std::int64_t rows = x.dims[0];
  const std::int64_t width = x.dims[1];
  if (rows == 0) return;
  if (!data.prepares()) return multiply(call, x.data, 4 * width);
  const std::int64_t stride = data.row_bytes(width);
  auto* normal = as_array<float>(call.scratch.data());
  if (prepares_alone(x)) {
    std::byte* own = call.scratch.data() + align_up<std::int64_t>(4 * width, 64);
    prepare(call, {0, rows}, own, normal);
    return multiply(call, own, stride);
  }
  if (call.phase == 0) prepare(call, share(call, rows), call.shared.data(), normal);
  if (call.phase == 1 || call.workers == 1) multiply(call, call.shared.data(), stride);
}

std::size_t linears_scratch(const KernelCall& sizes) {
  const auto& data = data_of<LinearsData>(sizes);
  const std::int64_t width = sizes.operands[0].dims[1];
  const std::int64_t alone =
      std::clamp<std::int64_t>(sizes.operands[0].dims[0], 1, std::max<std::int64_t>(alone_elements / width, 1));
  return static_cast<std::size_t>(align_up<std::int64_t>(4 * width, 64) + alone * data.row_bytes(width));
}

std::size_t linears_shared(const KernelCall& sizes) {
  const auto& data = data_of<LinearsData>(sizes);
  const View& x = sizes.operands[0];
  return data.prepares() ? static_cast<std::size_t>(x.dims[0] * data.row_bytes(x.dims[1])) : 0;
}

KernelCost linears_cost(const KernelCall& call) {
  const auto& data = data_of<LinearsData>(call);
  const auto rows = static_cast<double>(call.operands[0].dims[0]);
  KernelCost cost;
  for (std::size_t i = 0; i < data.outputs.size(); ++i) {
    const View& w = call.operands[data.first_weight() + i];
    cost.bytes_read += static_cast<double>(packed_bytes(data.outputs[i].layout, w.dims[0], w.dims[1]));
    (data.encoded ? cost.int8_ops : cost.f32_flops) += 2.0 * rows * static_cast<double>(w.elements());
  }
  if (data.prepares()) cost.f32_flops += rows * static_cast<double>(call.operands[0].dims[1]);
  return cost;
}

std::optional<Kernel> make(const KernelRequest& request, bool normalized) {
  LinearsData data;
  data.table = &request.table;
  data.normalized = normalized;
  if (normalized) data.epsilon = static_cast<float>(request.attribute<double>("epsilon"));
  const auto& encode = request.attribute<std::string>("encode");
  if (!encode.empty() && encode != "a16") return std::nullopt;
  data.encoded = encode == "a16";
  const std::size_t first = data.first_weight();
  for (std::size_t i = 0; i < first; ++i) {
    if (!is_plain(request.operands[i], ElementType::f32)) return std::nullopt;
  }
  if (data.encoded && request.operands[0].shape[1].constant() % a16_block != 0) return std::nullopt;
  const auto& units = request.attribute<std::vector<std::int64_t>>("units");
  Kernel kernel;
  kernel.column_units.assign(request.operands.size(), 0);
  std::string formats;
  for (std::size_t i = first; i < request.operands.size(); ++i) {
    const ir::Type& w = request.operands[i];
    const formats::Format* format = formats::find_format(w.encoding);
    const auto layout = format == nullptr ? std::nullopt : layout_of(*format);
    if (!layout) return std::nullopt;
    const LinearNumerics numerics = linear_numerics(*layout, TokenClass::generated, request.table.isa);
    if (layout->grouped() != data.encoded) return std::nullopt;
    Output output{*layout, request.table.find_linear(*layout, numerics), compile::column_unit};
    if (output.run == nullptr) return std::nullopt;
    if (!units.empty()) output.unit = units[i - first];
    kernel.column_units.push_back(output.unit);
    data.outputs.push_back(output);
    if (formats.empty() || !formats.ends_with(w.encoding)) formats += (formats.empty() ? "" : "+") + w.encoding;
  }
  kernel.name = request.op.name + "." + formats + "." + std::string(isa_name(request.table.isa));
  kernel.numerics = std::string(normalized ? "rms_norm, " : "") + (data.encoded ? "a16, a16_group32" : "two_chains");
  kernel.run = run_linears;
  kernel.cost = linears_cost;
  if (data.prepares()) {
    kernel.phases = 2;
    kernel.call_phases = linears_phases;
    kernel.scratch_bytes = linears_scratch;
    kernel.shared_bytes = linears_shared;
  }
  kernel.data = share_data(std::move(data));
  return kernel;
}

std::optional<Kernel> make_linears(const KernelRequest& request) { return make(request, false); }
std::optional<Kernel> make_norm_linears(const KernelRequest& request) { return make(request, true); }

}  // namespace

CatalogFamily catalog_linears() { return {{"linears", make_linears}, {"norm_linears", make_norm_linears}}; }

}  // namespace headrace::kernels
