// Elementwise primitives on every element type, with numpy's broadcasting. One build for all instruction sets, so that
// they agree; cos, sin, tanh and the exponentials that have no kernel of their own are taken in f64 and rounded.
#include <cmath>
#include <cstdint>

#include "kernels/adapter.hpp"
#include "kernels/primitives/element.hpp"
#include "kernels/primitives/strided.hpp"

namespace headrace::kernels {
namespace {

using Run = void (*)(const KernelCall&) noexcept;

Kernel elementwise_kernel(const KernelRequest& request, Run run) {
  Kernel kernel;
  kernel.name = request.op.name + "." + std::string(ir::element_name(request.operands[0].element));
  kernel.numerics = kernel.name;
  kernel.run = run;
  return kernel;
}

// ---- unary ---------------------------------------------------------------------------------------------------------

struct Negate {
  static double apply(double x) noexcept { return -x; }
};
struct SquareRoot {
  static double apply(double x) noexcept { return std::sqrt(x); }
};
struct Exponential {
  static double apply(double x) noexcept { return std::exp(x); }
};
struct Cosine {
  static double apply(double x) noexcept { return std::cos(x); }
};
struct Sine {
  static double apply(double x) noexcept { return std::sin(x); }
};
struct HyperbolicTangent {
  static double apply(double x) noexcept { return std::tanh(x); }
};

template <class Op, ElementType element>
void run_unary(const KernelCall& call) noexcept {
  using E = Element<element>;
  const auto* x = call.operands[0].as<const typename E::Storage>();
  auto* y = call.results[0].as<typename E::Storage>();
  const Range range = share_elements(call, call.results[0].elements());
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    y[i] = E::store(static_cast<typename E::Compute>(Op::apply(static_cast<double>(E::load(x[i])))));
  }
}

template <class Op>
std::optional<Kernel> make_unary(const KernelRequest& request) {
  const ir::Type& x = request.operands[0];
  if (!is_plain(x) || !ir::is_float(x.element)) return std::nullopt;
  return elementwise_kernel(request,
                            with_float(x.element, [](auto tag) -> Run { return run_unary<Op, decltype(tag)::value>; }));
}

// ---- binary --------------------------------------------------------------------------------------------------------

/// Integers wrap; signed overflow must not be computed as such.
template <class T, class F>
T wrapping(T a, T b, F&& function) noexcept {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(function(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  } else {
    return function(a, b);
  }
}

struct Add {
  template <class T>
  static T apply(T a, T b) noexcept {
    return wrapping(a, b, [](auto u, auto v) { return u + v; });
  }
};
struct Subtract {
  template <class T>
  static T apply(T a, T b) noexcept {
    return wrapping(a, b, [](auto u, auto v) { return u - v; });
  }
};
struct Multiply {
  template <class T>
  static T apply(T a, T b) noexcept {
    return wrapping(a, b, [](auto u, auto v) { return u * v; });
  }
};
struct Divide {
  template <class T>
  static T apply(T a, T b) noexcept {
    return a / b;
  }
};
// NaN in, NaN out, on either side; of equal numbers the second.
struct Maximum {
  template <class T>
  static T apply(T a, T b) noexcept {
    return a != a || a > b ? a : b;
  }
};
struct Minimum {
  template <class T>
  static T apply(T a, T b) noexcept {
    return a != a || a < b ? a : b;
  }
};
struct Less {
  template <class T>
  static bool apply(T a, T b) noexcept {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  static bool apply(T a, T b) noexcept {
    return a <= b;
  }
};
struct Equal {
  template <class T>
  static bool apply(T a, T b) noexcept {
    return a == b;
  }
};

template <class Op, class In, class Out>
void run_binary_of(const KernelCall& call) noexcept {
  const View& y = call.results[0];
  const auto* a = call.operands[0].as<const typename In::Storage>();
  const auto* b = call.operands[1].as<const typename In::Storage>();
  auto* out = y.as<typename Out::Storage>();
  const std::array<Strides, 2> strides = {broadcast_strides(call.operands[0], y),
                                          broadcast_strides(call.operands[1], y)};
  const auto visit = [&](std::int64_t flat, const auto& offsets, const auto& steps, std::int64_t count) {
    const auto loop = [&](std::int64_t a_step, std::int64_t b_step) {
      for (std::int64_t i = 0; i < count; ++i) {
        out[flat + i] = Out::store(static_cast<typename Out::Compute>(
            Op::apply(In::load(a[offsets[0] + i * a_step]), In::load(b[offsets[1] + i * b_step]))));
      }
    };
    if (steps[0] == 1 && steps[1] == 1) {
      loop(1, 1);  // a constant step is a loop that compilers turn into vectors
    } else {
      loop(steps[0], steps[1]);
    }
  };
  for_each_run(y, strides, share_elements(call, y.elements()), visit);
}

template <class Op, ElementType element>
void run_binary(const KernelCall& call) noexcept {
  run_binary_of<Op, Element<element>, Element<element>>(call);
}

template <class Op, ElementType element>
void run_comparison(const KernelCall& call) noexcept {
  run_binary_of<Op, Element<element>, Element<ElementType::boolean>>(call);
}

bool are_numbers(const KernelRequest& request) {
  const ir::Type& a = request.operands[0];
  const ir::Type& b = request.operands[1];
  return is_plain(a) && is_plain(b) && a.element == b.element && a.element != ElementType::boolean;
}

template <class Op>
std::optional<Kernel> make_binary(const KernelRequest& request) {
  if (!are_numbers(request)) return std::nullopt;
  return elementwise_kernel(request, with_element(request.operands[0].element, [](auto tag) -> Run {
                              return run_binary<Op, decltype(tag)::value>;
                            }));
}

std::optional<Kernel> make_divide(const KernelRequest& request) {
  if (!are_numbers(request) || !ir::is_float(request.operands[0].element)) return std::nullopt;
  return elementwise_kernel(request, with_float(request.operands[0].element, [](auto tag) -> Run {
                              return run_binary<Divide, decltype(tag)::value>;
                            }));
}

template <class Op>
std::optional<Kernel> make_comparison(const KernelRequest& request) {
  if (!are_numbers(request)) return std::nullopt;
  return elementwise_kernel(request, with_element(request.operands[0].element, [](auto tag) -> Run {
                              return run_comparison<Op, decltype(tag)::value>;
                            }));
}

}  // namespace

CatalogFamily catalog_elementwise() {
  return {{"negate", make_unary<Negate>},      {"sqrt", make_unary<SquareRoot>},
          {"exp", make_unary<Exponential>},    {"cos", make_unary<Cosine>},
          {"sin", make_unary<Sine>},           {"tanh", make_unary<HyperbolicTangent>},
          {"add", make_binary<Add>},           {"subtract", make_binary<Subtract>},
          {"multiply", make_binary<Multiply>}, {"maximum", make_binary<Maximum>},
          {"minimum", make_binary<Minimum>},   {"divide", make_divide},
          {"less", make_comparison<Less>},     {"less_equal", make_comparison<LessEqual>},
          {"equal", make_comparison<Equal>}};
}

}  // namespace headrace::kernels
