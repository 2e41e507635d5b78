// What the tests of the catalog share: cases run on every instruction set and for several numbers of workers, and
// compared with the interpreter.
#pragma once

#include <cmath>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "ir/op.hpp"
#include "kernels/catalog.hpp"
#include "kernels/op_runner.hpp"

namespace headrace::kernels {

using ::headrace::testing::interpret;
using ::headrace::testing::make_case;
using ::headrace::testing::OpCase;
using ::headrace::testing::Outcome;
using ::headrace::testing::run_kernel;

class CatalogTest : public IsaTest {
 protected:
  void SetUp() override {
    IsaTest::SetUp();
    if (!IsSkipped()) catalog_ = make_catalog(GetParam());
  }
  [[nodiscard]] const compile::KernelCatalog& catalog() const { return *catalog_; }

  /// Runs the case on 1, 2 and 5 workers and on portable kernels; all give equal bytes. Returns one of them.
  [[nodiscard]] Outcome run(const OpCase& test, std::int64_t sequence_room = 0) const {
    Outcome one = run_kernel(test, catalog(), 1, sequence_room);
    for (const int workers : {2, 5}) {
      const Outcome more = run_kernel(test, catalog(), workers, sequence_room);
      EXPECT_EQ(more.bytes, one.bytes) << workers << " workers, " << ir::print(test.program);
      EXPECT_EQ(more.state.sequences, one.state.sequences) << workers << " workers, " << ir::print(test.program);
      EXPECT_EQ(more.failed, one.failed);
    }
    const Outcome portable = run_kernel(test, *make_catalog(Isa::portable), 1, sequence_room);
    EXPECT_EQ(portable.bytes, one.bytes) << ir::print(test.program);
    EXPECT_EQ(portable.kernel.numerics, one.kernel.numerics);
    return one;
  }

  /// The kernel's result is the interpreter's, within `relative` of each value and `absolute`.
  void expect_close(const OpCase& test, double relative, double absolute, std::int64_t sequence_room = 0) const {
    const Outcome outcome = run(test, sequence_room);
    EXPECT_FALSE(outcome.failed);
    const ir::Tensor expected = *std::get<0>(interpret(test).at(0));
    ASSERT_EQ(outcome.result.shape, expected.shape);
    ASSERT_EQ(outcome.result.values.size(), expected.values.size());
    for (std::size_t i = 0; i < expected.values.size(); ++i) {
      const double limit = relative * std::abs(expected.values[i]) + absolute;
      ASSERT_LE(std::abs(outcome.result.values[i] - expected.values[i]), limit)
          << "element " << i << ": " << outcome.result.values[i] << ", expected " << expected.values[i] << "\n"
          << ir::print(test.program);
    }
  }

 private:
  std::unique_ptr<compile::KernelCatalog> catalog_;
};

inline void set_integers(OpCase& test, const std::string& name, const std::vector<double>& values) {
  auto tensor = std::make_shared<ir::Tensor>(test.tensor(name));
  tensor->values = values;
  test.inputs[name] = tensor;
}

/// Makes a tensor of rows to index.
inline void set_indices(OpCase& test, const std::string& name, std::int64_t below, std::mt19937& random) {
  const auto place = test.inputs.find(name);
  if (place == test.inputs.end()) return;
  auto tensor = std::make_shared<ir::Tensor>(*std::get<0>(place->second));
  for (double& value : tensor->values) value = static_cast<double>(random() % static_cast<std::uint64_t>(below));
  place->second = std::move(tensor);
}

}  // namespace headrace::kernels
