// Passes: each takes a verified Program and gives a verified Program that computes the same.
#pragma once

#include <string_view>

#include "compile/kernel_catalog.hpp"
#include "ir/op.hpp"
#include "ir/program.hpp"

namespace headrace::compile {

/// Whether the op's result is its first operand's bytes, so that it needs no kernel: a reshape of a tensor (a Weight is
/// packed), and a State that was appended to.
bool is_alias(const ir::OpDef& op, std::span<const ir::Type> operands);
/// Whether the op does nothing but that.
bool needs_no_kernel(const ir::OpDef& op, std::span<const ir::Type> operands);

/// A function for each distinct combination of Formats that its calls bind ("layer", "layer.1", …), so that what
/// follows knows the Format of every Weight. Functions that are not called are left out.
ir::Program specialize(const ir::Program& program);

/// Makes encodings explicit: `linear` and `expert_linear` on a Weight whose Format wants one read `encode(x)`, one for
/// all its readers.
ir::Program encode_activations(const ir::Program& program, const KernelCatalog& catalog);

/// Encodes the State that attention reads as "f16", "bf16" or "q8_0"; "" leaves it as it is declared. Throws InputError
/// if the encoding is another, or the catalog's attention does not read it.
ir::Program encode_states(const ir::Program& program, const KernelCatalog& catalog, std::string_view encoding);

/// Gives State the page order that attention's kernel reads its keys in, where the catalog has such a kernel.
ir::Program order_states(const ir::Program& program, const KernelCatalog& catalog);

/// Expands composites that the catalog has no kernel for, until every op has one. Throws InputError naming a primitive
/// that has none.
ir::Program decompose(const ir::Program& program, const KernelCatalog& catalog);

/// Joins ops whose workers would wait for one another between them, where the catalog has a kernel for the joined op:
/// a norm or an encoding with the linears that read it, and the rotation of keys with their append. It is a composite
/// whose expansion is what it replaces, so no number changes.
ir::Program fuse(const ir::Program& program, const KernelCatalog& catalog);

/// Drops nodes whose results nobody reads.
ir::Program eliminate_dead_nodes(const ir::Program& program);

/// Specialize, encode_activations, encode_states, order_states, fuse, decompose, eliminate_dead_nodes.
ir::Program lower(const ir::Program& program, const KernelCatalog& catalog, std::string_view kv_encoding = "");

}  // namespace headrace::compile
