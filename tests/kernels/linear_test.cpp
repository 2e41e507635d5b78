// linear: every ISA against portable with ==, at every T and split of the work; portable against sums in double.
#include "kernels/common.hpp"

namespace headrace::kernels {
namespace {

using formats::Format;

struct Problem {
  const Format* format = nullptr;
  Layout layout;
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;
  std::int64_t rows = 0;
  std::vector<std::byte> weight;
  std::vector<float> activations;
};

Problem make_problem(const Format& format, std::int64_t outputs, std::int64_t inputs, std::int64_t rows,
                     std::mt19937& random) {
  Problem problem{&format, *layout_of(format), outputs, inputs, rows, {}, {}};
  problem.weight = random_weight(format, outputs, inputs, random);
  problem.activations = random_floats(rows * inputs, random);
  return problem;
}

/// The rows as linear reads them, encoded by `table` where the Layout asks for it.
struct Activations {
  Activations(const KernelTable& table, const Problem& problem)
      : stride(problem.layout.grouped() ? a16_row_bytes(problem.inputs) : 4 * problem.inputs),
        bytes(stride * problem.rows) {
    if (problem.layout.grouped()) {
      table.encode_a16(problem.activations.data(), problem.inputs, bytes.data(), stride, problem.inputs, problem.rows);
    } else {
      std::memcpy(bytes.data(), problem.activations.data(), 4 * problem.activations.size());
    }
  }
  std::int64_t stride;
  Bytes bytes;
};

/// Runs rows [first, last) alone, panels in pieces of `panels_at_once` and from the last to the first.
std::vector<float> run(const KernelTable& table, const Problem& problem, std::int64_t first, std::int64_t last,
                       std::int64_t panels_at_once) {
  const Activations activations(table, problem);
  const Bytes packed = pack(*problem.format, problem.layout, problem.weight, problem.outputs, problem.inputs);
  const std::int64_t stride = problem.outputs + 3;
  std::vector<float> out(static_cast<std::size_t>((last - first) * stride), -77.0F);
  LinearArgs args;
  args.layout = problem.layout;
  args.outputs = problem.outputs;
  args.inputs = problem.inputs;
  args.packed = packed.data();
  args.rows = last - first;
  args.activations = activations.bytes.data() + first * activations.stride;
  args.activation_stride = activations.stride;
  args.out = out.data();
  args.out_stride = stride;
  const auto function =
      table.find_linear(problem.layout, linear_numerics(problem.layout, TokenClass::generated, table.isa));
  const std::int64_t panels = panel_count(problem.outputs);
  for (std::int64_t end = panels; end > 0; end -= panels_at_once) {
    function(args, std::max<std::int64_t>(0, end - panels_at_once), end);
  }
  std::vector<float> dense;
  for (std::int64_t t = 0; t < last - first; ++t) {
    const auto row = out.begin() + t * stride;
    dense.insert(dense.end(), row, row + problem.outputs);
    for (std::int64_t i = problem.outputs; i < stride; ++i) EXPECT_EQ(row[i], -77.0F) << "wrote beyond N";
  }
  return dense;
}

template <class Function>
void for_each_problem(Function function) {
  std::mt19937 random(3);
  for (const Format& format : formats::format_table()) {
    const auto layout = layout_of(format);
    if (!layout) continue;
    struct Shape {
      std::int64_t outputs, inputs;
    };
    const std::int64_t block = format.block_elements;
    const std::vector<Shape> shapes = block == 1    ? std::vector<Shape>{{1, 1}, {17, 7}, {40, 96}, {48, 291}}
                                      : block == 32 ? std::vector<Shape>{{1, 32}, {17, 64}, {40, 96}, {48, 576}}
                                                    : std::vector<Shape>{{1, block}, {17, 2 * block}, {48, 3 * block}};
    for (const Shape& shape : shapes) {
      for (const std::int64_t rows : {1, 2, 7, 16, 33}) {
        SCOPED_TRACE(testing::Message() << format.name << " N=" << shape.outputs << " K=" << shape.inputs
                                        << " T=" << rows);
        function(make_problem(format, shape.outputs, shape.inputs, rows, random));
      }
    }
  }
}

class LinearTest : public IsaTest {};

TEST_P(LinearTest, EqualsPortable) {
  for_each_problem([&](const Problem& problem) {
    EXPECT_TRUE(
        same_bits(run(table(), problem, 0, problem.rows, 1000), run(portable_table(), problem, 0, problem.rows, 1000)));
  });
}

TEST_P(LinearTest, RowsDependOnNothingElse) {
  for_each_problem([&](const Problem& problem) {
    const auto whole = run(table(), problem, 0, problem.rows, 1000);
    EXPECT_TRUE(same_bits(run(table(), problem, 0, problem.rows, 1), whole));
    std::vector<float> alone;
    for (std::int64_t row = 0; row < problem.rows; ++row) {
      const auto one = run(table(), problem, row, row + 1, 2);
      alone.insert(alone.end(), one.begin(), one.end());
    }
    EXPECT_TRUE(same_bits(alone, whole));
  });
}

TEST_P(LinearTest, EveryFormatHasItsKernel) {
  for (const Format& format : formats::format_table()) {
    const auto layout = layout_of(format);
    ASSERT_TRUE(layout) << format.name;
    EXPECT_NE(table().find_linear(*layout, linear_numerics(*layout, TokenClass::generated, GetParam())), nullptr)
        << format.name;
  }
}

/// The largest codes under the largest activations of one sign: what saturates in 16 bits.
TEST_P(LinearTest, ExtremeCodesDoNotSaturate) {
  std::mt19937 random(4);
  for (const Format& format : formats::format_table()) {
    if (!layout_of(format) || format.kind != Format::Kind::grouped) continue;
    const std::int64_t inputs = std::max<std::int64_t>(format.block_elements, 64);
    for (const unsigned fill : {0x00U, 0xffU, 0x7fU, 0x80U, 0x88U}) {
      Problem problem = make_problem(format, 16, inputs, 3, random);
      for (std::size_t i = 0; i < problem.weight.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i) % format.block_bytes;
        const bool scale = at == format.scale_at || at == format.scale_at + 1;
        const bool minimum = format.has_minimum && (at == format.minimum_at || at == format.minimum_at + 1);
        if (!scale && !minimum) problem.weight[i] = std::byte{static_cast<unsigned char>(fill)};
      }
      for (std::int64_t t = 0; t < 3; ++t) {
        for (std::int64_t k = 0; k < inputs; ++k) {
          problem.activations[static_cast<std::size_t>(t * inputs + k)] = t == 0   ? 1.0F
                                                                          : t == 1 ? -1.0F
                                                                                   : (k % 2 == 0 ? 1.0F : -1.0F);
        }
      }
      const auto out = run(table(), problem, 0, 3, 1000);
      EXPECT_TRUE(same_bits(out, run(portable_table(), problem, 0, 3, 1000))) << format.name << " " << fill;
      // Activations are all 32512 * (1 / 32512), both digits at their ends: exact up to roundings.
      for (std::int64_t o = 0; o < 16; ++o) {
        const auto values = exact_row(format, problem.weight.data() + o * format.row_bytes(inputs), inputs);
        for (std::size_t t = 0; t < 3; ++t) {
          double sum = 0;
          double magnitude = 64;
          for (std::size_t k = 0; k < values.size(); ++k) {
            sum += values[k] * static_cast<double>(problem.activations[t * values.size() + k]);
            magnitude += 2 * std::abs(values[k]);
          }
          EXPECT_NEAR(static_cast<double>(out[t * 16 + static_cast<std::size_t>(o)]), sum,
                      static_cast<double>(inputs) / 4 * epsilon * magnitude)
              << format.name << " " << fill;
        }
      }
    }
  }
}

TEST_P(LinearTest, UnusualNumbersEqualPortable) {
  std::mt19937 random(5);
  const float infinity = std::numeric_limits<float>::infinity();
  const float specials[] = {0.0F,  -0.0F,    1e-45F, -1e-40F,   1e-36F,        1e-38F,   3e38F, -3e38F,
                            1e30F, infinity, 1.0F,   -infinity, std::nanf(""), 65504.0F, 1e-7F, 5.0F};
  for (const Format& format : formats::format_table()) {
    if (!layout_of(format)) continue;
    for (int variant = 0; variant < 12; ++variant) {
      Problem problem = make_problem(format, 32, format.block_elements == 256 ? 256 : 96, 9, random);
      for (std::int64_t row = 0; row < problem.rows; ++row) {
        const float special = specials[static_cast<std::size_t>((row + variant) % 16)];
        for (std::int64_t k = 0; k < problem.inputs; ++k) {
          float& x = problem.activations[static_cast<std::size_t>(row * problem.inputs + k)];
          if (variant % 3 == 0 || random() % 16 == 0) x = special * (k % 2 == 0 ? 1.0F : 0.5F);
        }
      }
      // Weights of any bits: scales and numbers become subnormal, infinite, NaN.
      for (std::byte& byte : problem.weight) {
        if (variant % 2 == 1 && random() % 32 == 0) byte = static_cast<std::byte>(random() & 0xff);
      }
      EXPECT_TRUE(same_bits(run(table(), problem, 0, problem.rows, 1000),
                            run(portable_table(), problem, 0, problem.rows, 1000)))
          << format.name << " variant " << variant;
    }
  }
}

/// Over k = 0 and 2 with w[0] = 1 the even chain is fma(w[2], x[2], x[0]): compared with libm's on numbers of all
/// kinds, and on sums that cancel.
TEST_P(LinearTest, ChainsAreFused) {
  std::mt19937 random(6);
  const Format& format = *formats::find_format("f32");
  for (int round = 0; round < 2000; ++round) {
    Problem problem = make_problem(format, 16, 3, 8, random);
    std::vector<float> weight(16 * 3);
    for (std::size_t o = 0; o < 16; ++o) {
      weight[3 * o] = 1;
      weight[3 * o + 2] =
          round % 2 == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(random())) : static_cast<float>(random());
    }
    std::memcpy(problem.weight.data(), weight.data(), problem.weight.size());
    for (std::size_t t = 0; t < 8; ++t) {
      float* x = problem.activations.data() + 3 * t;
      x[1] = 0;
      x[2] = round % 2 == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(random())) : static_cast<float>(random());
      x[0] = round % 3 == 0 ? -(weight[3 * t + 2] * x[2]) : round % 3 == 1 ? static_cast<float>(random()) * 1e6F : x[0];
    }
    const auto out = run(table(), problem, 0, 8, 1000);
    std::vector<float> expected;
    for (std::size_t t = 0; t < 8; ++t) {
      for (std::size_t o = 0; o < 16; ++o) {
        const float* x = problem.activations.data() + 3 * t;
        const float even = std::fma(weight[3 * o + 2], x[2], std::fma(1.0F, x[0], 0.0F));
        expected.push_back(even + std::fma(weight[3 * o + 1], x[1], 0.0F));
      }
    }
    ASSERT_TRUE(same_bits(out, expected)) << "round " << round;
  }
}

/// Straightforward double sums over the exact weights and the activations as encoded, within the roundings that
/// docs/numerics.md allows; against the activations before they were encoded, within half a code each.
TEST(Linear, PortableIsCloseToDouble) {
  const KernelTable& table = kernel_table(Isa::portable);
  for_each_problem([&](const Problem& problem) {
    const auto out = run(table, problem, 0, problem.rows, 1000);
    const Activations encoded(table, problem);
    const A16Row row_layout = a16_row(problem.inputs);
    for (std::int64_t t = 0; t < problem.rows; ++t) {
      const float* x = problem.activations.data() + t * problem.inputs;
      std::vector<double> read(x, x + problem.inputs);
      std::vector<double> code_error(read.size(), 0.0);
      if (problem.layout.grouped()) {
        const std::byte* row = encoded.bytes.data() + t * encoded.stride;
        for (std::size_t k = 0; k < read.size(); ++k) {
          float scale = 0;
          std::memcpy(&scale, row + row_layout.scales + 4 * (k / 32), 4);
          read[k] = static_cast<double>(a16_code(row, static_cast<std::int64_t>(k))) * static_cast<double>(scale);
          code_error[k] = 0.51 * static_cast<double>(scale);
        }
      }
      for (std::int64_t n = 0; n < problem.outputs; ++n) {
        const auto w = exact_row(*problem.format, problem.weight.data() + n * problem.format->row_bytes(problem.inputs),
                                 problem.inputs);
        double sum = 0;
        double exact = 0;
        double magnitude = 0;
        double encode_bound = 0;
        for (std::size_t k = 0; k < w.size(); ++k) {
          sum += w[k] * read[k];
          exact += w[k] * static_cast<double>(x[k]);
          magnitude += std::abs(w[k] * read[k]);
          encode_bound += std::abs(w[k]) * code_error[k];
        }
        if (problem.layout.has_minimum) {  // the two parts of a weight are summed apart and may cancel
          for (std::size_t k = 0; k < w.size(); ++k) magnitude += 20 * 0.2 * std::abs(read[k]);
        }
        const double bound = (static_cast<double>(problem.inputs) / 2 + 4) * epsilon * magnitude;
        const double got = static_cast<double>(out[static_cast<std::size_t>(t * problem.outputs + n)]);
        ASSERT_NEAR(got, sum, bound) << "t " << t << " n " << n;
        ASSERT_NEAR(got, exact, bound + encode_bound) << "t " << t << " n " << n;
      }
    }
  });
}

TEST(Linear, FindsOnlyWhatItComputes) {
  const KernelTable& table = kernel_table(Isa::portable);
  const Layout floating = *layout_of(*formats::find_format("f16"));
  const Layout grouped = *layout_of(*formats::find_format("q4_1"));
  EXPECT_EQ(table.find_linear(floating, LinearNumerics::a16_group32), nullptr);
  EXPECT_EQ(table.find_linear(grouped, LinearNumerics::two_chains), nullptr);
  EXPECT_NE(table.find_linear(grouped, LinearNumerics::a16_group32), nullptr);
  EXPECT_EQ(table.find_linear(grouped, LinearNumerics::a16_factors16), nullptr);
  const Layout groups_of_16 = *layout_of(*formats::find_format("q6_k"));
  EXPECT_EQ(table.find_linear(groups_of_16, LinearNumerics::a16_group32), nullptr);
  EXPECT_NE(table.find_linear(groups_of_16, LinearNumerics::a16_factors16), nullptr);
}

HEADRACE_TEST_EVERY_ISA(LinearTest);

}  // namespace
}  // namespace headrace::kernels
