// Elementwise kernels on f32 tensors of one shape: activations, sums and products.
#include "kernels/adapter.hpp"

namespace headrace::kernels {
namespace {

using ir::ElementType;

using Unary = void (*KernelTable::*)(const float*, float*, std::int64_t) noexcept;
using Binary = void (*KernelTable::*)(const float*, const float*, float*, std::int64_t) noexcept;

template <Unary function>
void run_unary(const KernelCall& call) noexcept {
  const View& x = call.operands[0];
  const Range range = share_elements(call, x.elements());
  if (range.size() == 0) return;
  (data_of<KernelTable>(call).*function)(x.as<const float>() + range.begin, call.results[0].as<float>() + range.begin,
                                         range.size());
}

template <Binary function>
void run_binary(const KernelCall& call) noexcept {
  const View& a = call.operands[0];
  const Range range = share_elements(call, a.elements());
  if (range.size() == 0) return;
  (data_of<KernelTable>(call).*function)(a.as<const float>() + range.begin,
                                         call.operands[1].as<const float>() + range.begin,
                                         call.results[0].as<float>() + range.begin, range.size());
}

/// A tensor times one number, on either side.
void run_scale(const KernelCall& call) noexcept {
  const bool first = call.operands[0].rank == 0;
  const View& x = call.operands[first ? 1 : 0];
  const float factor = *call.operands[first ? 0 : 1].as<const float>();
  const Range range = share_elements(call, x.elements());
  if (range.size() == 0) return;
  data_of<KernelTable>(call).scale(x.as<const float>() + range.begin, factor, call.results[0].as<float>() + range.begin,
                                   range.size());
}

Kernel table_kernel(const KernelRequest& request, void (*run)(const KernelCall&) noexcept) {
  Kernel kernel;
  kernel.name = request.op.name + "." + std::string(isa_name(request.table.isa));
  kernel.numerics = request.op.name + ".f32";
  kernel.run = run;
  kernel.data = std::shared_ptr<const void>(std::shared_ptr<const void>(), &request.table);  // a constant: not owned
  return kernel;
}

template <Unary function>
std::optional<Kernel> make_unary(const KernelRequest& request) {
  if (!is_plain(request.operands[0], ElementType::f32)) return std::nullopt;
  return table_kernel(request, run_unary<function>);
}

template <Binary function>
std::optional<Kernel> make_binary(const KernelRequest& request) {
  const ir::Type& a = request.operands[0];
  const ir::Type& b = request.operands[1];
  if (!is_plain(a, ElementType::f32) || !is_plain(b, ElementType::f32) || a.shape != b.shape) return std::nullopt;
  return table_kernel(request, run_binary<function>);
}

std::optional<Kernel> make_multiply(const KernelRequest& request) {
  const ir::Type& a = request.operands[0];
  const ir::Type& b = request.operands[1];
  if (!is_plain(a, ElementType::f32) || !is_plain(b, ElementType::f32)) return std::nullopt;
  if (a.shape == b.shape) return table_kernel(request, run_binary<&KernelTable::multiply>);
  if (a.shape.empty() || b.shape.empty()) return table_kernel(request, run_scale);
  return std::nullopt;
}

struct ClampedData {
  const KernelTable* table = nullptr;
  float alpha = 0;
  float limit = 0;
};

void run_clamped_swiglu(const KernelCall& call) noexcept {
  const auto& data = data_of<ClampedData>(call);
  const View& gate = call.operands[0];
  const Range range = share_elements(call, gate.elements());
  if (range.size() == 0) return;
  data.table->clamped_swiglu(gate.as<const float>() + range.begin, call.operands[1].as<const float>() + range.begin,
                             data.alpha, data.limit, call.results[0].as<float>() + range.begin, range.size());
}

std::optional<Kernel> make_clamped_swiglu(const KernelRequest& request) {
  if (!is_plain(request.operands[0], ElementType::f32) || !is_plain(request.operands[1], ElementType::f32)) {
    return std::nullopt;
  }
  Kernel kernel = table_kernel(request, run_clamped_swiglu);
  kernel.data = share_data(ClampedData{&request.table, static_cast<float>(request.attribute<double>("alpha")),
                                       static_cast<float>(request.attribute<double>("limit"))});
  return kernel;
}

}  // namespace

CatalogFamily catalog_activation() {
  return {{"silu", make_unary<&KernelTable::silu>}, {"silu_multiply", make_binary<&KernelTable::silu_multiply>},
          {"clamped_swiglu", make_clamped_swiglu},  {"exp", make_unary<&KernelTable::exp>},
          {"add", make_binary<&KernelTable::add>},  {"multiply", make_multiply}};
}

}  // namespace headrace::kernels
