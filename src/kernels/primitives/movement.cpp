// Primitives that move elements of any type: reshape, transpose, slice, concat, broadcast, select, gather.
#include <cstring>
#include <vector>

#include "kernels/adapter.hpp"
#include "kernels/primitives/element.hpp"
#include "kernels/primitives/strided.hpp"

namespace headrace::kernels {
namespace {

using Run = void (*)(const KernelCall&) noexcept;

/// What an op moves by, in the order of axes from the front.
struct MoveData {
  std::int64_t axis = 0;
  std::int64_t begin = 0;
  std::vector<std::int64_t> order;
};

Kernel move_kernel(const KernelRequest& request, Run run, MoveData data = {}) {
  Kernel kernel;
  kernel.name = request.op.name;
  kernel.numerics = "exact";
  kernel.run = run;
  kernel.data = share_data(std::move(data));
  return kernel;
}

std::int64_t axis_of(const KernelRequest& request) {
  const auto axis = request.attribute<std::int64_t>("axis");
  return axis < 0 ? axis + static_cast<std::int64_t>(request.operands[0].shape.size()) : axis;
}

void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) noexcept {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

/// The function for elements of this size.
template <template <class> class Mover>
Run mover(ElementType element) {
  switch (ir::element_bytes(element)) {
    case 1:
      return Mover<std::uint8_t>::run;
    case 2:
      return Mover<std::uint16_t>::run;
    case 4:
      return Mover<std::uint32_t>::run;
    default:
      return Mover<std::uint64_t>::run;
  }
}

void run_reshape(const KernelCall& call) noexcept {
  const View& x = call.operands[0];
  const Range range = share_elements(call, x.elements() * ir::element_bytes(x.element));
  copy_bytes(call.results[0].data + range.begin, x.data + range.begin, range.size());
}

std::optional<Kernel> make_reshape(const KernelRequest& request) {
  if (!is_plain(request.operands[0])) return std::nullopt;
  return move_kernel(request, run_reshape);
}

/// Reads one operand along the result with the given strides.
template <class T>
void move_strided(const KernelCall& call, const Strides& strides) noexcept {
  const View& y = call.results[0];
  const T* x = call.operands[0].as<const T>();
  T* out = y.as<T>();
  const auto visit = [&](std::int64_t flat, const auto& offsets, const auto& steps, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) out[flat + i] = x[offsets[0] + i * steps[0]];
  };
  for_each_run(y, std::array<Strides, 1>{strides}, share_elements(call, y.elements()), visit);
}

template <class T>
struct Transpose {
  static void run(const KernelCall& call) noexcept {
    const Strides own = row_major_strides(call.operands[0]);
    const auto& order = data_of<MoveData>(call).order;
    Strides strides{};
    for (std::size_t i = 0; i < order.size(); ++i) strides[i] = own[static_cast<std::size_t>(order[i])];
    move_strided<T>(call, strides);
  }
};

std::optional<Kernel> make_transpose(const KernelRequest& request) {
  if (!is_plain(request.operands[0])) return std::nullopt;
  MoveData data;
  data.order = request.attribute<std::vector<std::int64_t>>("order");
  return move_kernel(request, mover<Transpose>(request.operands[0].element), std::move(data));
}

template <class T>
struct Broadcast {
  static void run(const KernelCall& call) noexcept {
    move_strided<T>(call, broadcast_strides(call.operands[0], call.results[0]));
  }
};

std::optional<Kernel> make_broadcast(const KernelRequest& request) {
  if (!is_plain(request.operands[0]) ||
      ir::parse_type("f32[" + request.attribute<std::string>("shape") + "]").shape.size() > compile::max_rank) {
    return std::nullopt;
  }
  return move_kernel(request, mover<Broadcast>(request.operands[0].element));
}

void run_slice(const KernelCall& call) noexcept {
  const auto& data = data_of<MoveData>(call);
  const AxisView from = axis_view(call.operands[0], data.axis);
  const AxisView to = axis_view(call.results[0], data.axis);
  const std::int64_t inner = from.inner * ir::element_bytes(call.operands[0].element);
  const Range outer = share(call, to.outer);
  for (std::int64_t o = outer.begin; o < outer.end; ++o) {
    copy_bytes(call.results[0].data + o * to.size * inner, call.operands[0].data + (o * from.size + data.begin) * inner,
               to.size * inner);
  }
}

std::optional<Kernel> make_slice(const KernelRequest& request) {
  if (!is_plain(request.operands[0])) return std::nullopt;
  MoveData data;
  data.axis = axis_of(request);
  data.begin = request.attribute<std::int64_t>("begin");
  return move_kernel(request, run_slice, std::move(data));
}

void run_concat(const KernelCall& call) noexcept {
  const auto& data = data_of<MoveData>(call);
  const AxisView to = axis_view(call.results[0], data.axis);
  const std::int64_t inner = to.inner * ir::element_bytes(call.results[0].element);
  const Range outer = share(call, to.outer);
  for (std::int64_t o = outer.begin; o < outer.end; ++o) {
    std::byte* out = call.results[0].data + o * to.size * inner;
    for (const View& x : call.operands) {
      const std::int64_t bytes = axis_view(x, data.axis).size * inner;
      copy_bytes(out, x.data + o * bytes, bytes);
      out += bytes;
    }
  }
}

std::optional<Kernel> make_concat(const KernelRequest& request) {
  for (const ir::Type& type : request.operands) {
    if (!is_plain(type)) return std::nullopt;
  }
  MoveData data;
  data.axis = axis_of(request);
  return move_kernel(request, run_concat, std::move(data));
}

template <class T>
struct Select {
  static void run(const KernelCall& call) noexcept {
    const View& y = call.results[0];
    const auto* condition = call.operands[0].as<const std::uint8_t>();
    const T* a = call.operands[1].as<const T>();
    const T* b = call.operands[2].as<const T>();
    T* out = y.as<T>();
    const std::array<Strides, 3> strides = {broadcast_strides(call.operands[0], y),
                                            broadcast_strides(call.operands[1], y),
                                            broadcast_strides(call.operands[2], y)};
    const auto visit = [&](std::int64_t flat, const auto& offsets, const auto& steps, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        out[flat + i] =
            condition[offsets[0] + i * steps[0]] != 0 ? a[offsets[1] + i * steps[1]] : b[offsets[2] + i * steps[2]];
      }
    };
    for_each_run(y, strides, share_elements(call, y.elements()), visit);
  }
};

std::optional<Kernel> make_select(const KernelRequest& request) {
  for (const ir::Type& type : request.operands) {
    if (!is_plain(type)) return std::nullopt;
  }
  return move_kernel(request, mover<Select>(request.operands[1].element));
}

void run_gather(const KernelCall& call) noexcept {
  const View& x = call.operands[0];
  const auto* indices = call.operands[1].as<const std::int32_t>();
  std::int64_t row_bytes = ir::element_bytes(x.element);
  for (std::size_t i = 1; i < x.rank; ++i) row_bytes *= x.dims[i];
  const Range rows = share(call, call.operands[1].dims[0]);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    std::byte* out = call.results[0].data + row * row_bytes;
    if (indices[row] < 0 || indices[row] >= x.dims[0]) {
      set_failed(call);
      if (row_bytes > 0) std::memset(out, 0, static_cast<std::size_t>(row_bytes));
      continue;
    }
    copy_bytes(out, x.data + indices[row] * row_bytes, row_bytes);
  }
}

std::optional<Kernel> make_gather(const KernelRequest& request) {
  if (!is_plain(request.operands[0]) || !is_plain(request.operands[1])) return std::nullopt;
  return move_kernel(request, run_gather);
}

template <class T>
struct TakeAlong {
  static void run(const KernelCall& call) noexcept {
    const View& x = call.operands[0];
    const std::int64_t width = row_width(x);
    const std::int64_t count = row_width(call.results[0]);
    const auto* ids = call.operands[1].as<const std::int32_t>();
    T* out = call.results[0].as<T>();
    const Range own = share_elements(call, call.results[0].elements());
    for (std::int64_t i = own.begin; i < own.end; ++i) {
      const bool fits = ids[i] >= 0 && ids[i] < width;
      if (!fits) set_failed(call);
      out[i] = fits ? x.as<const T>()[i / count * width + ids[i]] : T{};
    }
  }
};

std::optional<Kernel> make_take_along(const KernelRequest& request) {
  if (!is_plain(request.operands[0]) || !is_plain(request.operands[1])) return std::nullopt;
  return move_kernel(request, mover<TakeAlong>(request.operands[0].element));
}

}  // namespace

CatalogFamily catalog_movement() {
  return {{"reshape", make_reshape}, {"transpose", make_transpose},  {"slice", make_slice},
          {"concat", make_concat},   {"broadcast", make_broadcast},  {"select", make_select},
          {"gather", make_gather},   {"take_along", make_take_along}};
}

}  // namespace headrace::kernels
