// Typed errors: what is wrong, where, what was expected, what was found, in one plain line.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace headrace {

/// Exit codes of the program.
enum class ExitCode : int { ok = 0, usage = 2, input = 3, resource = 4, internal = 70 };

/// Base of all errors that Headrace raises. `what()` is one line without a trailing full stop.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// The command line is wrong.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(ExitCode::usage, message) {}
};

/// A file or a request is wrong: names the file, the offset, the tensor or field, the expected and the found.
class InputError : public Error {
 public:
  explicit InputError(const std::string& message) : Error(ExitCode::input, message) {}
};

/// Memory, disk, port or permission is lacking.
class ResourceError : public Error {
 public:
  explicit ResourceError(const std::string& message) : Error(ExitCode::resource, message) {}
};

/// A bug of ours.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& message) : Error(ExitCode::internal, message) {}
};

/// Throws `E` with a formatted message: `fail<InputError>("{}: expected {}, got {}", file, a, b)`.
template <class E, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format(format, std::forward<Args>(args)...));
}

/// Throws InternalError unless `condition` holds. For invariants of our own code, never for input.
inline void require(bool condition, const char* what) {
  if (!condition) throw InternalError(what);
}

}  // namespace headrace
