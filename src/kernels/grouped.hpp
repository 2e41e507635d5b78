// What the grouped linears of all instruction sets share: reading a group's codes, scales and minimums, and the choice
// of the instance for a Layout.
#pragma once

#include "kernels/isa.hpp"

namespace headrace::kernels::HEADRACE_ISA {

/// The compile-time part of a grouped Layout.
template <Layout::Codes codes_, bool scales_are_f16_, bool has_minimum_>
struct Grouped {
  static constexpr Layout::Codes codes = codes_;
  static constexpr bool scales_are_f16 = scales_are_f16_;
  static constexpr bool has_minimum = has_minimum_;
  static constexpr int code_bits = codes == Layout::Codes::nibble ? 4 : codes == Layout::Codes::nibble_bit ? 5 : 8;
  static constexpr Size code_bytes = codes == Layout::Codes::nibble ? 256 : codes == Layout::Codes::byte ? 512 : 320;
  static constexpr Size vector_bytes = scales_are_f16 ? 32 : 64;
  static constexpr Size group_bytes = code_bytes + vector_bytes * (has_minimum ? 2 : 1);
};

template <class G>
inline void unpack(const std::byte* codes, Lines& lines) {
  if constexpr (G::codes == Layout::Codes::byte) {
    copy_bytes(codes, lines);
  } else {
    unpack_nibbles(codes, lines);
    if constexpr (G::codes == Layout::Codes::nibble_bit) add_fifth_bits(codes + 256, lines);
  }
}

template <class G>
inline Vec load_scales(const std::byte* p) {
  if constexpr (G::scales_are_f16) return load_f16(p);
  Vec v;
  memcpy(&v, p, 64);
  return v;
}

/// `Instance<Grouped<...>>::run` for the Layout.
template <template <class> class Instance, Layout::Codes codes>
LinearFunction find_instance_of_codes(const Layout& layout) noexcept {
  if (layout.scales_are_f16) {
    return layout.has_minimum ? Instance<Grouped<codes, true, true>>::run : Instance<Grouped<codes, true, false>>::run;
  }
  return layout.has_minimum ? Instance<Grouped<codes, false, true>>::run : Instance<Grouped<codes, false, false>>::run;
}

template <template <class> class Instance>
LinearFunction find_instance(const Layout& layout) noexcept {
  if (layout.group_elements != 32) return nullptr;
  switch (layout.codes) {
    case Layout::Codes::nibble:
      return find_instance_of_codes<Instance, Layout::Codes::nibble>(layout);
    case Layout::Codes::nibble_bit:
      return find_instance_of_codes<Instance, Layout::Codes::nibble_bit>(layout);
    case Layout::Codes::byte:
      return find_instance_of_codes<Instance, Layout::Codes::byte>(layout);
    default:
      return nullptr;
  }
}

}  // namespace headrace::kernels::HEADRACE_ISA
