// The adapters of the catalog against the interpreter, on random inputs, on every instruction set and for several
// numbers of workers.
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "kernels/catalog_fixture.hpp"

namespace headrace::kernels {
namespace {

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

const std::vector<std::string> floats = {"f32", "f16", "bf16", "f64"};
const std::vector<std::string> numbers = {"f32", "f16", "bf16", "f64", "i8", "u8", "i32", "i64"};
const std::vector<std::string> all_types = {"f32", "f16", "bf16", "f64", "i8", "u8", "i32", "i64", "bool"};
const std::vector<std::string> only_f32 = {"f32"};

struct Example {
  std::string parameters;
  std::string op;
  std::string result;
  std::vector<std::string> types;  ///< what {e} stands for
  double relative = 0;             ///< 0: the kernel rounds where the interpreter does
  double absolute = 0;
};

/// An example of every op but those on State, which have tests of their own. An exponential is off by 2 ulp at most.
const std::vector<Example>& examples() {
  static const std::vector<Example> table = {
      {"%x: {e}[T, 33]", "negate(%x)", "{e}[T, 33]", floats},
      {"%x: {e}[T, 33]", "exp(%x)", "{e}[T, 33]", floats, 4 * epsilon},
      {"%x: {e}[T, 33]", "cos(%x)", "{e}[T, 33]", floats},
      {"%x: {e}[T, 33]", "sin(%x)", "{e}[T, 33]", floats},
      {"%x: {e}[T, 33]", "tanh(%x)", "{e}[T, 33]", floats},
      {"%x: {e}[T, 33]", "add(%x, %x)", "{e}[T, 33]", numbers},
      {"%x: {e}[T, 1, 3, 1], %y: {e}[7, 1, 5]", "add(%x, %y)", "{e}[T, 7, 3, 5]", numbers},
      {"%x: {e}[T, 130], %y: {e}[130]", "subtract(%x, %y)", "{e}[T, 130]", numbers},
      {"%x: {e}[], %y: {e}[T, 70]", "subtract(%x, %y)", "{e}[T, 70]", numbers},
      {"%x: {e}[T, 40], %y: {e}[T, 40]", "multiply(%x, %y)", "{e}[T, 40]", numbers},
      {"%x: {e}[T, 4, 50], %y: {e}[T, 4, 50]", "add(%x, %y)", "{e}[T, 4, 50]", numbers},
      {"%x: {e}[T, 200], %y: {e}[200]", "add(%x, %y)", "{e}[T, 200]", numbers},
      {"%x: f32[T, 200], %y: weight f32[200]", "multiply(%x, %y)", "f32[T, 200]", only_f32},
      {"%x: {e}[T, 140], %y: {e}[]", "multiply(%x, %y)", "{e}[T, 140]", numbers},
      {"%x: {e}[], %y: {e}[T, 140]", "multiply(%x, %y)", "{e}[T, 140]", numbers},
      {"%x: {e}[], %y: {e}[]", "add(%x, %y)", "{e}[]", numbers},
      {"%x: {e}[T, 4, 1], %y: {e}[T, 1, 9]", "maximum(%x, %y)", "{e}[T, 4, 9]", numbers},
      {"%x: {e}[T, 4, 1], %y: {e}[T, 1, 9]", "minimum(%x, %y)", "{e}[T, 4, 9]", numbers},
      {"%x: {e}[T, 4, 1], %y: {e}[T, 1, 9]", "divide(%x, %y)", "{e}[T, 4, 9]", floats},
      {"%x: {e}[T, 20, 1], %y: {e}[T, 1, 9]", "less(%x, %y)", "bool[T, 20, 9]", numbers},
      {"%x: {e}[T, 20, 1], %y: {e}[T, 1, 9]", "less_equal(%x, %y)", "bool[T, 20, 9]", numbers},
      {"%x: {e}[T, 20, 1], %y: {e}[T, 1, 9]", "equal(%x, %y)", "bool[T, 20, 9]", numbers},
      {"%c: bool[T, 1], %x: {e}[T, 90], %y: {e}[90]", "select(%c, %x, %y)", "{e}[T, 90]", all_types},
      {"", "constant() {shape = [2, 3], values = [1.0, 0.1, -3.5, 0.0, 7.0, 1e30]}", "f32[2, 3]", only_f32},
      {"%x: f32[T]", "iota() {size = \"T\"}", "i32[T]", only_f32},
      {"%x: {e}[T, 6]", "convert(%x) {to = \"f32\"}", "f32[T, 6]", all_types},
      {"%x: {e}[T, 6]", "convert(%x) {to = \"f16\"}", "f16[T, 6]", all_types},
      {"%x: {e}[T, 6]", "convert(%x) {to = \"bf16\"}", "bf16[T, 6]", all_types},
      {"%x: {e}[T, 6]", "convert(%x) {to = \"f64\"}", "f64[T, 6]", all_types},
      {"%x: {e}[T, 6]", "convert(%x) {to = \"i8\"}", "i8[T, 6]", all_types},
      {"%x: {e}[T, 6]", "convert(%x) {to = \"u8\"}", "u8[T, 6]", all_types},
      {"%x: {e}[T, 6]", "convert(%x) {to = \"i32\"}", "i32[T, 6]", all_types},
      {"%x: {e}[T, 6]", "convert(%x) {to = \"i64\"}", "i64[T, 6]", all_types},
      {"%x: {e}[T, 6]", "convert(%x) {to = \"bool\"}", "bool[T, 6]", all_types},
      {"%x: {e}[T, 6, 4]", "reshape(%x) {shape = \"2, T, 12\"}", "{e}[2, T, 12]", all_types},
      {"%x: weight f32[24]", "reshape(%x) {shape = \"2, 12\"}", "f32[2, 12]", only_f32},
      {"%x: {e}[T, 6, 1, 5]", "transpose(%x) {order = [3, 0, 2, 1]}", "{e}[5, T, 1, 6]", all_types},
      {"%x: {e}[T, 6, 5]", "slice(%x) {axis = -2, begin = 1, end = 4}", "{e}[T, 3, 5]", all_types},
      {"%x: {e}[T, 6, 5]", "slice(%x) {axis = 2, begin = 2, end = 2}", "{e}[T, 6, 0]", all_types},
      {"%x: {e}[T, 6, 5], %y: {e}[T, 2, 5]", "concat(%x, %y, %y) {axis = 1}", "{e}[T, 10, 5]", all_types},
      {"%x: {e}[T], %y: {e}[3]", "concat(%x, %y) {axis = -1}", "{e}[T + 3]", all_types},
      {"%x: {e}[6, 1], %t: f32[T]", "broadcast(%x) {shape = \"T, 6, 40\"}", "{e}[T, 6, 40]", all_types},
      {"%x: {e}[9, 3, 5], %index: i32[T]", "gather(%x, %index)", "{e}[T, 3, 5]", all_types},
      {"%x: weight q8_0[9, 64], %index: i32[T]", "gather(%x, %index)", "f32[T, 64]", only_f32},
      {"%x: {e}[T, 9], %index: i32[T, 70]", "take_along(%x, %index)", "{e}[T, 70]", all_types},
      {"%x: f32[T, 5, 37]", "top_k(%x) {k = 37}", "i32[T, 5, 37]", only_f32},
      {"%x: f32[T, 90]", "top_k(%x) {k = 4}", "i32[T, 4]", only_f32},
      {"%x: {e}[T, 70, 3]", "reduce_sum(%x) {axis = 1}", "{e}[T, 1, 3]", floats},
      {"%x: {e}[T, 70]", "reduce_sum(%x)", "{e}[T, 1]", floats},
      {"%x: {e}[T, 70, 130]", "reduce_max(%x) {axis = -2}", "{e}[T, 1, 130]", floats},
      {"%x: {e}[T, 7, 30], %y: {e}[T, 30, 67]", "matmul(%x, %y)", "{e}[T, 7, 67]", floats},
      {"%x: f32[T, 64], %w: weight q4_0[64, 96]", "matmul(%x, %w)", "f32[T, 96]", only_f32},
      {"%w: weight q4_1[3, 20, 64]", "transpose(%w) {order = [2, 0, 1]}", "f32[64, 3, 20]", only_f32},
      {"%w: weight bf16[9, 17, 3], %index: i32[T]", "gather(%w, %index)", "f32[T, 17, 3]", only_f32},
      {"%w: weight q4_1[20, 64]", "transpose(%w) {order = [1, 0]}", "f32[64, 20]", only_f32},
      {"%x: {e}[T, 96]", "encode(%x)", "a16[T, 96]", only_f32},
      {"%x: {e}[T, 3, 64]", "encode(%x)", "a16[T, 3, 64]", only_f32},
      {"%w: weight bf16[40, 17], %index: i32[T]", "embedding(%w, %index)", "f32[T, 17]", only_f32},
      {"%w: weight q5_1[40, 64], %index: i32[T]", "embedding(%w, %index)", "f32[T, 64]", only_f32},
      // x, the square's sum over D / 16 steps and a tree, the mean, the root, two products
      {"%x: f32[T, 100], %w: f32[100]", "rms_norm(%x, %w) {epsilon = 0.001}", "f32[T, 100]", only_f32, 20 * epsilon},
      {"%x: f32[T, 96], %w: weight q8_0[96]", "rms_norm(%x, %w) {epsilon = 1e-5}", "f32[T, 96]", only_f32,
       20 * epsilon},
      {"%x: f32[T, 3, 100]", "softmax(%x)", "f32[T, 3, 100]", only_f32, 16 * epsilon},
      {"%x: f32[T, 100]", "silu(%x)", "f32[T, 100]", only_f32, 12 * epsilon},
      {"%x: f32[T, 100], %y: f32[T, 100]", "silu_multiply(%x, %y)", "f32[T, 100]", only_f32, 14 * epsilon},
      {"%x: f32[T, 100], %y: f32[T, 100]", "clamped_swiglu(%x, %y) {alpha = 1.702, limit = 0.5}", "f32[T, 100]",
       only_f32, 16 * epsilon},
      // Five products below 5 * 5 and their chain.
      {"%x: f32[T, 5, 70], %w: f32[T, 5]", "weighted_sum(%x, %w)", "f32[T, 70]", only_f32, 0, 6 * 125 * epsilon},
      {"%index: i32[T], %f: f32[12]", "rope_table(%index, %f)", "f32[T, 24]", only_f32},
      {"%index: i32[T], %f: f32[12]", "rope_table(%index, %f) {magnitude = 1.25}", "f32[T, 24]", only_f32},
      // Both products are below 5 * 5, and each is rounded once.
      {"%x: f32[T, 3, 24], %t: f32[T, 24]", "rope(%x, %t) {pairing = \"halves\"}", "f32[T, 3, 24]", only_f32,
       2 * epsilon, 75 * epsilon},
      {"%x: f32[T, 3, 24], %t: f32[T, 24]", "rope(%x, %t) {pairing = \"adjacent\"}", "f32[T, 3, 24]", only_f32,
       2 * epsilon, 75 * epsilon},
      {"%x: f32[T, 3, 64], %t: f32[T, 64]", "rope(%x, %t) {pairing = \"halves\"}", "f32[T, 3, 64]", only_f32,
       2 * epsilon, 75 * epsilon},
      {"%x: f32[T, 5, 40], %t: f32[T, 40]", "rope(%x, %t) {pairing = \"adjacent\"}", "f32[T, 5, 40]", only_f32,
       2 * epsilon, 75 * epsilon},
  };
  return table;
}

TEST_P(CatalogTest, EveryKernelComputesWhatTheInterpreterDoes) {
  std::mt19937 random(17);
  for (const Example& example : examples()) {
    for (const std::string& type : example.types) {
      const auto filled = [&](const std::string& text) { return replace_all(text, "{e}", type); };
      for (const std::int64_t rows : {1, 7}) {
        OpCase test =
            make_case(filled(example.parameters), filled(example.op), filled(example.result), {{"T", rows}}, random);
        set_indices(test, "index", 9, random);
        // In f64 the last bits are those of the C library on both sides; in halves a rounding more can tip one over.
        const double relative = example.relative == 0 || type == "f32" ? example.relative : type == "f64" ? 0 : 0x1p-8;
        ASSERT_NO_FATAL_FAILURE(expect_close(test, relative, example.absolute));
      }
    }
  }
}

TEST(Catalog, EveryOpHasATestHere) {
  std::set<std::string> tested = {"append", "read_state", "attention", "linear", "expert_linear", "decode", "sqrt"};
  // Against what they expand to, bit for bit, in tests/run/fusion_test.cpp.
  tested.insert({"linears", "norm_linears", "rope_append"});
  for (const Example& example : examples()) tested.insert(example.op.substr(0, example.op.find('(')));
  for (const ir::OpDef* op : ir::all_ops()) EXPECT_TRUE(tested.contains(op->name)) << op->name;
}

TEST_P(CatalogTest, SquareRootAndDecode) {
  std::mt19937 random(3);
  for (const std::string& type : floats) {
    OpCase test = make_case("%x: " + type + "[T, 33]", "sqrt(%x)", type + "[T, 33]", {{"T", 3}}, random);
    auto positive = std::make_shared<ir::Tensor>(test.tensor("x"));
    for (double& value : positive->values) value = std::abs(value);
    test.inputs["x"] = positive;
    expect_close(test, 0, 0);
  }
  // decode of what encode gives: codes times scales, in f32.
  const OpCase encode = make_case("%x: f32[T, 64]", "encode(%x)", "a16[T, 64]", {{"T", 3}}, random);
  const Outcome encoded = run(encode);
  const ir::Program program = ir::parse_program(
      "program p { symbol T in [0, 9] function @main(%x: a16[T, 64]) { %y = decode(%x) : f32[T, 64] "
      "return %y } }");
  const ir::Node& node = program.entry().body.at(0);
  const std::vector<ir::Type> types = {program.entry().values.at(0).type};
  const compile::Kernel kernel = catalog().find(*node.op, types, node.attributes).value();
  Bytes in(static_cast<std::int64_t>(encoded.bytes.size()));
  std::memcpy(in.data(), encoded.bytes.data(), encoded.bytes.size());
  const Bytes out(3 * 64 * 4);
  compile::View from = compile::sized_view(types[0], {{"T", 3}});
  compile::View to = from;
  from.data = in.data();
  to.data = out.data();
  compile::KernelCall call;
  call.operands = std::span(&from, 1);
  call.results = std::span(&to, 1);
  kernel.run(call);
  for (std::size_t i = 0; i < encoded.result.values.size(); ++i) {
    EXPECT_EQ(to.as<float>()[i], static_cast<float>(encoded.result.values[i]));
  }
}

TEST_P(CatalogTest, LinearOnEveryFormat) {
  std::mt19937 random(5);
  for (const formats::Format& format : formats::format_table()) {
    if (!layout_of(format)) continue;
    const bool grouped = format.kind == formats::Format::Kind::grouped;
    EXPECT_EQ(catalog().linear_encoding(format.name), grouped ? "a16" : "");
    for (const std::int64_t outputs : {5, 48}) {
      const std::int64_t inputs = grouped ? std::max<std::int64_t>(96, format.block_elements) : 33;
      const std::string k = std::to_string(inputs);
      const std::string n = std::to_string(outputs);
      const std::string weight = "%w: weight " + std::string(format.name) + "[" + n + ", " + k + "]";
      if (!grouped) {
        const OpCase test =
            make_case("%x: f32[T, " + k + "], " + weight, "linear(%x, %w)", "f32[T, " + n + "]", {{"T", 7}}, random);
        // Two FMA chains of 17 and a sum, each term below 5 * 0.3.
        expect_close(test, epsilon, 18 * epsilon * static_cast<double>(inputs) * 1.5);
        continue;
      }
      // The encoded rows come from the kernel of encode; the interpreter gets what they stand for.
      const OpCase encode = make_case("%x: f32[T, " + k + "]", "encode(%x)", "a16[T, " + k + "]", {{"T", 7}}, random);
      const Outcome encoded = run(encode);
      OpCase plain =
          make_case("%x: f32[T, " + k + "], " + weight, "linear(%x, %w)", "f32[T, " + n + "]", {{"T", 7}}, random);
      auto decoded = std::make_shared<ir::Tensor>(encoded.result);
      plain.inputs["x"] = decoded;
      EXPECT_FALSE(catalog().find(*plain.node().op, plain.operand_types(), plain.node().attributes))
          << "a grouped Weight is read with encoded rows only";
      const ir::Tensor expected = *std::get<0>(interpret(plain).at(0));
      const ir::Tensor weights = ::headrace::testing::decoded_weight(plain.operand(1).type, plain.weight_files.at("w"));

      std::vector<ir::Type> types = plain.operand_types();
      types[0] = ir::Type::encoded("a16", types[0].shape);
      const compile::Kernel kernel = catalog().find(*plain.node().op, types, plain.node().attributes).value();
      const LinearNumerics numerics = linear_numerics(*layout_of(format), TokenClass::generated, GetParam());
      EXPECT_EQ(kernel.numerics, linear_numerics_name(numerics));
      Bytes rows(static_cast<std::int64_t>(encoded.bytes.size()));
      std::memcpy(rows.data(), encoded.bytes.data(), encoded.bytes.size());
      const Bytes packed = pack(format, *layout_of(format), plain.weight_files.at("w"), outputs, inputs);
      const Bytes out(7 * outputs * 4);
      std::vector<compile::View> operands = {compile::sized_view(types[0], {{"T", 7}}),
                                             compile::sized_view(types[1], {})};
      operands[0].data = rows.data();
      operands[1].data = packed.data();
      compile::View y = compile::sized_view(ir::Type::tensor(ir::ElementType::f32, {7, outputs}), {});
      y.data = out.data();
      compile::KernelCall call;
      call.operands = operands;
      call.results = std::span(&y, 1);
      call.data = kernel.data.get();
      call.workers = 3;
      for (call.worker = 0; call.worker < 3; ++call.worker) kernel.run(call);
      for (std::int64_t row = 0; row < 7; ++row) {
        for (std::int64_t o = 0; o < outputs; ++o) {
          double magnitude = 0;
          for (std::int64_t i = 0; i < inputs; ++i) {
            magnitude += std::abs(decoded->values[static_cast<std::size_t>(row * inputs + i)] *
                                  weights.values[static_cast<std::size_t>(o * inputs + i)]);
          }
          // Of minimums and codes apart the terms are larger than of their sum, by the codes' range (15 or 31) at most;
          // a few roundings a group.
          const auto at = static_cast<std::size_t>(row * outputs + o);
          const double roundings = 4.0 * static_cast<double>(inputs / format.group_elements);
          EXPECT_NEAR(static_cast<double>(y.as<float>()[at]), expected.values[at],
                      roundings * 32 * epsilon * magnitude + 1e-6)
              << format.name;
        }
      }
      const compile::KernelCost cost = kernel.cost(call);
      EXPECT_EQ(cost.bytes_read, static_cast<double>(catalog().packed_bytes(types[1])));
      EXPECT_EQ(cost.int8_ops, 2.0 * 7 * static_cast<double>(outputs * inputs));
    }
  }
}

TEST_P(CatalogTest, NoIntegerForNaN) {
  std::mt19937 random(37);
  for (const std::string to : {"i8", "u8", "i32", "i64"}) {
    OpCase test = make_case("%x: f32[T]", "convert(%x) {to = \"" + to + "\"}", to + "[T]", {{"T", 3}}, random);
    set_integers(test, "x", {300.7, -2, 5e9});
    if (to != "i64") expect_close(test, 0, 0);  // wraps
    set_integers(test, "x", {1, std::numeric_limits<double>::quiet_NaN(), 3});
    EXPECT_TRUE(run(test).failed);
    set_integers(test, "x", {1, std::numeric_limits<double>::infinity(), 3});
    EXPECT_TRUE(run(test).failed);
  }
}

TEST(Catalog, RefusesWhatKernelsCannotHold) {
  const auto catalog = make_catalog(Isa::portable);
  EXPECT_EQ(catalog->packed_bytes(ir::parse_type("weight q4_1[32]")), 128) << "f32, in whole lines";
  EXPECT_EQ(catalog->page_bytes(ir::parse_type("state append f16[3, 64]")), kv_page_bytes(KvEncoding::f16, 3, 64));
  EXPECT_EQ(catalog->page_bytes(ir::parse_type("state append f16.columns16[3, 64]")),
            kv_page_bytes(KvEncoding::f16, 3, 64));
  EXPECT_EQ(catalog->packed_bytes(ir::parse_type("weight f32[3, 20, 5]")), 3 * 2 * 16 * 5 * 4) << "expert by expert";
  for (const char* weight :
       {"weight q4_1[4, 4, 4, 32]", "weight q4_1[]", "weight q4_1[4, 33]", "weight zz[4, 32]", "weight *[4, 32]",
        "weight f32[4294967296, 4294967296]", "weight f32[2097152, 2097152, 2097152]", "weight f32[T, 4]"}) {
    EXPECT_THROW(static_cast<void>(catalog->packed_bytes(ir::parse_type(weight))), InputError) << weight;
  }
  for (const char* state : {"state append i32[4]", "state append f16[4294967296, 4294967296]", "state append f16[T]"}) {
    EXPECT_THROW(static_cast<void>(catalog->page_bytes(ir::parse_type(state))), InputError) << state;
  }
  EXPECT_THROW(static_cast<void>(catalog->row_bytes("b4", 32)), InputError);
}

HEADRACE_TEST_EVERY_ISA(CatalogTest);

}  // namespace
}  // namespace headrace::kernels
