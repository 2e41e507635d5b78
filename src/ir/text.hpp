// The text form of a Program: print and parse; parsing what was printed gives the same Program.
#pragma once

#include <string>
#include <string_view>

#include "ir/program.hpp"

namespace headrace::ir {

/// Lines like `%h = rms_norm(%x, %norm) {epsilon = 1e-05} : f32[T, 576]`. `program` is well-formed.
std::string print(const Program& program);

/// Parses and verifies. Throws InputError naming the line, what was expected and what was found.
Program parse_program(std::string_view text);

}  // namespace headrace::ir
