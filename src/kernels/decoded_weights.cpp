#include "kernels/decoded_weights.hpp"

#include <array>
#include <cstddef>
#include <vector>

#include "formats/format.hpp"
#include "kernels/adapter.hpp"

namespace headrace::kernels {
namespace {

constexpr std::size_t max_operands = 64;  ///< of any op

struct PackedOperand {
  std::size_t index = 0;
  Layout layout;
};

struct DecodedData {
  const KernelTable* table = nullptr;
  std::vector<PackedOperand> packed;
  Kernel inner;
};

std::int64_t decoded_bytes(const View& weight) noexcept { return align_up<std::int64_t>(4 * weight.elements(), 64); }

/// The call of the inner kernel. Its packed operands point to where they are decoded, and its shared bytes follow.
struct InnerCall {
  explicit InnerCall(const KernelCall& call) noexcept : inner(call) {
    const auto& data = data_of<DecodedData>(call);
    std::copy(call.operands.begin(), call.operands.end(), operands.begin());
    for (const PackedOperand& packed : data.packed) {
      View& view = operands[packed.index];
      if (!call.shared.empty()) view.data = call.shared.data() + decoded;
      decoded += decoded_bytes(view);
    }
    inner.operands = std::span<const View>(operands).first(call.operands.size());
    inner.data = data.inner.data.get();
    inner.phase = call.phase - 1;
    if (!call.shared.empty()) inner.shared = call.shared.subspan(static_cast<std::size_t>(decoded));
  }
  InnerCall(const InnerCall&) = delete;
  InnerCall& operator=(const InnerCall&) = delete;

  std::array<View, max_operands> operands;
  std::int64_t decoded = 0;
  KernelCall inner;
};

void run_decoded(const KernelCall& call) noexcept {
  const auto& data = data_of<DecodedData>(call);
  const InnerCall inner(call);
  if (call.phase > 0) return data.inner.run(inner.inner);
  for (const PackedOperand& packed : data.packed) {
    const View& weight = call.operands[packed.index];
    const std::int64_t width = row_width(weight);
    const std::int64_t outputs = weight.dims[weight.rank - 2u];
    const std::int64_t matrix_bytes = packed_bytes(packed.layout, outputs, width);
    const Range rows = share(call, row_count(weight));
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const auto id = static_cast<std::int32_t>(row % outputs);
      float* out = inner.operands[packed.index].as<float>() + row * width;
      data.table->gather_rows(packed.layout, weight.data + row / outputs * matrix_bytes, width, &id, 1, out, width);
    }
  }
}

std::size_t decoded_scratch(const KernelCall& sizes) {
  const auto& data = data_of<DecodedData>(sizes);
  return data.inner.scratch_bytes == nullptr ? 0 : data.inner.scratch_bytes(InnerCall(sizes).inner);
}

std::size_t decoded_shared(const KernelCall& sizes) {
  const auto& data = data_of<DecodedData>(sizes);
  const InnerCall inner(sizes);
  const std::size_t more = data.inner.shared_bytes == nullptr ? 0 : data.inner.shared_bytes(inner.inner);
  return static_cast<std::size_t>(inner.decoded) + more;
}

}  // namespace

std::optional<Kernel> with_decoded_weights(
    const KernelTable& table, std::span<const ir::Type> operands,
    const std::function<std::optional<Kernel>(std::span<const ir::Type>)>& find) {
  if (operands.size() > max_operands) return std::nullopt;
  DecodedData data;
  data.table = &table;
  std::vector<ir::Type> plain(operands.begin(), operands.end());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (!plain[i].is_weight() || plain[i].shape.size() < 2) continue;
    const formats::Format* format = formats::find_format(plain[i].encoding);
    const auto layout = format == nullptr ? std::nullopt : layout_of(*format);
    if (!layout) return std::nullopt;
    data.packed.push_back({i, *layout});
    plain[i] = ir::Type::tensor(ir::ElementType::f32, plain[i].shape);
  }
  if (data.packed.empty()) return std::nullopt;
  std::optional<Kernel> inner = find(plain);
  if (!inner) return std::nullopt;
  Kernel kernel;
  kernel.name = inner->name + ".decoded";
  kernel.numerics = inner->numerics;
  kernel.phases = inner->phases + 1;
  kernel.run = run_decoded;
  kernel.scratch_bytes = decoded_scratch;
  kernel.shared_bytes = decoded_shared;
  data.inner = std::move(*inner);
  kernel.data = share_data(std::move(data));
  return kernel;
}

}  // namespace headrace::kernels
