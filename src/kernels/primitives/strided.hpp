// Walks over a row-major result while operands are read with strides of their own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/thread_pool.hpp"
#include "compile/kernel_catalog.hpp"

namespace headrace::kernels {

/// Of each axis, in elements.
using Strides = std::array<std::int64_t, compile::max_rank>;

inline Strides row_major_strides(const compile::View& view) noexcept {
  Strides strides{};
  std::int64_t stride = 1;
  for (std::size_t axis = view.rank; axis-- > 0; stride *= view.dims[axis]) strides[axis] = stride;
  return strides;
}

/// Strides with which an operand is read along the axes of a result that it broadcasts to.
inline Strides broadcast_strides(const compile::View& operand, const compile::View& result) noexcept {
  const Strides own = row_major_strides(operand);
  Strides strides{};
  for (std::size_t i = 0; i < operand.rank; ++i) {
    strides[result.rank - operand.rank + i] = operand.dims[i] == 1 ? 0 : own[i];
  }
  return strides;
}

/// Calls visit(flat, offsets, steps, count) for runs along the last axis that together are the elements `range` of
/// `result`: operand i is read at offsets[i] + j * steps[i] for element flat + j of the run.
template <std::size_t operands, class F>
void for_each_run(const compile::View& result, const std::array<Strides, operands>& strides, Range range,
                  F&& visit) noexcept {
  using Offsets = std::array<std::int64_t, operands>;
  if (range.size() <= 0) return;
  const std::size_t last = result.rank == 0 ? 0 : result.rank - std::size_t{1};
  const std::int64_t width = result.rank == 0 ? 1 : result.dims[last];
  Offsets steps{};
  if (result.rank > 0) {
    for (std::size_t i = 0; i < operands; ++i) steps[i] = strides[i][last];
  }
  std::array<std::int64_t, compile::max_rank> index{};
  std::int64_t rest = range.begin;
  for (std::size_t axis = result.rank; axis-- > 0; rest /= result.dims[axis]) index[axis] = rest % result.dims[axis];
  for (std::int64_t flat = range.begin; flat < range.end;) {
    Offsets offsets{};
    for (std::size_t i = 0; i < operands; ++i) {
      for (std::size_t axis = 0; axis < result.rank; ++axis) offsets[i] += index[axis] * strides[i][axis];
    }
    const std::int64_t count = std::min(width - index[last], range.end - flat);
    visit(flat, offsets, steps, count);
    flat += count;
    index[last] = 0;
    for (std::size_t axis = last; axis-- > 0;) {
      if (++index[axis] < result.dims[axis]) break;
      index[axis] = 0;
    }
  }
}

/// A row-major tensor around one of its axes: [outer][size][inner].
struct AxisView {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;
};

inline AxisView axis_view(const compile::View& view, std::int64_t axis) noexcept {
  AxisView result;
  for (std::int64_t i = 0; i < view.rank; ++i) {
    const std::int64_t dim = view.dims[static_cast<std::size_t>(i)];
    (i < axis ? result.outer : i == axis ? result.size : result.inner) *= dim;
  }
  return result;
}

}  // namespace headrace::kernels
