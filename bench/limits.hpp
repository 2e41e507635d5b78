// The limits of this machine that benches compare with, measured in the same process by code that is no kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace headrace::bench {

/// Seconds of one call.
double seconds_of(const std::function<void()>& call);

/// Seconds of one call, the best of several within `budget_s`. Keep a call under a millisecond where the core is
/// shared: other processes only ever add time, and the best call is one that they left alone. (The thread's CPU clock
/// is no way out: where time is accounted by ticks it flatters short calls.)
double best_seconds(const std::function<void()>& call, double budget_s = 0.4);

/// A loop that reads `bytes` at `data` from end to end and does nothing with them. Ask for it outside what is timed:
/// CPUID, which it rests on, takes tens of microseconds in a virtual machine.
using Reader = void (*)(const std::byte* data, std::int64_t bytes);
Reader reader();

/// Bytes per second of one core that reads `bytes` at `data` from end to end.
double read_rate(const std::byte* data, std::int64_t bytes);

/// Multiply-adds per second of one core out of registers, or 0 where the machine has no such unit.
double int8_dot_rate();  ///< vpdpbusd
double bf16_dot_rate();  ///< vdpbf16ps
double f32_fma_rate();   ///< vfmadd on zmm, else ymm

}  // namespace headrace::bench
