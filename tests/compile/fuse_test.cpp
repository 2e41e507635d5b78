// The fusing pass alone, text in and text out, with a catalog that has the kernels that the test says.
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/passes.hpp"
#include "ir/op.hpp"
#include "ir/text.hpp"

namespace headrace::compile {
namespace {

/// Has kernels for the ops named, which divide nothing, and for silu, which divides by columns.
class FakeCatalog final : public KernelCatalog {
 public:
  explicit FakeCatalog(std::set<std::string> ops) : ops_(std::move(ops)) {}
  [[nodiscard]] std::string_view isa() const override { return "fake"; }
  [[nodiscard]] std::optional<Kernel> find(const ir::OpDef& op, std::span<const ir::Type>,
                                           const ir::Attributes&) const override {
    if (!ops_.contains(op.name) && op.name != "silu") return std::nullopt;
    Kernel kernel;
    if (op.name == "silu") kernel.column_units = {32, 32};
    return kernel;
  }
  [[nodiscard]] Kernel copy() const override { return {}; }
  [[nodiscard]] std::string linear_encoding(std::string_view) const override { return ""; }
  [[nodiscard]] std::int64_t row_bytes(std::string_view, std::int64_t elements) const override { return elements; }
  [[nodiscard]] std::int64_t packed_bytes(const ir::Type&) const override { return 64; }
  [[nodiscard]] std::int64_t page_positions() const override { return 64; }
  [[nodiscard]] std::int64_t page_bytes(const ir::Type&) const override { return 64; }

 private:
  std::set<std::string> ops_;
};

/// The function @main with these parameters and this body, as the text form numbers it.
std::string program(const std::string& parameters, const std::string& body) {
  return ir::print(
      ir::parse_program("program p {\n symbol T in [1, 8]\n function @main(" + parameters + ") {\n" + body + "}\n}\n"));
}

std::string fused(const std::string& text, const std::set<std::string>& ops) {
  return ir::print(eliminate_dead_nodes(fuse(ir::parse_program(text), FakeCatalog(ops))));
}

const std::string weights =
    "%x: f32[T, 64], %g: weight f32[64], %q: weight q8_0[64, 64], %k: weight q4_1[32, 64], %v: weight q8_0[32, 64]";

TEST(Fuse, ANormIsTakenByItsLinears) {
  const std::string before = program(weights,
                                     "%h = rms_norm(%x, %g) {epsilon = 0.5} : f32[T, 64]\n"
                                     "%a = linear(%h, %q) : f32[T, 64]\n"
                                     "%b = linear(%h, %k) : f32[T, 32]\n"
                                     "%n = negate(%a) : f32[T, 64]\n"
                                     "%c = linear(%h, %v) : f32[T, 32]\n"
                                     "return %n, %b, %c\n");
  const std::string after = program(weights,
                                    "%a, %b, %c = norm_linears(%x, %g, %q, %k, %v) {encode = \"\", epsilon = 0.5, "
                                    "units = [32, 32, 32]} : f32[T, 64], "
                                    "f32[T, 32], f32[T, 32]\n"
                                    "%n = negate(%a) : f32[T, 64]\n"
                                    "return %n, %b, %c\n");
  EXPECT_EQ(fused(before, {"norm_linears"}), after);
  EXPECT_EQ(fused(before, {"linears"}), before) << "no kernel";
}

TEST(Fuse, AnEncodingGoesAlong) {
  const std::string before = program(weights,
                                     "%h = rms_norm(%x, %g) {epsilon = 0.5} : f32[T, 64]\n"
                                     "%e = encode(%h) {to = \"a16\"} : a16[T, 64]\n"
                                     "%a = linear(%e, %q) : f32[T, 64]\n"
                                     "%b = linear(%e, %k) : f32[T, 32]\n"
                                     "return %a, %b\n");
  EXPECT_EQ(fused(before, {"norm_linears"}),
            program(weights,
                    "%a, %b = norm_linears(%x, %g, %q, %k) {encode = \"a16\", epsilon = 0.5, units = [32, 32]} : "
                    "f32[T, 64], f32[T, 32]\n"
                    "return %a, %b\n"));
  EXPECT_EQ(fused(before, {"linears"}),
            program(weights,
                    "%h = rms_norm(%x, %g) {epsilon = 0.5} : f32[T, 64]\n"
                    "%a, %b = linears(%h, %q, %k) {encode = \"a16\", units = [32, 32]} : f32[T, 64], f32[T, 32]\n"
                    "return %a, %b\n"))
      << "what the norm's kernel leaves is divided by rows";
}

TEST(Fuse, WhatOthersReadStays) {
  for (const std::string other : {"%n = negate(%h) : f32[T, 64]\nreturn %a, %n\n", "return %a, %h\n"}) {
    const std::string before = program(weights,
                                       "%h = rms_norm(%x, %g) {epsilon = 0.5} : f32[T, 64]\n"
                                       "%a = linear(%h, %q) : f32[T, 64]\n" +
                                           other);
    EXPECT_EQ(fused(before, {"norm_linears", "linears"}), before);
  }
  const std::string mixed = program(weights,
                                    "%h = rms_norm(%x, %g) {epsilon = 0.5} : f32[T, 64]\n"
                                    "%e = encode(%h) {to = \"a16\"} : a16[T, 64]\n"
                                    "%a = linear(%e, %q) : f32[T, 64]\n"
                                    "%d = decode(%e) : f32[T, 64]\n"
                                    "return %a, %d\n");
  EXPECT_EQ(fused(mixed, {"norm_linears", "linears"}), mixed);
}

TEST(Fuse, AnEncodeOfColumnsStaysWithThem) {
  const std::string rest =
      "%e = encode(%h) {to = \"a16\"} : a16[T, 64]\n"
      "%a = linear(%e, %q) : f32[T, 64]\n"
      "return %a\n";
  const std::string divided = program(weights, "%h = silu(%x) : f32[T, 64]\n" + rest);
  EXPECT_EQ(fused(divided, {"linears"}), divided);
  EXPECT_EQ(fused(program(weights, "%h = negate(%x) : f32[T, 64]\n" + rest), {"linears", "negate"}),
            program(weights,
                    "%h = negate(%x) : f32[T, 64]\n"
                    "%a = linears(%h, %q) {encode = \"a16\", units = [32]} : f32[T, 64]\n"
                    "return %a\n"));
}

const std::string rotating =
    "%x: f32[T, 64], %w: weight f32[64, 64], %table: f32[T, 32], %sequence: i32[T], %position: i32[T], "
    "%keys: state append f16[2, 32]";

std::string rotation(const std::string& pairing, const std::string& tail) {
  return "%h = linear(%x, %w) : f32[T, 64]\n"
         "%k = reshape(%h) {shape = \"T, 2, 32\"} : f32[T, 2, 32]\n"
         "%r = rope(%k, %table) {pairing = \"" +
         pairing + "\"} : f32[T, 2, 32]\n" + tail;
}

TEST(Fuse, KeysAreRotatedWhereTheyAreAppended) {
  const std::string append =
      "%s = append(%keys, %r, %sequence, %position) : state append f16[2, 32]\n"
      "return %s\n";
  EXPECT_EQ(fused(program(rotating, rotation("halves", append)), {"rope_append"}),
            program(rotating,
                    "%h = linear(%x, %w) : f32[T, 64]\n"
                    "%k = reshape(%h) {shape = \"T, 2, 32\"} : f32[T, 2, 32]\n"
                    "%s = rope_append(%keys, %k, %table, %sequence, %position) {pairing = \"halves\"} : state append "
                    "f16[2, 32]\n"
                    "return %s\n"));
  const std::string read_twice = program(rotating, rotation("halves",
                                                            "%s = append(%keys, %r, %sequence, %position) : state "
                                                            "append f16[2, 32]\nreturn %r, %s\n"));
  EXPECT_EQ(fused(read_twice, {"rope_append"}), read_twice);
}

TEST(Fuse, HeadsStayWholeWhereHalvesAreRotated) {
  const std::string parameters =
      "%x: f32[T, 64], %g: weight f32[64], %q: weight f16[256, 64], %v: weight f16[64, 64], %table: f32[T, 64]";
  for (const std::string pairing : {"halves", "adjacent"}) {
    const std::string before = program(parameters,
                                       "%h = rms_norm(%x, %g) {epsilon = 0.5} : f32[T, 64]\n"
                                       "%a = linear(%h, %q) : f32[T, 256]\n"
                                       "%b = linear(%h, %v) : f32[T, 64]\n"
                                       "%k = reshape(%a) {shape = \"T, 4, 64\"} : f32[T, 4, 64]\n"
                                       "%r = rope(%k, %table) {pairing = \"" +
                                           pairing + "\"} : f32[T, 4, 64]\nreturn %r, %b\n");
    EXPECT_THAT(fused(before, {"norm_linears"}),
                testing::HasSubstr(pairing == "halves" ? "units = [64, 32]" : "units = [32, 32]"));
  }
}

}  // namespace
}  // namespace headrace::compile
