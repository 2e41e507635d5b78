// append and read_state for State of any shape, element type and order; f16 rows of rank 2 have a faster append.
#include <cstring>

#include "kernels/adapter.hpp"
#include "kernels/primitives/element.hpp"

namespace headrace::kernels {
namespace {

using Run = void (*)(const KernelCall&) noexcept;

/// Where the elements of a position's row lie in a page: of each outer index `width` elements.
struct RowPlace {
  std::int64_t outer = 1;
  std::int64_t width = 1;
  bool columns = false;

  RowPlace(const View& state, bool is_columns) noexcept : columns(is_columns) {
    if (state.rank == 0) return;
    width = state.dims[state.rank - 1];
    for (std::size_t i = 0; i + 1 < state.rank; ++i) outer *= state.dims[i];
  }
  /// The element index in the page of element 0 of outer index `o`, and the step to the next element.
  [[nodiscard]] std::int64_t first(std::int64_t o, std::int64_t slot) const noexcept {
    return columns ? (o * page_positions / 16 + slot / 16) * width * 16 + slot % 16
                   : (o * page_positions + slot) * width;
  }
  [[nodiscard]] std::int64_t step() const noexcept { return columns ? 16 : 1; }
};

bool is_columns(const KernelCall& call) noexcept { return data_of<bool>(call); }

template <ElementType element>
void run_append(const KernelCall& call) noexcept {
  using E = Element<element>;
  const View& state = call.operands[0];
  const RowPlace place(state, is_columns(call));
  const auto* sequences = call.operands[2].as<const std::int32_t>();
  const auto* positions = call.operands[3].as<const std::int32_t>();
  const Range rows = share(call, call.operands[1].dims[0]);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    std::byte* page = state_page(call, state.state, sequences[row], positions[row]);
    if (page == nullptr) continue;
    auto* out = as_array<typename E::Storage>(page + state.state.offset);
    const float* x = call.operands[1].as<const float>() + row * place.outer * place.width;
    for (std::int64_t o = 0; o < place.outer; ++o) {
      std::int64_t at = place.first(o, positions[row] % page_positions);
      for (std::int64_t e = 0; e < place.width; ++e, at += place.step()) {
        out[at] = E::store(static_cast<typename E::Compute>(*x++));
      }
    }
  }
}

template <ElementType element>
void run_read(const KernelCall& call) noexcept {
  using E = Element<element>;
  const View& state = call.operands[0];
  const View& y = call.results[0];
  const RowPlace place(state, is_columns(call));
  const std::int64_t longest = y.dims[1];
  const std::int64_t row_elements = place.outer * place.width;
  if (state.state.lengths == nullptr) return set_failed(call);
  const Range items = share(call, y.dims[0] * longest);
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    const std::int64_t sequence = item / longest;
    const std::int64_t position = item % longest;
    float* out = y.as<float>() + item * row_elements;
    const std::int64_t length = sequence < state.state.sequences ? state.state.lengths[sequence] : 0;
    if (length > longest) return set_failed(call);
    if (position >= length) {
      std::fill_n(out, row_elements, 0.0f);
      continue;
    }
    const std::byte* page = state.state.pages[sequence][position / page_positions];
    const auto* in = static_cast<const typename E::Storage*>(static_cast<const void*>(page + state.state.offset));
    for (std::int64_t o = 0; o < place.outer; ++o) {
      std::int64_t at = place.first(o, position % page_positions);
      for (std::int64_t e = 0; e < place.width; ++e, at += place.step()) *out++ = static_cast<float>(E::load(in[at]));
    }
  }
}

std::optional<Kernel> make_state_kernel(const KernelRequest& request, Run f32, Run f16, Run bf16) {
  const ir::Type& state = request.operands[0];
  for (const ir::Type& type : request.operands.subspan(1)) {
    if (!is_plain(type)) return std::nullopt;
  }
  const bool columns = state.order == "columns16";
  if (!state.is_state() || !state.encoding.empty() || (!columns && !state.order.empty())) return std::nullopt;
  Kernel kernel;
  kernel.name = request.op.name + "." + std::string(ir::element_name(state.element));
  kernel.numerics = kernel.name;
  kernel.data = share_data(columns);
  switch (state.element) {
    case ElementType::f32:
      kernel.run = f32;
      return kernel;
    case ElementType::f16:
      kernel.run = f16;
      return kernel;
    case ElementType::bf16:
      kernel.run = bf16;
      return kernel;
    default:
      return std::nullopt;
  }
}

std::optional<Kernel> make_append(const KernelRequest& request) {
  return make_state_kernel(request, run_append<ElementType::f32>, run_append<ElementType::f16>,
                           run_append<ElementType::bf16>);
}

std::optional<Kernel> make_read(const KernelRequest& request) {
  if (request.operands[0].shape.size() + 2 > compile::max_rank) return std::nullopt;
  return make_state_kernel(request, run_read<ElementType::f32>, run_read<ElementType::f16>,
                           run_read<ElementType::bf16>);
}

}  // namespace

CatalogFamily catalog_state() { return {{"append", make_append}, {"read_state", make_read}}; }

}  // namespace headrace::kernels
