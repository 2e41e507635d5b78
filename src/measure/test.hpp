// Test: what is measured at once, by Headrace and by peers alike.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace headrace::measure {

enum class TestKind : std::uint8_t { prefill, decode };
/// "prefill", "decode".
std::string_view test_kind_name(TestKind kind);

struct Test {
  TestKind kind = TestKind::decode;
  std::int64_t tokens = 64;    ///< of each sequence
  std::int64_t depth = 0;      ///< positions that each sequence holds before the first of them
  std::int64_t sequences = 1;  ///< in every step
  friend bool operator==(const Test&, const Test&) = default;
};

struct TestChoice {
  std::int64_t prompt_tokens = 512;  ///< 0: no prefill
  std::int64_t tokens = 64;          ///< 0: no decode
  std::vector<std::int64_t> depths = {0};
  std::vector<std::int64_t> sequences = {1};
};

/// Prefill of one sequence at depth 0, then decode at every depth with every number of sequences. Throws InputError,
/// naming the number that fits, if a test has more positions than `context`; and if there is nothing to test.
std::vector<Test> choose_tests(const TestChoice& choice, std::int64_t context);

/// The most positions of one sequence that some test reaches; the most sequences; the most positions of all sequences.
struct TestSizes {
  std::int64_t context = 0;
  std::int64_t sequences = 0;
  std::int64_t positions = 0;
};
TestSizes sizes_of(const std::vector<Test>& tests);

}  // namespace headrace::measure
