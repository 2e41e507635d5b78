// Random well-typed functions, built op by op of primitives, with a bound on how far a target may be off.
//
// With every value goes a bound on its magnitude and one on its error: how much a target's value may differ from the
// interpreter's, if it rounds as docs/numerics.md says. An error of 0 says that both round alike, so that they are
// equal; only such values are compared or cut to integers, where a small difference would become a large one.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/builder.hpp"
#include "ir/interpreter.hpp"

namespace headrace::testing {

using ir::Dim;
using ir::ElementType;
using ir::ValueId;

/// The largest sizes of a run.
constexpr std::int64_t random_max_rows = 16;
constexpr std::int64_t random_max_sequences = 3;
constexpr std::int64_t random_max_positions = 90;

/// A tensor of the function that is built.
struct Known {
  ValueId id = -1;
  double size = 0;
  double error = 0;
};

/// A State of the function that is built; of one that is not generic, the keys come before the values of a pair.
struct KnownState {
  ValueId id = -1;
  bool generic = false;
  bool appended = false;
  double error = 0;
};

/// Builds one function, op by op.
class RandomFunction {
 public:
  RandomFunction(std::string name, ir::Program& program, std::mt19937& random)
      : program_(program), random_(random), b(std::move(name), &program) {}

  // ---- randomness ----
  std::int64_t below(std::int64_t count) { return static_cast<std::int64_t>(random_() % static_cast<unsigned>(count)); }
  bool chance(int in) { return below(in) == 0; }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(static_cast<std::int64_t>(list.size())))];
  }

  // ---- types ----
  static std::int64_t extent(const Dim& dim) {
    return dim.evaluate({{"T", random_max_rows}, {"B", random_max_sequences}, {"P", random_max_positions}});
  }
  static double unit(ElementType element) {
    switch (element) {
      case ElementType::f32:
        return 0x1p-24;
      case ElementType::f16:
        return 0x1p-11;
      case ElementType::bf16:
        return 0x1p-8;
      case ElementType::f64:
        return 0x1p-53;
      default:
        return 0;
    }
  }
  const ir::Type& type(const Known& value) const { return b.type(value.id); }
  bool is_f32(const Known& value, std::size_t rank) const {
    return type(value).element == ElementType::f32 && type(value).shape.size() == rank;
  }
  static std::string text(const ir::Shape& shape) {
    std::string joined;
    for (const Dim& dim : shape) joined += (joined.empty() ? "" : ", ") + dim.str();
    return joined;
  }

  // ---- values ----
  /// A random value that fits, recent ones more often; nullptr if there is none.
  template <class F>
  const Known* pick(F&& fits) {
    std::vector<const Known*> found;
    for (const Known& value : values) {
      if (fits(value)) found.push_back(&value);
    }
    if (found.empty()) return nullptr;
    const std::int64_t count = static_cast<std::int64_t>(found.size());
    return found[static_cast<std::size_t>(std::max(below(count), below(count)))];
  }
  /// Whether a value of this size and error is worth having.
  static bool is_tame(double size, double error) { return size <= 1e4 && error <= 0.05 * std::max(size, 1.0); }
  void keep(ValueId id, double size, double error) {
    double elements = 1;
    for (const Dim& dim : b.type(id).shape) elements *= static_cast<double>(extent(dim));
    if (elements <= 8192 && b.type(id).shape.size() <= 5) values.push_back({id, size, error});
  }
  /// A rounding more, of values that may differ already.
  double rounded(const ir::Type& of, double size, double error) const {
    return error == 0 ? 0 : error + 2 * unit(of.element) * size;
  }
  ValueId scalar(double value) {
    return b.op("constant", {}, {{"shape", std::vector<std::int64_t>{}}, {"values", std::vector<double>{value}}});
  }
  ValueId reshape(ValueId x, const std::string& shape) { return b.op("reshape", {x}, {{"shape", shape}}); }

  // ---- ops ----
  void unary() {
    const Known* x = pick([&](const Known& v) { return ir::is_float(type(v).element); });
    if (x == nullptr) return;
    const Known v = *x;
    const double own_unit = unit(type(v).element);
    switch (below(6)) {
      case 0:
        return keep(b.op("negate", {v.id}), v.size, v.error);
      case 1:
        return keep(b.op("tanh", {v.id}), 1, rounded(type(v), 1, v.error));
      case 2:
        return keep(b.op("cos", {v.id}), 1, rounded(type(v), 1, v.error));
      case 3:
        return keep(b.op("sin", {v.id}), 1, rounded(type(v), 1, v.error));
      case 4: {
        if (v.size > 3) return;
        const double largest = std::exp(v.size);
        const bool polynomial = type(v).element == ElementType::f32;
        const double error = polynomial || v.error > 0 ? largest * (1.1 * v.error + 4 * own_unit) : 0;
        return keep(b.op("exp", {v.id}), largest, error);
      }
      default:
        if (type(v).element != ElementType::f32) return;
        return keep(b.op("silu", {v.id}), v.size, 1.1 * v.error + 16 * own_unit * v.size);
    }
  }

  static bool broadcasts(const ir::Shape& x, const ir::Shape& y) {
    for (std::size_t i = 1; i <= std::min(x.size(), y.size()); ++i) {
      const Dim& a = x[x.size() - i];
      const Dim& c = y[y.size() - i];
      if (!(a == c || a == Dim(1) || c == Dim(1))) return false;
    }
    return true;
  }
  /// A second operand for an elementwise op.
  const Known* partner(const Known& of) {
    return pick([&](const Known& v) {
      return type(v).element == type(of).element && broadcasts(type(v).shape, type(of).shape);
    });
  }

  void binary() {
    const Known* x = pick([&](const Known& v) { return type(v).element != ElementType::boolean; });
    if (x == nullptr) return;
    const Known u = *x;
    const Known v = *partner(u);
    const ir::Type& of = type(u);
    const bool integer = ir::is_integer(of.element);
    static const std::vector<std::string> names = {"add", "subtract", "multiply", "maximum", "minimum"};
    const std::string& name = one_of(names);
    double size = std::max(u.size, v.size);
    double error = std::max(u.error, v.error);
    if (name == "multiply") {
      size = u.size * v.size;
      error = rounded(of, size, u.size * v.error + v.size * u.error + u.error * v.error);
    } else if (name == "add" || name == "subtract") {
      size = u.size + v.size;
      error = rounded(of, size, u.error + v.error);
    }
    if (!is_tame(size, error)) return;
    // Integers of 8 bits wrap; what they then may be is any of them.
    if (integer && ir::element_bytes(of.element) == 1) size = 255;
    keep(b.op(name, {u.id, v.id}), size, error);
  }

  /// a / (b^2 + 1), or sqrt(b^2 + 1).
  void guarded() {
    const Known* x = pick([&](const Known& v) { return type(v).element == ElementType::f32 && v.size <= 100; });
    if (x == nullptr) return;
    const Known v = *x;
    const double square = v.size * v.size + 1;
    const double error = rounded(type(v), square, 2.1 * v.size * v.error);
    const ValueId guard = b.op("add", {b.op("multiply", {v.id, v.id}), scalar(1)});
    if (chance(2)) return keep(b.op("sqrt", {guard}), v.size + 1, rounded(type(v), square, error));
    const Known u = *partner(v);
    keep(b.op("divide", {u.id, guard}), u.size, rounded(type(v), u.size, u.error + u.size * error));
  }

  void choose() {
    const auto exact_number = [&](const Known& v) { return v.error == 0 && type(v).element != ElementType::boolean; };
    const Known* x = pick(exact_number);
    if (x == nullptr) return;
    const Known u = *x;
    const Known* y = pick([&](const Known& v) {
      return exact_number(v) && type(v).element == type(u).element && broadcasts(type(v).shape, type(u).shape);
    });
    static const std::vector<std::string> names = {"less", "less_equal", "equal"};
    const ValueId condition = b.op(one_of(names), {u.id, y->id});
    keep(condition, 1, 0);
    const Known* first = pick([&](const Known& v) { return broadcasts(type(v).shape, b.type(condition).shape); });
    if (first == nullptr) return;
    const Known p = *first;
    const Known q =
        *pick([&](const Known& v) { return type(v).element == type(p).element && type(v).shape == type(p).shape; });
    keep(b.op("select", {condition, p.id, q.id}), std::max(p.size, q.size), std::max(p.error, q.error));
  }

  void convert() {
    static const std::vector<std::string> names = {"f32", "f32", "f16", "bf16", "f64",
                                                   "i8",  "u8",  "i32", "i64",  "bool"};
    const std::string& to = one_of(names);
    const ir::Type target = ir::parse_type(to + "[]");
    const bool is_float = ir::is_float(target.element);
    const Known* x = pick([&](const Known& v) { return is_float || v.error == 0; });
    if (x == nullptr) return;
    const Known v = *x;
    double size = v.size;
    if (target.element == ElementType::boolean) size = 1;
    if (ir::is_integer(target.element) && ir::element_bytes(target.element) == 1) size = 255;
    keep(b.op("convert", {v.id}, {{"to", to}}), size, is_float ? rounded(target, size, v.error) : 0);
  }

  void move() {
    const Known* x = pick([](const Known&) { return true; });
    if (x == nullptr) return;
    const Known v = *x;
    const ir::Shape shape = type(v).shape;
    const auto rank = static_cast<std::int64_t>(shape.size());
    const std::int64_t axis = rank == 0 ? 0 : below(rank);
    const auto at = static_cast<std::size_t>(axis);
    const auto kept = [&](ValueId id) { keep(id, v.size, v.error); };
    switch (below(6)) {
      case 0: {
        ir::Shape longer = shape;
        longer.insert(longer.begin() + (rank == 0 ? 0 : axis), Dim(1));
        return kept(reshape(v.id, text(longer)));
      }
      case 1: {
        if (rank < 2) return;
        ir::Shape merged(shape.begin(), shape.end() - 1);
        merged.back() = merged.back() * shape.back();
        return kept(reshape(v.id, text(merged)));
      }
      case 2: {
        std::vector<std::int64_t> order(shape.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
        std::shuffle(order.begin(), order.end(), random_);
        return kept(b.op("transpose", {v.id}, {{"order", order}}));
      }
      case 3: {
        if (rank == 0 || !shape[at].is_constant() || shape[at].constant() < 2) return;
        const std::int64_t begin = below(shape[at].constant());
        const std::int64_t end = begin + 1 + below(shape[at].constant() - begin);
        return kept(b.op("slice", {v.id}, {{"axis", chance(2) ? axis : axis - rank}, {"begin", begin}, {"end", end}}));
      }
      case 4: {
        if (rank == 0) return;
        const Known other = *pick([&](const Known& w) { return type(w) == type(v); });
        const ValueId joined = b.op("concat", {v.id, other.id}, {{"axis", axis}});
        return keep(joined, std::max(v.size, other.size), std::max(v.error, other.error));
      }
      default: {
        ir::Shape wider = shape;
        wider.insert(wider.begin(), Dim(2));
        return kept(b.op("broadcast", {v.id}, {{"shape", text(wider)}}));
      }
    }
  }

  /// Indices are below 4.
  void gather() {
    const Known* x = pick([&](const Known& v) {
      const ir::Shape& shape = type(v).shape;
      return !shape.empty() && shape[0].is_constant() && shape[0].constant() >= 4;
    });
    if (x == nullptr) return;
    const Known v = *x;
    keep(b.op("gather", {v.id, index}), v.size, v.error);
  }

  void reduce() {
    const Known* x = pick([&](const Known& v) { return ir::is_float(type(v).element) && !type(v).shape.empty(); });
    if (x == nullptr) return;
    const Known v = *x;
    const std::int64_t axis = below(static_cast<std::int64_t>(type(v).shape.size()));
    const ir::Attributes attributes = {{"axis", axis}};
    if (chance(2)) return keep(b.op("reduce_max", {v.id}, attributes), v.size, v.error);
    const auto count = static_cast<double>(extent(type(v).shape[static_cast<std::size_t>(axis)]));
    const double error = rounded(type(v), v.size * count, v.error * count);
    if (is_tame(v.size * count, error)) keep(b.op("reduce_sum", {v.id}, attributes), v.size * count, error);
  }

  void matmul() {
    const Known* x = pick([&](const Known& v) { return ir::is_float(type(v).element) && type(v).shape.size() >= 2; });
    if (x == nullptr) return;
    const Known u = *x;
    const ir::Shape shape = type(u).shape;
    const std::size_t rank = shape.size();
    Known v = u;
    const Known* other = pick([&](const Known& w) {
      ir::Shape fits = shape;
      if (type(w).element != type(u).element || type(w).shape.size() != rank) return false;
      fits[rank - 2] = shape[rank - 1];
      fits[rank - 1] = type(w).shape[rank - 1];
      return type(w).shape == fits;
    });
    if (other != nullptr && chance(2)) {
      v = *other;
    } else {
      std::vector<std::int64_t> order(rank);
      for (std::size_t i = 0; i < rank; ++i) order[i] = static_cast<std::int64_t>(i);
      std::swap(order[rank - 1], order[rank - 2]);
      v.id = b.op("transpose", {u.id}, {{"order", order}});
    }
    const auto depth = static_cast<double>(extent(shape[rank - 1]));
    const double size = depth * u.size * v.size;
    const double error = rounded(type(u), size, depth * (u.size * v.error + v.size * u.error + u.error * v.error));
    if (is_tame(size, error)) keep(b.op("matmul", {u.id, v.id}), size, error);
  }

  void literal() {
    if (chance(3)) return keep(b.op("iota", {}, {{"size", std::string(chance(2) ? "T" : "5")}}), 16, 0);
    static const std::vector<std::vector<std::int64_t>> shapes = {{}, {4}, {5, 3}, {1, 32}, {64}};
    const auto& shape = one_of(shapes);
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < ir::element_count(shape); ++i) {
      numbers.push_back(std::uniform_real_distribution<double>(-2, 2)(random_));
    }
    keep(b.op("constant", {}, {{"shape", shape}, {"values", numbers}}), 2, 0);
  }

  ir::Program& program_;
  std::mt19937& random_;
  ir::Builder b;
  std::vector<Known> values;
  std::vector<ValueId> weights;
  std::vector<KnownState> states;
  ValueId sequence = -1;
  ValueId position = -1;
  ValueId index = -1;
};

}  // namespace headrace::testing
