// What the kernel tests share: a case per instruction set (absent ones are skipped by name), random Weights in every
// Format, aligned buffers, comparison of bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/half.hpp"
#include "formats/format.hpp"
#include "kernels/kernels.hpp"

namespace headrace::kernels {

/// A test of each known ISA. One that the machine lacks is reported as skipped.
class IsaTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    const auto isas = available_isas();
    if (std::find(isas.begin(), isas.end(), GetParam()) == isas.end()) {
      GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
    }
  }
  [[nodiscard]] static const KernelTable& table() { return kernel_table(GetParam()); }
  [[nodiscard]] static const KernelTable& portable_table() { return kernel_table(Isa::portable); }
};

inline std::string isa_test_name(const ::testing::TestParamInfo<Isa>& info) {
  return std::string(isa_name(info.param));
}

#define HEADRACE_TEST_EVERY_ISA(suite) \
  INSTANTIATE_TEST_SUITE_P(Isa, suite, ::testing::ValuesIn(headrace::kernels::known_isas()), isa_test_name)

/// Bytes at a multiple of 64.
class Bytes {
 public:
  explicit Bytes(std::int64_t size) : data_(new(std::align_val_t{64}) std::byte[static_cast<std::size_t>(size)]) {
    std::memset(data_.get(), 0xa5, static_cast<std::size_t>(size));  // what nobody writes must not matter
  }
  [[nodiscard]] std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte[], Free> data_;
};

inline std::vector<float> random_floats(std::int64_t count, std::mt19937& random, float deviation = 1) {
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

/// A file's bytes of a random Weight [rows, inputs]: random codes under f16 scales, or random numbers.
inline std::vector<std::byte> random_weight(const formats::Format& format, std::int64_t rows, std::int64_t inputs,
                                            std::mt19937& random) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows * format.row_bytes(inputs)));
  std::normal_distribution<float> normal(0, 0.05F);
  const auto put_half = [](std::byte* at, std::uint16_t half) { std::memcpy(at, &half, 2); };
  if (format.kind == formats::Format::Kind::floating) {
    for (std::int64_t i = 0; i < rows * inputs; ++i) {
      const float value = normal(random);
      std::byte* at = bytes.data() + i * format.block_bytes;
      if (format.name == "f32") std::memcpy(at, &value, 4);
      if (format.name == "f16") put_half(at, f32_to_f16(value));
      if (format.name == "bf16") put_half(at, f32_to_bf16(value));
    }
    return bytes;
  }
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xff);
  for (std::int64_t b = 0; b < rows * inputs / format.block_elements; ++b) {
    std::byte* block = bytes.data() + b * format.block_bytes;
    if (format.scales == formats::Format::Scales::e8m0) {
      block[format.scale_at] = static_cast<std::byte>(120 + random() % 8);
      continue;
    }
    // Factors, which are random, go up to 2^factor_bits.
    const float unit = format.factor_bits == 0 ? 1 : std::ldexp(1.0F, 1 - format.factor_bits);
    put_half(block + format.scale_at, f32_to_f16(unit * normal(random)));
    if (format.has_minimum) put_half(block + format.minimum_at, f32_to_f16(unit * normal(random)));
  }
  return bytes;
}

/// The exact values of one row, in double.
inline std::vector<double> exact_row(const formats::Format& format, const std::byte* row, std::int64_t inputs) {
  std::vector<double> values(static_cast<std::size_t>(inputs));
  if (format.kind == formats::Format::Kind::floating) {
    std::vector<float> decoded(values.size());
    format.decode(row, inputs, decoded.data());
    std::copy(decoded.begin(), decoded.end(), values.begin());
    return values;
  }
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(format.block_elements));
  std::vector<float> scales(static_cast<std::size_t>(format.block_elements / format.group_elements));
  std::vector<float> minimums(scales.size());
  for (std::int64_t b = 0; b < inputs / format.block_elements; ++b) {
    format.decode_codes(row + b * format.block_bytes, codes.data(), scales.data(), minimums.data());
    for (std::int64_t i = 0; i < format.block_elements; ++i) {
      const auto g = static_cast<std::size_t>(i / format.group_elements);
      const auto level = static_cast<double>(format.level(codes[static_cast<std::size_t>(i)]));
      values[static_cast<std::size_t>(b * format.block_elements + i)] =
          static_cast<double>(scales[g]) * level + (format.has_minimum ? static_cast<double>(minimums[g]) : 0.0);
    }
  }
  return values;
}

/// A Weight packed whole, by portable code.
inline Bytes pack(const formats::Format& format, const Layout& layout, const std::vector<std::byte>& rows,
                  std::int64_t outputs, std::int64_t inputs) {
  Bytes packed(packed_bytes(layout, outputs, inputs));
  kernel_table(Isa::portable)
      .pack_panels(format, layout, rows.data(), outputs, inputs, 0, panel_count(outputs), packed.data());
  return packed;
}

/// Equal bits; NaNs count as equal (docs/numerics.md leaves their payload open).
inline ::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "sizes " << a.size() << " and " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) {
      return ::testing::AssertionFailure() << "element " << i << ": " << std::hexfloat << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

constexpr double epsilon = 0x1p-24;  ///< the largest relative error of one f32 rounding

}  // namespace headrace::kernels
