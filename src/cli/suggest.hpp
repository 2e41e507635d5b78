// "Did you mean …?" for what was mistyped.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headrace::cli {

/// Edits (insert, delete, replace, or swap of neighbours: the restricted Damerau-Levenshtein distance) between a and b.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word` (the first of several), unless even that differs in too much to have been meant:
/// more than a third of it, and it does not begin with `word`.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace headrace::cli
