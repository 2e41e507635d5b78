#include "kernels/catalog.hpp"

#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "formats/format.hpp"
#include "kernels/adapter.hpp"
#include "kernels/decoded_weights.hpp"

namespace headrace::kernels {
namespace {

constexpr std::int64_t line_bytes = 64;

std::int64_t product(std::int64_t a, std::int64_t b, const ir::Type& type) {
  const auto result = checked_mul(a, b);
  if (!result) fail<InputError>("type {}: expected fewer than 2^63 bytes, got an overflow", type.str());
  return *result;
}

/// The dimensions of a Weight or a State, which no symbol may be part of.
std::vector<std::int64_t> constant_shape(const ir::Type& type) {
  std::vector<std::int64_t> shape;
  for (const ir::Dim& dim : type.shape) {
    if (!dim.is_constant() || dim.constant() < 0) fail<InputError>("type {}: expected constant sizes", type.str());
    shape.push_back(dim.constant());
  }
  return shape;
}

/// Never an encoded tensor: none passes a function's boundary.
void run_copy(const KernelCall& call) noexcept {
  const View& from = call.operands[0];
  const std::int64_t bytes = from.elements() * ir::element_bytes(from.element);
  const Range range = share_elements(call, bytes);
  if (range.size() > 0) {
    std::memcpy(call.results[0].data + range.begin, from.data + range.begin, static_cast<std::size_t>(range.size()));
  }
}

class Catalog final : public compile::KernelCatalog {
 public:
  explicit Catalog(Isa isa) : table_(kernel_table(isa)) {
    for (const CatalogFamily& family : catalog_families()) {
      for (const CatalogEntry& entry : family) entries_[entry.op].push_back(entry.make);
    }
  }

  [[nodiscard]] std::string_view isa() const override { return isa_name(table_.isa); }

  [[nodiscard]] std::optional<Kernel> find(const ir::OpDef& op, std::span<const ir::Type> operands,
                                           const ir::Attributes& attributes) const override {
    const auto place = entries_.find(op.name);
    if (place == entries_.end()) return std::nullopt;
    for (const ir::Type& type : operands) {
      if (type.shape.size() > compile::max_rank) return std::nullopt;
    }
    const auto make_first = [&](std::span<const ir::Type> types) -> std::optional<Kernel> {
      const KernelRequest request{table_, op, types, attributes};
      for (const auto make : place->second) {
        if (std::optional<Kernel> kernel = make(request)) return kernel;
      }
      return std::nullopt;
    };
    if (std::optional<Kernel> kernel = make_first(operands)) return kernel;
    // A composite is expanded instead.
    return op.is_primitive() ? with_decoded_weights(table_, operands, make_first) : std::nullopt;
  }

  [[nodiscard]] Kernel copy() const override {
    Kernel kernel;
    kernel.name = "copy";
    kernel.numerics = "exact";
    kernel.run = run_copy;
    return kernel;
  }

  [[nodiscard]] std::string linear_encoding(std::string_view format) const override {
    const auto layout = find_layout(format);
    if (!layout || linear_numerics(*layout, TokenClass::generated, table_.isa) == LinearNumerics::two_chains) return "";
    return "a16";
  }

  [[nodiscard]] std::int64_t row_bytes(std::string_view encoding, std::int64_t elements) const override {
    if (encoding != "a16") fail<InputError>("encoding {}: expected a16", encoding);
    return a16_row_bytes(elements);
  }

  [[nodiscard]] std::int64_t packed_bytes(const ir::Type& weight) const override {
    const std::vector<std::int64_t> shape = constant_shape(weight);
    const formats::Format* format = formats::find_format(weight.encoding);
    const auto layout = find_layout(weight.encoding);
    if (!layout || shape.empty() || shape.size() > 3 || shape.back() % format->block_elements != 0) {
      fail<InputError>(
          "type {}: expected a Weight [N], [N, K] or [X, N, K] in a Format that kernels read, K in whole blocks",
          weight.str());
    }
    // Far above every Layout's bytes: an expert's last panel may have one output.
    std::int64_t bound = product(shape.back() + line_bytes, 8, weight);
    for (std::size_t i = 0; i + 1 < shape.size(); ++i) bound = product(bound, shape[i], weight);
    if (shape.size() == 3) product(bound, panel_outputs, weight);
    if (shape.size() == 1) return align_up<std::int64_t>(4 * shape[0], line_bytes);
    const std::int64_t experts = shape.size() == 3 ? shape[0] : 1;
    return experts * kernels::packed_bytes(*layout, shape[shape.size() - 2], shape.back());
  }

  [[nodiscard]] std::int64_t page_positions() const override { return kernels::page_positions; }

  [[nodiscard]] std::int64_t page_bytes(const ir::Type& state) const override {
    const bool holds = state.element == ir::ElementType::f32 || state.element == ir::ElementType::f16 ||
                       state.element == ir::ElementType::bf16;
    if (!holds || state.shape.size() > compile::max_rank) {
      fail<InputError>("type {}: expected a State of f32, f16 or bf16 and rank {} at most", state.str(),
                       compile::max_rank);
    }
    const std::vector<std::int64_t> shape = constant_shape(state);
    std::int64_t bytes = ir::element_bytes(state.element) * kernels::page_positions;
    for (const std::int64_t dim : shape) bytes = product(bytes, dim, state);
    if (!state.encoding.empty()) {
      if (shape.size() != 2 || shape[1] % kv_block != 0) {
        fail<InputError>("type {}: expected a State [K, E], E in whole blocks of {}", state.str(), kv_block);
      }
      bytes = kv_page_bytes(KvEncoding::q8_0, shape[0], shape[1]);
    }
    return product(ceil_div(bytes, line_bytes), line_bytes, state);
  }

 private:
  static std::optional<Layout> find_layout(std::string_view format_name) {
    const formats::Format* format = formats::find_format(format_name);
    return format == nullptr ? std::nullopt : layout_of(*format);
  }

  const KernelTable& table_;
  std::map<std::string, std::vector<std::optional<Kernel> (*)(const KernelRequest&)>, std::less<>> entries_;
};

}  // namespace

std::unique_ptr<compile::KernelCatalog> make_catalog(Isa isa) { return std::make_unique<Catalog>(isa); }

}  // namespace headrace::kernels
