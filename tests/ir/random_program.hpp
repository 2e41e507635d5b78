// Random Programs with inputs, deterministic by seed: an entry that calls layers with bound Weights, composites on
// Weights of every Format, and State of several ragged sequences.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ir/random_function.hpp"
#include "ir/verifier.hpp"

namespace headrace::testing {

struct RandomProgram {
  ir::Program program;
  ir::Bindings sizes;                              ///< of the run: T, B, P
  std::vector<std::int64_t> lengths;               ///< positions of each sequence, the step's rows included
  std::map<std::string, ir::RuntimeValue> inputs;  ///< tensors and States; Weights are the caller's, in [-1, 1]
  std::vector<double> errors;                      ///< of the entry's results, States included
};

/// Adds the composites of language models.
class RandomLayer : public RandomFunction {
 public:
  using RandomFunction::RandomFunction;

  void step_parameters() {
    const ir::Type integers = ir::Type::tensor(ElementType::i32, {Dim::symbol("T")});
    sequence = b.parameter("sequence", integers);
    position = b.parameter("position", integers);
    index = b.parameter("index", integers);
  }
  void weight_parameters(const std::string& prefix, const std::vector<std::string>& formats) {
    static const std::vector<ir::Shape> shapes = {{32, 32}, {64, 32},    {32, 64},    {20, 64},  {32},
                                                  {64},     {4, 32, 32}, {4, 20, 64}, {4, 20, 1}};
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      // Rows of one number are no whole blocks of quantized codes.
      const std::string& format = formats.size() > 1 && shapes[i].back() == Dim(1) ? formats.front() : one_of(formats);
      weights.push_back(b.parameter(prefix + "w" + std::to_string(i), ir::Type::weight(format, shapes[i])));
    }
  }
  void state_parameter(const std::string& name, ir::Type type, bool generic) {
    states.push_back({b.parameter(name, std::move(type)), generic, false, 0});
  }

  /// What a linear on this Weight does to an error of x, K inputs. A grouped Weight is read with encoded activations: a
  /// code may tip over, and its sums have partial terms larger than the whole.
  static double linear_error(const std::string& format, double inputs, double size, double error) {
    const bool grouped = format != "f32" && format != "f16" && format != "bf16";
    const double of_x = !grouped ? error : error > 0 ? 2 * error + size / 32512 : 2 * 0x1p-24 * size;
    return inputs * of_x + (grouped ? 384 : 2 * inputs) * 0x1p-24 * inputs * size;
  }

  void linear() {
    const ValueId weight = one_of(weights);
    const ir::Type& of = b.type(weight);
    if (of.shape.size() == 1) return norm(weight);
    if (of.shape.size() == 3) return experts();
    const Known* x = pick([&](const Known& v) { return is_f32(v, 2) && type(v).shape[1] == of.shape[1]; });
    if (x == nullptr) return;
    const Known v = *x;
    const auto inputs = static_cast<double>(of.shape[1].constant());
    const double size = inputs * v.size;
    const double error = linear_error(of.encoding, inputs, v.size, v.error);
    if (is_tame(size, error)) keep(b.op("linear", {v.id, weight}), size, error);
  }

  /// The choice of experts out of exact scores, one of their linears, and maybe the sum over slots.
  void experts() {
    std::vector<ValueId> stacked;
    for (const ValueId each : weights) {
      const ir::Shape& shape = b.type(each).shape;
      if (shape.size() == 3 && shape[2] != Dim(1)) stacked.push_back(each);
    }
    const ValueId weight = one_of(stacked);
    const ir::Type of = b.type(weight);
    const Known* scores = pick([&](const Known& v) {
      return is_f32(v, 2) && v.error == 0 && type(v).shape[0] == Dim::symbol("T") && type(v).shape[1].is_constant() &&
             type(v).shape[1].constant() >= 2;
    });
    if (scores == nullptr) return;
    Known s = *scores;
    if (type(s).shape[1].constant() > 4) {
      s.id = b.op("slice", {s.id}, {{"axis", std::int64_t{1}}, {"begin", std::int64_t{0}}, {"end", std::int64_t{4}}});
    }
    const std::int64_t slots = 1 + below(type(s).shape[1].constant());
    const ValueId ids = b.op("top_k", {s.id}, {{"k", slots}});
    keep(ids, 4, 0);
    const Known chosen{b.op("take_along", {s.id, ids}), s.size, 0};
    keep(chosen.id, chosen.size, 0);
    const Known* x = pick([&](const Known& v) {
      const ir::Shape& shape = type(v).shape;
      const bool shared = shape == ir::Shape{Dim::symbol("T"), of.shape[2]};
      return type(v).element == ElementType::f32 &&
             (shared || shape == ir::Shape{Dim::symbol("T"), slots, of.shape[2]});
    });
    if (x == nullptr) return;
    const Known v = *x;
    const auto inputs = static_cast<double>(of.shape[2].constant());
    double size = inputs * v.size;
    double error = linear_error(of.encoding, inputs, v.size, v.error);
    std::vector<ValueId> operands = {v.id, weight, ids};
    for (const ValueId bias : weights) {
      const ir::Shape fits = {of.shape[0], of.shape[1], 1};
      if (b.type(bias).shape != fits || chance(2)) continue;
      operands.push_back(bias);
      size += 1;
      error += 2 * 0x1p-24 * size;
      break;
    }
    if (!is_tame(size, error)) return;
    const Known y{b.op("expert_linear", operands), size, error};
    keep(y.id, size, error);
    const auto count = static_cast<double>(slots);
    const double sum = count * size * chosen.size;
    const double sum_error = count * chosen.size * error + 2 * count * 0x1p-24 * sum;
    if (is_tame(sum, sum_error)) keep(b.op("weighted_sum", {y.id, chosen.id}), sum, sum_error);
  }

  void norm(ValueId weight) {
    const Known* x = pick([&](const Known& v) { return is_f32(v, 2) && type(v).shape[1] == b.type(weight).shape[0]; });
    if (x == nullptr) return;
    const Known v = *x;
    constexpr double smallest = 0.1;  // the slope is 1 / sqrt(epsilon) at most, once for x and once for the mean
    const double size = 8;            // sqrt(64)
    const double error = 2 * v.error / std::sqrt(smallest) + 24 * 0x1p-24 * size;
    if (is_tame(size, error)) keep(b.op("rms_norm", {v.id, weight}, {{"epsilon", smallest}}), size, error);
  }

  void embedding() {
    const ValueId weight = one_of(weights);
    const bool whole = b.type(weight).shape.size() == 2 && !chance(4);
    keep(b.op(whole ? "embedding" : "gather", {weight, index}), 1, 0);
  }

  /// A Weight read as numbers.
  void weight_as_tensor() {
    const ValueId weight = one_of(weights);
    if (b.type(weight).shape.size() == 1) return keep(b.op("add", {weight, scalar(1)}), 2, 0);
    const bool stacked = b.type(weight).shape.size() == 3;
    const std::vector<std::int64_t> order =
        stacked ? std::vector<std::int64_t>{0, 2, 1} : std::vector<std::int64_t>{1, 0};
    keep(b.op("transpose", {weight}, {{"order", order}}), 1, 0);
  }

  void softmax() {
    const Known* x = pick([&](const Known& v) { return is_f32(v, type(v).shape.size()) && !type(v).shape.empty(); });
    if (x == nullptr) return;
    const Known v = *x;
    const double error = 2.2 * v.error + 32 * 0x1p-24;
    if (v.error < 0.1) keep(b.op("softmax", {v.id}), 1, error);
  }

  void gate() {
    const Known* x = pick([&](const Known& v) { return type(v).element == ElementType::f32; });
    if (x == nullptr) return;
    const Known u = *x;
    const Known v = *pick([&](const Known& w) { return type(w) == type(u); });
    if (chance(2)) {
      const double whole = u.size * (std::min(v.size, 2.0) + 1);
      const double off = u.size * v.error + 3 * 1.1 * u.error + u.error * v.error + 24 * 0x1p-24 * whole;
      if (!is_tame(whole, off)) return;
      return keep(b.op("clamped_swiglu", {u.id, v.id}, {{"alpha", 1.702}, {"limit", 2.0}}), whole, off);
    }
    const double size = u.size * v.size;
    const double error = u.size * v.error + v.size * 1.1 * u.error + u.error * v.error + 20 * 0x1p-24 * size;
    if (is_tame(size, error)) keep(b.op("silu_multiply", {u.id, v.id}), size, error);
  }

  void encode() {
    const Known* x = pick([&](const Known& v) {
      return is_f32(v, 2) && type(v).shape[1].is_constant() && type(v).shape[1].constant() % 32 == 0;
    });
    if (x == nullptr) return;
    const Known v = *x;
    const double error = v.error > 0 ? 2 * v.error + v.size / 32512 : 0;
    if (is_tame(v.size, error)) keep(b.op("decode", {b.op("encode", {v.id})}), v.size, error);
  }

  /// [T, K] as heads [T, K / E, E].
  const Known* rows_of_heads(std::int64_t width, std::int64_t heads) {
    return pick([&](const Known& v) {
      return is_f32(v, 2) && type(v).shape[0] == Dim::symbol("T") && type(v).shape[1].is_constant() &&
             type(v).shape[1].constant() % (width * heads) == 0;
    });
  }
  ValueId as_heads(const Known& v, std::int64_t width) {
    return reshape(v.id, fmt::format("T, {}, {}", type(v).shape[1].constant() / width, width));
  }

  Known rotated(const Known& v, ValueId heads, std::int64_t width) {
    std::vector<double> frequencies;
    for (std::int64_t i = 0; i < width / 2; ++i) frequencies.push_back(std::pow(100.0, -static_cast<double>(i) / 4));
    const ValueId constant =
        b.op("constant", {}, {{"shape", std::vector<std::int64_t>{width / 2}}, {"values", frequencies}});
    const ValueId table = b.op("rope_table", {position, constant});
    const std::string pairing = chance(2) ? "halves" : "adjacent";
    return {b.op("rope", {heads, table}, {{"pairing", pairing}}), 2 * v.size, 2 * v.error + 12 * 0x1p-24 * v.size};
  }

  void attention() {
    std::size_t first = 0;
    while (first < states.size() && (states[first].generic || states[first].appended)) ++first;
    if (first == states.size()) return;
    KnownState& keys = states[first];
    KnownState& vals = states[first + 1];
    const ir::Type of = b.type(keys.id);
    const std::int64_t groups = of.shape[0].constant();
    const std::int64_t width = of.shape[1].constant();
    const Known* found[3];
    for (const Known*& each : found) {
      each = rows_of_heads(width, groups);
      if (each == nullptr || each->size > 40 || each->error > 1e-2) return;
    }
    const Known q0 = *found[0];
    const Known k0 = *found[1];
    const Known v0 = *found[2];
    const bool rotates = chance(2);
    const double factor = rotates ? 2 : 1;
    const double half = of.element == ElementType::f16 ? 0x1p-10 : 0x1p-23;
    const double more = rotates ? 12 * 0x1p-24 : 0;
    const double q_error = factor * q0.error + more * q0.size;
    double k_error = factor * k0.error + more * k0.size;
    if (k_error > 0) k_error += half * factor * k0.size;
    const double v_error = v0.error > 0 ? v0.error + half * v0.size : 0;
    const double q_size = factor * q0.size;
    const double k_size = std::max(factor * k0.size, 2.0);
    const double v_size = std::max(v0.size, 2.0);
    const auto e = static_cast<double>(width);
    const double scale = 1 / e;
    const double score_error = scale * e * (q_size * k_error + k_size * q_error + 4 * e * 0x1p-24 * q_size * k_size);
    const double error = v_error + v_size * (2 * score_error + 400 * 0x1p-24);
    if (score_error > 0.05 || !is_tame(v_size, error)) return;

    const auto cut = [&](ValueId heads) {
      return b.op("slice", {heads}, {{"axis", std::int64_t{1}}, {"begin", std::int64_t{0}}, {"end", groups}});
    };
    ValueId q = as_heads(q0, width);
    ValueId k = cut(as_heads(k0, width));
    if (rotates) {
      q = rotated(q0, q, width).id;
      k = rotated(k0, k, width).id;
    }
    keys = {b.op("append", {keys.id, k, sequence, position}), false, true, k_error};
    vals = {b.op("append", {vals.id, cut(as_heads(v0, width)), sequence, position}), false, true, v_error};
    std::vector<ValueId> operands = {q, keys.id, vals.id, sequence, position};
    if (chance(3)) {
      const std::int64_t heads = type(q0).shape[1].constant() / width;
      const std::vector<double> sinks(static_cast<std::size_t>(heads), 0.5);
      operands.push_back(b.op("constant", {}, {{"shape", std::vector<std::int64_t>{heads}}, {"values", sinks}}));
    }
    const std::int64_t window = chance(3) ? 1 + static_cast<std::int64_t>(random() % 70) : 0;
    const ValueId mixed = b.op("attention", operands, {{"scale", scale}, {"window", window}});
    keep(reshape(mixed, text({Dim::symbol("T"), type(q0).shape[1]})), v_size, error);
  }

  void read_rows() {
    for (KnownState& state : states) {
      if (!state.generic || state.appended) continue;
      const ir::Type of = b.type(state.id);
      ir::Shape rows = {Dim::symbol("T")};
      rows.insert(rows.end(), of.shape.begin(), of.shape.end());
      const Known* x = pick([&](const Known& v) { return type(v) == ir::Type::tensor(ElementType::f32, rows); });
      if (x == nullptr) continue;
      const Known v = *x;
      const double error = v.error > 0 ? v.error + 2 * unit(of.element) * v.size : 0;
      state = {b.op("append", {state.id, v.id, sequence, position}), true, true, error};
      return keep(b.op("read_state", {state.id}), std::max(v.size, 2.0), error);
    }
  }

  /// A few dozen ops.
  void body(std::int64_t count) {
    using Step = void (*)(RandomLayer&);
    static const std::vector<Step> steps = {[](RandomLayer& f) { f.unary(); },
                                            [](RandomLayer& f) { f.binary(); },
                                            [](RandomLayer& f) { f.guarded(); },
                                            [](RandomLayer& f) { f.choose(); },
                                            [](RandomLayer& f) { f.convert(); },
                                            [](RandomLayer& f) { f.move(); },
                                            [](RandomLayer& f) { f.move(); },
                                            [](RandomLayer& f) { f.gather(); },
                                            [](RandomLayer& f) { f.reduce(); },
                                            [](RandomLayer& f) { f.matmul(); },
                                            [](RandomLayer& f) { f.literal(); },
                                            [](RandomLayer& f) { f.linear(); },
                                            [](RandomLayer& f) { f.linear(); },
                                            [](RandomLayer& f) { f.linear(); },
                                            [](RandomLayer& f) { f.experts(); },
                                            [](RandomLayer& f) { f.embedding(); },
                                            [](RandomLayer& f) { f.softmax(); },
                                            [](RandomLayer& f) { f.gate(); },
                                            [](RandomLayer& f) { f.encode(); },
                                            [](RandomLayer& f) { f.attention(); },
                                            [](RandomLayer& f) { f.attention(); },
                                            [](RandomLayer& f) { f.read_rows(); },
                                            [](RandomLayer& f) { f.weight_as_tensor(); }};
    for (std::int64_t i = 0; i < count; ++i) one_of(steps)(*this);
  }
};

/// What a call of a layer gives: bounds of its tensor results.
struct RandomCallee {
  std::string name;
  std::vector<Known> results;
  std::vector<ir::Type> states;
  std::vector<double> state_errors;
};

/// What callers promise of a layer's tensors.
constexpr double layer_input_size = 4;
constexpr double layer_input_error = 1e-3;

inline ir::Type random_state_type(RandomFunction& f) {
  static const std::vector<std::string> types = {"state append f16[2, 16]", "state append f16[1, 32]",
                                                 "state append f16[2, 8]", "state append f32[1, 16]"};
  return ir::parse_type(f.one_of(types));
}

inline RandomCallee random_layer(ir::Program& program, const std::string& name, std::mt19937& random) {
  RandomLayer f(name, program, random);
  const Dim rows = Dim::symbol("T");
  f.step_parameters();
  f.values.push_back(
      {f.b.parameter("x", ir::Type::tensor(ElementType::f32, {rows, 32})), layer_input_size, layer_input_error});
  f.values.push_back(
      {f.b.parameter("y", ir::Type::tensor(ElementType::f32, {rows, 64})), layer_input_size, layer_input_error});
  f.weight_parameters("", {"*"});
  RandomCallee callee;
  callee.name = name;
  if (!f.chance(3)) {
    callee.states.assign(2, random_state_type(f));
    f.state_parameter("keys", callee.states[0], false);
    f.state_parameter("values", callee.states[1], false);
  }
  f.body(8 + f.below(10));
  std::vector<ValueId> results;
  for (int i = 0; i < 2; ++i) {
    const Known result = *f.pick([&](const Known& v) { return f.type(v).shape.size() == 2; });
    results.push_back(result.id);
    callee.results.push_back(result);
  }
  for (const KnownState& state : f.states) {
    results.push_back(state.id);
    callee.state_errors.push_back(state.error);
  }
  program.functions.push_back(f.b.finish(std::move(results)));
  return callee;
}

/// A random Program. Weights get one of `formats`, of which all but f32, f16 and bf16 have encoded activations; the
/// first is one of these.
inline RandomProgram random_program(unsigned seed, const std::vector<std::string>& formats) {
  std::mt19937 random(seed);
  RandomProgram made;
  ir::Program& program = made.program;
  program.name = "random";
  program.symbols = {{"T", 1, random_max_rows}, {"B", 1, random_max_sequences}, {"P", 1, random_max_positions}};
  std::vector<RandomCallee> callees;
  for (unsigned i = 0; i < random() % 3; ++i) {
    callees.push_back(random_layer(program, "layer" + std::to_string(i), random));
  }
  RandomLayer f("main", program, random);
  f.step_parameters();
  const Dim rows = Dim::symbol("T");
  std::vector<ir::Type> inputs = {ir::Type::tensor(ElementType::f32, {rows, 32}),
                                  ir::Type::tensor(ElementType::f32, {rows, 64}),
                                  ir::Type::tensor(ElementType::f32, {rows, 2, 16})};
  static const std::vector<ElementType> elements = {
      ElementType::f32, ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::f64,
      ElementType::i8,  ElementType::u8,  ElementType::i32, ElementType::i64,  ElementType::boolean};
  const std::vector<ir::Shape> shapes = {{rows}, {rows, 5}, {4, 3}, {}, {rows, 2, 3}, {5}, {6, 32}, {1, rows}};
  for (int i = 0; i < 4; ++i) inputs.push_back(ir::Type::tensor(f.one_of(elements), f.one_of(shapes)));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    f.values.push_back(
        {f.b.parameter("in" + std::to_string(i), inputs[i]), ir::is_float(inputs[i].element) ? 2.0 : 5.0, 0});
  }
  f.weight_parameters("main/", formats);
  struct Call {
    const RandomCallee* callee;
    std::vector<ValueId> weights;
    std::size_t first_state;
  };
  std::vector<Call> calls;
  std::size_t call_states = 0;
  for (const RandomCallee& callee : callees) {
    for (std::int64_t times = 1 + f.below(2); times > 0; --times) {
      const std::size_t before = f.weights.size();
      f.weight_parameters("call" + std::to_string(calls.size()) + "/", formats);
      calls.push_back(
          {&callee, {f.weights.begin() + static_cast<std::ptrdiff_t>(before), f.weights.end()}, call_states});
      call_states += callee.states.size();
    }
  }
  for (const Call& call : calls) {
    for (const ir::Type& type : call.callee->states) {
      f.state_parameter("s" + std::to_string(f.states.size()), type, false);
      f.states.back().appended = true;  // by the call
    }
  }
  const ir::Type own = random_state_type(f);
  for (int i = 0; i < 2; ++i) f.state_parameter("s" + std::to_string(f.states.size()), own, false);
  static const std::vector<std::string> generic = {"state append f32[2, 16]", "state append bf16[64]",
                                                   "state append f16[]", "state append f16[2, 3]"};
  for (int i = 0; i < 2; ++i) {
    f.state_parameter("s" + std::to_string(f.states.size()), ir::parse_type(f.one_of(generic)), true);
  }

  for (const Call& call : calls) {
    f.body(2 + f.below(4));
    std::vector<ValueId> operands = {f.sequence, f.position, f.index};
    for (const std::int64_t width : {32, 64}) {
      operands.push_back(f.pick([&](const Known& v) {
                            return f.type(v) == ir::Type::tensor(ElementType::f32, {rows, width}) &&
                                   v.size <= layer_input_size && v.error <= layer_input_error;
                          })->id);
    }
    operands.insert(operands.end(), call.weights.begin(), call.weights.end());
    const std::size_t count = call.callee->states.size();
    for (std::size_t i = 0; i < count; ++i) operands.push_back(f.states[call.first_state + i].id);
    const std::vector<ValueId> results = f.b.call(call.callee->name, operands);
    for (std::size_t i = 0; i < call.callee->results.size(); ++i) {
      f.keep(results[i], call.callee->results[i].size, call.callee->results[i].error);
    }
    for (std::size_t i = 0; i < count; ++i) {
      f.states[call.first_state + i].id = results[call.callee->results.size() + i];
      f.states[call.first_state + i].error = call.callee->state_errors[i];
    }
  }
  f.body(10 + f.below(20));

  std::vector<ValueId> results;
  const std::int64_t wanted = 2 + f.below(4);
  for (std::int64_t i = 0; i < wanted; ++i) {
    const Known result = *f.pick([](const Known&) { return true; });
    results.push_back(result.id);
    made.errors.push_back(result.error);
  }
  for (const KnownState& state : f.states) {
    results.push_back(state.id);
    made.errors.push_back(state.error);
  }
  program.functions.push_back(f.b.finish(std::move(results)));
  ir::verify(program);

  // Inputs: rows of ragged sequences, in an order that keeps each one's own.
  const std::int64_t sequences = 1 + f.below(random_max_sequences);
  std::vector<std::int64_t> next;
  std::vector<std::int64_t> order;
  for (std::int64_t s = 0; s < sequences; ++s) {
    next.push_back(f.chance(3) ? 0 : f.below(72));
    const std::int64_t count = f.below(random_max_rows / random_max_sequences + 1);
    order.insert(order.end(), static_cast<std::size_t>(std::max<std::int64_t>(count, s == 0 ? 1 : 0)), s);
  }
  if (f.chance(3)) std::shuffle(order.begin(), order.end(), random);
  const std::vector<std::int64_t> pasts = next;
  std::map<std::string, std::vector<double>> integers;
  for (const std::int64_t s : order) {
    integers["sequence"].push_back(static_cast<double>(s));
    integers["position"].push_back(static_cast<double>(next[static_cast<std::size_t>(s)]++));
    integers["index"].push_back(static_cast<double>(f.below(4)));
  }
  made.lengths = next;
  made.sizes = {{"T", static_cast<std::int64_t>(order.size())},
                {"B", sequences},
                {"P", *std::max_element(next.begin(), next.end())}};
  const auto number = [&](ElementType element) {
    if (element == ElementType::boolean) return static_cast<double>(f.below(2));
    if (!ir::is_float(element))
      return static_cast<double>(f.below(element == ElementType::u8 ? 6 : 11) - (element == ElementType::u8 ? 0 : 5));
    return ir::round_to(element, std::uniform_real_distribution<double>(-2, 2)(random));
  };
  const ir::Function& entry = program.entry();
  for (const ValueId id : entry.parameters) {
    const ir::Value& value = entry.values[static_cast<std::size_t>(id)];
    if (value.type.is_weight()) continue;
    std::vector<std::int64_t> shape;
    for (const Dim& dim : value.type.shape) shape.push_back(dim.evaluate(made.sizes));
    if (value.type.is_state()) {
      auto state = std::make_shared<ir::StateValue>(ir::StateValue{value.type.element, shape, {}});
      for (const std::int64_t past : pasts) {
        auto& kept = state->sequences.emplace_back();
        for (std::int64_t i = 0; i < past * state->row_elements(); ++i) kept.push_back(number(value.type.element));
      }
      made.inputs[value.name] = std::move(state);
      continue;
    }
    auto tensor = std::make_shared<ir::Tensor>(ir::Tensor{value.type.element, shape, integers[value.name]});
    if (tensor->values.empty()) {
      for (std::int64_t i = 0; i < ir::element_count(shape); ++i) tensor->values.push_back(number(value.type.element));
    }
    made.inputs[value.name] = std::move(tensor);
  }
  return made;
}

}  // namespace headrace::testing
