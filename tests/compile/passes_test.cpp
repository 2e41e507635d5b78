// Each pass alone, text in and text out, with a catalog that has the kernels that the test says.
#include "compile/passes.hpp"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "ir/op.hpp"
#include "ir/text.hpp"

namespace headrace::compile {
namespace {

/// Has kernels for the ops named; linear on Formats that begin with "q" wants "a16"; attention wants keys in columns
/// and an even head width.
class FakeCatalog final : public KernelCatalog {
 public:
  explicit FakeCatalog(std::set<std::string> ops) : ops_(std::move(ops)) {}
  [[nodiscard]] std::string_view isa() const override { return "fake"; }
  [[nodiscard]] std::optional<Kernel> find(const ir::OpDef& op, std::span<const ir::Type> operands,
                                           const ir::Attributes&) const override {
    if (!ops_.contains(op.name)) return std::nullopt;
    if (op.name == "attention" &&
        (operands[1].order != "columns16" || !operands[2].order.empty() || operands[0].shape[2] == ir::Dim(3))) {
      return std::nullopt;
    }
    return Kernel{};
  }
  [[nodiscard]] Kernel copy() const override { return {}; }
  [[nodiscard]] std::string linear_encoding(std::string_view format) const override {
    return format.starts_with("q") ? "a16" : "";
  }
  [[nodiscard]] std::int64_t row_bytes(std::string_view, std::int64_t elements) const override { return elements; }
  [[nodiscard]] std::int64_t packed_bytes(const ir::Type&) const override { return 64; }
  [[nodiscard]] std::int64_t page_positions() const override { return 64; }
  [[nodiscard]] std::int64_t page_bytes(const ir::Type&) const override { return 64; }

 private:
  std::set<std::string> ops_;
};

std::string program(const std::string& functions) {
  return "program p {\n  symbol T in [1, 8]\n  symbol B in [1, 4]\n  symbol P in [1, 99]\n" + functions + "}\n";
}

TEST(Passes, SpecializeMakesAFunctionAFormat) {
  const std::string layer =
      "(%x: f32[T, 32], %w: weight *[32, 32]) {\n"
      "    %y = linear(%x, %w) : f32[T, 32]\n"
      "    return %y\n"
      "  }\n";
  const std::string unused =
      "  function @unused(%x: f32[T]) {\n"
      "    return %x\n"
      "  }\n";
  const std::string main =
      "  function @main(%x: f32[T, 32], %a: weight q8_0[32, 32], %b: weight f16[32, 32], %c: weight q8_0[32, 32]) {\n";
  const std::string before = program("  function @layer" + layer + unused + main +
                                     "    %p = call @layer(%x, %a) : f32[T, 32]\n"
                                     "    %q = call @layer(%p, %b) : f32[T, 32]\n"
                                     "    %r = call @layer(%q, %c) : f32[T, 32]\n"
                                     "    return %r\n"
                                     "  }\n");
  const auto typed = [&](const std::string& name, const std::string& format) {
    std::string text = "  function @" + name + layer;
    text.replace(text.find("*["), 1, format);
    return text;
  };
  EXPECT_EQ(ir::print(specialize(ir::parse_program(before))),
            program(typed("layer", "q8_0") + typed("layer.1", "f16") + main +
                    "    %p = call @layer(%x, %a) : f32[T, 32]\n"
                    "    %q = call @layer.1(%p, %b) : f32[T, 32]\n"
                    "    %r = call @layer(%q, %c) : f32[T, 32]\n"
                    "    return %r\n"
                    "  }\n"));
}

TEST(Passes, SpecializeFollowsNestedCalls) {
  const std::string before = program(
      "  function @inner(%x: f32[T, 32], %w: weight *[32, 32]) {\n"
      "    %y = linear(%x, %w) : f32[T, 32]\n"
      "    return %y\n"
      "  }\n"
      "  function @outer(%x: f32[T, 32], %w: weight *[32, 32]) {\n"
      "    %y = call @inner(%x, %w) : f32[T, 32]\n"
      "    return %y\n"
      "  }\n"
      "  function @main(%x: f32[T, 32], %a: weight q8_0[32, 32], %b: weight f16[32, 32]) {\n"
      "    %p = call @outer(%x, %a) : f32[T, 32]\n"
      "    %q = call @outer(%p, %b) : f32[T, 32]\n"
      "    return %q\n"
      "  }\n");
  const std::string after = ir::print(specialize(ir::parse_program(before)));
  EXPECT_THAT(after, testing::HasSubstr("function @inner(%x: f32[T, 32], %w: weight q8_0[32, 32])"));
  EXPECT_THAT(after, testing::HasSubstr("function @inner.1(%x: f32[T, 32], %w: weight f16[32, 32])"));
  EXPECT_THAT(after, testing::HasSubstr("call @inner.1(%x, %w)"));
  EXPECT_THAT(after, testing::Not(testing::HasSubstr("*[")));
}

TEST(Passes, EncodeActivationsSharesOneEncodeAmongReaders) {
  const FakeCatalog catalog({});
  const std::string head =
      "  function @main(%x: f32[T, 32], %a: weight q8_0[8, 32], %b: weight q4_1[32, 32], %c: weight f16[8, 32]) {\n";
  const std::string before = program(head +
                                     "    %p = linear(%x, %a) : f32[T, 8]\n"
                                     "    %q = linear(%x, %b) : f32[T, 32]\n"
                                     "    %r = linear(%q, %b) : f32[T, 32]\n"
                                     "    %s = linear(%x, %c) : f32[T, 8]\n"
                                     "    return %p, %r, %s\n"
                                     "  }\n");
  const std::string after = program(head +
                                    "    %4 = encode(%x) {to = \"a16\"} : a16[T, 32]\n"
                                    "    %p = linear(%4, %a) : f32[T, 8]\n"
                                    "    %q = linear(%4, %b) : f32[T, 32]\n"
                                    "    %7 = encode(%q) {to = \"a16\"} : a16[T, 32]\n"
                                    "    %r = linear(%7, %b) : f32[T, 32]\n"
                                    "    %s = linear(%x, %c) : f32[T, 8]\n"
                                    "    return %p, %r, %s\n"
                                    "  }\n");
  EXPECT_EQ(ir::print(encode_activations(ir::parse_program(before), catalog)), after);
  EXPECT_EQ(ir::print(encode_activations(ir::parse_program(after), catalog)), after) << "what is encoded stays so";
}

TEST(Passes, EncodeActivationsOfExpertsToo) {
  const FakeCatalog catalog({});
  const std::string head =
      "  function @main(%x: f32[T, 32], %ids: i32[T, 2], %a: weight q8_0[4, 32, 32], %b: weight f32[4, 32, 1]) {\n";
  const std::string before = program(head +
                                     "    %p = expert_linear(%x, %a, %ids) : f32[T, 2, 32]\n"
                                     "    %q = expert_linear(%p, %a, %ids, %b) : f32[T, 2, 32]\n"
                                     "    %r = expert_linear(%x, %a, %ids) : f32[T, 2, 32]\n"
                                     "    return %q, %r\n"
                                     "  }\n");
  const std::string after = program(head +
                                    "    %4 = encode(%x) {to = \"a16\"} : a16[T, 32]\n"
                                    "    %p = expert_linear(%4, %a, %ids) : f32[T, 2, 32]\n"
                                    "    %6 = encode(%p) {to = \"a16\"} : a16[T, 2, 32]\n"
                                    "    %q = expert_linear(%6, %a, %ids, %b) : f32[T, 2, 32]\n"
                                    "    %r = expert_linear(%4, %a, %ids) : f32[T, 2, 32]\n"
                                    "    return %q, %r\n"
                                    "  }\n");
  EXPECT_EQ(ir::print(encode_activations(ir::parse_program(before), catalog)), after);
}

/// A layer that attends, called by main, with head width `width`.
std::string attending(const std::string& width, const std::string& order) {
  const std::string row = "f32[T, 2, " + width + "]";
  const std::string keys = "state append f16" + order + "[2, " + width + "]";
  const std::string values = "state append f16[2, " + width + "]";
  return program("  function @layer(%q: " + row + ", %k: " + row + ", %sequence: i32[T], %position: i32[T], %keys: " +
                 keys + ", %values: " + values + ") {\n    %7 = append(%keys, %k, %sequence, %position) : " + keys +
                 "\n    %8 = append(%values, %k, %sequence, %position) : " + values +
                 "\n    %y = attention(%q, %7, %8, %sequence, %position) {scale = 1.0, window = 0} : " + row +
                 "\n    return %y, %7, %8\n  }\n"
                 "  function @main(%q: " +
                 row + ", %sequence: i32[T], %position: i32[T], %keys: " + keys + ", %values: " + values +
                 ") {\n    %y, %6, %7 = call @layer(%q, %q, %sequence, %position, %keys, %values) : " + row + ", " +
                 keys + ", " + values + "\n    return %y, %6, %7\n  }\n");
}

/// As the text form numbers it.
std::string normal(const std::string& text) { return ir::print(ir::parse_program(text)); }

TEST(Passes, OrderStatesPutsKeysInColumnsWhereAttentionHasAKernel) {
  const FakeCatalog catalog({"attention"});
  EXPECT_EQ(ir::print(order_states(ir::parse_program(attending("16", "")), catalog)),
            normal(attending("16", ".columns16")));
  EXPECT_EQ(ir::print(order_states(ir::parse_program(attending("3", "")), catalog)), normal(attending("3", "")));
  EXPECT_EQ(ir::print(order_states(ir::parse_program(attending("16", "")), FakeCatalog({}))),
            normal(attending("16", "")));
}

TEST(Passes, EncodeStatesSetsWhatAttentionReads) {
  const FakeCatalog catalog({"attention"});
  const auto replaced = [](std::string text, const std::string& encoding) {
    for (std::size_t at = 0; (at = text.find("append f16", at)) != std::string::npos; ++at) {
      text.replace(at, 10, "append " + encoding);
    }
    return text;
  };
  const ir::Program before = ir::parse_program(attending("32", ""));
  EXPECT_EQ(ir::print(encode_states(before, catalog, "")), ir::print(before));
  EXPECT_EQ(ir::print(encode_states(before, catalog, "f16")), ir::print(before));
  EXPECT_EQ(ir::print(encode_states(before, catalog, "bf16")), replaced(ir::print(before), "bf16"));
  const ir::Program encoded = encode_states(before, catalog, "q8_0");
  EXPECT_EQ(ir::print(encoded), replaced(ir::print(before), "q8_0"));
  EXPECT_EQ(ir::print(order_states(encoded, catalog)), replaced(normal(attending("32", ".columns16")), "q8_0"));
  // Elements can be read without a kernel for attention, blocks cannot.
  EXPECT_EQ(ir::print(encode_states(before, FakeCatalog({}), "bf16")), replaced(ir::print(before), "bf16"));
  EXPECT_THROW(encode_states(before, FakeCatalog({}), "q8_0"), InputError);
  EXPECT_THROW(encode_states(before, catalog, "q4_0"), InputError);
}

TEST(Passes, EncodeStatesLeavesOtherState) {
  const std::string text = ir::print(ir::parse_program(program(
      "  function @main(%x: f32[T, 2, 32], %sequence: i32[T], %position: i32[T], %s: state append f16[2, 32]) {\n"
      "    %6 = append(%s, %x, %sequence, %position) : state append f16[2, 32]\n    return %x, %6\n  }\n")));
  EXPECT_EQ(ir::print(encode_states(ir::parse_program(text), FakeCatalog({"attention"}), "q8_0")), text);
}

TEST(Passes, DecomposeExpandsWhatHasNoKernel) {
  const std::string before = program(
      "  function @main(%x: f32[T, 4]) {\n"
      "    %y = softmax(%x) : f32[T, 4]\n"
      "    return %y\n"
      "  }\n");
  EXPECT_EQ(ir::print(decompose(ir::parse_program(before), FakeCatalog({"softmax"}))), before);
  EXPECT_EQ(ir::print(decompose(ir::parse_program(before),
                                FakeCatalog({"reduce_max", "subtract", "exp", "reduce_sum", "divide"}))),
            program("  function @main(%x: f32[T, 4]) {\n"
                    "    %1 = reduce_max(%x) {axis = -1} : f32[T, 1]\n"
                    "    %2 = subtract(%x, %1) : f32[T, 4]\n"
                    "    %3 = exp(%2) : f32[T, 4]\n"
                    "    %4 = reduce_sum(%3) {axis = -1} : f32[T, 1]\n"
                    "    %y = divide(%3, %4) : f32[T, 4]\n"
                    "    return %y\n"
                    "  }\n"));
}

TEST(Passes, DecomposeExpandsExpansions) {
  const std::string before = program(
      "  function @main(%x: f32[T, 4]) {\n"
      "    %y = silu_multiply(%x, %x) : f32[T, 4]\n"
      "    return %y\n"
      "  }\n");
  const FakeCatalog primitives({"constant", "negate", "exp", "add", "divide", "multiply"});
  const std::string after = ir::print(decompose(ir::parse_program(before), primitives));
  EXPECT_THAT(after, testing::HasSubstr("%y = multiply("));
  EXPECT_THAT(after, testing::HasSubstr("divide("));
  EXPECT_THAT(after, testing::Not(testing::HasSubstr("silu")));
  const FakeCatalog with_silu({"silu", "multiply"});
  EXPECT_EQ(ir::print(decompose(ir::parse_program(before), with_silu)),
            program("  function @main(%x: f32[T, 4]) {\n"
                    "    %1 = silu(%x) : f32[T, 4]\n"
                    "    %y = multiply(%1, %x) : f32[T, 4]\n"
                    "    return %y\n"
                    "  }\n"));
}

TEST(Passes, DecomposeNamesThePrimitiveWithoutAKernel) {
  const ir::Program softmax = ir::parse_program(
      program("  function @main(%x: f32[T, 4]) {\n    %y = softmax(%x) : f32[T, 4]\n    return %y\n  }\n"));
  try {
    decompose(softmax, FakeCatalog({"reduce_max", "subtract"}));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "[exp] expected operands that the kernels of fake take, got (f32[T, 4])");
  }
}

TEST(Passes, ReshapesOfTensorsNeedNoKernel) {
  const ir::OpDef& reshape = *ir::find_op("reshape");
  const std::vector<ir::Type> tensor = {ir::parse_type("f32[T, 4]")};
  const std::vector<ir::Type> weight = {ir::parse_type("weight f32[4]")};
  EXPECT_TRUE(needs_no_kernel(reshape, tensor));
  EXPECT_FALSE(needs_no_kernel(reshape, weight));
  EXPECT_FALSE(needs_no_kernel(*ir::find_op("negate"), tensor));
  EXPECT_TRUE(is_alias(*ir::find_op("append"), std::vector<ir::Type>{ir::parse_type("state append f16[4]")}));
  EXPECT_TRUE(is_alias(reshape, tensor));
}

TEST(Passes, DeadNodesGoWithWhatOnlyTheyRead) {
  const std::string before = program(
      "  function @main(%x: f32[T, 4], %i: i32[T], %s: state append f32[4]) {\n"
      "    %a = negate(%x) : f32[T, 4]\n"
      "    %b = exp(%a) : f32[T, 4]\n"
      "    %c = add(%x, %x) : f32[T, 4]\n"
      "    %d = append(%s, %c, %i, %i) : state append f32[4]\n"
      "    %e = cos(%b) : f32[T, 4]\n"
      "    return %a, %d\n"
      "  }\n");
  EXPECT_EQ(ir::print(eliminate_dead_nodes(ir::parse_program(before))),
            program("  function @main(%x: f32[T, 4], %i: i32[T], %s: state append f32[4]) {\n"
                    "    %a = negate(%x) : f32[T, 4]\n"
                    "    %c = add(%x, %x) : f32[T, 4]\n"
                    "    %d = append(%s, %c, %i, %i) : state append f32[4]\n"
                    "    return %a, %d\n"
                    "  }\n"));
}

TEST(Passes, LowerDoesAllInOrder) {
  const std::string before = program(
      "  function @layer(%x: f32[T, 32], %w: weight *[32, 32]) {\n"
      "    %y = linear(%x, %w) : f32[T, 32]\n"
      "    %z = silu(%y) : f32[T, 32]\n"
      "    %dead = softmax(%y) : f32[T, 32]\n"
      "    return %z\n"
      "  }\n"
      "  function @main(%x: f32[T, 32], %a: weight q8_0[32, 32]) {\n"
      "    %p = call @layer(%x, %a) : f32[T, 32]\n"
      "    return %p\n"
      "  }\n");
  const FakeCatalog catalog({"linear", "encode", "silu", "softmax"});
  EXPECT_EQ(ir::print(lower(ir::parse_program(before), catalog)),
            program("  function @layer(%x: f32[T, 32], %w: weight q8_0[32, 32]) {\n"
                    "    %2 = encode(%x) {to = \"a16\"} : a16[T, 32]\n"
                    "    %y = linear(%2, %w) : f32[T, 32]\n"
                    "    %z = silu(%y) : f32[T, 32]\n"
                    "    return %z\n"
                    "  }\n"
                    "  function @main(%x: f32[T, 32], %a: weight q8_0[32, 32]) {\n"
                    "    %p = call @layer(%x, %a) : f32[T, 32]\n"
                    "    return %p\n"
                    "  }\n"));
}

}  // namespace
}  // namespace headrace::compile
