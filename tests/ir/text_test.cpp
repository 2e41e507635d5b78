// The text form: what is printed parses back to the same Program, and bad text is refused with its line.
#include "ir/text.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "ir/builder.hpp"
#include "ir/op.hpp"

namespace headrace::ir {
namespace {

using testing::HasSubstr;

constexpr std::string_view small_program = R"(program tiny {
  symbol T in [1, 16]
  symbol B in [1, 4]
  symbol P in [1, 64]
  function @layer(%x: f32[T, 8], %norm: weight *[8], %w: weight *[8, 8], %keys: state append f16[1, 8], %sequence: i32[T], %position: i32[T]) {
    %h = rms_norm(%x, %norm) {epsilon = 1e-05} : f32[T, 8]
    %7 = linear(%h, %w) : f32[T, 8]
    %8 = reshape(%7) {shape = "T, 1, 8"} : f32[T, 1, 8]
    %9 = append(%keys, %8, %sequence, %position) : state append f16[1, 8]
    %10 = add(%x, %7) : f32[T, 8]
    return %10, %9
  }
  function @main(%x: f32[T, 8], %sequence: i32[T], %position: i32[T], %"blk 0/norm": weight f32[8], %blk.0.w: weight q8_0[8, 8], %blk.0.keys: state append f16[1, 8]) {
    %6, %7 = call @layer(%x, %"blk 0/norm", %blk.0.w, %blk.0.keys, %sequence, %position) : f32[T, 8], state append f16[1, 8]
    %8 = constant() {shape = [2], values = [1.0, -2.5e+30]} : f32[2]
    return %6, %7
  }
}
)";

TEST(Text, TypesOfState) {
  for (const std::string text : {"state append f16[3, 64]", "state append bf16.columns16[3, 64]",
                                 "state append q8_0[3, 64]", "state append q8_0.columns16[3, 64]"}) {
    EXPECT_EQ(parse_type(text).str(), text);
  }
  const Type type = parse_type("state append q8_0.columns16[3, 64]");
  EXPECT_EQ(type.encoding, "q8_0");
  EXPECT_EQ(type.order, "columns16");
  EXPECT_THROW(parse_type("state append q4_0[3, 64]"), InputError);
  EXPECT_THROW(parse_type("state append q8_0.rows[3, 64]"), InputError);
  EXPECT_THROW(parse_type("q8_0[3, 64]"), InputError);
}

TEST(Text, PrintsWhatItParsed) {
  const Program program = parse_program(small_program);
  EXPECT_EQ(print(program), small_program);
  EXPECT_EQ(parse_program(print(program)), program);
}

struct Fault {
  std::string find;
  std::string replace;
  std::string message;
};

TEST(Text, FaultsAreRefusedInOneLine) {
  const std::vector<Fault> faults = {
      Fault{"rms_norm(", "rms_nrom(", "the name of an op before this, not rms_nrom"},
      Fault{"%7 = linear(%h, %w) : f32[T, 8]", "%7 = linear(%h, %w) : f32[T, 9]", "f32[T, 8] before this"},
      Fault{"linear(%h, %w)", "linear(%h, %missing)", "defined before, not %missing"},
      Fault{"{epsilon = 1e-05}", "{}", "expected"},
      Fault{"{epsilon = 1e-05}", "{epsilon = 1}", "[rms_norm] expected epsilon as a number, got a integer"},
      Fault{"{epsilon = 1e-05}", "{epsilon = 1e-05, speed = 3}", "[rms_norm] expected no such attribute, got speed"},
      Fault{"call @layer", "call @nobody", "[call @nobody] expected a function that stands before"},
      Fault{"return %10, %9", "return %10, %keys", "expected the newest value of a State"},
      Fault{"return %6, %7\n", "return %6\n", "expected the State parameters in their order"},
      Fault{"symbol T in [1, 16]", "symbol T in [9, 1]", "expected a range of sizes"},
      Fault{"f32[T, 8], %norm", "f32[U, 8], %norm", "expected"},
      Fault{"\n}\n", "\n", "line 18: expected '}', got the end"}};
  for (const Fault& fault : faults) {
    std::string text(small_program);
    const auto place = text.find(fault.find);
    ASSERT_NE(place, std::string::npos) << fault.find;
    text.replace(place, fault.find.size(), fault.replace);
    try {
      parse_program(text);
      ADD_FAILURE() << fault.replace << " was accepted";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(fault.message));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST(Text, BuilderNamesWhatItExpectedAndGot) {
  Builder builder("f", nullptr);
  const ValueId x = builder.parameter("x", Type::tensor(ElementType::f32, {Dim::symbol("T"), 8}));
  const ValueId w = builder.parameter("w", Type::weight("f32", {4, 9}));
  try {
    builder.op("linear", {x, w});
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "[linear] expected a Weight [N, 8], got weight f32[4, 9]");
  }
}

TEST(Text, DimensionsAreCanonical) {
  EXPECT_EQ(Dim::parse("2*T + 3 + T*2"), Dim(4) * Dim::symbol("T") + Dim(3));
  EXPECT_EQ((Dim::symbol("T") * Dim(3) + Dim(-0)).str(), "3*T");
  EXPECT_THROW(Dim::parse("2 * (T)"), InputError);
  EXPECT_THROW(static_cast<void>(Dim::symbol("T").evaluate({})), InputError);
  EXPECT_THROW(static_cast<void>((Dim::symbol("T") * Dim::symbol("T")).evaluate({{"T", std::int64_t{1} << 40}})),
               InputError);
}

TEST(Text, EveryOpHasADocLineAndADefinition) {
  for (const OpDef* op : all_ops()) {
    EXPECT_FALSE(op->doc.empty()) << op->name;
    EXPECT_NE(op->infer, nullptr) << op->name;
  }
  EXPECT_GE(all_ops().size(), 40u);
}

}  // namespace
}  // namespace headrace::ir
