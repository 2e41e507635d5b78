// Engine: a loaded Plan with its threads and kernels; Session: one sequence in it. One `step` serves everything.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/context.hpp"
#include "compile/plan.hpp"
#include "ir/program.hpp"
#include "kernels/kernels.hpp"
#include "run/trace.hpp"
#include "stream/weight_store.hpp"

namespace headrace::run {

using TokenId = std::int32_t;
using kernels::TokenClass;

struct EngineOptions {
  std::int64_t rows = 512;        ///< T: the most new tokens of one step, all sequences together
  std::int64_t wanted = 64;       ///< S: the most rows of one step whose logits are wanted
  std::int64_t sequences = 1;     ///< B: the most sequences of one step
  std::int64_t context = 2048;    ///< the most positions of one sequence
  std::int64_t kv_positions = 0;  ///< positions that the KV pages of all sessions hold; 0 = sequences * context
  kernels::KvEncoding kv = kernels::KvEncoding::f16;
  kernels::Isa isa = kernels::Isa::portable;
  /// Called while Weights are loaded, with bytes read so far and in all; from one thread at a time.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

class Engine;

/// One sequence: its tokens and its State. Movable; must not outlive its Engine.
class Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  /// Committed positions.
  [[nodiscard]] std::int64_t length() const noexcept;
  [[nodiscard]] std::span<const TokenId> tokens() const noexcept;

  /// Keeps the first `accepted` of the last step's rows of this session (-1: all) and drops the rest.
  void commit(std::int64_t accepted = -1);
  /// Drops the last step's rows.
  void abort();
  /// Back to the first `length` committed positions.
  void truncate(std::int64_t length);
  /// A second session with the same committed tokens; full pages are shared, a tail page is copied.
  [[nodiscard]] Session fork() const;
  /// For an empty session: takes over the longest chain of full pages that some session of this Engine has computed for
  /// the same tokens in the same class, but never all of `tokens`, since the last row's logits are wanted. Returns the
  /// positions taken.
  std::int64_t share_prefix(std::span<const TokenId> tokens, TokenClass token_class);

 private:
  friend class Engine;
  struct Data;
  explicit Session(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

/// New tokens of one session in a step.
struct StepEntry {
  Session* session = nullptr;
  std::span<const TokenId> tokens;
  TokenClass token_class = TokenClass::generated;
  /// Rows whose logits are wanted, as indices into `tokens`, ascending.
  std::span<const std::int64_t> wanted;
};

class Engine {
 public:
  /// Lowers and plans `program` for this machine, checks that Weights, State and arena fit the memory budget of
  /// `context` (ResourceError before anything is read, naming what each needs), and loads the Weights from `store`,
  /// which is not used afterwards. Throws InputError if the store's bytes do not fit the Program. `catalog`: the
  /// kernels, those of `options.isa` if nullptr.
  static std::unique_ptr<Engine> create(const ir::Program& program, const stream::WeightStore& store,
                                        const EngineOptions& options, Context& context,
                                        std::unique_ptr<compile::KernelCatalog> catalog = nullptr);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  [[nodiscard]] Session open();

  /// Computes the rows of all entries. Writes State tentatively: each session must be committed or aborted before its
  /// next step. Logits of the wanted rows follow in the order of the entries. Throws InputError if a token is out of
  /// the vocabulary or a sequence would exceed the context, ResourceError if the KV pages are used up; then no session
  /// has changed.
  void step(std::span<const StepEntry> entries);
  /// Row `index` of the last step's logits [S, V].
  [[nodiscard]] std::span<const float> logits(std::int64_t index) const;

  [[nodiscard]] const compile::Plan& plan() const noexcept;
  [[nodiscard]] const EngineOptions& options() const noexcept;
  [[nodiscard]] std::int64_t vocabulary() const noexcept;
  [[nodiscard]] Context& context() noexcept;
  /// Records every later step into `trace` (nullptr: stops).
  void set_trace(Trace* trace) noexcept;

 private:
  friend class Session;
  struct Data;
  explicit Engine(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

}  // namespace headrace::run
