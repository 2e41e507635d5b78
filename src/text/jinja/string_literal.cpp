// \n, \x41, \u0041, \101 and so on; an unknown escape stays as it is.
#include "text/jinja/string_literal.hpp"

#include <charconv>

#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {
namespace {

constexpr std::string_view simple_from = "\\'\"abfnrtv";
constexpr std::string_view simple_to = "\\'\"\a\b\f\n\r\t\v";

}  // namespace

std::string unescape(std::string_view literal, std::string& problem) {
  std::string out;
  out.reserve(literal.size());
  for (std::size_t i = 0; i < literal.size(); ++i) {
    if (literal[i] != '\\' || i + 1 >= literal.size()) {
      out += literal[i];
      continue;
    }
    const char c = literal[++i];
    if (const auto at = simple_from.find(c); at != std::string_view::npos) {
      out += simple_to[at];
      continue;
    }
    if (c == '\n') continue;
    std::size_t digits = c == 'x' ? 2 : (c == 'u' ? 4 : (c == 'U' ? 8 : 0));
    const int base = digits > 0 ? 16 : 8;
    std::size_t start = i + 1;
    if (digits == 0 && c >= '0' && c <= '7') {
      start = i;
      while (digits < 3 && start + digits < literal.size() && literal[start + digits] >= '0' &&
             literal[start + digits] <= '7') {
        ++digits;
      }
    }
    if (digits == 0) {
      if (c == 'N') {
        problem = "expected no \\N{...} escape, found one";
        return {};
      }
      out += '\\';
      out += c;
      continue;
    }
    unsigned code = 0;
    const char* first = literal.data() + start;
    const char* last = start + digits <= literal.size() ? first + digits : first;
    const auto result = std::from_chars(first, last, code, base);
    if (result.ec != std::errc() || result.ptr != last || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      problem = "expected the code of a character after the backslash, found '" +
                std::string(literal.substr(i, std::min<std::size_t>(digits + 1, literal.size() - i))) + "'";
      return {};
    }
    unicode::append(out, code);
    i = start + digits - 1;
  }
  return out;
}

}  // namespace headrace::text::jinja
