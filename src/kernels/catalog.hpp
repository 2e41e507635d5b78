// The bridge from ops to kernels: the KernelCatalog of one instruction set, which the compiler is given.
#pragma once

#include <memory>

#include "compile/kernel_catalog.hpp"
#include "kernels/kernels.hpp"

namespace headrace::kernels {

/// Throws InternalError if this machine cannot run the ISA.
///
/// A Weight of rank 2 lies in its Layout (layout.hpp); one of rank 1 is decoded to f32 when it is loaded, whatever its
/// Format. State is f32, f16 or bf16; a State [..., E] lies in a page as [...][position][E], or with the order
/// "columns16" as [...][position / 16][E][16]. State of the encoding "q8_0" is that of attention, [K, E] (KvEncoding).
std::unique_ptr<compile::KernelCatalog> make_catalog(Isa isa);

}  // namespace headrace::kernels
