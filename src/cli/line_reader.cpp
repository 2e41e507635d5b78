#include "cli/line_reader.hpp"

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <unistd.h>

#include "base/error.hpp"

namespace headrace::cli {

namespace {

constexpr const char* first_prompt = "> ";
constexpr const char* next_prompt = ". ";
constexpr std::string_view block_mark = "\"\"\"";

void check_length(std::size_t bytes) {
  if (bytes > LineReader::limit_bytes) {
    fail<InputError>("standard input: expected a message of at most {} bytes, found more", LineReader::limit_bytes);
  }
}

}  // namespace

ReadResult LineReader::read_line(std::string& line, const char* prompt) {
  if (console_.in_is_terminal() && console_.out_is_terminal()) console_.write(prompt);
  std::size_t searched = begin_;
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos || (ended_ && begin_ < buffer_.size())) {
      line = buffer_.substr(begin_, std::min(end, buffer_.size()) - begin_);
      begin_ = std::min(end, buffer_.size() - 1) + 1;
      if (line.ends_with('\r')) line.pop_back();
      return ReadResult::text;
    }
    if (ended_) return ReadResult::end;
    check_length(buffer_.size() - begin_);
    buffer_.erase(0, begin_);
    begin_ = 0;
    searched = buffer_.size();

    pollfd waits[2] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_.descriptor(), POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0 && errno != EINTR) {
      fail<ResourceError>("standard input: cannot be waited for: {}", std::strerror(errno));
    }
    if (interrupt_.requested()) return ReadResult::interrupted;
    if (waits[0].revents == 0) continue;
    char bytes[1 << 14];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) fail<ResourceError>("standard input: cannot be read: {}", std::strerror(errno));
    if (count == 0) ended_ = true;
    buffer_.append(bytes, static_cast<std::size_t>(count));
  }
}

ReadResult LineReader::read_message(std::string& message, bool& is_block) {
  message.clear();
  is_block = false;
  interrupt_.catch_first();
  std::string line;
  ReadResult result = read_line(line, first_prompt);
  if (result != ReadResult::text) return result;
  if (line.starts_with(block_mark)) {
    is_block = true;
    line.erase(0, block_mark.size());
    bool first = true;
    for (;;) {
      if (line.ends_with(block_mark)) {
        line.resize(line.size() - block_mark.size());
        if (!line.empty()) message += (first ? "" : "\n") + line;
        return ReadResult::text;
      }
      // The line of the opening mark counts only if there is text on it.
      if (!(first && line.empty())) {
        message += (first ? "" : "\n") + line;
        first = false;
      }
      check_length(message.size());
      result = read_line(line, next_prompt);
      // A block that the end of the input cuts off is all there is.
      if (result != ReadResult::text) return result == ReadResult::end ? ReadResult::text : result;
    }
  }
  while (line.ends_with('\\')) {
    line.back() = '\n';
    message += line;
    line.clear();
    check_length(message.size());
    result = read_line(line, next_prompt);
    if (result == ReadResult::interrupted) return result;
    if (result == ReadResult::end) break;
  }
  message += line;
  return ReadResult::text;
}

}  // namespace headrace::cli
