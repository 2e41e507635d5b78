// Dim: a size as an integer polynomial over named symbols, in a canonical form, so that equal sizes compare equal.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::ir {

/// Values of symbols, by name.
using Bindings = std::map<std::string, std::int64_t, std::less<>>;

class Dim {
 public:
  Dim() = default;
  Dim(std::int64_t constant);  // NOLINT(google-explicit-constructor): a literal is a size
  static Dim symbol(std::string name);

  [[nodiscard]] bool is_constant() const noexcept;
  /// The constant. Throws InternalError if a symbol occurs.
  [[nodiscard]] std::int64_t constant() const;
  /// The value under `bindings`. Throws InputError on an unbound symbol, a negative result or an overflow.
  [[nodiscard]] std::int64_t evaluate(const Bindings& bindings) const;
  /// As in the text form: "2*T + 1".
  [[nodiscard]] std::string str() const;
  /// Parses what str() prints; throws InputError.
  static Dim parse(std::string_view text);
  /// Names of the symbols that occur, sorted.
  [[nodiscard]] std::vector<std::string> symbols() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend bool operator==(const Dim&, const Dim&) = default;

 private:
  using Monomial = std::vector<std::string>;  // sorted symbol names, with repetition; empty for the constant
  void add_term(const Monomial& monomial, std::int64_t coefficient);
  std::map<Monomial, std::int64_t> terms_;  // no zero coefficients
};

using Shape = std::vector<Dim>;

/// Product of all dimensions.
Dim element_count(const Shape& shape);

}  // namespace headrace::ir
