// Counting against the memory limit.
#include "base/memory_budget.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace headrace {

MemoryReservation::MemoryReservation(MemoryReservation&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MemoryReservation& MemoryReservation::operator=(MemoryReservation&& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MemoryReservation::~MemoryReservation() {
  if (budget_ != nullptr) budget_->release(bytes_);
}

MemoryReservation MemoryBudget::reserve(std::uint64_t bytes, std::string_view what) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t left = limit_bytes_ - reserved_bytes_;
  if (bytes > left) {
    fail<ResourceError>("{}: expected at most {} bytes (the memory limit of {} less {} in use), needs {}", what, left,
                        limit_bytes_, reserved_bytes_, bytes);
  }
  reserved_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, reserved_bytes_);
  return {*this, bytes};
}

std::uint64_t MemoryBudget::reserved_bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return reserved_bytes_;
}

std::uint64_t MemoryBudget::peak_bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

void MemoryBudget::release(std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  reserved_bytes_ -= bytes;
}

}  // namespace headrace
