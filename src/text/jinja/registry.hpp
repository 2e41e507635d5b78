// The filters, tests and global functions, by name. To add one, write its function and put it in its file's table.
#pragma once

#include <span>
#include <string_view>

#include "text/jinja/runtime.hpp"
#include "text/jinja/value.hpp"

namespace headrace::text::jinja {

struct FilterEntry {
  std::string_view name;
  Value (*apply)(Runtime&, const Value& input, Arguments&);
};

struct TestEntry {
  std::string_view name;
  bool (*apply)(Runtime&, const Value& input, Arguments&);
};

struct FunctionEntry {
  std::string_view name;
  Value (*call)(Runtime&, Arguments&);
};

[[nodiscard]] std::span<const FilterEntry> text_filters();      // filters_text.cpp
[[nodiscard]] std::span<const FilterEntry> number_filters();    // filters_number.cpp
[[nodiscard]] std::span<const FilterEntry> sequence_filters();  // filters_sequence.cpp
[[nodiscard]] std::span<const FilterEntry> select_filters();    // filters_select.cpp
[[nodiscard]] std::span<const TestEntry> all_tests();           // tests.cpp
[[nodiscard]] std::span<const FunctionEntry> all_functions();   // functions.cpp

/// nullptr if there is none of that name.
[[nodiscard]] const FilterEntry* find_filter(std::string_view name);
[[nodiscard]] const TestEntry* find_test(std::string_view name);

}  // namespace headrace::text::jinja
