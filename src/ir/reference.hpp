// Index arithmetic that the references of several ops share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/interpreter.hpp"

namespace headrace::ir {

/// Strides in elements of a row-major shape.
inline std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// Strides with which an operand of `shape` is read along `result` when it broadcasts as numpy's do.
inline std::vector<std::int64_t> broadcast_strides(std::span<const std::int64_t> shape,
                                                   std::span<const std::int64_t> result) {
  std::vector<std::int64_t> strides(result.size(), 0);
  const std::vector<std::int64_t> own = row_major_strides(shape);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t axis = result.size() - shape.size() + i;
    if (shape[i] == result[axis]) strides[axis] = own[i];
    if (shape[i] == 1) strides[axis] = 0;
  }
  return strides;
}

/// Calls visit(flat result index, index vector) for every element of a row-major shape, in order.
template <class F>
void for_each_index(std::span<const std::int64_t> shape, F&& visit) {
  std::vector<std::int64_t> index(shape.size(), 0);
  for (const std::int64_t dim : shape) {
    if (dim == 0) return;
  }
  for (std::int64_t flat = 0;; ++flat) {
    visit(flat, index);
    std::size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

inline std::int64_t dot(std::span<const std::int64_t> index, std::span<const std::int64_t> strides) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
  return offset;
}

/// y = function(a, b) for every element of `y`, whose shape the operands broadcast to.
template <class F>
void map_broadcast(const Tensor& a, const Tensor& b, Tensor& y, F&& function) {
  const auto a_strides = broadcast_strides(a.shape, y.shape);
  const auto b_strides = broadcast_strides(b.shape, y.shape);
  for_each_index(y.shape, [&](std::int64_t flat, std::span<const std::int64_t> index) {
    y.values[static_cast<std::size_t>(flat)] = function(a.values.at(static_cast<std::size_t>(dot(index, a_strides))),
                                                        b.values.at(static_cast<std::size_t>(dot(index, b_strides))));
  });
}

}  // namespace headrace::ir
