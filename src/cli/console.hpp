// The three standard streams: results to stdout, everything else to stderr, and who is at the other end.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace headrace::cli {

/// Whoever read our output went away. Not an error: the program ends quietly.
class BrokenPipe {};

class Console {
 public:
  Console();

  [[nodiscard]] bool in_is_terminal() const noexcept { return in_is_terminal_; }
  [[nodiscard]] bool out_is_terminal() const noexcept { return out_is_terminal_; }
  [[nodiscard]] bool err_is_terminal() const noexcept { return err_is_terminal_; }

  /// Writes to stdout at once. Throws BrokenPipe, and ResourceError if it cannot be written. To a terminal, control
  /// characters other than line feed and tab are shown as U+FFFD: a model's text must not steer it.
  void write(std::string_view text);
  /// One JSON object and a line feed to stdout; bytes that are no UTF-8 become U+FFFD.
  void write_json(const nlohmann::ordered_json& object);

  /// One line to stderr, whatever `text` holds; failures to write are ignored, since there is nobody left to tell.
  void note(std::string_view text) noexcept;
  /// Text to stderr as it is, for progress on a terminal.
  void write_err(std::string_view text) noexcept;

 private:
  bool in_is_terminal_;
  bool out_is_terminal_;
  bool err_is_terminal_;
};

/// JSON as people and programs read it: a member a line, lists of numbers on one line, U+FFFD for what is no UTF-8.
std::string json_text(const nlohmann::ordered_json& json);
/// `text` with control characters replaced, so that it is one plain line.
std::string one_line(std::string_view text);
/// `text` with what a terminal would obey replaced by U+FFFD; line feeds and tabs stay. `text` is UTF-8.
std::string harmless(std::string_view text);

}  // namespace headrace::cli
