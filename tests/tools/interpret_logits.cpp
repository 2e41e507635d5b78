// interpret_logits MODEL ID...: teacher-forced logits f32 [T, V] of the given tokens by the interpreter, to stdout. The
// semantic Program, weights decoded, no kernels: what every target is compared with.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/interpreter.hpp"
#include "models/checkpoint.hpp"
#include "models/family.hpp"

namespace {

using headrace::ir::ElementType;
using headrace::ir::RuntimeValue;
using headrace::ir::StateValue;
using headrace::ir::Tensor;
using headrace::ir::Type;

std::shared_ptr<const Tensor> integers(std::vector<double> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return std::make_shared<Tensor>(Tensor{ElementType::i32, {count}, std::move(values)});
}

void run(const std::string& path, std::vector<double> tokens) {
  const std::unique_ptr<headrace::models::Checkpoint> checkpoint = headrace::models::open_checkpoint(path);
  const std::unique_ptr<headrace::stream::WeightStore> store = checkpoint->store();
  const auto count = static_cast<std::int64_t>(tokens.size());
  const headrace::models::Model model = headrace::models::build_model(*checkpoint, {count, count, 1, count});
  headrace::ir::Interpreter interpreter(model.program, [&](const std::string& name, const Type& type) {
    const headrace::models::CheckpointTensor& tensor = *checkpoint->find_tensor(name);
    std::vector<std::byte> bytes(static_cast<std::size_t>(*tensor.bytes));
    store->read(name, 0, bytes);
    std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
    tensor.format->decode(bytes.data(), tensor.elements() / tensor.format->block_elements, values.data());
    Tensor result;
    for (const headrace::ir::Dim& dim : type.shape) result.shape.push_back(dim.constant());
    result.values.assign(values.begin(), values.end());
    return result;
  });
  std::vector<double> positions;
  for (std::size_t i = 0; i < tokens.size(); ++i) positions.push_back(static_cast<double>(i));
  std::map<std::string, RuntimeValue> inputs = {{"tokens", integers(std::move(tokens))},
                                                {"sequence", integers(std::vector<double>(positions.size(), 0))},
                                                {"position", integers(positions)},
                                                {"rows", integers(positions)}};
  const headrace::ir::Function& entry = model.program.entry();
  for (const headrace::ir::ValueId id : entry.parameters) {
    const headrace::ir::Value& value = entry.values[static_cast<std::size_t>(id)];
    if (!value.type.is_state()) continue;
    auto state = std::make_shared<StateValue>();
    state->element = value.type.element;
    for (const headrace::ir::Dim& dim : value.type.shape) state->shape.push_back(dim.constant());
    state->sequences.resize(1);
    inputs[value.name] = std::shared_ptr<const StateValue>(std::move(state));
  }
  const std::vector<RuntimeValue> results = interpreter.run(inputs);
  const Tensor& logits = *std::get<std::shared_ptr<const Tensor>>(results.at(0));
  const std::vector<float> values(logits.values.begin(), logits.values.end());
  std::fwrite(values.data(), sizeof(float), values.size(), stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: interpret_logits MODEL ID...\n", stderr);
    return 2;
  }
  try {
    std::vector<double> tokens;
    for (int i = 2; i < argc; ++i) tokens.push_back(std::strtod(argv[i], nullptr));
    run(argv[1], std::move(tokens));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  return 0;
}
