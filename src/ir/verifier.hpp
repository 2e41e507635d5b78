// Verifier: what every Program must satisfy. It runs at the boundary of every pass in tests and debug builds.
#pragma once

#include "ir/program.hpp"

namespace headrace::ir {

/// Throws InputError naming the function, the node and the rule that does not hold:
///  - functions have distinct names, callees stand before callers, symbols are declared, with ranges;
///  - parameters come first and values follow in the order of their definition, each defined once, before its uses;
///  - types and attributes are those that the op's shape rule gives;
///  - State is linear: a state that was appended to, or passed to a function that returns it, is not used again;
///  - each State parameter comes back: the results end with the newest value of each, in the order of the parameters.
void verify(const Program& program);

}  // namespace headrace::ir
