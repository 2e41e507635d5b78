// Programs that break a rule are refused, however they were made.
#include "ir/verifier.hpp"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "ir/text.hpp"

namespace headrace::ir {
namespace {

Program small() {
  return parse_program(R"(program p {
    symbol T in [1, 4]
    function @main(%x: f32[T, 4], %i: i32[T], %s: state append f32[4]) {
      %a = add(%x, %x) : f32[T, 4]
      %b = append(%s, %a, %i, %i) : state append f32[4]
      return %a, %b
    }
  })");
}

struct Fault {
  const char* name;
  std::function<void(Program&)> make;
  const char* message;
};

TEST(Verifier, RefusesBrokenPrograms) {
  verify(small());
  const std::vector<Fault> faults = {
      {"no function", [](Program& p) { p.functions.clear(); }, "expected an entry function"},
      {"an undeclared symbol", [](Program& p) { p.symbols.clear(); }, "expected declared symbols, got T"},
      {"a wrong type", [](Program& p) { p.functions[0].values[3].type.element = ElementType::f16; },
       "expected f32[T, 4]"},
      {"a use before its definition", [](Program& p) { p.functions[0].body[0].operands[0] = 4; }, "defined before"},
      {"a negative operand", [](Program& p) { p.functions[0].body[0].operands[0] = -1; }, "defined before"},
      {"two definitions", [](Program& p) { p.functions[0].body[1].results[0] = 3; }, "expected value number 4, got 3"},
      {"equal names", [](Program& p) { p.functions[0].values[3].name = "x"; }, "expected distinct names"},
      {"a lost State", [](Program& p) { p.functions[0].results.pop_back(); },
       "expected the State parameters in their order"},
      {"an old State", [](Program& p) { p.functions[0].results[1] = 2; }, "newest value of a State"},
      {"an unknown callee",
       [](Program& p) {
         p.functions[0].body[0].op = nullptr;
         p.functions[0].body[0].callee = "main";
       },
       "a function that stands before"},
      {"a missing result", [](Program& p) { p.functions[0].body[0].results.clear(); }, "expected 1 results, got 0"},
      {"a stray attribute", [](Program& p) { p.functions[0].body[0].attributes["speed"] = true; }, "no such attribute"},
  };
  for (const Fault& fault : faults) {
    Program program = small();
    fault.make(program);
    try {
      verify(program);
      ADD_FAILURE() << fault.name << " was accepted";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(fault.message)) << fault.name;
    }
  }
}

}  // namespace
}  // namespace headrace::ir
