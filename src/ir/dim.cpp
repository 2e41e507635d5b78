#include "ir/dim.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace headrace::ir {

namespace {

std::int64_t checked(std::optional<std::int64_t> value, const Dim& dim) {
  if (!value) fail<InputError>("size {}: expected a value below 2^63, got an overflow", dim.str());
  return *value;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool is_symbol(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

Dim::Dim(std::int64_t constant) { add_term({}, constant); }

Dim Dim::symbol(std::string name) {
  Dim dim;
  dim.add_term({std::move(name)}, 1);
  return dim;
}

void Dim::add_term(const Monomial& monomial, std::int64_t coefficient) {
  if (coefficient == 0) return;
  auto [place, inserted] = terms_.try_emplace(monomial, coefficient);
  if (inserted) return;
  const auto sum = checked_add(place->second, coefficient);
  if (!sum) fail<InputError>("size {}: expected coefficients below 2^63, got an overflow", str());
  if (*sum == 0) {
    terms_.erase(place);
  } else {
    place->second = *sum;
  }
}

bool Dim::is_constant() const noexcept {
  return terms_.empty() || (terms_.size() == 1 && terms_.begin()->first.empty());
}

std::int64_t Dim::constant() const {
  if (!is_constant()) fail<InternalError>("size {}: expected a constant", str());
  return terms_.empty() ? 0 : terms_.begin()->second;
}

std::int64_t Dim::evaluate(const Bindings& bindings) const {
  std::int64_t sum = 0;
  for (const auto& [monomial, coefficient] : terms_) {
    std::int64_t product = coefficient;
    for (const auto& symbol : monomial) {
      const auto place = bindings.find(symbol);
      if (place == bindings.end()) fail<InputError>("size {}: expected a value for {}, got none", str(), symbol);
      product = checked(checked_mul(product, place->second), *this);
    }
    sum = checked(checked_add(sum, product), *this);
  }
  if (sum < 0) fail<InputError>("size {}: expected at least 0, got {}", str(), sum);
  return sum;
}

std::string Dim::str() const {
  if (terms_.empty()) return "0";
  std::string text;
  // Symbols first and the constant last, as people write it: the map orders the empty monomial first.
  for (auto term = terms_.rbegin(); term != terms_.rend(); ++term) {
    if (!text.empty()) text += " + ";
    const auto& [monomial, coefficient] = *term;
    if (monomial.empty() || coefficient != 1) text += std::to_string(coefficient);
    for (std::size_t i = 0; i < monomial.size(); ++i) {
      if (i > 0 || coefficient != 1) text += '*';
      text += monomial[i];
    }
  }
  return text;
}

Dim Dim::parse(std::string_view text) {
  Dim sum;
  const auto refuse = [&]() { fail<InputError>("size '{}': expected integers and symbols joined by + and *", text); };
  std::string_view rest = text;
  while (true) {
    const auto plus = rest.find('+');
    std::string_view term = rest.substr(0, plus);
    Dim product = 1;
    while (true) {
      const auto star = term.find('*');
      const std::string_view factor = trim(term.substr(0, star));
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(factor.data(), factor.data() + factor.size(), value);
      if (error == std::errc{} && end == factor.data() + factor.size()) {
        product = product * Dim(value);
      } else if (is_symbol(factor)) {
        product = product * symbol(std::string(factor));
      } else {
        refuse();
      }
      if (star == std::string_view::npos) break;
      term.remove_prefix(star + 1);
    }
    sum = sum + product;
    if (plus == std::string_view::npos) break;
    rest.remove_prefix(plus + 1);
  }
  return sum;
}

std::vector<std::string> Dim::symbols() const {
  std::set<std::string> names;
  for (const auto& [monomial, coefficient] : terms_) names.insert(monomial.begin(), monomial.end());
  return {names.begin(), names.end()};
}

Dim operator+(const Dim& a, const Dim& b) {
  Dim sum = a;
  for (const auto& [monomial, coefficient] : b.terms_) sum.add_term(monomial, coefficient);
  return sum;
}

Dim operator*(const Dim& a, const Dim& b) {
  Dim product;
  for (const auto& [left, left_coefficient] : a.terms_) {
    for (const auto& [right, right_coefficient] : b.terms_) {
      Dim::Monomial monomial;
      std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(monomial));
      product.add_term(monomial, checked(checked_mul(left_coefficient, right_coefficient), a));
    }
  }
  return product;
}

Dim element_count(const Shape& shape) {
  Dim count = 1;
  for (const auto& dim : shape) count = count * dim;
  return count;
}

}  // namespace headrace::ir
