// What one render may use, and where it is: every operation on values charges its work here and raises through it.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "text/jinja/value.hpp"

namespace headrace::text::jinja {

/// Bounds of one template and one render of it. A unit of work is one node evaluated, one item of a container made or
/// looked at, or 16 bytes of text made or looked at, so that it bounds both time and memory.
struct Limits {
  std::size_t source_bytes = std::size_t{4} << 20U;
  std::size_t syntax_depth = 200;      ///< nested expressions and blocks of the source
  std::size_t evaluation_depth = 400;  ///< nested evaluations, through macros too; fits a stack of 8 MB under ASan
  std::size_t value_depth = 200;       ///< containers in containers
  std::size_t work = 10'000'000;
  std::size_t work_per_input_byte = 16;  ///< added to `work` for every byte of the variables' JSON text
  std::size_t output_bytes = std::size_t{64} << 20U;
};

/// Raises InputError `name:line: message`.
[[noreturn]] void raise_at(std::string_view name, std::size_t line, const std::string& message);

class Runtime {
 public:
  Runtime(std::string name, const Limits& limits, std::tm now);

  /// Raises InputError with the template's name and the current line.
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    raise_at(name_, line_, fmt::format(format, std::forward<Args>(args)...));
  }

  void charge(std::size_t units) {
    if (units > work_left_) out_of_work();
    work_left_ -= units;
  }
  void charge_bytes(std::size_t bytes) { charge(bytes / 16 + 1); }
  void grant(std::size_t units) noexcept { work_left_ += units; }

  /// A charged str; raises if `bytes` alone exceeds what is left.
  [[nodiscard]] Value string(std::string bytes, bool safe = false);
  [[nodiscard]] Value sequence(std::vector<Value> items, Sequence::Kind kind = Sequence::Kind::list);
  [[nodiscard]] Value undefined(std::string message) const;
  void check_depth(std::size_t depth) const;

  /// Counts one level of recursion for as long as it lives; raises beyond Limits::evaluation_depth.
  class Level {
   public:
    explicit Level(Runtime& runtime) : runtime_(runtime) {
      if (runtime.level_ >= runtime.limits_.evaluation_depth) runtime.too_deep();
      ++runtime.level_;
    }
    ~Level() { --runtime_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Runtime& runtime_;
  };

  void set_line(std::size_t line) noexcept { line_ = line; }
  [[nodiscard]] std::size_t line() const noexcept { return line_; }
  [[nodiscard]] const Limits& limits() const noexcept { return limits_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::tm& now() const noexcept { return now_; }

  /// A namespace, remembered so that reference cycles through it can be broken when the render ends.
  [[nodiscard]] std::shared_ptr<Namespace> make_namespace();
  void clear_namespaces() noexcept;

 private:
  [[noreturn]] void out_of_work() const;
  [[noreturn]] void too_deep() const;

  std::string name_;
  Limits limits_;
  std::tm now_;
  std::size_t work_left_;
  std::size_t line_ = 1;
  std::size_t level_ = 0;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

/// Binds the arguments of a call to parameter names, as Python does.
class Parameters {
 public:
  /// Raises if an argument is unknown, given twice, too many, or one of the first `required` is lacking.
  Parameters(Runtime& runtime, std::string_view callee, Arguments& arguments,
             std::initializer_list<std::string_view> names, std::size_t required = 0);

  [[nodiscard]] bool has(std::size_t i) const noexcept { return given_[i]; }
  [[nodiscard]] const Value& operator[](std::size_t i) const noexcept { return values_[i]; }
  /// Integer parameter, or `fallback` if absent. Raises for another type.
  [[nodiscard]] std::int64_t integer(std::size_t i, std::int64_t fallback) const;
  [[nodiscard]] bool truth(std::size_t i, bool fallback) const;
  /// The bytes of a str parameter; raises for another type.
  [[nodiscard]] const std::string& text(std::size_t i) const;

 private:
  Runtime& runtime_;
  std::string callee_;
  std::vector<Value> values_;
  std::vector<bool> given_;
  std::vector<std::string_view> names_;
};

}  // namespace headrace::text::jinja
