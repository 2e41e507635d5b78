// linear and the embedding of tokens, on Weights in their Layouts.
#include <cstring>

#include "formats/format.hpp"
#include "kernels/adapter.hpp"

namespace headrace::kernels {
namespace {

struct LinearData {
  Layout layout;
  LinearFunction run = nullptr;
  bool encoded = false;
};

void run_linear(const KernelCall& call) noexcept {
  const auto& data = data_of<LinearData>(call);
  const View& x = call.operands[0];
  const View& w = call.operands[1];
  LinearArgs args;
  args.layout = data.layout;
  args.outputs = w.dims[0];
  args.inputs = w.dims[1];
  args.packed = w.data;
  args.rows = x.dims[0];
  args.activations = x.data;
  args.activation_stride = data.encoded ? a16_row_bytes(args.inputs) : 4 * args.inputs;
  args.out = call.results[0].as<float>();
  args.out_stride = args.outputs;
  const Range own = own_columns(call, args.outputs, compile::column_unit);
  if (own.size() > 0 && args.rows > 0) data.run(args, own.begin / panel_outputs, ceil_div(own.end, panel_outputs));
}

KernelCost linear_cost(const KernelCall& call) {
  const auto& data = data_of<LinearData>(call);
  const std::int64_t rows = call.operands[0].dims[0];
  const View& w = call.operands[1];
  KernelCost cost;
  cost.bytes_read = static_cast<double>(packed_bytes(data.layout, w.dims[0], w.dims[1]));
  const double products = 2.0 * static_cast<double>(rows) * static_cast<double>(w.elements());
  (data.encoded ? cost.int8_ops : cost.f32_flops) = products;
  return cost;
}

std::optional<Layout> layout_of_weight(const ir::Type& type) {
  if (!type.is_weight() || type.shape.size() != 2) return std::nullopt;
  const formats::Format* format = formats::find_format(type.encoding);
  return format == nullptr ? std::nullopt : layout_of(*format);
}

std::optional<Kernel> make_linear(const KernelRequest& request) {
  const ir::Type& x = request.operands[0];
  const auto layout = layout_of_weight(request.operands[1]);
  if (!layout) return std::nullopt;
  const LinearNumerics numerics = linear_numerics(*layout, TokenClass::generated, request.table.isa);
  LinearData data;
  data.layout = *layout;
  data.encoded = numerics != LinearNumerics::two_chains;
  if (data.encoded ? x.encoding != "a16" : !x.is_tensor()) return std::nullopt;
  data.run = request.table.find_linear(*layout, numerics);
  if (data.run == nullptr) return std::nullopt;
  Kernel kernel;
  kernel.name = "linear." + request.operands[1].encoding + "." + std::string(isa_name(request.table.isa));
  kernel.numerics = linear_numerics_name(numerics);
  kernel.run = run_linear;
  kernel.cost = linear_cost;
  kernel.column_units = {0, 0, compile::column_unit};
  kernel.data = share_data(data);
  return kernel;
}

struct EmbeddingData {
  Layout layout;
  const KernelTable* table = nullptr;
};

void run_embedding(const KernelCall& call) noexcept {
  const auto& data = data_of<EmbeddingData>(call);
  const View& w = call.operands[0];
  const std::int64_t width = w.dims[1];
  const auto* ids = call.operands[1].as<const std::int32_t>();
  float* out = call.results[0].as<float>();
  const Range rows = share(call, call.operands[1].dims[0]);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    if (ids[row] < 0 || ids[row] >= w.dims[0]) {
      set_failed(call);
      std::memset(out + row * width, 0, static_cast<std::size_t>(4 * width));
      continue;
    }
    data.table->gather_rows(data.layout, w.data, width, ids + row, 1, out + row * width, width);
  }
}

KernelCost embedding_cost(const KernelCall& call) {
  const auto& data = data_of<EmbeddingData>(call);
  const View& y = call.results[0];
  KernelCost cost;
  // A row is a sixteenth of a panel, but its lines are read whole; codes of one output lie in every line.
  cost.bytes_read = static_cast<double>(y.dims[0]) * static_cast<double>(data.layout.panel_bytes(y.dims[1]));
  return cost;
}

std::optional<Kernel> make_embedding(const KernelRequest& request) {
  const auto layout = layout_of_weight(request.operands[0]);
  if (!layout) return std::nullopt;
  Kernel kernel;
  kernel.name = "embedding." + request.operands[0].encoding + "." + std::string(isa_name(request.table.isa));
  kernel.numerics = "exact";
  kernel.run = run_embedding;
  kernel.cost = embedding_cost;
  kernel.data = share_data(EmbeddingData{*layout, &request.table});
  return kernel;
}

}  // namespace

CatalogFamily catalog_linear() {
  // A gather from a Weight of rank 2 is what an embedding expands to.
  return {{"linear", make_linear}, {"embedding", make_embedding}, {"gather", make_embedding}};
}

}  // namespace headrace::kernels
