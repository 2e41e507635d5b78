// Primitives on append State: rows of several sequences are packed, `sequence` says whose each row is.
#include <algorithm>
#include <cmath>

#include "base/half.hpp"
#include "ir/interpreter.hpp"
#include "ir/op.hpp"

namespace headrace::ir {

namespace {

std::vector<Type> infer_append(const InferContext& context) {
  const Type& state = context.operand(0);
  context.expect(state.is_state(), "a State as operand 0", state.str());
  const Type& rows = context.numeric(1, ElementType::f32, static_cast<int>(state.shape.size()) + 1);
  const Type& sequence = context.numeric(2, ElementType::i32, 1);
  const Type& position = context.numeric(3, ElementType::i32, 1);
  Shape expected = {rows.shape[0]};
  expected.insert(expected.end(), state.shape.begin(), state.shape.end());
  context.expect(rows.shape == expected, "rows like " + state.str(), rows.str());
  context.expect(sequence.shape[0] == rows.shape[0] && position.shape[0] == rows.shape[0],
                 "a sequence and a position for each row", sequence.str() + " and " + position.str());
  const bool in_blocks =
      !state.shape.empty() && state.shape.back().is_constant() && state.shape.back().constant() % encoding_block == 0;
  context.expect(state.encoding.empty() || in_blocks, "rows in whole blocks of 32", state.str());
  return {state};
}

/// Rounds a row to q8_0 in place: per block of 32, scale = f16(largest magnitude / 127), code = the nearest of [-127,
/// 127] (docs/numerics.md).
void round_to_q8(std::span<double> row) {
  for (std::size_t first = 0; first < row.size(); first += encoding_block) {
    const std::span<double> block = row.subspan(first, encoding_block);
    float largest = 0;
    for (const double value : block) {
      const float magnitude = std::fabs(static_cast<float>(value));
      if (!(magnitude <= largest)) largest = magnitude;
    }
    const float scale = f16_to_f32(f32_to_f16(largest / 127.0f));
    for (double& value : block) {
      if (!std::isfinite(scale)) {
        value = std::nan("");
      } else if (scale == 0) {
        value = 0;
      } else {
        const float code = std::nearbyint(std::clamp(static_cast<float>(value) / scale, -127.0f, 127.0f));
        value = static_cast<double>(code) * static_cast<double>(scale);
      }
    }
  }
}

void evaluate_append(EvaluateContext& context) {
  auto state = std::make_shared<StateValue>(context.state(0));
  const Tensor& rows = context.tensor(1);
  const std::int64_t row = state->row_elements();
  for (std::size_t t = 0; t < context.tensor(2).values.size(); ++t) {
    const double sequence = context.tensor(2).values[t];
    if (!(sequence >= 0 && sequence < static_cast<double>(state->sequences.size()))) {
      fail<InputError>("[append] expected a sequence in [0, {}), got {}", state->sequences.size(), sequence);
    }
    auto& values = state->sequences[static_cast<std::size_t>(sequence)];
    const std::int64_t next = state->positions(static_cast<std::size_t>(sequence));
    if (context.tensor(3).values[t] != static_cast<double>(next)) {
      fail<InputError>("[append] expected position {} of sequence {}, got {}", next, sequence,
                       context.tensor(3).values[t]);
    }
    for (std::int64_t i = 0; i < row; ++i) {
      const double value = rows.values[t * static_cast<std::size_t>(row) + static_cast<std::size_t>(i)];
      values.push_back(round_to(state->element, value));
    }
    if (!state->encoding.empty()) round_to_q8(std::span(values).last(static_cast<std::size_t>(row)));
  }
  context.set_state(std::move(state));
}

std::vector<Type> infer_read(const InferContext& context) {
  const Type& state = context.operand(0);
  context.expect(state.is_state(), "a State as operand 0", state.str());
  Shape shape = {Dim::symbol(context.attribute<std::string>("sequences")),
                 Dim::symbol(context.attribute<std::string>("positions"))};
  shape.insert(shape.end(), state.shape.begin(), state.shape.end());
  return {Type::tensor(ElementType::f32, shape)};
}

void evaluate_read(EvaluateContext& context) {
  const StateValue& state = context.state(0);
  std::size_t longest = 0;
  for (const auto& sequence : state.sequences) longest = std::max(longest, sequence.size());
  const std::int64_t row = state.row_elements();
  context.bind(context.attribute<std::string>("sequences"), static_cast<std::int64_t>(state.sequences.size()));
  context.bind(context.attribute<std::string>("positions"),
               static_cast<std::int64_t>(longest) / std::max<std::int64_t>(row, 1));
  Tensor& y = context.result();
  for (std::size_t b = 0; b < state.sequences.size(); ++b) {
    std::copy(state.sequences[b].begin(), state.sequences[b].end(),
              y.values.begin() + static_cast<std::ptrdiff_t>(b * longest));
  }
}

}  // namespace

OpFamily ops_state() {
  OpDef append;
  append.name = "append";
  append.doc = "a row a new position, in order: state[...] x f32[T, ...] x sequence i32[T] x position i32[T] -> state";
  append.minimum_operands = append.maximum_operands = 4;
  append.infer = infer_append;
  append.evaluate = evaluate_append;
  append.consumes_state = true;

  OpDef read;
  read.name = "read_state";
  read.doc = "all positions of all sequences, zeros behind the last: state[...] -> f32[B, P, ...]";
  read.attributes = {{"sequences", std::string("B"), false}, {"positions", std::string("P"), false}};
  read.infer = infer_read;
  read.evaluate = evaluate_read;
  return {std::move(append), std::move(read)};
}

}  // namespace headrace::ir
