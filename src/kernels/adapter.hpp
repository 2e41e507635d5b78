// What the adapters of the catalog share: how an op asks for a kernel, and what a kernel does with its call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/checked.hpp"
#include "base/thread_pool.hpp"
#include "compile/kernel_catalog.hpp"
#include "ir/op.hpp"
#include "kernels/kernels.hpp"

namespace headrace::kernels {

using compile::Kernel;
using compile::KernelCall;
using compile::KernelCost;
using compile::View;

/// An op with operands of these types, for which a kernel is wanted. `attributes` has all that the op takes.
struct KernelRequest {
  const KernelTable& table;
  const ir::OpDef& op;
  std::span<const ir::Type> operands;
  const ir::Attributes& attributes;

  template <class T>
  [[nodiscard]] const T& attribute(std::string_view name) const {
    return std::get<T>(attributes.find(name)->second);
  }
};

/// Makes the kernel of one op, or nothing if it has none for these types. Of an op's entries the first that has one is
/// taken: those of kernels/catalog/ come before the general ones of kernels/primitives/.
struct CatalogEntry {
  std::string op;
  std::optional<Kernel> (*make)(const KernelRequest& request);
};

/// The entries of one file of kernels/catalog/ or kernels/primitives/.
using CatalogFamily = std::vector<CatalogEntry>;

/// All of them, generated from the files: each defines `CatalogFamily catalog_NAME()`.
std::span<const CatalogFamily> catalog_families();

// ---- types ---------------------------------------------------------------------------------------------------------

/// Whether kernels find plain row-major elements there: a tensor, or a Weight of rank 1, which is stored as f32.
inline bool is_plain(const ir::Type& type) { return type.is_tensor() || (type.is_weight() && type.shape.size() == 1); }
inline bool is_plain(const ir::Type& type, ir::ElementType element) {
  return is_plain(type) && type.element == element;
}

/// Columns of a type: elements of a row, all dimensions but the first. 0 if they are too few to be divided over
/// workers, or not constant.
inline std::int64_t divisible_columns(const ir::Type& type) {
  if (type.shape.size() < 2) return 0;
  std::int64_t columns = 1;
  for (std::size_t i = 1; i < type.shape.size(); ++i) {
    if (!type.shape[i].is_constant()) return 0;
    columns *= type.shape[i].constant();
  }
  return columns < 2 * compile::column_unit ? 0 : columns;
}

// ---- calls ---------------------------------------------------------------------------------------------------------

/// This worker's share of `count` items.
inline Range share(const KernelCall& call, std::int64_t count) noexcept {
  return split(count, call.worker, call.workers);
}

/// This worker's share of `count` elements, in whole runs of 64, so that no two workers write to one line.
inline Range share_elements(const KernelCall& call, std::int64_t count) noexcept {
  const Range runs = share(call, ceil_div<std::int64_t>(count, 64));
  return {std::min(runs.begin * 64, count), std::min(runs.end * 64, count)};
}

/// This worker's share of the columns of a matrix, in whole units: what Kernel::column_units promises.
inline Range own_columns(const KernelCall& call, std::int64_t columns, std::int64_t unit) noexcept {
  const Range units = share(call, ceil_div(columns, unit));
  return {std::min(units.begin * unit, columns), std::min(units.end * unit, columns)};
}

/// Elements of a row of a view: all dimensions but the first.
inline std::int64_t columns_of(const View& view) noexcept {
  std::int64_t columns = 1;
  for (std::size_t i = 1; i < view.rank; ++i) columns *= view.dims[i];
  return columns;
}

/// Lets the step fail: an index from a tensor is out of bounds.
inline void set_failed(const KernelCall& call) noexcept {
  if (call.failed != nullptr) std::atomic_ref<bool>(*call.failed).store(true, std::memory_order_relaxed);
}

/// The page of a State that holds a position of a sequence, or nullptr (and the step fails) if either is out of bounds.
inline std::byte* state_page(const KernelCall& call, const compile::StateView& state, std::int64_t sequence,
                             std::int64_t position) noexcept {
  const bool fits = sequence >= 0 && sequence < state.sequences && position >= 0 &&
                    (state.lengths == nullptr || position < state.lengths[sequence]);
  if (!fits) {
    set_failed(call);
    return nullptr;
  }
  return state.pages[sequence][position / page_positions];
}

/// A tensor as rows along its last axis: how many, and of how many elements.
inline std::int64_t row_width(const View& view) noexcept { return view.rank == 0 ? 1 : view.dims[view.rank - 1u]; }
inline std::int64_t row_count(const View& view) noexcept {
  std::int64_t count = 1;
  for (std::size_t i = 0; i + 1 < view.rank; ++i) count *= view.dims[i];
  return count;
}

/// Scratch as an array; it is aligned for any element.
template <class T>
T* as_array(std::byte* bytes) noexcept {
  return static_cast<T*>(static_cast<void*>(bytes));
}

template <class Data>
const Data& data_of(const KernelCall& call) noexcept {
  return *static_cast<const Data*>(call.data);
}

template <class Data>
std::shared_ptr<const void> share_data(Data data) {
  return std::make_shared<const Data>(std::move(data));
}

}  // namespace headrace::kernels
