// Character classes and case mappings, after Python's Objects/unicodeobject.c behaviour and Unicode's SpecialCasing.
#include "text/jinja/unicode.hpp"

#include <array>
#include <cstring>

#include <utf8proc.h>

namespace headrace::text::jinja::unicode {
namespace {

struct SpecialUpper {
  char32_t from;
  std::u32string_view upper;
  std::u32string_view title;
};

// The unconditional mappings of SpecialCasing.txt that give several characters, without the Greek iota-subscript ones.
constexpr std::array<SpecialUpper, 19> special_uppers{{
    {0xDF, U"SS", U"Ss"},
    {0x149, U"\u02BCN", U"\u02BCN"},
    {0x1F0, U"J\u030C", U"J\u030C"},
    {0x390, U"\u0399\u0308\u0301", U"\u0399\u0308\u0301"},
    {0x3B0, U"\u03A5\u0308\u0301", U"\u03A5\u0308\u0301"},
    {0x587, U"\u0535\u0552", U"\u0535\u0582"},
    {0x1E96, U"H\u0331", U"H\u0331"},
    {0x1E97, U"T\u0308", U"T\u0308"},
    {0x1E98, U"W\u030A", U"W\u030A"},
    {0x1E99, U"Y\u030A", U"Y\u030A"},
    {0x1E9A, U"A\u02BE", U"A\u02BE"},
    {0xFB00, U"FF", U"Ff"},
    {0xFB01, U"FI", U"Fi"},
    {0xFB02, U"FL", U"Fl"},
    {0xFB03, U"FFI", U"Ffi"},
    {0xFB04, U"FFL", U"Ffl"},
    {0xFB05, U"ST", U"St"},
    {0xFB06, U"ST", U"St"},
    {0x1F52, U"\u03A5\u0313\u0300", U"\u03A5\u0313\u0300"},
}};

const utf8proc_property_t& property(char32_t c) noexcept {
  return *utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
}

const SpecialUpper* special_upper(char32_t c) noexcept {
  for (const auto& entry : special_uppers) {
    if (entry.from == c) return &entry;
  }
  return nullptr;
}

void append_upper(std::string& out, char32_t c) {
  if (const auto* special = special_upper(c)) {
    for (const char32_t u : special->upper) append(out, u);
  } else {
    append(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_title(std::string& out, char32_t c) {
  if (const auto* special = special_upper(c)) {
    for (const char32_t u : special->title) append(out, u);
  } else {
    append(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  }
}

bool is_cased(char32_t c) noexcept { return is_upper(c) || is_lower(c) || is_title(c); }

bool is_case_ignorable(char32_t c) noexcept {
  switch (property(c).category) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2018 || c == 0x2019 || c == 0x2024 || c == 0x2027;
  }
}

// Sigma at the end of a word has its own lower case form (SpecialCasing's Final_Sigma).
bool is_final_sigma(std::u32string_view text, std::size_t at) noexcept {
  std::size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

void append_lower(std::string& out, std::u32string_view text, std::size_t at) {
  const char32_t c = text[at];
  if (c == 0x3A3) {
    append(out, is_final_sigma(text, at) ? 0x3C2 : 0x3C3);
  } else if (c == 0x130) {
    out += "i\u0307";
  } else {
    append(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

}  // namespace

bool is_valid(std::string_view bytes) noexcept {
  std::size_t offset = 0;
  while (offset < bytes.size()) {
    if (static_cast<unsigned char>(bytes[offset]) < 0x80) {
      ++offset;
      continue;
    }
    utf8proc_int32_t c = 0;
    const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()) + offset,
                                    static_cast<utf8proc_ssize_t>(bytes.size() - offset), &c);
    if (n <= 0) return false;
    offset += static_cast<std::size_t>(n);
  }
  return true;
}

std::size_t length(std::string_view bytes) noexcept {
  std::size_t count = 0;
  for (const char c : bytes) count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  return count;
}

std::size_t byte_offset(std::string_view bytes, std::size_t index) noexcept {
  std::size_t offset = 0;
  for (; offset < bytes.size(); ++offset) {
    if ((static_cast<unsigned char>(bytes[offset]) & 0xC0U) == 0x80U) continue;
    if (index == 0) return offset;
    --index;
  }
  return bytes.size();
}

char32_t next(std::string_view bytes, std::size_t& offset) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(i < bytes.size() ? bytes[i] : 0); };
  const char32_t first = byte(offset);
  if (first < 0x80) {
    offset += 1;
    return first;
  }
  if (first < 0xE0) {
    const char32_t c = (first & 0x1FU) << 6U | (byte(offset + 1) & 0x3FU);
    offset += 2;
    return c;
  }
  if (first < 0xF0) {
    const char32_t c = (first & 0x0FU) << 12U | (byte(offset + 1) & 0x3FU) << 6U | (byte(offset + 2) & 0x3FU);
    offset += 3;
    return c;
  }
  const char32_t c = (first & 0x07U) << 18U | (byte(offset + 1) & 0x3FU) << 12U | (byte(offset + 2) & 0x3FU) << 6U |
                     (byte(offset + 3) & 0x3FU);
  offset += 4;
  return c;
}

void append(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0U | c >> 6U);
    out += static_cast<char>(0x80U | (c & 0x3FU));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0U | c >> 12U);
    out += static_cast<char>(0x80U | (c >> 6U & 0x3FU));
    out += static_cast<char>(0x80U | (c & 0x3FU));
  } else {
    out += static_cast<char>(0xF0U | c >> 18U);
    out += static_cast<char>(0x80U | (c >> 12U & 0x3FU));
    out += static_cast<char>(0x80U | (c >> 6U & 0x3FU));
    out += static_cast<char>(0x80U | (c & 0x3FU));
  }
}

std::u32string decode(std::string_view bytes) {
  std::u32string result;
  result.reserve(bytes.size());
  for (std::size_t offset = 0; offset < bytes.size();) result += next(bytes, offset);
  return result;
}

std::string encode(std::u32string_view code_points) {
  std::string result;
  result.reserve(code_points.size());
  for (const char32_t c : code_points) append(result, c);
  return result;
}

bool is_space(char32_t c) noexcept {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_printable(char32_t c) noexcept {
  if (c < 0x7F) return c >= 0x20;
  switch (property(c).category) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

bool is_alpha(char32_t c) noexcept {
  const auto category = property(c).category;
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) noexcept { return property(c).category == UTF8PROC_CATEGORY_ND; }

bool is_alnum(char32_t c) noexcept {
  const auto category = property(c).category;
  return is_alpha(c) || (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

bool is_upper(char32_t c) noexcept { return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0; }
bool is_lower(char32_t c) noexcept { return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0; }
bool is_title(char32_t c) noexcept { return property(c).category == UTF8PROC_CATEGORY_LT; }

bool is_word(char32_t c) noexcept {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
  const auto category = property(c).category;
  return is_alnum(c) || category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
         category == UTF8PROC_CATEGORY_PC;
}

std::string upper(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  for (std::size_t offset = 0; offset < bytes.size();) append_upper(result, next(bytes, offset));
  return result;
}

std::string lower(std::string_view bytes) {
  const auto text = decode(bytes);
  std::string result;
  result.reserve(bytes.size());
  for (std::size_t i = 0; i < text.size(); ++i) append_lower(result, text, i);
  return result;
}

std::string capitalize(std::string_view bytes) {
  const auto text = decode(bytes);
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == 0) {
      append_title(result, text[i]);
    } else {
      append_lower(result, text, i);
    }
  }
  return result;
}

std::string title(std::string_view bytes) {
  const auto text = decode(bytes);
  std::string result;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (inside) {
      append_lower(result, text, i);
    } else {
      append_title(result, text[i]);
    }
    inside = is_cased(text[i]);
  }
  return result;
}

std::string swap_case(std::string_view bytes) {
  const auto text = decode(bytes);
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_upper(text[i])) {
      append_lower(result, text, i);
    } else if (is_lower(text[i])) {
      append_upper(result, text[i]);
    } else {
      append(result, text[i]);
    }
  }
  return result;
}

std::string_view strip(std::string_view bytes, bool left, bool right) noexcept {
  while (left && !bytes.empty()) {
    std::size_t after = 0;
    if (!is_space(next(bytes, after))) break;
    bytes.remove_prefix(after);
  }
  while (right && !bytes.empty()) {
    std::size_t start = bytes.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(bytes[start]) & 0xC0U) == 0x80U) --start;
    std::size_t offset = start;
    if (!is_space(next(bytes, offset))) break;
    bytes = bytes.substr(0, start);
  }
  return bytes;
}

std::size_t find(std::string_view bytes, std::string_view needle, std::size_t from) noexcept {
  if (from > bytes.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  // memmem is linear; string_view::find is quadratic on repetitive text, which a template can choose.
  const void* hit = memmem(bytes.data() + from, bytes.size() - from, needle.data(), needle.size());
  if (hit == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(hit) - bytes.data());
}

std::size_t rfind(std::string_view bytes, std::string_view needle) {
  if (needle.size() > bytes.size()) return std::string_view::npos;
  const std::string reversed(bytes.rbegin(), bytes.rend());
  const std::string reversed_needle(needle.rbegin(), needle.rend());
  const std::size_t at = find(reversed, reversed_needle);
  return at == std::string_view::npos ? at : bytes.size() - at - needle.size();
}

}  // namespace headrace::text::jinja::unicode
