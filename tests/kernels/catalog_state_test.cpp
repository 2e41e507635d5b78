// The catalog's kernels on State, over ragged sequences and several pages, and indices that are out of bounds.
#include <algorithm>

#include <gtest/gtest.h>

#include "kernels/catalog_fixture.hpp"

namespace headrace::kernels {
namespace {

// ---- State ---------------------------------------------------------------------------------------------------------

/// Rows of ragged sequences: `counts[b]` new rows of sequence b behind `pasts[b]` positions, in the order of a shuffle
/// that keeps each sequence's own.
struct Rows {
  std::vector<double> sequence;
  std::vector<double> position;
};

Rows ragged_rows(const std::vector<std::int64_t>& pasts, const std::vector<std::int64_t>& counts, bool shuffled,
                 std::mt19937& random) {
  Rows rows;
  std::vector<std::size_t> order;
  for (std::size_t b = 0; b < counts.size(); ++b) order.insert(order.end(), static_cast<std::size_t>(counts[b]), b);
  if (shuffled) std::shuffle(order.begin(), order.end(), random);
  std::vector<std::int64_t> next = pasts;
  for (const std::size_t b : order) {
    rows.sequence.push_back(static_cast<double>(b));
    rows.position.push_back(static_cast<double>(next[b]++));
  }
  return rows;
}

std::shared_ptr<ir::StateValue> random_state(const ir::Type& type, const std::vector<std::int64_t>& lengths,
                                             std::mt19937& random) {
  auto state = std::make_shared<ir::StateValue>();
  state->element = type.element;
  state->encoding = type.encoding;
  state->shape = ::headrace::testing::concrete(type, {});
  for (const std::int64_t length : lengths) {
    auto& values = state->sequences.emplace_back();
    double scale = 1;
    for (std::int64_t i = 0; i < length * state->row_elements(); ++i) {
      if (!type.encoding.empty()) {  // codes times a power of two; values below 4
        if (i % 32 == 0) scale = std::exp2(-static_cast<double>(random() % 6) - 5);
        values.push_back((static_cast<double>(random() % 255) - 127) * scale);
        continue;
      }
      values.push_back(::headrace::testing::random_value(type.element, random));
    }
  }
  return state;
}

TEST_P(CatalogTest, AppendAndReadKeepEveryRowInItsPlace) {
  std::mt19937 random(23);
  const std::vector<std::int64_t> pasts = {0, 70, 63, 5};
  const std::vector<std::int64_t> counts = {66, 1, 3, 0};
  for (const std::string element : {"f32", "f16", "bf16"}) {
    for (const std::string order : {"", ".columns16"}) {
      for (const std::string shape : {"3, 20", "24", "2, 3, 5", ""}) {
        if (shape.empty() && !order.empty()) continue;
        const std::string type = "state append " + element + order + "[" + shape + "]";
        const std::string rest = shape.empty() ? "" : ", " + shape;
        OpCase append = make_case("%s: " + type + ", %x: f32[T" + rest + "], %sequence: i32[T], %position: i32[T]",
                                  "append(%s, %x, %sequence, %position)", type, {{"T", 70}}, random);
        const Rows rows = ragged_rows(pasts, counts, true, random);
        set_integers(append, "sequence", rows.sequence);
        set_integers(append, "position", rows.position);
        append.inputs["s"] = random_state(append.operand(0).type, pasts, random);
        const Outcome outcome = run(append, 128);
        EXPECT_FALSE(outcome.failed);
        const ir::StateValue expected = *std::get<1>(interpret(append).at(0));
        for (std::size_t b = 0; b < pasts.size(); ++b) {
          ASSERT_GE(outcome.state.sequences[b].size(), expected.sequences[b].size());
          for (std::size_t i = 0; i < expected.sequences[b].size(); ++i) {
            ASSERT_EQ(outcome.state.sequences[b][i], expected.sequences[b][i]) << type << " sequence " << b << " " << i;
          }
        }
        OpCase read = make_case("%s: " + type, "read_state(%s)", "f32[B, P" + rest + "]", {{"B", 4}, {"P", 71}}, random,
                                "%result, %s");
        read.inputs["s"] = random_state(read.operand(0).type, {71, 0, 64, 5}, random);
        expect_close(read, 0, 0, 128);
      }
    }
  }
}

TEST_P(CatalogTest, AppendsBlocks) {
  std::mt19937 random(24);
  const std::vector<std::int64_t> pasts = {0, 70, 63, 5};
  const std::vector<std::int64_t> counts = {66, 1, 3, 0};
  for (const std::string order : {"", ".columns16"}) {
    for (const std::string shape : {"3, 32", "2, 96", "1, 256"}) {
      const std::string type = "state append q8_0" + order + "[" + shape + "]";
      OpCase append = make_case("%s: " + type + ", %x: f32[T, " + shape + "], %sequence: i32[T], %position: i32[T]",
                                "append(%s, %x, %sequence, %position)", type, {{"T", 70}}, random);
      const Rows rows = ragged_rows(pasts, counts, true, random);
      set_integers(append, "sequence", rows.sequence);
      set_integers(append, "position", rows.position);
      append.inputs["s"] = random_state(append.operand(0).type, pasts, random);
      const Outcome outcome = run(append, 128);
      EXPECT_FALSE(outcome.failed);
      EXPECT_EQ(outcome.kernel.numerics, "append.q8_0");
      const ir::StateValue expected = *std::get<1>(interpret(append).at(0));
      for (std::size_t b = 0; b < pasts.size(); ++b) {
        ASSERT_GE(outcome.state.sequences[b].size(), expected.sequences[b].size());
        for (std::size_t i = 0; i < expected.sequences[b].size(); ++i) {
          ASSERT_EQ(outcome.state.sequences[b][i], expected.sequences[b][i]) << type << " sequence " << b << " " << i;
        }
      }
    }
  }
}

TEST_P(CatalogTest, AttentionOverRaggedSequences) {
  std::mt19937 random(29);
  struct Shape {
    std::int64_t heads, kv_heads, width;
    std::vector<std::int64_t> pasts, counts;
    bool shuffled;
    std::int64_t window = 0;
    std::string sinks = "";  ///< their type
    std::string encoding = "f16";
  };
  const std::vector<Shape> shapes = {{9, 3, 64, {0, 100, 7}, {20, 1, 2}, false},
                                     {4, 1, 24, {0, 3, 64}, {5, 4, 6}, true},
                                     {2, 2, 16, {1300, 520}, {1, 1}, false},  // the partial form, with 3 and 2 spans
                                     {8, 2, 32, {600}, {3}, false},
                                     {2, 1, 16, {1300, 520}, {1, 1}, false, 530, "weight f32[2]"},
                                     {4, 2, 24, {70, 600}, {80, 90}, false, 33, "f32[4]"},
                                     {4, 1, 32, {90}, {40}, false, 0, "weight bf16[4]"},
                                     {9, 3, 64, {0, 100, 7}, {20, 1, 2}, false, 0, "", "q8_0"},
                                     {4, 1, 32, {0, 3, 64}, {5, 4, 6}, true, 0, "", "q8_0"},
                                     {2, 1, 96, {1300, 520}, {1, 1}, false, 530, "f32[2]", "q8_0"},
                                     {4, 2, 24, {70, 600}, {80, 90}, false, 0, "", "bf16"},
                                     {2, 1, 64, {1300, 520}, {1, 1}, false, 0, "", "bf16"}};
  for (const Shape& shape : shapes) {
    const std::string state = std::to_string(shape.kv_heads) + ", " + std::to_string(shape.width) + "]";
    const std::string q = "f32[T, " + std::to_string(shape.heads) + ", " + std::to_string(shape.width) + "]";
    const Rows rows = ragged_rows(shape.pasts, shape.counts, shape.shuffled, random);
    const auto count = static_cast<std::int64_t>(rows.sequence.size());
    OpCase test =
        make_case("%q: " + q + ", %k: state append " + shape.encoding + ".columns16[" + state + ", %v: state append " +
                      shape.encoding + "[" + state + ", %sequence: i32[T], %position: i32[T]" +
                      (shape.sinks.empty() ? "" : ", %sinks: " + shape.sinks),
                  std::string("attention(%q, %k, %v, %sequence, %position") + (shape.sinks.empty() ? "" : ", %sinks") +
                      ") {scale = 0.2, window = " + std::to_string(shape.window) + "}",
                  q, {{"T", count}, {"B", static_cast<std::int64_t>(shape.pasts.size())}, {"P", 1301}}, random,
                  "%result, %k, %v");
    std::vector<std::int64_t> lengths = shape.pasts;
    for (std::size_t b = 0; b < lengths.size(); ++b) lengths[b] += shape.counts[b];
    test.sizes["P"] = *std::max_element(lengths.begin(), lengths.end());
    set_integers(test, "sequence", rows.sequence);
    set_integers(test, "position", rows.position);
    test.inputs["k"] = random_state(test.operand(1).type, lengths, random);
    test.inputs["v"] = random_state(test.operand(2).type, lengths, random);
    // Scores: chains of E terms, values below 5 * 5 * 0.2 each, in an exponential; outputs: means of values below 5.
    // q8_0 keys are dotted with codes of q of 16 bits: 1 / 65024 of the largest of a block is lost.
    const double codes = shape.encoding == "q8_0" ? 5.0 / 65024 * 4 * static_cast<double>(shape.width) * 0.2 : 0;
    const double score = codes + 64 * epsilon * 5 * static_cast<double>(shape.width);
    expect_close(test, 64 * epsilon, 5 * (score + 64 * epsilon), 1344);
  }
}

TEST_P(CatalogTest, FallsBackWhereAttentionHasNoKernel) {
  std::mt19937 random(1);
  const auto finds = [&](const std::string& k, const std::string& v, const std::string& width) {
    const std::string q = "f32[T, 2, " + width + "]";
    const OpCase test = make_case("%q: " + q + ", %k: state append " + k + "[1, " + width + "], %v: state append " + v +
                                      "[1, " + width + "], %sequence: i32[T], %position: i32[T]",
                                  "attention(%q, %k, %v, %sequence, %position) {scale = 0.2}", q,
                                  {{"T", 1}, {"B", 1}, {"P", 1}}, random, "%result, %k, %v");
    return catalog().find(*test.node().op, test.operand_types(), test.node().attributes).has_value();
  };
  EXPECT_TRUE(finds("f16.columns16", "f16", "16"));
  EXPECT_FALSE(finds("f16", "f16", "16"));
  EXPECT_FALSE(finds("f16.columns16", "f16.columns16", "16"));
  EXPECT_FALSE(finds("f32.columns16", "f32", "16"));
  EXPECT_FALSE(finds("f16.columns16", "f16", "20"));
  EXPECT_TRUE(finds("q8_0.columns16", "q8_0", "32"));
  EXPECT_TRUE(finds("bf16.columns16", "bf16", "24"));
  EXPECT_FALSE(finds("q8_0.columns16", "f16", "32"));
  EXPECT_FALSE(finds("q8_0.columns16", "q8_0", "48"));
  EXPECT_FALSE(finds("q8_0", "q8_0", "32"));
}

// ---- faults --------------------------------------------------------------------------------------------------------

TEST_P(CatalogTest, IndicesOutOfBoundsFailTheStep) {
  std::mt19937 random(31);
  const auto fails = [&](OpCase& test, const std::string& name, double value) {
    auto tensor = std::make_shared<ir::Tensor>(test.tensor(name));
    tensor->values.back() = value;
    test.inputs[name] = tensor;
    return run(test, 64).failed;
  };
  OpCase gather = make_case("%x: f16[9, 3], %index: i32[T]", "gather(%x, %index)", "f16[T, 3]", {{"T", 4}}, random);
  OpCase embedding =
      make_case("%w: weight q8_0[9, 32], %index: i32[T]", "embedding(%w, %index)", "f32[T, 32]", {{"T", 4}}, random);
  for (OpCase* test : {&gather, &embedding}) {
    set_indices(*test, "index", 9, random);
    EXPECT_FALSE(fails(*test, "index", 8));
    EXPECT_TRUE(fails(*test, "index", 9));
    EXPECT_TRUE(fails(*test, "index", -1));
    EXPECT_TRUE(fails(*test, "index", -2147483648.0));
  }
  for (const std::string order : {"f16.columns16", "f16", "f32", "q8_0", "q8_0.columns16"}) {
    const std::string type = "state append " + order + "[2, 32]";
    OpCase append = make_case("%s: " + type + ", %x: f32[T, 2, 32], %sequence: i32[T], %position: i32[T]",
                              "append(%s, %x, %sequence, %position)", type, {{"T", 2}}, random);
    append.inputs["s"] = random_state(append.operand(0).type, {0, 0}, random);
    set_integers(append, "sequence", {0, 1});
    set_integers(append, "position", {0, 0});
    EXPECT_FALSE(fails(append, "sequence", 1));
    EXPECT_TRUE(fails(append, "sequence", 2));
    EXPECT_TRUE(fails(append, "sequence", -1));
    EXPECT_FALSE(fails(append, "sequence", 1));
    EXPECT_TRUE(fails(append, "position", 64));
    EXPECT_TRUE(fails(append, "position", -1));
  }
  OpCase attention = make_case(
      "%q: f32[T, 2, 16], %k: state append f16.columns16[1, 16], %v: state append f16[1, 16], %sequence: i32[T], "
      "%position: i32[T]",
      "attention(%q, %k, %v, %sequence, %position) {scale = 1.0}", "f32[T, 2, 16]", {{"T", 2}, {"B", 2}, {"P", 64}},
      random, "%result, %k, %v");
  attention.inputs["k"] = random_state(attention.operand(1).type, {64, 64}, random);
  attention.inputs["v"] = random_state(attention.operand(2).type, {64, 64}, random);
  set_integers(attention, "sequence", {0, 1});
  set_integers(attention, "position", {0, 63});
  EXPECT_FALSE(fails(attention, "position", 63));
  EXPECT_TRUE(fails(attention, "position", 64));
  EXPECT_TRUE(fails(attention, "position", -1));
  EXPECT_FALSE(fails(attention, "position", 0));
  EXPECT_TRUE(fails(attention, "sequence", 2));
}

HEADRACE_TEST_EVERY_ISA(CatalogTest);

}  // namespace
}  // namespace headrace::kernels
