// str's methods, with Python's semantics on code points.
#include "text/jinja/string_methods.hpp"

#include <algorithm>
#include <array>

#include "base/checked.hpp"
#include "text/jinja/format.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {
namespace {

const std::string& bytes(const Value& self) { return self.string()->bytes; }

Value same_safety(Runtime& runtime, const Value& self, std::string text) {
  return runtime.string(std::move(text), self.string()->safe);
}

// Methods of one argument list each, by what they do to the text.
template <std::string (*function)(std::string_view)>
Value map_text(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters none(runtime, "str method", arguments, {});
  runtime.charge_bytes(bytes(self).size() * 4);
  return same_safety(runtime, self, function(bytes(self)));
}

template <bool left, bool right>
Value strip(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters parameters(runtime, "strip", arguments, {"chars"});
  const bool given = parameters.has(0) && !parameters[0].is_none();
  runtime.charge_bytes(bytes(self).size());
  return same_safety(runtime, self, strip_characters(bytes(self), given ? &parameters.text(0) : nullptr, left, right));
}

/// The part of the text that `start` and `end` (code points, as in a slice) select; `first` is its byte offset.
std::optional<std::string_view> window(const Parameters& parameters, const String& text, std::size_t& first) {
  const auto size = static_cast<std::int64_t>(text.length);
  const auto bound = [&](std::size_t i, std::int64_t absent) {
    if (!parameters.has(i) || parameters[i].is_none()) return absent;
    const std::int64_t at = parameters.integer(i, absent);
    return at < 0 ? std::max<std::int64_t>(at < -size ? 0 : at + size, 0) : at;
  };
  const std::int64_t start = bound(1, 0);
  const std::int64_t end = std::min(bound(2, size), size);
  first = 0;
  if (start > size || start > end) return std::nullopt;
  first = unicode::byte_offset(text.bytes, static_cast<std::size_t>(start));
  const auto last = unicode::byte_offset(text.bytes, static_cast<std::size_t>(end));
  return std::string_view(text.bytes).substr(first, last - first);
}

template <bool at_end>
Value affix(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters parameters(runtime, at_end ? "endswith" : "startswith", arguments, {"affix", "start", "end"}, 1);
  std::size_t first = 0;
  const auto text = window(parameters, *self.string(), first);
  const auto matches = [&](const Value& each) {
    if (!each.is_string()) {
      runtime.fail("{}: expected a str or a tuple of str, found {}", at_end ? "endswith" : "startswith",
                   type_name(each));
    }
    runtime.charge_bytes(bytes(each).size());
    return text && (at_end ? text->ends_with(bytes(each)) : text->starts_with(bytes(each)));
  };
  const auto* choices = parameters[0].sequence();
  if (choices == nullptr || choices->kind != Sequence::Kind::tuple) return matches(parameters[0]);
  return std::any_of(choices->items.begin(), choices->items.end(), matches);
}

template <bool from_end, bool must>
Value find(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters parameters(runtime, "find", arguments, {"sub", "start", "end"}, 1);
  const std::string& needle = parameters.text(0);
  runtime.charge_bytes(bytes(self).size() + needle.size());
  std::size_t first = 0;
  const auto text = window(parameters, *self.string(), first);
  if (text) {
    const std::size_t at = from_end ? unicode::rfind(*text, needle) : unicode::find(*text, needle);
    if (at != std::string_view::npos) {
      return static_cast<std::int64_t>(unicode::length(std::string_view(bytes(self)).substr(0, first + at)));
    }
  }
  if (must) runtime.fail("index: expected a str that contains the other, found none");
  return std::int64_t{-1};
}

Value count(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters parameters(runtime, "count", arguments, {"sub", "start", "end"}, 1);
  const std::string& needle = parameters.text(0);
  runtime.charge_bytes(bytes(self).size() + needle.size());
  std::size_t first = 0;
  const auto text = window(parameters, *self.string(), first);
  if (!text) return std::int64_t{0};
  if (needle.empty()) return static_cast<std::int64_t>(unicode::length(*text) + 1);
  std::int64_t hits = 0;
  for (std::size_t at = 0; (at = unicode::find(*text, needle, at)) != std::string_view::npos; at += needle.size()) {
    ++hits;
  }
  return hits;
}

Value replace_method(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters parameters(runtime, "replace", arguments, {"old", "new", "count"}, 2);
  return same_safety(runtime, self,
                     replace(runtime, bytes(self), parameters.text(0), parameters.text(1), parameters.integer(2, -1)));
}

// split() without a separator: runs of white space separate, none at the ends.
std::vector<std::string_view> split_spaces(std::string_view text, std::int64_t limit, bool from_end) {
  std::vector<std::string_view> parts;
  while (true) {
    text = unicode::strip(text, !from_end, from_end);
    if (text.empty()) break;
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit) {
      parts.push_back(text);
      break;
    }
    if (!from_end) {
      std::size_t end = 0;
      for (std::size_t after = 0; end < text.size(); end = after) {
        if (unicode::is_space(unicode::next(text, after))) break;
      }
      parts.push_back(text.substr(0, end));
      text.remove_prefix(end);
    } else {
      std::size_t start = text.size();
      while (start > 0) {
        std::size_t before = start - 1;
        while (before > 0 && (static_cast<unsigned char>(text[before]) & 0xC0U) == 0x80U) --before;
        std::size_t after = before;
        if (unicode::is_space(unicode::next(text, after))) break;
        start = before;
      }
      parts.push_back(text.substr(start));
      text = text.substr(0, start);
    }
  }
  if (from_end) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator, std::int64_t limit,
                                       bool from_end) {
  std::vector<std::size_t> hits;
  if (!from_end) {
    for (std::size_t at = 0; (at = unicode::find(text, separator, at)) != std::string_view::npos;) {
      if (limit >= 0 && static_cast<std::int64_t>(hits.size()) == limit) break;
      hits.push_back(at);
      at += separator.size();
    }
  } else {
    const std::string reversed(text.rbegin(), text.rend());
    const std::string needle(separator.rbegin(), separator.rend());
    for (std::size_t at = 0; (at = unicode::find(reversed, needle, at)) != std::string_view::npos;) {
      if (limit >= 0 && static_cast<std::int64_t>(hits.size()) == limit) break;
      at += needle.size();
      hits.push_back(text.size() - at);
    }
    std::reverse(hits.begin(), hits.end());
  }
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  for (const std::size_t hit : hits) {
    parts.push_back(text.substr(start, hit - start));
    start = hit + separator.size();
  }
  parts.push_back(text.substr(start));
  return parts;
}

template <bool from_end>
Value split(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters parameters(runtime, "split", arguments, {"sep", "maxsplit"});
  const std::int64_t limit = parameters.integer(1, -1);
  runtime.charge_bytes(bytes(self).size() * 2);
  std::vector<std::string_view> parts;
  if (!parameters.has(0) || parameters[0].is_none()) {
    parts = split_spaces(bytes(self), limit, from_end);
  } else {
    if (parameters.text(0).empty()) runtime.fail("split: expected a separator that is not empty, found ''");
    parts = split_at(bytes(self), parameters.text(0), limit, from_end);
  }
  runtime.charge(parts.size() * 4);
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const auto part : parts) items.push_back(same_safety(runtime, self, std::string(part)));
  return runtime.sequence(std::move(items));
}

Value splitlines(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters parameters(runtime, "splitlines", arguments, {"keepends"});
  runtime.charge_bytes(bytes(self).size());
  std::vector<Value> items;
  for (auto& line : split_lines(bytes(self), parameters.truth(0, false))) {
    runtime.charge(4);
    items.push_back(same_safety(runtime, self, std::move(line)));
  }
  return runtime.sequence(std::move(items));
}

template <bool from_end>
Value partition(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters parameters(runtime, "partition", arguments, {"sep"}, 1);
  const std::string& separator = parameters.text(0);
  if (separator.empty()) runtime.fail("partition: expected a separator that is not empty, found ''");
  const std::string_view text = bytes(self);
  runtime.charge_bytes(text.size());
  const std::size_t at = from_end ? unicode::rfind(text, separator) : unicode::find(text, separator);
  std::array<std::string_view, 3> parts{from_end ? "" : text, "", from_end ? text : ""};
  if (at != std::string_view::npos) parts = {text.substr(0, at), separator, text.substr(at + separator.size())};
  std::vector<Value> items;
  for (const auto part : parts) items.push_back(same_safety(runtime, self, std::string(part)));
  return runtime.sequence(std::move(items), Sequence::Kind::tuple);
}

Value join(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters parameters(runtime, "join", arguments, {"iterable"}, 1);
  std::string out;
  bool first = true;
  const auto iterated = iterate(runtime, parameters[0]);  // outlives the loop, which a temporary would not
  for (const auto& item : iterated->items) {
    if (!item.is_string()) runtime.fail("join: expected items that are str, found {}", type_name(item));
    runtime.charge_bytes(bytes(item).size() + bytes(self).size());
    if (!first) out += bytes(self);
    first = false;
    out += bytes(item);
  }
  return same_safety(runtime, self, std::move(out));
}

template <bool at_end>
Value remove_affix(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters parameters(runtime, at_end ? "removesuffix" : "removeprefix", arguments, {"affix"}, 1);
  const std::string& text = bytes(self);
  const std::string& cut = parameters.text(0);
  const bool hit = at_end ? text.ends_with(cut) : text.starts_with(cut);
  if (!hit) return self;
  return same_safety(runtime, self, at_end ? text.substr(0, text.size() - cut.size()) : text.substr(cut.size()));
}

enum class Side { left, right, both };

template <Side side>
Value justify(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters parameters(runtime, "justify", arguments, {"width", "fillchar"}, 1);
  const std::string fill = parameters.has(1) ? parameters.text(1) : " ";
  if (unicode::length(fill) != 1) runtime.fail("justify: expected one fill character, found '{}'", fill);
  const auto size = static_cast<std::int64_t>(self.string()->length);
  const std::int64_t width = parameters.integer(0, 0);
  if (width <= size) return self;
  const auto missing = static_cast<std::size_t>(width - size);
  runtime.charge_bytes(checked_mul(missing, fill.size()).value_or(SIZE_MAX));
  // CPython's str.center puts the odd one to the left when both are odd.
  const std::size_t left = side == Side::left    ? 0
                           : side == Side::right ? missing
                                                 : missing / 2 + (missing & static_cast<std::size_t>(width) & 1U);
  std::string out;
  for (std::size_t i = 0; i < left; ++i) out += fill;
  out += bytes(self);
  for (std::size_t i = left; i < missing; ++i) out += fill;
  return same_safety(runtime, self, std::move(out));
}

Value zfill(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters parameters(runtime, "zfill", arguments, {"width"}, 1);
  const auto size = static_cast<std::int64_t>(self.string()->length);
  const std::int64_t width = parameters.integer(0, 0);
  if (width <= size) return self;
  runtime.charge_bytes(static_cast<std::size_t>(width));
  std::string out = bytes(self);
  const std::size_t at = out.starts_with('-') || out.starts_with('+') ? 1 : 0;
  out.insert(at, static_cast<std::size_t>(width - size), '0');
  return same_safety(runtime, self, std::move(out));
}

Value format_method(Runtime& runtime, const Value& self, Arguments& arguments) {
  return format_braces(runtime, *self.string(), arguments);
}

template <bool (*predicate)(char32_t)>
Value all_are(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters none(runtime, "str method", arguments, {});
  runtime.charge_bytes(bytes(self).size());
  for (std::size_t offset = 0; offset < bytes(self).size();) {
    if (!predicate(unicode::next(bytes(self), offset))) return false;
  }
  return !bytes(self).empty();
}

template <bool upper>
Value cased(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Parameters none(runtime, "str method", arguments, {});
  runtime.charge_bytes(bytes(self).size());
  bool found = false;
  for (std::size_t offset = 0; offset < bytes(self).size();) {
    const char32_t c = unicode::next(bytes(self), offset);
    if (unicode::is_title(c) || (upper ? unicode::is_lower(c) : unicode::is_upper(c))) return false;
    found = found || (upper ? unicode::is_upper(c) : unicode::is_lower(c));
  }
  return found;
}

bool is_ascii(char32_t c) { return c < 0x80; }

Value isascii(Runtime& runtime, const Value& self, Arguments& arguments) {
  if (bytes(self).empty()) return true;
  return all_are<is_ascii>(runtime, self, arguments);
}

constexpr std::array<StringMethod, 40> table{{
    {"capitalize", map_text<unicode::capitalize>},
    {"casefold", map_text<unicode::lower>},
    {"center", justify<Side::both>},
    {"count", count},
    {"endswith", affix<true>},
    {"find", find<false, false>},
    {"format", format_method},
    {"index", find<false, true>},
    {"isalnum", all_are<unicode::is_alnum>},
    {"isalpha", all_are<unicode::is_alpha>},
    {"isascii", isascii},
    {"isdecimal", all_are<unicode::is_decimal>},
    {"isdigit", all_are<unicode::is_decimal>},
    {"islower", cased<false>},
    {"isnumeric", all_are<unicode::is_decimal>},
    {"isprintable", all_are<unicode::is_printable>},
    {"isspace", all_are<unicode::is_space>},
    {"isupper", cased<true>},
    {"join", join},
    {"ljust", justify<Side::left>},
    {"lower", map_text<unicode::lower>},
    {"lstrip", strip<true, false>},
    {"partition", partition<false>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", replace_method},
    {"rfind", find<true, false>},
    {"rindex", find<true, true>},
    {"rjust", justify<Side::right>},
    {"rpartition", partition<true>},
    {"rsplit", split<true>},
    {"rstrip", strip<false, true>},
    {"split", split<false>},
    {"splitlines", splitlines},
    {"startswith", affix<false>},
    {"strip", strip<true, true>},
    {"swapcase", map_text<unicode::swap_case>},
    {"title", map_text<unicode::title>},
    {"upper", map_text<unicode::upper>},
    {"zfill", zfill},
}};

}  // namespace

std::span<const StringMethod> string_methods() { return table; }

std::string replace(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
                    std::int64_t count) {
  runtime.charge_bytes(text.size());
  std::vector<std::size_t> hits;
  const auto enough = [&] { return count >= 0 && static_cast<std::int64_t>(hits.size()) >= count; };
  if (from.empty()) {
    for (std::size_t at = 0; at <= text.size() && !enough();) {
      hits.push_back(at);
      if (at == text.size()) break;
      static_cast<void>(unicode::next(text, at));
    }
  } else {
    for (std::size_t at = 0; !enough() && (at = unicode::find(text, from, at)) != std::string_view::npos;) {
      hits.push_back(at);
      at += from.size();
    }
  }
  runtime.charge(hits.size());
  runtime.charge_bytes(checked_mul(hits.size(), to.size()).value_or(SIZE_MAX));  // before the result is made
  std::string out;
  std::size_t start = 0;
  for (const std::size_t hit : hits) {
    out += text.substr(start, hit - start);
    out += to;
    start = hit + from.size();
  }
  out += text.substr(start);
  return out;
}

std::string strip_characters(std::string_view text, const std::string* characters, bool left, bool right) {
  if (characters == nullptr) return std::string(unicode::strip(text, left, right));
  auto set = unicode::decode(*characters);
  std::sort(set.begin(), set.end());
  const auto drop = [&](std::string_view one) {
    std::size_t offset = 0;
    return std::binary_search(set.begin(), set.end(), unicode::next(one, offset));
  };
  while (left && !text.empty()) {
    std::size_t after = 0;
    static_cast<void>(unicode::next(text, after));
    if (!drop(text)) break;
    text.remove_prefix(after);
  }
  while (right && !text.empty()) {
    std::size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0U) == 0x80U) --start;
    if (!drop(text.substr(start))) break;
    text = text.substr(0, start);
  }
  return std::string(text);
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t at = offset;
    const char32_t c = unicode::next(text, offset);
    const bool ends = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!ends) continue;
    if (c == '\r' && offset < text.size() && text[offset] == '\n') ++offset;
    lines.emplace_back(text.substr(start, (keep_ends ? offset : at) - start));
    start = offset;
  }
  if (start < text.size()) lines.emplace_back(text.substr(start));
  return lines;
}

}  // namespace headrace::text::jinja
