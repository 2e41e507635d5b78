// Runs tests on an Engine, in turn with the read loop and with peers, and compares with the least time that this
// machine could take.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/peer.hpp"
#include "measure/read_loop.hpp"
#include "measure/statistics.hpp"
#include "measure/test.hpp"
#include "measure/work.hpp"
#include "run/engine.hpp"

namespace headrace::measure {

struct PeerResult {
  std::string name;
  Summary seconds;
};

struct TestResult {
  Test test;
  Summary seconds;  ///< of a run: all tokens of all sequences
  std::vector<PeerResult> peers;
  Work work;  ///< of a run
  double read_bytes_per_s = 0;
  std::uint64_t read_buffer_bytes = 0;  ///< that it was measured on
  double limit_s = 0;                   ///< of a run
  std::string_view limited_by;
  /// Of the wall: what is not the mean time of kernels per thread. From traced runs of their own.
  double outside_kernels_share = 0;

  [[nodiscard]] double tokens() const noexcept {
    return static_cast<double>(test.tokens) * static_cast<double>(test.sequences);
  }
};

struct BenchOptions {
  int repeats = 5;
  std::uint64_t seed = 0;
  std::int64_t experts_used = 0;  ///< of a mixture of experts, by one row
  std::function<void(std::string_view what, std::int64_t done, std::int64_t total)> on_progress;
};

/// Keeps the sessions of a depth between tests, so that their positions are computed once.
class Bench {
 public:
  /// `program` is what `engine` was made of. `rates`: measured on this machine; its read rate is measured anew beside
  /// each test. `peers` may be empty. All must outlive the Bench.
  Bench(run::Engine& engine, const ir::Program& program, const Rates& rates,
        std::span<const std::unique_ptr<Peer>> peers, const BenchOptions& options);

  /// One warm-up, then `repeats` runs, between which the peers run and the read loop is timed; a different one begins
  /// each time. Tokens are random and new in every run. Throws as Engine::step and Peer::run do.
  TestResult run(const Test& test);

 private:
  using Tokens = std::vector<run::TokenId>;

  Tokens random_tokens(std::int64_t count);
  void fill(const Test& test);
  double run_once(const Test& test);
  double prefill(std::int64_t tokens);
  double decode(const Test& test);
  double outside_kernels(const Test& test);
  Work work_of(const Test& test) const;

  run::Engine& engine_;
  const ir::Program& program_;
  Rates rates_;
  std::span<const std::unique_ptr<Peer>> peers_;
  BenchOptions options_;
  std::unique_ptr<compile::KernelCatalog> catalog_;
  std::mt19937_64 random_;
  std::vector<run::Session> sessions_;  ///< of decode tests, each filled to depth_
  std::int64_t depth_ = 0;
};

/// The rates of arithmetic and of reading that machine::measure() found.
Rates rates_of(const machine::Machine& machine);

}  // namespace headrace::measure
