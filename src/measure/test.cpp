#include "measure/test.hpp"

#include <algorithm>
#include <limits>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace headrace::measure {

std::string_view test_kind_name(TestKind kind) { return kind == TestKind::prefill ? "prefill" : "decode"; }

std::vector<Test> choose_tests(const TestChoice& choice, std::int64_t context) {
  const std::int64_t none = 0;
  if (choice.prompt_tokens > context) {
    fail<InputError>("bench: a prompt of {} tokens does not fit the context: at most {} do; -c {} makes it longer",
                     choice.prompt_tokens, context, choice.prompt_tokens);
  }
  if (choice.tokens > context) {
    fail<InputError>("bench: {} tokens do not fit the context: at most {} do; -c {} makes it longer", choice.tokens,
                     context, choice.tokens);
  }
  std::vector<Test> tests;
  if (choice.prompt_tokens > 0) tests.push_back({TestKind::prefill, choice.prompt_tokens, none, 1});
  for (const std::int64_t depth : choice.depths) {
    if (depth > context - choice.tokens) {
      const auto wanted = checked_add(depth, choice.tokens).value_or(std::numeric_limits<std::int64_t>::max());
      fail<InputError>(
          "bench: {} tokens at depth {} do not fit the context of {}: at most depth {} does; -c {} makes "
          "it longer",
          choice.tokens, depth, context, context - choice.tokens, wanted);
    }
    for (const std::int64_t sequences : choice.sequences) {
      if (choice.tokens > 0) tests.push_back({TestKind::decode, choice.tokens, depth, sequences});
    }
  }
  if (tests.empty()) throw InputError("bench: neither prompt tokens nor tokens to decode: expected at least 1 of one");
  return tests;
}

TestSizes sizes_of(const std::vector<Test>& tests) {
  TestSizes sizes;
  for (const Test& test : tests) {
    const std::int64_t each = test.depth + test.tokens;
    const auto all = checked_mul(each, test.sequences);
    if (!all)
      fail<InputError>("bench: {} sequences of {} positions are more than can be counted", test.sequences, each);
    sizes.context = std::max(sizes.context, each);
    sizes.sequences = std::max(sizes.sequences, test.sequences);
    sizes.positions = std::max(sizes.positions, *all);
  }
  return sizes;
}

}  // namespace headrace::measure
