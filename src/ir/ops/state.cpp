// Primitives on append State: rows of several sequences are packed, `sequence` says whose each row is.
#include <algorithm>
#include <cmath>

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
  return {state};
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
