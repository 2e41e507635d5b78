// UTF-8 repair and code points; see utf8.hpp.
#include "text/utf8.hpp"

namespace headrace::text {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

unsigned byte_at(std::string_view bytes, std::size_t i) noexcept { return static_cast<unsigned char>(bytes[i]); }

/// Appends repaired `bytes` to `out`, and returns how many bytes at the end are an incomplete character.
std::size_t append_repaired(std::string& out, std::string_view bytes) {
  std::size_t valid_from = 0;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const Utf8Unit unit = next_utf8_unit(bytes.substr(at));
    if (unit.kind != Utf8Unit::Kind::character) out.append(bytes.substr(valid_from, at - valid_from));
    if (unit.kind == Utf8Unit::Kind::incomplete) return unit.size;
    at += unit.size;
    if (unit.kind == Utf8Unit::Kind::invalid) {
      out.append(kReplacement);
      valid_from = at;
    }
  }
  out.append(bytes.substr(valid_from));
  return 0;
}

}  // namespace

Utf8Unit next_utf8_unit(std::string_view bytes) noexcept {
  using Kind = Utf8Unit::Kind;
  const unsigned lead = byte_at(bytes, 0);
  if (lead < 0x80) return {Kind::character, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Kind::invalid, 1};
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range depends on the lead: no overlong forms, no surrogates, nothing above U+10FFFF.
  unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < size; ++i) {
    if (i == bytes.size()) return {Kind::incomplete, i};
    if (byte_at(bytes, i) < low || byte_at(bytes, i) > high) return {Kind::invalid, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Kind::character, size};
}

bool is_valid_utf8(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const Utf8Unit unit = next_utf8_unit(bytes);
    if (unit.kind != Utf8Unit::Kind::character) return false;
    bytes.remove_prefix(unit.size);
  }
  return true;
}

std::string repair_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  if (append_repaired(out, bytes) != 0) out.append(kReplacement);
  return out;
}

char32_t read_code_point(std::string_view text, std::size_t& size) noexcept {
  const unsigned lead = byte_at(text, 0);
  size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (size == 1) return lead;
  unsigned code_point = lead & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) code_point = code_point << 6 | (byte_at(text, i) & 0x3Fu);
  return code_point;
}

void append_code_point(std::string& out, char32_t code_point) {
  const auto tail = [&](int shift) { out.push_back(static_cast<char>(0x80u | (code_point >> shift & 0x3Fu))); };
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xC0u | code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    out.push_back(static_cast<char>(0xE0u | code_point >> 12));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0u | code_point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string Utf8Stream::push(std::string_view bytes) {
  pending_.append(bytes);
  std::string out;
  const std::size_t incomplete = append_repaired(out, pending_);
  pending_.erase(0, pending_.size() - incomplete);
  return out;
}

std::string Utf8Stream::flush() {
  std::string out;
  if (!pending_.empty()) out = kReplacement;
  pending_.clear();
  return out;
}

}  // namespace headrace::text
