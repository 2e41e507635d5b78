#include "cli/console.hpp"

#include <cerrno>
#include <cstring>

#include <unistd.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "text/utf8.hpp"

namespace headrace::cli {

namespace {

/// 0, or the error of write(2).
int write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

/// `text` with each control character for which `keep` is false replaced.
template <class Keep>
std::string replace_controls(std::string_view text, std::string_view replacement, Keep keep) {
  const std::string repaired = text::repair_utf8(text);
  std::string out;
  out.reserve(repaired.size());
  std::string_view rest = repaired;
  while (!rest.empty()) {
    std::size_t size = 0;
    const char32_t c = text::read_code_point(rest, size);
    out += is_control(c) && !keep(c) ? replacement : rest.substr(0, size);
    rest.remove_prefix(size);
  }
  return out;
}

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Objects and lists of objects one member a line; lists of numbers, however long, on one.
void append_json(std::string& out, const Json& json, std::size_t indent) {
  const bool spread = !json.empty() && (json.is_object() || (json.is_array() && json.front().is_structured()));
  if (!spread) {
    out += dump(json);
    return;
  }
  const std::string line(indent + 2, ' ');
  out += json.is_object() ? "{" : "[";
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    out += (first ? "\n" : ",\n") + line;
    if (json.is_object()) out += dump(key) + ": ";
    append_json(out, value, indent + 2);
    first = false;
  }
  out += "\n" + std::string(indent, ' ') + (json.is_object() ? "}" : "]");
}

}  // namespace

std::string json_text(const nlohmann::ordered_json& json) {
  std::string text;
  append_json(text, json, 0);
  return text;
}

Console::Console()
    : in_is_terminal_(::isatty(STDIN_FILENO) == 1),
      out_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      err_is_terminal_(::isatty(STDERR_FILENO) == 1) {}

void Console::write(std::string_view text) {
  const int error = out_is_terminal_ ? write_all(STDOUT_FILENO, harmless(text)) : write_all(STDOUT_FILENO, text);
  if (error == EPIPE) throw BrokenPipe();
  if (error != 0) fail<ResourceError>("standard output: cannot be written: {}", std::strerror(error));
}

void Console::write_json(const nlohmann::ordered_json& object) { write(json_text(object) + "\n"); }

void Console::note(std::string_view text) noexcept {
  try {
    write_all(STDERR_FILENO, one_line(text) + "\n");
  } catch (const std::bad_alloc&) {
    // What is left to say is that there is no memory left.
    write_all(STDERR_FILENO, "headrace: out of memory\n");
  }
}

void Console::write_err(std::string_view text) noexcept { write_all(STDERR_FILENO, text); }

std::string one_line(std::string_view text) {
  return replace_controls(text, " ", [](char32_t) { return false; });
}

std::string harmless(std::string_view text) {
  return replace_controls(text, "\xEF\xBF\xBD", [](char32_t c) { return c == '\n' || c == '\t'; });
}

}  // namespace headrace::cli
