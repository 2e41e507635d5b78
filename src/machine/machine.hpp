// Machine: a graph of memories, links and compute units with measured or published rates, and the time model of an op.
// What the planner knows about hardware. Read from and written to machines/*.json (see machine_json.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::machine {

enum class MemoryKind { cache, ram, disk };

/// A place where bytes lie. Rates are of all threads (or of the whole device) together.
struct Memory {
  std::string name;  ///< "L2", "ram", "nvme0"
  MemoryKind kind = MemoryKind::ram;
  std::uint64_t capacity_bytes = 0;  ///< all instances together
  double read_bytes_per_s = 0;       ///< sequential, into the compute units (of a disk: into ram)
  bool operator==(const Memory&) const = default;
};

/// Something that computes. Rates are of all threads together; a multiply-add counts as 2.
struct ComputeUnit {
  std::string name;             ///< "cpu", "gpu0"
  std::string isa;              ///< "portable", "avx2", "avx512", …
  double f32_flops_per_s = 0;   ///< FMA
  double int8_ops_per_s = 0;    ///< dots with exact int32 sums
  double bf16_flops_per_s = 0;  ///< dots of bf16 pairs into f32; 0 = has none, works in f32 instead
  bool operator==(const ComputeUnit&) const = default;
};

/// A way on which bytes get from one named memory or compute unit to another, where it is narrower than what it joins.
struct Link {
  std::string from;
  std::string to;
  double bytes_per_s = 0;
  double latency_s = 0;
  bool operator==(const Link&) const = default;
};

enum class RateSource {
  measured,   ///< on this machine, by measure()
  published,  ///< by the maker, or by others
  estimated,  ///< a rule of thumb for the ISA
};

struct Machine {
  std::string name;
  RateSource rates = RateSource::published;
  std::string cpu_model;
  int cores = 1;                           ///< physical ones that are online
  int threads = 1;                         ///< workers that the rates are for
  std::string isa;                         ///< the best that kernels exist for: portable, avx2 or avx512
  std::vector<Memory> memories;            ///< fastest first; exactly one of kind ram
  std::vector<ComputeUnit> compute_units;  ///< at least one
  std::vector<Link> links;
  bool operator==(const Machine&) const = default;

  /// The one memory of kind ram.
  [[nodiscard]] const Memory& ram() const;
};

/// What an op does. Counts, not rates; a multiply-add counts as 2.
struct OpCost {
  double bytes_read = 0;                ///< of Weights and State, once each
  std::uint64_t working_set_bytes = 0;  ///< what must stay in a cache for its rate to hold; 0 = comes from ram
  double int8_ops = 0;
  double bf16_flops = 0;
  double f32_flops = 0;
};

struct OpTime {
  double memory_s = 0;
  double compute_s = 0;
  [[nodiscard]] double seconds() const noexcept { return memory_s > compute_s ? memory_s : compute_s; }
};

/// The roofline model (Williams, Waterman, Patterson 2009): reading and computing overlap, so the slower one of the two
/// is the time. Reading goes at the rate of the fastest memory that holds the working set (ram if none, or if it is
/// 0). Within a compute unit, the kinds of arithmetic share the same vector ports, so their times add; of several units
/// the one that is fastest for this op counts. Neither start-up nor synchronization is in it. Costs must be >= 0.
OpTime predicted_time(const Machine& machine, const OpCost& cost);

std::string_view name_of(MemoryKind kind) noexcept;
std::string_view name_of(RateSource source) noexcept;

/// Throws InputError, beginning with `where`, unless `machine` is as the comments above say: names present and
/// distinct, rates positive and finite, one ram, links between known names.
void validate(const Machine& machine, std::string_view where);

/// Parses a machine file. `where` names it in errors. Unknown, missing or ill-typed fields are InputError.
Machine machine_from_json(std::string_view text, std::string_view where);
/// Reads and parses `path`. Throws as File does, and InputError as above.
Machine read_machine(const std::string& path);
/// The text of a machine file; machine_from_json gives an equal Machine back.
std::string machine_to_json(const Machine& machine);
/// Writes `path` whole or not at all (a temporary file beside it is renamed). Throws ResourceError.
void write_machine(const Machine& machine, const std::string& path);

}  // namespace headrace::machine
