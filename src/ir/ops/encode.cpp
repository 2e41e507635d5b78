// Encodings of activations, explicit in the lowered form.
#include <cmath>

#include "ir/interpreter.hpp"
#include "ir/op.hpp"

namespace headrace::ir {

namespace {

constexpr std::int64_t a16_block = 32;

std::vector<Type> infer_encode(const InferContext& context) {
  const Type& x = context.numeric(0, ElementType::f32, -1);
  const auto& to = context.attribute<std::string>("to");
  context.expect(is_encoding(to), "an encoding", to);
  const bool blocks = x.shape.size() >= 2 && x.shape.back().is_constant() && x.shape.back().constant() % a16_block == 0;
  context.expect(blocks, "rows of whole blocks of 32", x.str());
  return {Type::encoded(to, x.shape)};
}

/// a16: per block of 32, scale = largest magnitude / 32512 in f32; codes are rounded to nearest even
/// (docs/numerics.md).
void evaluate_encode(EvaluateContext& context) {
  const Tensor& x = context.tensor(0);
  Tensor& y = context.result();
  for (std::size_t block = 0; block < x.values.size(); block += a16_block) {
    float largest = 0;
    for (std::size_t i = 0; i < a16_block; ++i) {
      const float magnitude = std::fabs(static_cast<float>(x.values[block + i]));
      if (!(magnitude <= largest)) largest = magnitude;
    }
    const float scale = largest / 32512.0f;
    const float inverse = largest > 0 ? 32512.0f / largest : 0.0f;
    for (std::size_t i = 0; i < a16_block; ++i) {
      const float code = std::nearbyint(static_cast<float>(x.values[block + i]) * inverse);
      y.values[block + i] = static_cast<double>(code) * static_cast<double>(scale);
    }
  }
}

std::vector<Type> infer_decode(const InferContext& context) {
  const Type& x = context.operand(0);
  context.expect(x.is_encoded(), "an encoded tensor", x.str());
  return {Type::tensor(ElementType::f32, x.shape)};
}

void evaluate_decode(EvaluateContext& context) { context.result().values = context.tensor(0).values; }

}  // namespace

OpFamily ops_encode() {
  OpDef encode;
  encode.name = "encode";
  encode.doc = "codes and scales per block along the last axis: f32[..., K] -> a16[..., K]";
  encode.attributes = {{"to", std::string("a16"), false}};
  encode.infer = infer_encode;
  encode.evaluate = evaluate_encode;

  OpDef decode;
  decode.name = "decode";
  decode.doc = "what the codes stand for, rounded to f32: a16[..., K] -> f32[..., K]";
  decode.infer = infer_decode;
  decode.evaluate = evaluate_decode;
  return {std::move(encode), std::move(decode)};
}

}  // namespace headrace::ir
