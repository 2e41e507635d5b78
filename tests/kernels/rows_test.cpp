// Row and elementwise kernels: every ISA against portable with ==, portable against plain double code.
#include <cfloat>

#include "kernels/common.hpp"

namespace headrace::kernels {
namespace {

std::vector<float> unusual_floats() {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.0F,   -0.0F,  FLT_MIN, -FLT_MIN, 1e-45F,    -1e-45F,       FLT_MAX, -FLT_MAX, 1.0F,
                               -1.0F,  88.72F, 88.73F,  -87.34F,  -103.9F,   -104.1F,       89.0F,   1e30F,    -1e30F,
                               0.5F,   1e-20F, 2.5F,    infinity, -infinity, std::nanf(""), 3.5F,    -0.5F,    127.0F,
                               -87.9F, 100.0F, -100.0F, -1000.0F, 1000.0F,   1e-38F};
  return values;
}

class RowsTest : public IsaTest {};

// ---- exp and its kin -----------------------------------------------------------------------------------------------

TEST(Exp, WithinOneUlpOfLongDouble) {
  const KernelTable& table = kernel_table(Isa::portable);
  std::vector<float> x;
  for (double v = -104.5; v < 89.5; v += 0.00137) x.push_back(static_cast<float>(v));
  for (float v = 1e-10F; v < 1; v *= 1.01F) {
    x.push_back(v);
    x.push_back(-v);
  }
  std::vector<float> y(x.size());
  table.exp(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::exp(static_cast<long double>(x[i]));
    if (exact > static_cast<long double>(FLT_MAX)) {
      EXPECT_TRUE(std::isinf(y[i])) << x[i];
      continue;
    }
    const int exponent = std::max(std::ilogb(static_cast<double>(exact)), -126);
    const double ulps =
        std::abs(static_cast<double>(static_cast<long double>(y[i]) - exact)) / std::ldexp(1.0, exponent - 23);
    worst = std::max(worst, ulps);
    EXPECT_LE(ulps, 1.0) << x[i];
  }
  RecordProperty("worst_ulps", std::to_string(worst));
  EXPECT_GT(worst, 0.4) << "a sweep that sees no rounding error sweeps nothing";
}

TEST(Exp, EndsOfTheRange) {
  const KernelTable& table = kernel_table(Isa::portable);
  const float infinity = std::numeric_limits<float>::infinity();
  const float x[] = {infinity, -infinity, std::nanf(""), 0.0F, -0.0F, 1e38F, -1e38F, 88.7228F, -103.0F, -104.0F};
  float y[10];
  table.exp(x, y, 10);
  EXPECT_EQ(y[0], infinity);
  EXPECT_EQ(y[1], 0.0F);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 1.0F);
  EXPECT_EQ(y[4], 1.0F);
  EXPECT_EQ(y[5], infinity);
  EXPECT_EQ(y[6], 0.0F);
  EXPECT_TRUE(std::isfinite(y[7]));
  EXPECT_GT(y[8], 0.0F);
  EXPECT_EQ(y[9], 0.0F);
}

TEST(Silu, CloseToLongDouble) {
  const KernelTable& table = kernel_table(Isa::portable);
  std::vector<float> x;
  for (double v = -80; v < 80; v += 0.0031) x.push_back(static_cast<float>(v));
  std::vector<float> y(x.size());
  table.silu(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto v = static_cast<long double>(x[i]);
    const long double exact = v / (1 + std::exp(-v));
    EXPECT_NEAR(static_cast<double>(y[i]), static_cast<double>(exact),
                6 * epsilon * std::abs(static_cast<double>(exact)));
  }
}

TEST_P(RowsTest, ElementwiseEqualsPortableAndItself) {
  std::mt19937 random(6);
  auto a = unusual_floats();
  auto b = random_floats(static_cast<std::int64_t>(a.size()), random, 10);
  const auto more = random_floats(200, random, 30);
  a.insert(a.end(), more.begin(), more.end());
  b.insert(b.end(), more.rbegin(), more.rend());
  const auto count = static_cast<std::int64_t>(a.size());
  const auto all = [&](const KernelTable& t, std::int64_t from, std::int64_t n) {
    std::vector<float> out;
    std::vector<float> y(static_cast<std::size_t>(n));
    const auto keep = [&] { out.insert(out.end(), y.begin(), y.end()); };
    t.add(a.data() + from, b.data() + from, y.data(), n), keep();
    t.multiply(a.data() + from, b.data() + from, y.data(), n), keep();
    t.scale(a.data() + from, 0.3F, y.data(), n), keep();
    t.exp(a.data() + from, y.data(), n), keep();
    t.silu(a.data() + from, y.data(), n), keep();
    t.silu_multiply(a.data() + from, b.data() + from, y.data(), n), keep();
    return out;
  };
  EXPECT_TRUE(same_bits(all(table(), 0, count), all(portable_table(), 0, count)));
  for (std::int64_t i = 0; i < count; ++i) EXPECT_TRUE(same_bits(all(table(), i, 1), all(portable_table(), i, 1)));
  for (std::int64_t n : {2, 15, 17, 31}) EXPECT_TRUE(same_bits(all(table(), 3, n), all(portable_table(), 3, n)));
  const auto out = all(table(), 0, count);
  EXPECT_EQ(out[100], a[100] + b[100]);
  EXPECT_EQ(out[static_cast<std::size_t>(count) + 100], a[100] * b[100]);
}

// ---- encode --------------------------------------------------------------------------------------------------------

struct Encoded {
  std::vector<int> codes;
  std::vector<float> scales, scaled_sums, half_scaled_sums;
  std::vector<std::int32_t> sums, half_sums;
};

Encoded encode(const KernelTable& table, const std::vector<float>& x) {
  const auto inputs = static_cast<std::int64_t>(x.size());
  const A16Row row = a16_row(inputs);
  const Bytes bytes(row.bytes);
  table.encode_a16(x.data(), inputs, bytes.data(), row.bytes, inputs, 1);
  Encoded e;
  for (std::int64_t k = 0; k < inputs; ++k) e.codes.push_back(a16_code(bytes.data(), k));
  const auto blocks = static_cast<std::size_t>(inputs / 32);
  e.scales.resize(blocks);
  e.sums.resize(blocks);
  e.scaled_sums.resize(blocks);
  e.half_sums.resize(2 * blocks);
  e.half_scaled_sums.resize(2 * blocks);
  std::memcpy(e.scales.data(), bytes.data() + row.scales, 4 * blocks);
  std::memcpy(e.sums.data(), bytes.data() + row.sums, 4 * blocks);
  std::memcpy(e.scaled_sums.data(), bytes.data() + row.scaled_sums, 4 * blocks);
  std::memcpy(e.half_sums.data(), bytes.data() + row.half_sums, 8 * blocks);
  std::memcpy(e.half_scaled_sums.data(), bytes.data() + row.half_scaled_sums, 8 * blocks);
  return e;
}

TEST_P(RowsTest, EncodeEqualsPortable) {
  std::mt19937 random(7);
  for (int variant = 0; variant < 64; ++variant) {
    auto x = random_floats(96, random, std::ldexp(1.0F, (variant - 32) * 4));
    const auto unusual = unusual_floats();
    if (variant % 2 == 1) {
      for (int i = 0; i < 3; ++i) x[random() % 96] = unusual[random() % unusual.size()];
    }
    const Encoded a = encode(table(), x);
    const Encoded b = encode(portable_table(), x);
    EXPECT_EQ(a.codes, b.codes);
    EXPECT_EQ(a.sums, b.sums);
    EXPECT_EQ(a.half_sums, b.half_sums);
    EXPECT_TRUE(same_bits(a.scales, b.scales));
    EXPECT_TRUE(same_bits(a.scaled_sums, b.scaled_sums));
    EXPECT_TRUE(same_bits(a.half_scaled_sums, b.half_scaled_sums));
  }
}

TEST(Encode, IsWithinHalfACode) {
  std::mt19937 random(8);
  const auto x = random_floats(32 * 50, random, 3);
  const Encoded e = encode(kernel_table(Isa::portable), x);
  for (std::size_t block = 0; block < 50; ++block) {
    float amax = 0;
    int sum = 0;
    int half_sums[2] = {};
    for (std::size_t k = 32 * block; k < 32 * block + 32; ++k) {
      amax = std::max(amax, std::abs(x[k]));
      sum += e.codes[k];
      half_sums[k / 16 % 2] += e.codes[k];
      EXPECT_NEAR(static_cast<double>(x[k]), e.codes[k] * static_cast<double>(e.scales[block]),
                  static_cast<double>(e.scales[block]) * 0.51);  // half a code, and two roundings of codes up to 2^15
      EXPECT_LE(std::abs(e.codes[k]), a16_largest_code);
    }
    EXPECT_EQ(e.scales[block], amax / 32512);
    EXPECT_EQ(e.sums[block], sum);
    EXPECT_EQ(e.scaled_sums[block], static_cast<float>(sum) * e.scales[block]);
    for (std::size_t half = 0; half < 2; ++half) {
      EXPECT_EQ(e.half_sums[2 * block + half], half_sums[half]);
      EXPECT_EQ(e.half_scaled_sums[2 * block + half], static_cast<float>(half_sums[half]) * e.scales[block]);
    }
  }
}

TEST(Encode, UnusualBlocks) {
  std::vector<float> x(32 * 5, 0.0F);
  x[32] = 1e-40F;  // below 2^-112: as zeros
  x[64] = std::nanf("");
  x[96] = std::numeric_limits<float>::infinity();
  x[128] = 127.0F;
  x[129] = 2.5F / 256;  // ties go to even
  x[130] = -3.5F / 256;
  const Encoded e = encode(kernel_table(Isa::portable), x);
  EXPECT_EQ(e.scales[0], 0.0F);
  EXPECT_EQ(e.scales[1], 0.0F);
  EXPECT_TRUE(std::isnan(e.scales[2]));
  EXPECT_TRUE(std::isnan(e.scales[3]));
  EXPECT_EQ(e.scales[4], 1.0F / 256);
  EXPECT_EQ(e.codes[128], 32512);
  EXPECT_EQ(e.codes[129], 2);
  EXPECT_EQ(e.codes[130], -4);
  EXPECT_EQ(e.sums[4], 32510);
}

// ---- rms_norm ------------------------------------------------------------------------------------------------------

TEST_P(RowsTest, RmsNorm) {
  std::mt19937 random(9);
  for (const std::int64_t width : {1, 5, 16, 31, 576}) {
    const std::int64_t rows = 3;
    const auto x = random_floats(rows * width, random, 2);
    const auto weight = random_floats(width, random);
    std::vector<float> y(x.size());
    std::vector<float> z(x.size());
    table().rms_norm(x.data(), width, weight.data(), 1e-5F, y.data(), width, width, rows);
    portable_table().rms_norm(x.data(), width, weight.data(), 1e-5F, z.data(), width, width, rows);
    EXPECT_TRUE(same_bits(y, z));
    for (std::int64_t row = 0; row < rows; ++row) {
      double squares = 0;
      for (std::int64_t i = 0; i < width; ++i) {
        const auto v = static_cast<double>(x[static_cast<std::size_t>(row * width + i)]);
        squares += v * v;
      }
      const double r = 1 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
      for (std::int64_t i = 0; i < width; ++i) {
        const auto at = static_cast<std::size_t>(row * width + i);
        const double exact = static_cast<double>(x[at]) * r * static_cast<double>(weight[static_cast<std::size_t>(i)]);
        EXPECT_NEAR(static_cast<double>(y[at]), exact,
                    (static_cast<double>(width) / 16 + 12) * epsilon * std::abs(exact));
      }
    }
  }
}

// ---- rope ----------------------------------------------------------------------------------------------------------

TEST_P(RowsTest, Rope) {
  std::mt19937 random(10);
  for (const auto pairing : {RopePairing::halves, RopePairing::adjacent}) {
    for (const auto& [width, rotated] : {std::pair{64, 64}, {80, 80}, {24, 24}, {96, 32}}) {
      const std::int64_t rows = 4;
      const std::int64_t heads = 3;
      const std::int64_t pairs = rotated / 2;
      std::vector<float> frequencies;
      for (std::int64_t i = 0; i < pairs; ++i) {
        frequencies.push_back(
            static_cast<float>(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(pairs))));
      }
      std::vector<float> angles(static_cast<std::size_t>(rows * rotated));
      for (std::int64_t row = 0; row < rows; ++row) {
        rope_table(1000 * row + 3, frequencies.data(), pairs, 1, angles.data() + row * rotated);
      }
      const auto in = random_floats(rows * heads * width, random);
      RopeArgs args;
      args.heads = heads;
      args.head_width = width;
      args.rotated = rotated;
      args.pairing = pairing;
      args.in_stride = args.out_stride = heads * width;
      args.table = angles.data();
      args.table_stride = rotated;
      args.sines = pairs;
      const auto apply = [&](const KernelTable& t, bool in_place) {
        std::vector<float> out = in_place ? in : std::vector<float>(in.size(), -7.0F);
        args.in = in_place ? out.data() : in.data();
        args.out = out.data();
        t.rope(args, 2, rows);
        t.rope(args, 0, 2);
        return out;
      };
      const auto out = apply(table(), false);
      EXPECT_TRUE(same_bits(out, apply(portable_table(), false)));
      EXPECT_TRUE(same_bits(out, apply(table(), true)));
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t head = 0; head < heads; ++head) {
          const auto base = static_cast<std::size_t>((row * heads + head) * width);
          for (std::int64_t i = 0; i < pairs; ++i) {
            const double angle =
                static_cast<double>(1000 * row + 3) * static_cast<double>(frequencies[static_cast<std::size_t>(i)]);
            const auto i0 = base + static_cast<std::size_t>(pairing == RopePairing::halves ? i : 2 * i);
            const auto i1 = base + static_cast<std::size_t>(pairing == RopePairing::halves ? i + pairs : 2 * i + 1);
            const auto x0 = static_cast<double>(in[i0]);
            const auto x1 = static_cast<double>(in[i1]);
            const double bound = 4 * epsilon * (std::abs(x0) + std::abs(x1));
            EXPECT_NEAR(static_cast<double>(out[i0]), x0 * std::cos(angle) - x1 * std::sin(angle), bound);
            EXPECT_NEAR(static_cast<double>(out[i1]), x1 * std::cos(angle) + x0 * std::sin(angle), bound);
          }
          for (std::int64_t i = rotated; i < width; ++i) {
            EXPECT_EQ(out[base + static_cast<std::size_t>(i)], in[base + static_cast<std::size_t>(i)]);
          }
        }
      }
    }
  }
}

// ---- kv_append -----------------------------------------------------------------------------------------------------

TEST_P(RowsTest, KvAppendWritesF16WhereThePageSays) {
  std::mt19937 random(11);
  for (const std::int64_t width : {16, 24, 64}) {
    const std::int64_t kv_heads = 2;
    const std::int64_t rows = 5;
    const std::int64_t positions[] = {0, 17, 63, 64, 200};
    auto k = random_floats(rows * kv_heads * width, random);
    auto v = random_floats(rows * kv_heads * width, random, 1e-6F);  // f16 subnormals
    const auto unusual = unusual_floats();
    std::copy_n(unusual.begin(), 16, k.begin());
    std::copy_n(unusual.begin() + 16, 16, v.begin());
    const std::int64_t side = kv_page_bytes(KvEncoding::f16, kv_heads, width);
    const std::int64_t page_bytes = 2 * side + 64;
    const Bytes pages(page_bytes * rows);
    std::vector<std::byte*> page_of_row;
    for (std::int64_t row = 0; row < rows; ++row) page_of_row.push_back(pages.data() + row * page_bytes);
    KvAppendArgs args;
    args.kv_heads = kv_heads;
    args.head_width = width;
    args.k = k.data();
    args.v = v.data();
    args.k_stride = args.v_stride = kv_heads * width;
    args.pages = page_of_row.data();
    args.positions = positions;
    args.k_offset = 64;
    args.v_offset = 64 + side;
    table().kv_append(args, 0, rows);
    std::int64_t written = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t head = 0; head < kv_heads; ++head) {
        for (std::int64_t e = 0; e < width; ++e) {
          const std::int64_t slot = positions[row] % 64;
          const auto at = static_cast<std::size_t>((row * kv_heads + head) * width + e);
          std::uint16_t half = 0;
          const std::byte* base = page_of_row[static_cast<std::size_t>(row)] + 64 + head * 64 * width * 2;
          std::memcpy(&half, base + ((slot / 16 * width + e) * 16 + slot % 16) * 2, 2);
          EXPECT_EQ(half, f32_to_f16(k[at])) << k[at];
          std::memcpy(&half, base + side + (slot * width + e) * 2, 2);
          EXPECT_EQ(half, f32_to_f16(v[at])) << v[at];
        }
      }
    }
    for (std::int64_t i = 0; i < page_bytes * rows; ++i) written += pages.data()[i] != std::byte{0xa5} ? 1 : 0;
    EXPECT_LE(written, rows * kv_heads * width * 4) << "wrote elsewhere";
  }
}

TEST_P(RowsTest, AppendOfBlocksEqualsPortable) {
  std::mt19937 random(14);
  auto x = random_floats(64 * 32, random);
  for (std::size_t block = 0; block < 64; ++block) {  // scales from where f16 has none to where it overflows
    for (std::size_t i = 0; i < 32; ++i) x[32 * block + i] *= std::ldexp(1.0F, static_cast<int>(block) - 32);
  }
  const auto unusual = unusual_floats();
  for (std::size_t i = 0; i < unusual.size() && i < 20; ++i) x[32 * (20 + i) + i] = unusual[i];
  for (const std::int64_t slot : {0, 17, 63}) {
    for (const bool keys : {true, false}) {
      const std::int64_t bytes = kv_page_bytes(KvEncoding::q8_0, 8, 256);
      const Bytes own(bytes);
      const Bytes expected(bytes);
      const auto write = [&](const KernelTable& t, std::byte* page, std::int64_t first, std::int64_t last) {
        (keys ? t.append_keys_q8 : t.append_values_q8)(x.data(), 256, first, last, slot, page);
      };
      write(table(), own.data(), 30, 64);
      write(table(), own.data(), 0, 30);
      write(portable_table(), expected.data(), 0, 64);
      EXPECT_EQ(std::memcmp(own.data(), expected.data(), static_cast<std::size_t>(bytes)), 0);
      std::int64_t written = 0;
      for (std::int64_t i = 0; i < bytes; ++i) written += own.data()[i] != std::byte{0xa5} ? 1 : 0;
      EXPECT_LE(written, 64 * 34) << "wrote elsewhere";
    }
  }
}

HEADRACE_TEST_EVERY_ISA(RowsTest);

}  // namespace
}  // namespace headrace::kernels
