// What the CPU can do and the operating system lets it do. Detected when asked; the Context keeps the answer.
#pragma once

#include <string>

namespace headrace {

/// Each is true only if the instructions exist and the system saves the registers that they use (XCR0).
struct CpuFeatures {
  bool avx2 = false;    ///< with FMA and F16C
  bool avx512 = false;  ///< F, BW, VL, DQ
  bool avx512_vnni = false;
  bool avx512_vbmi = false;
  bool avx512_bf16 = false;
  bool amx_int8 = false;  ///< tiles need a permission from Linux besides (arch_prctl ARCH_REQ_XCOMP_PERM)
  bool amx_bf16 = false;
};

/// Asks the CPU; all false on architectures other than x86-64.
CpuFeatures detect_cpu_features() noexcept;

/// "avx2 avx512 avx512_vnni ...", or "none".
std::string describe(const CpuFeatures& features);

/// The CPU's own name ("AMD EPYC ..."), or "unknown".
std::string cpu_brand();

}  // namespace headrace
