// reduce_sum, reduce_max and matmul of every float type. Sums are taken in order in f64 and rounded once, as the
// interpreter does: these are the general forms, which definitions of composites fall back to, not the fast ones.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/adapter.hpp"
#include "kernels/primitives/element.hpp"
#include "kernels/primitives/strided.hpp"

namespace headrace::kernels {
namespace {

using Run = void (*)(const KernelCall&) noexcept;

/// Sums that are kept at once.
constexpr std::int64_t block = 64;

struct Sum {
  static constexpr double start = 0;
  static double fold(double a, double b) noexcept { return a + b; }
};
struct Max {
  static constexpr double start = -std::numeric_limits<double>::infinity();
  static double fold(double a, double b) noexcept { return a != a || a > b ? a : b; }
};

template <class Op, ElementType element>
void run_reduction(const KernelCall& call) noexcept {
  using E = Element<element>;
  const AxisView from = axis_view(call.operands[0], data_of<std::int64_t>(call));
  const auto* x = call.operands[0].as<const typename E::Storage>();
  auto* y = call.results[0].as<typename E::Storage>();
  const Range range = share(call, call.results[0].elements());
  for (std::int64_t flat = range.begin; flat < range.end;) {
    const std::int64_t outer = flat / from.inner;
    const std::int64_t first = flat % from.inner;
    const std::int64_t count = std::min({block, from.inner - first, range.end - flat});
    double values[block];
    std::fill_n(values, count, Op::start);
    for (std::int64_t k = 0; k < from.size; ++k) {
      const auto* row = x + (outer * from.size + k) * from.inner + first;
      for (std::int64_t i = 0; i < count; ++i) values[i] = Op::fold(values[i], static_cast<double>(E::load(row[i])));
    }
    for (std::int64_t i = 0; i < count; ++i) y[flat + i] = E::store(static_cast<typename E::Compute>(values[i]));
    flat += count;
  }
}

template <class Op>
std::optional<Kernel> make_reduction(const KernelRequest& request) {
  const ir::Type& x = request.operands[0];
  if (!is_plain(x) || !ir::is_float(x.element)) return std::nullopt;
  auto axis = request.attribute<std::int64_t>("axis");
  if (axis < 0) axis += static_cast<std::int64_t>(x.shape.size());
  Kernel kernel;
  kernel.name = request.op.name + "." + std::string(ir::element_name(x.element));
  kernel.numerics = kernel.name;
  kernel.run = with_float(x.element, [](auto tag) -> Run { return run_reduction<Op, decltype(tag)::value>; });
  kernel.data = share_data(axis);
  return kernel;
}

/// Items are runs of `block` columns of one row.
template <ElementType element>
void run_matmul(const KernelCall& call) noexcept {
  using E = Element<element>;
  const View& a = call.operands[0];
  const View& b = call.operands[1];
  const std::int64_t rows = a.dims[a.rank - 2];
  const std::int64_t depth = a.dims[a.rank - 1];
  const std::int64_t columns = b.dims[b.rank - 1];
  const std::int64_t runs = ceil_div(columns, block);
  if (rows * columns == 0) return;
  const Range items = share(call, call.results[0].elements() / columns * runs);
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    const std::int64_t row = item / runs;
    const std::int64_t first = item % runs * block;
    const std::int64_t count = std::min(block, columns - first);
    const auto* left = a.as<const typename E::Storage>() + row * depth;
    const auto* right = b.as<const typename E::Storage>() + row / rows * depth * columns + first;
    double sums[block] = {};
    for (std::int64_t k = 0; k < depth; ++k, right += columns) {
      const auto factor = static_cast<double>(E::load(left[k]));
      for (std::int64_t i = 0; i < count; ++i) sums[i] += factor * static_cast<double>(E::load(right[i]));
    }
    auto* out = call.results[0].as<typename E::Storage>() + row * columns + first;
    for (std::int64_t i = 0; i < count; ++i) out[i] = E::store(static_cast<typename E::Compute>(sums[i]));
  }
}

KernelCost matmul_cost(const KernelCall& call) {
  const View& a = call.operands[0];
  KernelCost cost;
  cost.f32_flops = 2.0 * static_cast<double>(call.results[0].elements()) * static_cast<double>(a.dims[a.rank - 1]);
  return cost;
}

std::optional<Kernel> make_matmul(const KernelRequest& request) {
  const ir::Type& a = request.operands[0];
  if (!is_plain(a) || !is_plain(request.operands[1]) || !ir::is_float(a.element)) return std::nullopt;
  Kernel kernel;
  kernel.name = "matmul." + std::string(ir::element_name(a.element));
  kernel.numerics = kernel.name;
  kernel.run = with_float(a.element, [](auto tag) -> Run { return run_matmul<decltype(tag)::value>; });
  kernel.cost = matmul_cost;
  return kernel;
}

}  // namespace

CatalogFamily catalog_reduction() {
  return {{"reduce_sum", make_reduction<Sum>}, {"reduce_max", make_reduction<Max>}, {"matmul", make_matmul}};
}

}  // namespace headrace::kernels
