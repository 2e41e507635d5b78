// The choice of an instruction set, and the parts that all of them share.
#include "kernels/kernels.hpp"

#include <cmath>

#include "base/cpu_features.hpp"
#include "base/error.hpp"

namespace headrace::kernels {

namespace portable {
extern const KernelTable table;
}
#if defined(HEADRACE_KERNELS_X86)
namespace avx2 {
extern const KernelTable table;
}
namespace avx512 {
extern const KernelTable table;
}
#endif

std::string_view isa_name(Isa isa) noexcept {
  switch (isa) {
    case Isa::portable:
      return "portable";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "unknown";
}

std::string_view kv_encoding_name(KvEncoding encoding) noexcept {
  switch (encoding) {
    case KvEncoding::f16:
      return "f16";
    case KvEncoding::bf16:
      return "bf16";
    case KvEncoding::q8_0:
      return "q8_0";
  }
  return "unknown";
}

std::vector<Isa> known_isas() { return {Isa::portable, Isa::avx2, Isa::avx512}; }

std::vector<Isa> available_isas() {
  std::vector<Isa> isas = {Isa::portable};
#if defined(HEADRACE_KERNELS_X86)
  const CpuFeatures features = detect_cpu_features();
  if (features.avx2) isas.push_back(Isa::avx2);
  if (features.avx512_vnni) isas.push_back(Isa::avx512);
#endif
  return isas;
}

const KernelTable& kernel_table(Isa isa) {
  for (const Isa available : available_isas()) {
    if (available != isa) continue;
    if (isa == Isa::portable) return portable::table;
#if defined(HEADRACE_KERNELS_X86)
    if (isa == Isa::avx2) return avx2::table;
    if (isa == Isa::avx512) return avx512::table;
#endif
  }
  fail<InternalError>("kernels for {} cannot run on this machine", isa_name(isa));
}

LinearNumerics linear_numerics(const Layout& layout, TokenClass /*token_class*/, Isa /*isa*/) noexcept {
  if (!layout.grouped()) return LinearNumerics::two_chains;
  if (!layout.has_factors()) return LinearNumerics::a16_group32;
  return layout.group_elements == 16 ? LinearNumerics::a16_factors16 : LinearNumerics::a16_factors32;
}

std::string_view linear_numerics_name(LinearNumerics numerics) noexcept {
  switch (numerics) {
    case LinearNumerics::two_chains:
      return "two_chains";
    case LinearNumerics::a16_group32:
      return "a16_group32";
    case LinearNumerics::a16_factors32:
      return "a16_factors32";
    case LinearNumerics::a16_factors16:
      return "a16_factors16";
  }
  return "unknown";
}

void rope_table(std::int64_t position, const float* frequencies, std::int64_t pairs, float magnitude,
                float* table) noexcept {
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double angle = static_cast<double>(position) * static_cast<double>(frequencies[i]);
    table[i] = static_cast<float>(std::cos(angle) * static_cast<double>(magnitude));
    table[pairs + i] = static_cast<float>(std::sin(angle) * static_cast<double>(magnitude));
  }
}

std::int64_t attention_tiles(const std::byte* const* const* pages, std::int64_t rows, AttentionTile* tiles) noexcept {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const bool joins = count > 0 && tiles[count - 1].rows < attention_tile_rows && pages[row] == pages[row - 1];
    if (joins) {
      ++tiles[count - 1].rows;
    } else {
      tiles[count++] = {row, 1};
    }
  }
  return count;
}

}  // namespace headrace::kernels
