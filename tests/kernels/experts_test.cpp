// expert_linear: the interpreter's values on every Format; bits that do not depend on which rows share a step, on
// workers or on the instruction set; and only the experts that are used are read, each panel once.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "kernels/adapter.hpp"
#include "kernels/catalog_fixture.hpp"

namespace headrace::kernels {
namespace {

constexpr std::int64_t experts = 5;

struct Shape {
  std::int64_t rows, slots, outputs, inputs;
  bool own_inputs;  ///< each slot has its row, [T, A, K]
  bool bias;
};

/// One step of expert_linear: inputs, ids and Weights, packed, and the kernel's results.
class Step {
 public:
  Step(const Shape& shape, const std::string& format, std::mt19937& random)
      : shape_(shape), format_(*formats::find_format(format)), layout_(*layout_of(format_)) {
    const std::int64_t input_rows = shape.rows * (shape.own_inputs ? shape.slots : 1);
    x = random_floats(input_rows * shape.inputs, random);
    for (std::int64_t i = 0; i < shape.rows * shape.slots; ++i) {
      ids.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(experts)));
    }
    weight_file = random_weight(format_, experts * shape.outputs, shape.inputs, random);
    bias_file = random_weight(*formats::find_format("f32"), experts * shape.outputs, 1, random);
  }

  [[nodiscard]] std::vector<ir::Type> types() const {
    const ir::Shape rows =
        shape_.own_inputs ? ir::Shape{shape_.rows, shape_.slots, shape_.inputs} : ir::Shape{shape_.rows, shape_.inputs};
    std::vector<ir::Type> all = {
        layout_.grouped() ? ir::Type::encoded("a16", rows) : ir::Type::tensor(ir::ElementType::f32, rows),
        ir::Type::weight(std::string(format_.name), {experts, shape_.outputs, shape_.inputs}),
        ir::Type::tensor(ir::ElementType::i32, {shape_.rows, shape_.slots})};
    if (shape_.bias) all.push_back(ir::Type::weight("f32", {experts, shape_.outputs, 1}));
    return all;
  }

  [[nodiscard]] compile::Kernel kernel(const compile::KernelCatalog& catalog) const {
    const std::vector<ir::Type> all = types();
    return catalog.find(*ir::find_op("expert_linear"), all, {}).value();
  }

  /// Results [T][A][N]. `packed`: where the Weight is, packed, or nullptr to pack it here.
  std::vector<float> run(const compile::Kernel& kernel, const KernelTable& table, int workers,
                         std::byte* packed = nullptr) {
    const std::vector<ir::Type> all = types();
    std::vector<View> views;
    for (const ir::Type& type : all) views.push_back(compile::sized_view(type, {}));
    const std::int64_t input_rows = row_count(views[0]);
    const std::int64_t stride = layout_.grouped() ? a16_row_bytes(shape_.inputs) : 4 * shape_.inputs;
    const Bytes rows(input_rows * stride);
    if (layout_.grouped()) {
      table.encode_a16(x.data(), shape_.inputs, rows.data(), stride, shape_.inputs, input_rows);
    } else {
      std::memcpy(rows.data(), x.data(), x.size() * 4);
    }
    views[0].data = rows.data();
    const Bytes own(experts * packed_bytes(layout_, shape_.outputs, shape_.inputs));
    if (packed == nullptr) testing::pack_matrices(format_, views[1], weight_file.data(), own.data());
    views[1].data = packed != nullptr ? packed : own.data();
    views[2].data = static_cast<std::byte*>(static_cast<void*>(ids.data()));
    const formats::Format& plain = *formats::find_format("f32");
    const Bytes bias(experts * packed_bytes(*layout_of(plain), shape_.outputs, 1));
    if (shape_.bias) {
      testing::pack_matrices(plain, views[3], bias_file.data(), bias.data());
      views[3].data = bias.data();
    }
    View result =
        compile::sized_view(ir::Type::tensor(ir::ElementType::f32, {shape_.rows, shape_.slots, shape_.outputs}), {});
    const Bytes out(4 * std::max<std::int64_t>(result.elements(), 1));
    result.data = out.data();
    KernelCall call;
    call.operands = views;
    call.results = std::span(&result, 1);
    call.data = kernel.data.get();
    call.workers = workers;
    call.failed = &failed;
    const std::size_t scratch = kernel.scratch_bytes(call);
    const std::size_t shared_bytes = kernel.shared_bytes(call);
    const Bytes shared(static_cast<std::int64_t>(shared_bytes) + 1);
    call.shared = {shared.data(), shared_bytes};
    for (call.phase = 0; call.phase < kernel.phases; ++call.phase) {
      for (call.worker = workers - 1; call.worker >= 0; --call.worker) {
        const Bytes worker_scratch(static_cast<std::int64_t>(scratch) + 1);
        call.scratch = {worker_scratch.data(), scratch};
        kernel.run(call);
      }
    }
    const auto* values = result.as<const float>();
    return {values, values + result.elements()};
  }

  /// The same pair alone: one row of a plain linear over its expert's matrix.
  [[nodiscard]] std::vector<float> alone(std::int64_t pair, const KernelTable& table) const {
    const std::int64_t row = shape_.own_inputs ? pair : pair / shape_.slots;
    const std::int64_t expert = ids[static_cast<std::size_t>(pair)];
    const std::int64_t file_bytes = shape_.outputs * format_.row_bytes(shape_.inputs);
    const std::vector<std::byte> matrix(weight_file.begin() + expert * file_bytes,
                                        weight_file.begin() + (expert + 1) * file_bytes);
    const Bytes packed = pack(format_, layout_, matrix, shape_.outputs, shape_.inputs);
    const float* in = x.data() + row * shape_.inputs;
    const std::int64_t stride = layout_.grouped() ? a16_row_bytes(shape_.inputs) : 4 * shape_.inputs;
    const Bytes encoded(stride);
    if (layout_.grouped()) {
      table.encode_a16(in, shape_.inputs, encoded.data(), stride, shape_.inputs, 1);
    } else {
      std::memcpy(encoded.data(), in, static_cast<std::size_t>(stride));
    }
    std::vector<float> out(static_cast<std::size_t>(shape_.outputs));
    LinearArgs args;
    args.layout = layout_;
    args.outputs = args.out_stride = shape_.outputs;
    args.inputs = shape_.inputs;
    args.packed = packed.data();
    args.rows = 1;
    args.activations = encoded.data();
    args.activation_stride = stride;
    args.out = out.data();
    table.find_linear(layout_, linear_numerics(layout_, TokenClass::generated, table.isa))(args, 0,
                                                                                           panel_count(shape_.outputs));
    for (std::int64_t o = 0; shape_.bias && o < shape_.outputs; ++o) {
      float bias = 0;
      std::memcpy(&bias, bias_file.data() + 4 * (expert * shape_.outputs + o), 4);
      out[static_cast<std::size_t>(o)] += bias;
    }
    return out;
  }

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] const formats::Format& format() const { return format_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }

  std::vector<float> x;
  std::vector<std::int32_t> ids;
  std::vector<std::byte> weight_file;
  std::vector<std::byte> bias_file;
  bool failed = false;

 private:
  Shape shape_;
  const formats::Format& format_;
  Layout layout_;
};

class ExpertTest : public CatalogTest {};

TEST_P(ExpertTest, EveryPairIsWhatItIsAlone) {
  std::mt19937 random(3);
  for (const formats::Format& format : formats::format_table()) {
    if (!layout_of(format)) continue;
    const std::int64_t inputs = std::max<std::int64_t>(2 * format.block_elements, 34);
    for (const Shape& shape : {Shape{1, 3, 40, inputs, false, true}, Shape{9, 2, 300, inputs, false, false},
                               Shape{30, 4, 33, inputs, true, true}, Shape{0, 2, 16, inputs, true, false}}) {
      Step step(shape, std::string(format.name), random);
      const compile::Kernel kernel = step.kernel(catalog());
      for (const int workers : {1, 2, 7}) {
        const std::vector<float> all = step.run(kernel, table(), workers);
        EXPECT_FALSE(step.failed);
        for (std::int64_t pair = 0; pair < shape.rows * shape.slots; ++pair) {
          const auto begin = all.begin() + pair * shape.outputs;
          // Portable kernels: the id is one for all instruction sets.
          ASSERT_TRUE(same_bits({begin, begin + shape.outputs}, step.alone(pair, portable_table())))
              << format.name << ", " << workers << " workers, pair " << pair;
        }
      }
    }
  }
}

TEST_P(ExpertTest, ComputesWhatTheInterpreterDoes) {
  std::mt19937 random(5);
  for (const std::string input : {"f32[T, 34]", "f32[T, 3, 34]"}) {
    OpCase test = make_case("%x: " + input + ", %w: weight f16[5, 40, 34], %index: i32[T, 3], %b: weight f32[5, 40, 1]",
                            "expert_linear(%x, %w, %index, %b)", "f32[T, 3, 40]", {{"T", 6}}, random);
    set_indices(test, "index", experts, random);
    // Two FMA chains of 17, a sum and a bias, each term below 5 * 0.3.
    expect_close(test, epsilon, 19 * epsilon * 34 * 1.5);
  }
}

TEST_P(ExpertTest, AnIdOutOfBoundsFailsTheStep) {
  std::mt19937 random(7);
  for (const std::int32_t bad : {-1, 5, 0x7fffffff, -0x7fffffff - 1}) {
    Step step({4, 2, 40, 64, false, true}, "q8_0", random);
    const compile::Kernel kernel = step.kernel(catalog());
    step.ids[3] = bad;
    const std::vector<float> all = step.run(kernel, table(), 2);
    EXPECT_TRUE(step.failed);
    for (std::int64_t o = 0; o < 40; ++o) EXPECT_EQ(all[static_cast<std::size_t>(3 * 40 + o)], 0);
  }
}

/// Experts behind pages that may not be read, but for those that are used.
class GuardedExperts {
 public:
  GuardedExperts(std::int64_t expert_bytes, std::int64_t count)
      : bytes_(static_cast<std::size_t>(expert_bytes * count)),
        data_(static_cast<std::byte*>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~GuardedExperts() { munmap(data_, bytes_); }
  GuardedExperts(const GuardedExperts&) = delete;
  GuardedExperts& operator=(const GuardedExperts&) = delete;
  [[nodiscard]] std::byte* data() const { return data_; }
  void forbid(std::int64_t offset, std::int64_t length) const {
    ASSERT_EQ(mprotect(data_ + offset, static_cast<std::size_t>(length), PROT_NONE), 0);
  }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

TEST_P(ExpertTest, UnusedExpertsAreNotRead) {
  std::mt19937 random(11);
  Step step({6, 2, 64, 256, false, false}, "f32", random);
  for (std::int32_t& id : step.ids) id = id % 2 == 0 ? 1 : 4;
  const std::int64_t bytes = packed_bytes(step.layout(), 64, 256);
  ASSERT_EQ(bytes % sysconf(_SC_PAGESIZE), 0);
  const GuardedExperts packed(bytes, experts);
  View view = compile::sized_view(step.types()[1], {});
  testing::pack_matrices(step.format(), view, step.weight_file.data(), packed.data());
  for (const std::int64_t unused : {0, 2, 3}) packed.forbid(unused * bytes, bytes);
  const std::vector<float> all = step.run(step.kernel(catalog()), table(), 2, packed.data());
  EXPECT_TRUE(same_bits({all.begin(), all.begin() + 64}, step.alone(0, table())));
}

HEADRACE_TEST_EVERY_ISA(ExpertTest);

// A LinearFunction that counts the panels that it is asked for.
std::map<const std::byte*, int> panels_read;

void counting_linear(const LinearArgs& args, std::int64_t first_panel, std::int64_t last_panel) noexcept {
  for (std::int64_t p = first_panel; p < last_panel; ++p) {
    ++panels_read[args.packed + p * args.layout.panel_bytes(args.inputs)];
  }
}

LinearFunction find_counting(const Layout&, LinearNumerics) noexcept { return counting_linear; }

TEST(Experts, EachPanelOfAUsedExpertIsReadOnce) {
  std::mt19937 random(13);
  KernelTable table = kernel_table(Isa::portable);
  table.find_linear = find_counting;
  for (const std::int64_t rows : {1, 2, 64}) {
    for (const int workers : {1, 2, 5, 16}) {
      Step step({rows, 2, 16 * 21, 32, false, false}, "f32", random);
      for (std::int32_t& id : step.ids) id = id == 2 ? 3 : id;
      const std::vector<ir::Type> types = step.types();
      const ir::OpDef& op = *ir::find_op("expert_linear");
      std::optional<compile::Kernel> kernel;
      for (const CatalogFamily& family : catalog_families()) {
        for (const CatalogEntry& entry : family) {
          if (entry.op == op.name) kernel = entry.make({table, op, types, {}});
        }
      }
      const std::int64_t panel_bytes = step.layout().panel_bytes(32);
      const Bytes packed(experts * 21 * panel_bytes);
      panels_read.clear();
      step.run(kernel.value(), kernel_table(Isa::portable), workers, packed.data());
      const std::set<std::int32_t> used(step.ids.begin(), step.ids.end());
      EXPECT_EQ(panels_read.size(), used.size() * 21);
      for (const std::int32_t expert : used) {
        for (std::int64_t p = 0; p < 21; ++p) {
          EXPECT_EQ(panels_read[packed.data() + (expert * 21 + p) * panel_bytes], 1)
              << rows << " rows, " << workers << " workers, expert " << expert << " panel " << p;
        }
      }
    }
  }
}

TEST(Experts, CostCountsTheExpertsThatAStepMayUse) {
  std::mt19937 random(17);
  const auto catalog = make_catalog(Isa::portable);
  const auto bytes_read = [&](std::int64_t rows, std::int64_t slots) {
    const Step step({rows, slots, 64, 64, false, false}, "q8_0", random);
    const compile::Kernel kernel = step.kernel(*catalog);
    std::vector<View> views;
    for (const ir::Type& type : step.types()) views.push_back(compile::sized_view(type, {}));
    KernelCall call;
    call.operands = views;
    call.data = kernel.data.get();
    return kernel.cost(call).bytes_read / static_cast<double>(packed_bytes(step.layout(), 64, 64));
  };
  EXPECT_DOUBLE_EQ(bytes_read(1, 2), 2);
  EXPECT_DOUBLE_EQ(bytes_read(1, 5), 5);
  EXPECT_DOUBLE_EQ(bytes_read(2, 1), 1 + 0.8) << "the second row takes another expert in four cases of five";
  EXPECT_NEAR(bytes_read(200, 2), 5, 1e-6);
}

}  // namespace
}  // namespace headrace::kernels
