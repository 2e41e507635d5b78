// Elementwise kernels on f32 tensors of one shape: activations, sums and products.
#include "kernels/adapter.hpp"

namespace headrace::kernels {
namespace {

using ir::ElementType;

using Unary = void (*KernelTable::*)(const float*, float*, std::int64_t) noexcept;
using Binary = void (*KernelTable::*)(const float*, const float*, float*, std::int64_t) noexcept;

/// Calls visit(offset, count) for this worker's elements of `x`: of matrices its columns of each row.
template <class Visit>
void for_own_elements(const KernelCall& call, const View& x, bool by_columns, Visit&& visit) noexcept {
  if (!by_columns) {
    const Range range = share_elements(call, x.elements());
    if (range.size() > 0) visit(range.begin, range.size());
    return;
  }
  const std::int64_t columns = columns_of(x);
  const Range own = own_columns(call, columns, compile::column_unit);
  if (own.size() == 0) return;
  for (std::int64_t row = 0; row < x.dims[0]; ++row) visit(row * columns + own.begin, own.size());
}

template <Unary function, bool by_columns>
void run_unary(const KernelCall& call) noexcept {
  const auto& table = data_of<KernelTable>(call);
  const float* x = call.operands[0].as<const float>();
  float* y = call.results[0].as<float>();
  for_own_elements(call, call.operands[0], by_columns,
                   [&](std::int64_t at, std::int64_t count) { (table.*function)(x + at, y + at, count); });
}

template <Binary function, bool by_columns>
void run_binary(const KernelCall& call) noexcept {
  const auto& table = data_of<KernelTable>(call);
  const float* a = call.operands[0].as<const float>();
  const float* b = call.operands[1].as<const float>();
  float* y = call.results[0].as<float>();
  for_own_elements(call, call.operands[0], by_columns,
                   [&](std::int64_t at, std::int64_t count) { (table.*function)(a + at, b + at, y + at, count); });
}

/// A matrix with one row for all of its rows, such as a bias.
template <Binary function>
void run_with_row(const KernelCall& call) noexcept {
  const auto& table = data_of<KernelTable>(call);
  const float* a = call.operands[0].as<const float>();
  const float* b = call.operands[1].as<const float>();
  float* y = call.results[0].as<float>();
  const std::int64_t columns = columns_of(call.operands[0]);
  for_own_elements(call, call.operands[0], true, [&](std::int64_t at, std::int64_t count) {
    (table.*function)(a + at, b + at % columns, y + at, count);
  });
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

/// `views` operands and results, divided by columns alike.
Kernel by_columns(Kernel kernel, std::size_t views) {
  kernel.column_units.assign(views, compile::column_unit);
  return kernel;
}

template <Unary function>
std::optional<Kernel> make_unary(const KernelRequest& request) {
  const ir::Type& x = request.operands[0];
  if (!is_plain(x, ElementType::f32)) return std::nullopt;
  if (divisible_columns(x) > 0) return by_columns(table_kernel(request, run_unary<function, true>), 2);
  return table_kernel(request, run_unary<function, false>);
}

template <Binary function>
std::optional<Kernel> make_binary(const KernelRequest& request) {
  const ir::Type& a = request.operands[0];
  const ir::Type& b = request.operands[1];
  if (!is_plain(a, ElementType::f32) || !is_plain(b, ElementType::f32)) return std::nullopt;
  const bool columns = divisible_columns(a) > 0;
  if (a.shape == b.shape) {
    return columns ? by_columns(table_kernel(request, run_binary<function, true>), 3)
                   : table_kernel(request, run_binary<function, false>);
  }
  if (columns && a.shape.size() == 2 && b.shape.size() == 1 && a.shape[1] == b.shape[0]) {
    Kernel kernel = by_columns(table_kernel(request, run_with_row<function>), 3);
    kernel.column_units[1] = 0;
    return kernel;
  }
  return std::nullopt;
}

std::optional<Kernel> make_multiply(const KernelRequest& request) {
  const ir::Type& a = request.operands[0];
  const ir::Type& b = request.operands[1];
  if (!is_plain(a, ElementType::f32) || !is_plain(b, ElementType::f32)) return std::nullopt;
  if (a.shape != b.shape && (a.shape.empty() || b.shape.empty())) return table_kernel(request, run_scale);
  return make_binary<&KernelTable::multiply>(request);
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
