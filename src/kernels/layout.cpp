#include "kernels/layout.hpp"

#include <algorithm>

#include "base/checked.hpp"

namespace headrace::kernels {

int Layout::level_bits() const noexcept {
  if (codebook == nullptr) return code_bits;
  return *std::max_element(codebook, codebook + (1 << code_bits)) + code_offset < 32 ? 5 : 8;
}

std::int64_t Layout::scale_bytes() const noexcept {
  const std::int64_t sides = has_minimum ? 2 : 1;
  if (!grouped()) return 0;
  if (scales == Scales::e8m0) return panel_outputs;
  if (scales == Scales::f16) return 2 * panel_outputs * sides;
  const std::int64_t factors_per_group = scales == Scales::nibbles ? 1 : sides;
  return panel_outputs * (2 * sides + factors_per_group * (span_elements() / group_elements));
}

std::int64_t Layout::span_bytes() const noexcept {
  if (grouped()) return span_elements() / unit_inputs * unit_bytes() + scale_bytes();
  return codes == Codes::f16 ? 32 : 64;
}

std::int64_t Layout::panel_bytes(std::int64_t inputs) const noexcept {
  return align_up<std::int64_t>(ceil_div(inputs, span_elements()) * span_bytes(), 64);
}

std::optional<Layout> layout_of(const formats::Format& format) noexcept {
  Layout layout;
  if (format.kind == formats::Format::Kind::floating) {
    if (format.name == "f32") {
      layout.codes = Layout::Codes::f32;
    } else if (format.name == "f16") {
      layout.codes = Layout::Codes::f16;
    } else if (format.name == "bf16") {
      layout.codes = Layout::Codes::bf16;
    } else {
      return std::nullopt;
    }
    return layout;
  }
  const bool factors = format.factor_bits > 0;
  const bool e8m0 = format.scales == formats::Format::Scales::e8m0;
  if (format.code_bits < 2 || format.code_bits > 8 || (format.codebook != nullptr && format.code_bits > 4)) {
    return std::nullopt;
  }
  if (factors ? format.block_elements != 256 || format.factor_bits > 8 || e8m0
              : format.block_elements != unit_inputs || format.group_elements != unit_inputs) {
    return std::nullopt;
  }
  if ((format.group_elements != 16 && format.group_elements != 32) || (e8m0 && format.has_minimum)) return std::nullopt;
  layout.codes = Layout::Codes::grouped;
  layout.code_bits = format.codebook != nullptr ? 4 : format.code_bits == 7 ? 8 : format.code_bits;
  layout.group_elements = format.group_elements;
  layout.has_minimum = format.has_minimum;
  layout.code_offset = format.code_offset;
  layout.codebook = format.codebook;
  if (layout.codebook != nullptr) {
    layout.code_offset = -*std::min_element(layout.codebook, layout.codebook + (1 << format.code_bits));
  }
  layout.scales = e8m0                                            ? Layout::Scales::e8m0
                  : !factors                                      ? Layout::Scales::f16
                  : format.factor_bits <= 4 && format.has_minimum ? Layout::Scales::nibbles
                                                                  : Layout::Scales::factors;
  return layout;
}

std::int64_t packed_bytes(const Layout& layout, std::int64_t outputs, std::int64_t inputs) noexcept {
  return panel_count(outputs) * layout.panel_bytes(inputs);
}

}  // namespace headrace::kernels
