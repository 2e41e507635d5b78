// What the compiler knows of kernels: a catalog that it is given, and how a Plan's step calls one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.hpp"

namespace headrace::compile {

/// A State's pages as kernels see them. All states of an Engine lie in one set of pages, each at its own offset.
struct StateView {
  std::byte* const* const* pages = nullptr;  ///< [sequence][position / page positions]: bases of pages
  std::int64_t sequences = 0;
  std::int64_t offset = 0;  ///< of this state in a page, bytes
  /// [sequence] positions that have pages and may be read or written, those of the step included. nullptr: not checked.
  const std::int64_t* lengths = nullptr;
  std::int64_t longest = 0;  ///< positions of the longest sequence, for costs: the binding of "P"
};

inline constexpr std::size_t max_rank = 6;

/// Elements of a row (all dimensions but the first) that stay with one worker where rows are divided by columns: a
/// block of every encoding, two panels of outputs, two cache lines of f32.
inline constexpr std::int64_t column_unit = 32;

/// One operand or result of a step. A kernel sees bytes and sizes, never where they came from.
struct View {
  std::byte* data = nullptr;  ///< row-major; encoded rows are padded (KernelCatalog::row_bytes); packed for Weights
  std::array<std::int64_t, max_rank> dims{};
  std::uint8_t rank = 0;
  ir::ElementType element = ir::ElementType::f32;
  StateView state;  ///< of a State

  [[nodiscard]] std::span<const std::int64_t> shape() const noexcept { return {dims.data(), rank}; }
  [[nodiscard]] std::int64_t elements() const noexcept {
    std::int64_t count = 1;
    for (std::size_t i = 0; i < rank; ++i) count *= dims[i];
    return count;
  }
  template <class T>
  [[nodiscard]] T* as() const noexcept {
    return static_cast<T*>(static_cast<void*>(data));
  }
};

/// One call, made on every worker; the kernel divides the work by `worker` and `workers`.
struct KernelCall {
  std::span<const View> operands;
  std::span<const View> results;
  const void* data = nullptr;  ///< Kernel::data
  int phase = 0;               ///< a barrier lies between phases
  int worker = 0;
  int workers = 1;
  std::span<std::byte> scratch;  ///< this worker's own, 64-byte aligned
  std::span<std::byte> shared;   ///< of all workers, kept from phase to phase, 64-byte aligned
  /// An index from a tensor that was out of bounds; the step fails with it. Set by any worker.
  bool* failed = nullptr;
};

/// What one call does, for the time model: at concrete sizes.
struct KernelCost {
  double bytes_read = 0;  ///< of Weights and State
  double int8_ops = 0;
  double f32_flops = 0;
};

struct Kernel {
  std::string name;      ///< "linear.q4_1.avx512"
  std::string numerics;  ///< id: kernels of equal ids give equal bits
  int phases = 1;        ///< at most
  /// The phases of a call, from 1 to `phases`, where they depend on sizes or inputs: the same for all workers of a
  /// call. nullptr: `phases`.
  int (*call_phases)(const KernelCall& call) noexcept = nullptr;
  /// Views, operands first, that are divided by columns: with n > 0 a worker touches only its share (`split`) of units
  /// of n columns of each row, so that what one such kernel leaves another may take without a barrier. 0 or missing: it
  /// may touch all.
  std::vector<std::int64_t> column_units;
  void (*run)(const KernelCall&) noexcept = nullptr;
  std::shared_ptr<const void> data;  ///< what `run` needs beyond the views: attributes, Layout
  /// Bytes of scratch a worker, and shared, that a call with views of these sizes needs; nullptr: none.
  std::size_t (*scratch_bytes)(const KernelCall& sizes) = nullptr;
  std::size_t (*shared_bytes)(const KernelCall& sizes) = nullptr;
  /// nullptr: counted as reading its operands and one f32 operation an element of its results.
  KernelCost (*cost)(const KernelCall& sizes) = nullptr;
};

class KernelCatalog {
 public:
  virtual ~KernelCatalog() = default;
  [[nodiscard]] virtual std::string_view isa() const = 0;
  /// The kernel for an op on operands of these types, or nothing: then a composite is expanded.
  [[nodiscard]] virtual std::optional<Kernel> find(const ir::OpDef& op, std::span<const ir::Type> operands,
                                                   const ir::Attributes& attributes) const = 0;
  /// Copies a tensor: what the planner puts in where a result has to be elsewhere.
  [[nodiscard]] virtual Kernel copy() const = 0;

  /// The encoding that `linear` wants of its activations on a Weight of this Format, or "".
  [[nodiscard]] virtual std::string linear_encoding(std::string_view format) const = 0;
  /// Bytes of one row of `elements` in an encoding.
  [[nodiscard]] virtual std::int64_t row_bytes(std::string_view encoding, std::int64_t elements) const = 0;
  /// Bytes of a Weight in its Layout. Throws InputError if there is none for its type.
  [[nodiscard]] virtual std::int64_t packed_bytes(const ir::Type& weight) const = 0;
  /// Positions of a page, and the bytes of one State in a page. Throws InputError for a State that kernels cannot hold.
  [[nodiscard]] virtual std::int64_t page_positions() const = 0;
  [[nodiscard]] virtual std::int64_t page_bytes(const ir::Type& state) const = 0;
};

}  // namespace headrace::compile
