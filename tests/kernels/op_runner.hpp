// Runs one op of a Program through its kernel, all workers in turn, and through the interpreter.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"
#include "compile/plan.hpp"
#include "ir/interpreter.hpp"
#include "ir/op.hpp"
#include "ir/program.hpp"
#include "ir/text.hpp"
#include "kernels/catalog.hpp"
#include "kernels/common.hpp"
#include "kernels/paged_state.hpp"

namespace headrace::testing {

/// A Program of one op whose operands are its parameters, with values for them.
struct OpCase {
  ir::Program program;
  ir::Bindings sizes;
  std::map<std::string, ir::RuntimeValue> inputs;              ///< tensors and States
  std::map<std::string, std::vector<std::byte>> weight_files;  ///< the file's bytes of Weights

  [[nodiscard]] const ir::Node& node() const { return program.entry().body.at(0); }
  [[nodiscard]] const ir::Value& operand(std::size_t index) const {
    return program.entry().values[static_cast<std::size_t>(node().operands.at(index))];
  }
  [[nodiscard]] std::vector<ir::Type> operand_types() const {
    std::vector<ir::Type> types;
    for (const ir::ValueId id : node().operands) types.push_back(program.entry().type(id));
    return types;
  }
  [[nodiscard]] const ir::Tensor& tensor(const std::string& name) const { return *std::get<0>(inputs.at(name)); }
};

inline std::vector<std::int64_t> concrete(const ir::Type& type, const ir::Bindings& sizes) {
  std::vector<std::int64_t> shape;
  for (const ir::Dim& dim : type.shape) shape.push_back(dim.evaluate(sizes));
  return shape;
}

/// A random number that the element type represents.
inline double random_value(ir::ElementType element, std::mt19937& random) {
  if (element == ir::ElementType::boolean) return static_cast<double>(random() % 2);
  if (element == ir::ElementType::u8) return static_cast<double>(random() % 200);
  if (!ir::is_float(element)) return static_cast<double>(random() % 200) - 100;
  return ir::round_to(element, std::normal_distribution<double>()(random));
}

inline std::shared_ptr<ir::Tensor> random_tensor(const ir::Type& type, const ir::Bindings& sizes,
                                                 std::mt19937& random) {
  auto tensor = std::make_shared<ir::Tensor>();
  tensor->element = type.element;
  tensor->shape = concrete(type, sizes);
  tensor->values.resize(static_cast<std::size_t>(ir::element_count(tensor->shape)));
  for (double& value : tensor->values) value = random_value(type.element, random);
  return tensor;
}

/// The function of one op: `parameters` as "%x: f32[T, 4]", `op` as "add(%x, %x)", `result` its type. Tensors and
/// Weights get random values; States, sequences and positions are the caller's. `returns`: the results of the function,
/// State parameters included.
inline OpCase make_case(const std::string& parameters, const std::string& op, const std::string& result,
                        const ir::Bindings& sizes, std::mt19937& random, const std::string& returns = "%result") {
  OpCase made;
  std::string symbols;
  for (const auto& [name, value] : sizes) symbols += "symbol " + name + " in [0, 4096]\n";
  made.program = ir::parse_program("program p {\n" + symbols + "function @main(" + parameters + ") {\n%result = " + op +
                                   " : " + result + "\nreturn " + returns + "\n}\n}");
  made.sizes = sizes;
  for (const ir::ValueId id : made.program.entry().parameters) {
    const ir::Value& value = made.program.entry().values[static_cast<std::size_t>(id)];
    if (value.type.is_weight()) {
      const formats::Format& format = *formats::find_format(value.type.encoding);
      const auto shape = concrete(value.type, sizes);
      const std::int64_t rows = ir::element_count(shape) / shape.back();
      made.weight_files[value.name] = kernels::random_weight(format, rows, shape.back(), random);
    } else if (!value.type.is_state()) {
      made.inputs[value.name] = random_tensor(value.type, sizes, random);
    }
  }
  return made;
}

inline ir::Tensor decoded_weight(const ir::Type& type, const std::vector<std::byte>& file) {
  const formats::Format& format = *formats::find_format(type.encoding);
  ir::Tensor tensor;
  tensor.shape = concrete(type, {});
  std::vector<float> values(static_cast<std::size_t>(ir::element_count(tensor.shape)));
  format.decode(file.data(), static_cast<std::int64_t>(values.size()) / format.block_elements, values.data());
  tensor.values.assign(values.begin(), values.end());
  return tensor;
}

/// What the interpreter gives for the case.
inline std::vector<ir::RuntimeValue> interpret(const OpCase& test) {
  ir::Interpreter interpreter(test.program, [&](const std::string& name, const ir::Type& type) {
    return decoded_weight(type, test.weight_files.at(name));
  });
  return interpreter.run(test.inputs);
}

struct Outcome {
  bool failed = false;
  ir::Tensor result;             ///< of an op that gives a tensor; codes of an encoded one times their scale
  ir::StateValue state;          ///< of one that gives a State
  std::vector<std::byte> bytes;  ///< of the tensor
  compile::Kernel kernel;
};

/// Packs a Weight [N, K], or [X, N, K] expert after expert.
inline void pack_matrices(const formats::Format& format, const compile::View& view, const std::byte* file,
                          std::byte* packed) {
  const kernels::Layout layout = kernels::layout_of(format).value();
  const std::int64_t outputs = view.dims[view.rank - 2u];
  const std::int64_t inputs = view.dims[view.rank - 1u];
  for (std::int64_t matrix = 0; matrix < view.elements() / (outputs * inputs); ++matrix) {
    kernels::kernel_table(kernels::Isa::portable)
        .pack_panels(format, layout, file + matrix * outputs * format.row_bytes(inputs), outputs, inputs, 0,
                     kernels::panel_count(outputs), packed + matrix * kernels::packed_bytes(layout, outputs, inputs));
  }
}

/// The columns of `worker` in a view that its kernel divides by units of columns.
inline Range columns_of_worker(const compile::View& view, std::int64_t unit, int worker, int workers) {
  std::int64_t columns = 1;
  for (std::size_t i = 1; i < view.rank; ++i) columns *= view.dims[i];
  const Range units = split((columns + unit - 1) / unit, worker, workers);
  return {std::min(units.begin * unit, columns), std::min(units.end * unit, columns)};
}

/// Calls visit(first byte, bytes) for what lies between a worker's columns, in each row of a plain view.
template <class Visit>
void for_other_columns(const compile::View& view, Range own, Visit&& visit) {
  const std::int64_t columns = view.dims[0] == 0 ? 0 : view.elements() / view.dims[0];
  const std::int64_t width = ir::element_bytes(view.element);
  for (std::int64_t row = 0; row < view.dims[0]; ++row) {
    visit((row * columns) * width, own.begin * width);
    visit((row * columns + own.end) * width, (columns - own.end) * width);
  }
}

/// Runs the kernel of the case on `workers` workers, one after the other in each phase. `sequence_room`: positions that
/// sequences have pages for.
inline Outcome run_kernel(const OpCase& test, const compile::KernelCatalog& catalog, int workers,
                          std::int64_t sequence_room = 0) {
  const ir::Node& node = test.node();
  const std::vector<ir::Type> types = test.operand_types();
  std::optional<compile::Kernel> kernel = catalog.find(*node.op, types, node.attributes);
  if (!kernel) {
    ADD_FAILURE() << "no kernel: " << ir::print(test.program);
    return {};
  }
  std::vector<kernels::Bytes> memory;
  std::vector<compile::View> operands;
  std::int64_t page_bytes = 0;
  std::size_t sequences = 0;
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < types.size(); ++i) {
    offsets.push_back(page_bytes);
    if (!types[i].is_state()) continue;
    page_bytes += catalog.page_bytes(types[i]);
    sequences = std::get<1>(test.inputs.at(test.operand(i).name))->sequences.size();
  }
  PagedStates states(sequences, sequence_room, catalog.page_positions(), page_bytes);
  std::fill(states.lengths().begin(), states.lengths().end(), sequence_room);
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::string& name = test.operand(i).name;
    compile::View view = compile::sized_view(types[i], test.sizes);
    if (types[i].is_state()) {
      const ir::StateValue& value = *std::get<1>(test.inputs.at(name));
      states.set(types[i], offsets[i], value);
      if (node.op->name == "read_state") {
        for (std::size_t b = 0; b < sequences; ++b) states.lengths()[b] = value.positions(b);
      }
      view.state = states.view(offsets[i]);
    } else if (types[i].is_weight()) {
      const formats::Format& format = *formats::find_format(types[i].encoding);
      const std::vector<std::byte>& file = test.weight_files.at(name);
      memory.emplace_back(catalog.packed_bytes(types[i]));
      if (view.rank == 1) {
        const ir::Tensor decoded = decoded_weight(types[i], file);
        for (std::size_t e = 0; e < decoded.values.size(); ++e) {
          store_value(ir::ElementType::f32, decoded.values[e], memory.back().data() + 4 * e);
        }
      } else {
        pack_matrices(format, view, file.data(), memory.back().data());
      }
      view.data = memory.back().data();
    } else {
      const ir::Tensor& tensor = test.tensor(name);
      const std::int64_t width = ir::element_bytes(types[i].element);
      memory.emplace_back(std::max<std::int64_t>(width * view.elements(), 1));
      for (std::size_t e = 0; e < tensor.values.size(); ++e) {
        store_value(types[i].element, tensor.values[e], memory.back().data() + static_cast<std::int64_t>(e) * width);
      }
      view.data = memory.back().data();
    }
    operands.push_back(view);
  }
  const ir::Type& result_type = test.program.entry().type(node.results.at(0));
  compile::View result = compile::sized_view(result_type, test.sizes);
  const std::int64_t result_bytes = result_type.is_state() ? 0 : compile::value_bytes(result_type, catalog, test.sizes);
  memory.emplace_back(std::max<std::int64_t>(result_bytes, 1));
  result.data = memory.back().data();
  if (result_type.is_state()) result.state = operands[0].state;

  Outcome outcome;
  compile::KernelCall call;
  call.operands = operands;
  call.results = std::span(&result, 1);
  call.data = kernel->data.get();
  call.workers = workers;
  call.failed = &outcome.failed;
  const std::size_t scratch = kernel->scratch_bytes == nullptr ? 0 : kernel->scratch_bytes(call);
  const std::size_t shared_bytes = kernel->shared_bytes == nullptr ? 0 : kernel->shared_bytes(call);
  const kernels::Bytes shared(static_cast<std::int64_t>(shared_bytes) + 1);
  call.shared = {shared.data(), shared_bytes};
  const int phases = kernel->call_phases == nullptr ? kernel->phases : kernel->call_phases(call);
  for (call.phase = 0; call.phase < phases; ++call.phase) {
    for (call.worker = workers - 1; call.worker >= 0; --call.worker) {  // any order must do
      const kernels::Bytes own(static_cast<std::int64_t>(scratch) + 1);
      call.scratch = {own.data(), scratch};
      // Of views that it divides by columns a worker reads and writes its own alone: others hold NaN here, or a pattern
      // that must stay.
      std::vector<compile::View> seen = operands;
      std::vector<kernels::Bytes> masked;
      const auto unit = [&](std::size_t view) {
        return view < kernel->column_units.size() ? kernel->column_units[view] : std::int64_t{0};
      };
      for (std::size_t i = 0; i < types.size(); ++i) {
        if (unit(i) == 0 || !types[i].is_tensor()) continue;
        const std::int64_t bytes = seen[i].elements() * ir::element_bytes(seen[i].element);
        masked.emplace_back(std::max<std::int64_t>(bytes, 1));
        std::memcpy(masked.back().data(), seen[i].data, static_cast<std::size_t>(bytes));
        seen[i].data = masked.back().data();
        for_other_columns(seen[i], columns_of_worker(seen[i], unit(i), call.worker, workers),
                          [&](std::int64_t at, std::int64_t count) {
                            std::memset(seen[i].data + at, 0xff, static_cast<std::size_t>(count));
                          });
      }
      call.operands = seen;
      const std::int64_t result_unit = unit(types.size());
      const std::vector<std::byte> before(result.data, result.data + result_bytes);
      kernel->run(call);
      if (result_unit > 0 && result_type.is_tensor()) {
        for_other_columns(
            result, columns_of_worker(result, result_unit, call.worker, workers),
            [&](std::int64_t at, std::int64_t count) {
              EXPECT_EQ(std::memcmp(result.data + at, before.data() + at, static_cast<std::size_t>(count)), 0)
                  << "written beside its columns: " << ir::print(test.program);
            });
      }
    }
  }
  outcome.kernel = *kernel;
  if (result_type.is_state()) {
    outcome.state = states.get(result_type, result.state.offset);
    return outcome;
  }
  outcome.bytes.assign(result.data, result.data + result_bytes);
  outcome.result.element = result_type.element;
  outcome.result.shape = concrete(result_type, test.sizes);
  const std::int64_t elements = result.elements();
  for (std::int64_t e = 0; e < elements; ++e) {
    if (!result_type.is_encoded()) {
      const std::int64_t width = ir::element_bytes(result_type.element);
      outcome.result.values.push_back(load_value(result_type.element, result.data + e * width));
      continue;
    }
    const std::int64_t width = result.dims[result.rank - 1u];
    const kernels::A16Row row = kernels::a16_row(width);
    const std::byte* in = result.data + e / width * row.bytes;
    outcome.result.values.push_back(static_cast<double>(kernels::a16_code(in, e % width)) *
                                    load_value(ir::ElementType::f32, in + row.scales + e % width / 32 * 4));
  }
  return outcome;
}

}  // namespace headrace::testing
