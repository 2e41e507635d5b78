// The limits of this machine that benches compare with, measured in the same process by code that is no kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace headrace::bench {

/// Seconds of one call, the best of several within `budget_s`: other processes only ever add time.
double best_seconds(const std::function<void()>& call, double budget_s = 0.4);

/// Bytes per second of one core reading `bytes` at `data` from end to end.
double read_rate(const std::byte* data, std::int64_t bytes);

/// Multiply-adds per second of one core out of registers, or 0 where the machine has no such unit.
double int8_dot_rate();  ///< vpdpbusd
double bf16_dot_rate();  ///< vdpbf16ps
double f32_fma_rate();   ///< vfmadd on zmm, else ymm

}  // namespace headrace::bench
