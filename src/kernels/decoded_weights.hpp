// Kernels for plain tensors, made to work on Weights in their Layouts.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "compile/kernel_catalog.hpp"
#include "kernels/kernels.hpp"

namespace headrace::kernels {

/// The kernel that `find` has for f32 tensors in place of the packed Weights among `operands`, with a phase before
/// it that decodes those to shared scratch; nothing if there are none, or none with a Layout. For definitions that read
/// a Weight as numbers (linear's transpose): slow, and never on a model's path.
std::optional<compile::Kernel> with_decoded_weights(
    const KernelTable& table, std::span<const ir::Type> operands,
    const std::function<std::optional<compile::Kernel>(std::span<const ir::Type>)>& find);

}  // namespace headrace::kernels
