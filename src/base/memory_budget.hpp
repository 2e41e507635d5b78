// The memory that this process may use for Weights, State and buffers, and who has reserved how much of it.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

namespace headrace {

class MemoryBudget;

/// Bytes taken from a MemoryBudget, given back on destruction. Movable.
class MemoryReservation {
 public:
  MemoryReservation() = default;
  MemoryReservation(MemoryReservation&& other) noexcept;
  MemoryReservation& operator=(MemoryReservation&& other) noexcept;
  ~MemoryReservation();

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  friend class MemoryBudget;
  MemoryReservation(MemoryBudget& budget, std::uint64_t bytes) noexcept : budget_(&budget), bytes_(bytes) {}

  MemoryBudget* budget_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// Counts; allocates nothing. Thread-safe. Must outlive its reservations.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t limit_bytes) noexcept : limit_bytes_(limit_bytes) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  /// Throws ResourceError, naming `what`, if less than `bytes` are left.
  [[nodiscard]] MemoryReservation reserve(std::uint64_t bytes, std::string_view what);

  [[nodiscard]] std::uint64_t limit_bytes() const noexcept { return limit_bytes_; }
  [[nodiscard]] std::uint64_t reserved_bytes() const noexcept;
  [[nodiscard]] std::uint64_t peak_bytes() const noexcept;

 private:
  friend class MemoryReservation;
  void release(std::uint64_t bytes) noexcept;

  const std::uint64_t limit_bytes_;
  mutable std::mutex mutex_;
  std::uint64_t reserved_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
};

}  // namespace headrace
