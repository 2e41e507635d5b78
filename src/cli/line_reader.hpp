// Lines of standard input, with Ctrl-C noticed while waiting for them; and messages of several lines.
#pragma once

#include <string>

#include "cli/console.hpp"
#include "cli/interrupt.hpp"

namespace headrace::cli {

enum class ReadResult { text, end, interrupted };

class LineReader {
 public:
  /// No line, and no message, may be longer.
  static constexpr std::size_t limit_bytes = std::size_t{16} << 20;

  /// `prompt` and `continuation` are written before a line if a person types it.
  LineReader(Console& console, Interrupt& interrupt) : console_(console), interrupt_(interrupt) {}

  /// The next message: a line; several, if each but the last ends in a backslash; or all between two lines of `"""`.
  /// `is_block` tells the last case. Throws InputError beyond the limit and ResourceError if stdin cannot be read.
  ReadResult read_message(std::string& message, bool& is_block);

 private:
  ReadResult read_line(std::string& line, const char* prompt);

  Console& console_;
  Interrupt& interrupt_;
  std::string buffer_;
  std::size_t begin_ = 0;  ///< of the next line in the buffer
  bool ended_ = false;
};

}  // namespace headrace::cli
