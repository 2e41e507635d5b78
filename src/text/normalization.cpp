// Form C: decompose every character, order the marks, compose.
#include "text/normalization.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <utf8proc.h>

#include "base/error.hpp"
#include "text/utf8.hpp"

namespace headrace::text {

namespace {

auto combining_class(utf8proc_int32_t code_point) { return utf8proc_get_property(code_point)->combining_class; }

/// Sorts each run of combining marks by class; those of one class keep their order.
void order_marks(std::vector<utf8proc_int32_t>& code_points) {
  const auto is_mark = [](utf8proc_int32_t c) { return combining_class(c) != 0; };
  std::vector<std::uint64_t> keys;
  auto from = code_points.begin();
  while ((from = std::find_if(from, code_points.end(), is_mark)) != code_points.end()) {
    const auto to = std::find_if_not(from, code_points.end(), is_mark);
    // Class in 8 bits, place in the run in 35, code point in 21.
    keys.clear();
    for (auto it = from; it != to; ++it) {
      const auto code_point = static_cast<std::uint64_t>(*it);
      keys.push_back(static_cast<std::uint64_t>(combining_class(*it)) << 56 | keys.size() << 21 | code_point);
    }
    std::ranges::sort(keys);
    for (const std::uint64_t key : keys) *from++ = static_cast<utf8proc_int32_t>(key & 0x1FFFFF);
  }
}

}  // namespace

bool is_trivially_nfc(std::string_view text) noexcept {
  // U+0300 is CC 80: the lead bytes below CC are those of smaller code points.
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0xCC; });
}

std::string to_nfc(std::string_view text) {
  if (is_trivially_nfc(text)) return std::string(text);
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  constexpr auto kDecompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
  std::vector<utf8proc_int32_t> code_points;
  code_points.reserve(text.size());
  while (!text.empty()) {
    std::size_t size = 0;
    const auto code_point = static_cast<utf8proc_int32_t>(read_code_point(text, size));
    text.remove_prefix(size);
    utf8proc_int32_t parts[8] = {};  // canonical decompositions have 4 at most
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(code_point, parts, 8, kDecompose, &boundary);
    require(count > 0 && count <= 8, "utf8proc_decompose_char failed");
    code_points.insert(code_points.end(), parts, parts + count);
  }
  order_marks(code_points);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(code_points.data(), static_cast<utf8proc_ssize_t>(code_points.size()), kOptions);
  require(count >= 0, "utf8proc_normalize_utf32 failed");
  std::string out;
  for (utf8proc_ssize_t i = 0; i < count; ++i) append_code_point(out, static_cast<char32_t>(code_points[i]));
  return out;
}

}  // namespace headrace::text
