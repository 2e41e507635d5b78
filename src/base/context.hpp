// What would be global otherwise: limits, CPU features, threads, the memory budget and the log. One object, made once
// and passed down.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>

#include "base/cgroup.hpp"
#include "base/cpu_features.hpp"
#include "base/log.hpp"
#include "base/memory_budget.hpp"
#include "base/thread_pool.hpp"

namespace headrace {

struct ContextOptions {
  int threads = 0;                       ///< workers, the caller included; 0 = as many as the limits allow
  std::uint64_t memory_limit_bytes = 0;  ///< 0 = as much as the limits allow
  LogLevel log_level = LogLevel::warning;
  std::ostream* log_out = nullptr;  ///< stderr if null; must outlive the Context
  LimitsSource limits_source;
};

class Context {
 public:
  /// Reads the limits, detects the CPU's features and starts the threads. More threads than the limits allow are
  /// reduced, with a warning: they would only wait for each other. Throws InputError on a negative thread count and
  /// ResourceError if threads cannot be started.
  static std::unique_ptr<Context> create(const ContextOptions& options = {});

  [[nodiscard]] const ResourceLimits& limits() const noexcept { return limits_; }
  [[nodiscard]] const CpuFeatures& features() const noexcept { return features_; }
  [[nodiscard]] Log& log() noexcept { return log_; }
  [[nodiscard]] MemoryBudget& memory() noexcept { return memory_; }
  [[nodiscard]] ThreadPool& threads() noexcept { return threads_; }

 private:
  Context(const ContextOptions& options, ResourceLimits limits);

  ResourceLimits limits_;
  CpuFeatures features_;
  Log log_;
  MemoryBudget memory_;
  ThreadPool threads_;
};

}  // namespace headrace
