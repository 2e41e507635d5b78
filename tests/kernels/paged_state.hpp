// State in pages as kernels see it, filled from and read back to what the interpreter calls a StateValue. The places of
// elements are computed here on their own, from the description in kernels/catalog.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "base/half.hpp"
#include "compile/kernel_catalog.hpp"
#include "ir/interpreter.hpp"
#include "kernels/common.hpp"

namespace headrace::testing {

/// `values` as bytes of an element type.
inline void store_value(ir::ElementType element, double value, std::byte* out) {
  const auto put = [&](auto number) { std::memcpy(out, &number, sizeof number); };
  switch (element) {
    case ir::ElementType::f32:
      return put(static_cast<float>(value));
    case ir::ElementType::f64:
      return put(value);
    case ir::ElementType::f16:
      return put(f32_to_f16(static_cast<float>(value)));
    case ir::ElementType::bf16:
      return put(f32_to_bf16(static_cast<float>(value)));
    case ir::ElementType::i8:
      return put(static_cast<std::int8_t>(value));
    case ir::ElementType::u8:
    case ir::ElementType::boolean:
      return put(static_cast<std::uint8_t>(value));
    case ir::ElementType::i32:
      return put(static_cast<std::int32_t>(value));
    case ir::ElementType::i64:
      return put(static_cast<std::int64_t>(value));
  }
}

inline double load_value(ir::ElementType element, const std::byte* in) {
  const auto get = [&](auto number) {
    std::memcpy(&number, in, sizeof number);
    return number;
  };
  switch (element) {
    case ir::ElementType::f32:
      return static_cast<double>(get(float{}));
    case ir::ElementType::f64:
      return get(double{});
    case ir::ElementType::f16:
      return static_cast<double>(f16_to_f32(get(std::uint16_t{})));
    case ir::ElementType::bf16:
      return static_cast<double>(bf16_to_f32(get(std::uint16_t{})));
    case ir::ElementType::i8:
      return get(std::int8_t{});
    case ir::ElementType::u8:
    case ir::ElementType::boolean:
      return get(std::uint8_t{});
    case ir::ElementType::i32:
      return get(std::int32_t{});
    case ir::ElementType::i64:
      return static_cast<double>(get(std::int64_t{}));
  }
  return 0;
}

/// Pages of some sequences, each with room for `positions`.
class PagedStates {
 public:
  PagedStates(std::size_t sequences, std::int64_t positions, std::int64_t page_positions, std::int64_t page_bytes)
      : page_positions_(page_positions) {
    for (std::size_t b = 0; b < sequences; ++b) {
      auto& table = tables_.emplace_back();
      for (std::int64_t first = 0; first < positions; first += page_positions) {
        memory_.emplace_back(page_bytes);
        table.push_back(memory_.back().data());
      }
    }
    for (const auto& table : tables_) pages_.push_back(table.data());
    lengths_.resize(sequences);
  }

  void set(const ir::Type& type, std::int64_t offset, const ir::StateValue& value) {
    const std::int64_t row = value.row_elements();
    for (std::size_t b = 0; b < tables_.size(); ++b) {
      if (!type.encoding.empty()) {
        for (std::int64_t i = 0; i < value.positions(b) * row; i += 32) set_q8(type, offset, b, value, i);
        continue;
      }
      for (std::int64_t i = 0; i < value.positions(b) * row; ++i) {
        store_value(type.element, value.sequences[b][static_cast<std::size_t>(i)],
                    place(type, offset, b, i / row, i % row));
      }
    }
  }

  /// Reads the positions below lengths().
  [[nodiscard]] ir::StateValue get(const ir::Type& type, std::int64_t offset) const {
    ir::StateValue value{type.element, {}, {}, type.encoding};
    for (const ir::Dim& dim : type.shape) value.shape.push_back(dim.constant());
    const std::int64_t row = value.row_elements();
    for (std::size_t b = 0; b < tables_.size(); ++b) {
      auto& values = value.sequences.emplace_back();
      for (std::int64_t i = 0; i < lengths_[b] * row; ++i) {
        if (!type.encoding.empty()) {
          values.push_back(get_q8(type, offset, b, i / row, i % row));
          continue;
        }
        values.push_back(load_value(type.element, place(type, offset, b, i / row, i % row)));
      }
    }
    return value;
  }

  [[nodiscard]] std::vector<std::int64_t>& lengths() { return lengths_; }
  [[nodiscard]] std::byte* const* const* pages() const { return pages_.data(); }
  [[nodiscard]] compile::StateView view(std::int64_t offset) const {
    compile::StateView view;
    view.pages = pages_.data();
    view.sequences = static_cast<std::int64_t>(pages_.size());
    view.offset = offset;
    view.lengths = lengths_.data();
    return view;
  }

 private:
  /// Where a position's code of element [k][e] of q8_0 State lies, and the scale of its block: kernels.hpp, KvEncoding.
  struct Q8Place {
    std::byte* code;
    std::byte* scale;
  };
  [[nodiscard]] Q8Place q8_place(const ir::Type& type, std::int64_t offset, std::size_t sequence, std::int64_t position,
                                 std::int64_t element) const {
    const std::int64_t width = type.shape.back().constant();
    const std::int64_t k = element / width;
    const std::int64_t block = element % width / 32;
    const std::int64_t e = element % 32;
    const std::int64_t slot = position % page_positions_;
    std::byte* page = tables_[sequence][static_cast<std::size_t>(position / page_positions_)] + offset;
    const std::int64_t panel_bytes = (width / 32 * 16 * 34 + 63) / 64 * 64;
    std::byte* head = page + k * 4 * panel_bytes;
    if (type.order == "columns16") {
      std::byte* group = head + slot / 16 * panel_bytes + block * 16 * 34;
      return {group + e / 4 * 64 + slot % 16 * 4 + e % 4, group + 512 + slot % 16 * 2};
    }
    std::byte* values = head + block * 64 * 34;
    return {values + e / 16 * 1024 + slot / 4 * 64 + e % 16 * 4 + slot % 4, values + 64 * 32 + slot * 2};
  }

  /// One block, whose values are codes times a power of two.
  void set_q8(const ir::Type& type, std::int64_t offset, std::size_t sequence, const ir::StateValue& value,
              std::int64_t first) {
    const std::int64_t row = value.row_elements();
    const double* values = value.sequences[sequence].data() + first;
    double largest = 0;
    for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(values[i]));
    const double scale = largest == 0 ? 1 : std::exp2(std::ceil(std::log2(largest / 127)));
    for (int i = 0; i < 32; ++i) {
      const Q8Place place = q8_place(type, offset, sequence, first / row, first % row + i);
      const auto code = static_cast<int>(values[i] / scale);
      if (code * scale != values[i]) ADD_FAILURE() << "no code for " << values[i] << " at scale " << scale;
      *place.code = static_cast<std::byte>(code + 128);
      store_value(ir::ElementType::f16, scale, place.scale);
    }
  }

  [[nodiscard]] double get_q8(const ir::Type& type, std::int64_t offset, std::size_t sequence, std::int64_t position,
                              std::int64_t element) const {
    const Q8Place place = q8_place(type, offset, sequence, position, element);
    return (static_cast<int>(*place.code) - 128) * load_value(ir::ElementType::f16, place.scale);
  }

  [[nodiscard]] std::byte* place(const ir::Type& type, std::int64_t offset, std::size_t sequence, std::int64_t position,
                                 std::int64_t element) const {
    const std::int64_t width = type.shape.empty() ? 1 : type.shape.back().constant();
    const std::int64_t outer = element / width;
    const std::int64_t e = element % width;
    const std::int64_t slot = position % page_positions_;
    std::int64_t index = (outer * page_positions_ + slot) * width + e;
    if (type.order == "columns16") {
      index = outer * page_positions_ * width + slot / 16 * 16 * width + e * 16 + slot % 16;
    }
    return tables_[sequence][static_cast<std::size_t>(position / page_positions_)] + offset +
           index * ir::element_bytes(type.element);
  }

  std::int64_t page_positions_;
  std::vector<kernels::Bytes> memory_;
  std::vector<std::vector<std::byte*>> tables_;
  std::vector<std::byte* const*> pages_;
  std::vector<std::int64_t> lengths_;
};

}  // namespace headrace::testing
