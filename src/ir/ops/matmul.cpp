// The matrix product, over equal leading dimensions.
#include "ir/interpreter.hpp"
#include "ir/op.hpp"

namespace headrace::ir {

namespace {

std::vector<Type> infer_matmul(const InferContext& context) {
  const Type& a = context.numeric(0);
  const Type& b = context.numeric(1);
  const std::string got = a.str() + " and " + b.str();
  context.expect(is_float(a.element) && a.element == b.element, "two tensors of one float type", got);
  const std::size_t rank = a.shape.size();
  context.expect(rank >= 2 && b.shape.size() == rank, "two tensors of one rank, 2 or more", got);
  for (std::size_t i = 0; i + 2 < rank; ++i) context.expect(a.shape[i] == b.shape[i], "equal leading dimensions", got);
  context.expect(a.shape[rank - 1] == b.shape[rank - 2], "[..., M, K] and [..., K, N]", got);
  Shape shape = a.shape;
  shape[rank - 1] = b.shape[rank - 1];
  return {Type::tensor(a.element, shape)};
}

void evaluate_matmul(EvaluateContext& context) {
  const Tensor& a = context.tensor(0);
  const Tensor& b = context.tensor(1);
  Tensor& y = context.result();
  const std::size_t rank = a.shape.size();
  const auto rows = static_cast<std::size_t>(a.shape[rank - 2]);
  const auto depth = static_cast<std::size_t>(a.shape[rank - 1]);
  const auto columns = static_cast<std::size_t>(b.shape[rank - 1]);
  if (rows * columns == 0) return;
  const std::size_t batches = y.values.size() / (rows * columns);
  for (std::size_t batch = 0; batch < batches; ++batch) {
    const double* left = a.values.data() + batch * rows * depth;
    const double* right = b.values.data() + batch * depth * columns;
    double* out = y.values.data() + batch * rows * columns;
    for (std::size_t m = 0; m < rows; ++m) {
      for (std::size_t k = 0; k < depth; ++k) {
        const double factor = left[m * depth + k];
        for (std::size_t n = 0; n < columns; ++n) out[m * columns + n] += factor * right[k * columns + n];
      }
    }
  }
}

}  // namespace

OpFamily ops_matmul() {
  OpDef matmul;
  matmul.name = "matmul";
  matmul.doc = "matrix product: f[..., M, K] x f[..., K, N] -> f[..., M, N]";
  matmul.minimum_operands = matmul.maximum_operands = 2;
  matmul.infer = infer_matmul;
  matmul.evaluate = evaluate_matmul;
  return {std::move(matmul)};
}

}  // namespace headrace::ir
