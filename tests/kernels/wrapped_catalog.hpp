// A catalog around another one: passes on what it is asked, for tests that change a part of the answers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "compile/kernel_catalog.hpp"

namespace headrace::testing {

class WrappedCatalog : public compile::KernelCatalog {
 public:
  explicit WrappedCatalog(std::unique_ptr<compile::KernelCatalog> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] std::string_view isa() const override { return inner_->isa(); }
  [[nodiscard]] std::optional<compile::Kernel> find(const ir::OpDef& op, std::span<const ir::Type> operands,
                                                    const ir::Attributes& attributes) const override {
    return inner_->find(op, operands, attributes);
  }
  [[nodiscard]] compile::Kernel copy() const override { return inner_->copy(); }
  [[nodiscard]] std::string linear_encoding(std::string_view format) const override {
    return inner_->linear_encoding(format);
  }
  [[nodiscard]] std::int64_t row_bytes(std::string_view encoding, std::int64_t elements) const override {
    return inner_->row_bytes(encoding, elements);
  }
  [[nodiscard]] std::int64_t packed_bytes(const ir::Type& weight) const override {
    return inner_->packed_bytes(weight);
  }
  [[nodiscard]] std::int64_t page_positions() const override { return inner_->page_positions(); }
  [[nodiscard]] std::int64_t page_bytes(const ir::Type& state) const override { return inner_->page_bytes(state); }

 private:
  std::unique_ptr<compile::KernelCatalog> inner_;
};

/// Kernels that do nothing, with the sizes, phases and divisions of those that do: a Plan of them runs for nothing but
/// what lies around kernels.
class IdleCatalog final : public WrappedCatalog {
 public:
  using WrappedCatalog::WrappedCatalog;
  [[nodiscard]] std::optional<compile::Kernel> find(const ir::OpDef& op, std::span<const ir::Type> operands,
                                                    const ir::Attributes& attributes) const override {
    std::optional<compile::Kernel> kernel = WrappedCatalog::find(op, operands, attributes);
    if (kernel) kernel->run = [](const compile::KernelCall&) noexcept {};
    return kernel;
  }
  [[nodiscard]] compile::Kernel copy() const override {
    compile::Kernel kernel = WrappedCatalog::copy();
    kernel.run = [](const compile::KernelCall&) noexcept {};
    return kernel;
  }
};

}  // namespace headrace::testing
