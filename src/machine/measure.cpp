// Runs the measured loops on all threads and puts a Machine together from what they reach.
#include "machine/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include <sys/mman.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "machine/measure_loops.hpp"
#include "machine/topology.hpp"

namespace headrace::machine {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTries = 10;  // short enough that some fall between two time slices of another program
constexpr std::uint64_t kMegabyte = 1u << 20;
constexpr std::uint64_t kReadChunkBytes = 256u << 10;  // between two looks at the clock
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::int64_t kIterationsPerLook = 1000;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Zeroed memory of the process's own, in huge pages where the system gives them: the rates are not of the TLB.
class Buffer {
 public:
  explicit Buffer(std::uint64_t bytes) : bytes_(bytes) {
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) fail<ResourceError>("measure: {} bytes of memory cannot be had", bytes);
    ::madvise(data_, bytes, MADV_HUGEPAGE);  // may fail where there are none; then the pages are small
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ::munmap(data_, bytes_); }

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {static_cast<std::byte*>(data_), bytes_}; }

 private:
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// The sum over workers of work per second while `work(worker)` is called again and again on all of them at once, each
// call returning how much it did; the best of some tries that together take `budget_s`.
double best_rate(ThreadPool& pool, double budget_s, const std::function<double(int worker)>& work) {
  std::vector<double> rates(static_cast<std::size_t>(pool.workers()));
  double best = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    pool.run([&](int worker, int) {
      if (!pool.barrier().wait()) return;
      const auto start = Clock::now();
      double done = 0;
      double elapsed_s = 0;
      do {
        done += work(worker);
        elapsed_s = seconds_since(start);
      } while (elapsed_s < budget_s / kTries);
      rates[static_cast<std::size_t>(worker)] = done / elapsed_s;
    });
    double sum = 0;
    for (const double rate : rates) sum += rate;
    best = std::max(best, sum);
  }
  return best;
}

double loop_rate(ThreadPool& pool, double budget_s, const RateLoop& loop) {
  if (loop.run == nullptr) return 0;
  return best_rate(pool, budget_s, [&](int) {
    loop.run(kIterationsPerLook);
    return loop.ops_per_iteration * static_cast<double>(kIterationsPerLook);
  });
}

// Every worker reads its own part of `bytes_per_worker` over and over.
double read_rate(ThreadPool& pool, double budget_s, const MeasureLoops& loops, std::span<std::byte> buffer,
                 std::uint64_t bytes_per_worker) {
  struct alignas(64) Cursor {
    std::uint64_t at = 0;
    std::uint64_t sum = 0;
  };
  std::vector<Cursor> cursors(static_cast<std::size_t>(pool.workers()));
  const std::uint64_t chunk = std::min(bytes_per_worker, kReadChunkBytes);
  const double rate = best_rate(pool, budget_s, [&](int worker) {
    Cursor& cursor = cursors[static_cast<std::size_t>(worker)];
    const std::byte* const part = buffer.data() + static_cast<std::uint64_t>(worker) * bytes_per_worker;
    cursor.sum ^= loops.read(part + cursor.at, chunk);
    cursor.at = cursor.at + 2 * chunk <= bytes_per_worker ? cursor.at + chunk : 0;
    return static_cast<double>(chunk);
  });
  std::uint64_t sum = 0;
  for (const Cursor& cursor : cursors) sum ^= cursor.sum;
  __asm__ volatile("" : : "r"(sum));  // the reads have a use
  return rate;
}

// Bytes that each worker reads for the rate of L2, of L3 and of ram; 0 = the machine has no such cache.
struct WorkingSets {
  std::uint64_t l2 = 0;
  std::uint64_t l3 = 0;
  std::uint64_t ram = 0;
};

WorkingSets working_sets(const Topology& topology, int workers, std::uint64_t most_bytes) {
  const auto count = static_cast<std::uint64_t>(workers);
  const CacheLevel l2 = topology.cache(2);
  const CacheLevel l3 = topology.cache(3);
  const auto round = [](std::uint64_t bytes) { return std::max(bytes / kPageBytes, std::uint64_t{1}) * kPageBytes; };
  WorkingSets sets;
  if (l2.instances > 0) sets.l2 = round(l2.instance_bytes / 2);
  std::uint64_t reached = 0;  // of L3, by these workers
  if (l3.instances > 0) {
    const std::uint64_t instances = std::min<std::uint64_t>(static_cast<std::uint64_t>(l3.instances), count);
    reached = instances * l3.instance_bytes;
    // Half of what a worker can call its own, but clearly more than L2.
    sets.l3 = round(std::max(l3.instance_bytes / 2 / ceil_div(count, instances), l2.instance_bytes * 3 / 2));
  }
  // Twice the caches: read in a circle, nothing is still there when it comes round again.
  const std::uint64_t ram = std::clamp<std::uint64_t>(2 * reached, 64 * kMegabyte, 1024 * kMegabyte);
  sets.ram = std::max(round(std::min(ram, most_bytes) / count), kReadChunkBytes);
  sets.l2 = std::min(sets.l2, sets.ram);
  sets.l3 = std::min(sets.l3, sets.ram);
  return sets;
}

std::uint64_t ram_bytes(const ResourceLimits& limits) {
  if (limits.memory_total_bytes != 0) return limits.memory_total_bytes;
  return std::max<std::uint64_t>(limits.usable_memory_bytes(), 1);
}

// Everything but the rates.
Machine describe_machine(const Context& context, const Topology& topology, int threads) {
  Machine machine;
  machine.name = "this machine";
  machine.cpu_model = cpu_brand();
  machine.cores = topology.cores > 0 ? topology.cores : context.limits().affinity;
  machine.threads = threads;
  machine.isa = choose_measure_loops(context.features()).isa;
  for (const int level : {2, 3}) {
    const CacheLevel cache = topology.cache(level);
    if (cache.instances == 0) continue;
    machine.memories.push_back({fmt::format("L{}", level), MemoryKind::cache,
                                cache.instance_bytes * static_cast<std::uint64_t>(cache.instances), 0});
  }
  machine.memories.push_back({"ram", MemoryKind::ram, ram_bytes(context.limits()), 0});
  machine.compute_units.push_back({.name = "cpu", .isa = machine.isa});
  return machine;
}

Memory* find_memory(Machine& machine, std::string_view name) {
  for (Memory& memory : machine.memories) {
    if (memory.name == name) return &memory;
  }
  return nullptr;
}

}  // namespace

Machine measure(Context& context, double budget_s) {
  ThreadPool& pool = context.threads();
  const Topology topology = read_topology();
  Machine machine = describe_machine(context, topology, pool.workers());
  machine.rates = RateSource::measured;
  const MeasureLoops loops = choose_measure_loops(context.features());

  const MemoryBudget& memory = context.memory();
  const WorkingSets sets = working_sets(topology, pool.workers(), (memory.limit_bytes() - memory.reserved_bytes()) / 4);
  const std::uint64_t buffer_bytes = sets.ram * static_cast<std::uint64_t>(pool.workers());
  const MemoryReservation reservation = context.memory().reserve(buffer_bytes, "measure: buffer to read");
  const Buffer buffer(buffer_bytes);
  pool.run([&](int worker, int) {  // each worker touches its own part first, so that it lies near
    const auto part = buffer.bytes().subspan(static_cast<std::uint64_t>(worker) * sets.ram, sets.ram);
    std::fill(part.begin(), part.end(), std::byte{1});
  });

  const auto read = [&](std::string_view name, std::uint64_t bytes_per_worker, double share) {
    if (Memory* const level = find_memory(machine, name); level != nullptr && bytes_per_worker != 0) {
      level->read_bytes_per_s = read_rate(pool, share * budget_s, loops, buffer.bytes(), bytes_per_worker);
    }
  };
  read("ram", sets.ram, 0.3);
  read("L3", sets.l3, 0.2);
  read("L2", sets.l2, 0.1);
  ComputeUnit& unit = machine.compute_units.front();
  unit.f32_flops_per_s = loop_rate(pool, 0.1 * budget_s, loops.f32);
  unit.int8_ops_per_s = loop_rate(pool, 0.1 * budget_s, loops.int8);
  unit.bf16_flops_per_s = loop_rate(pool, 0.1 * budget_s, loops.bf16);
  validate(machine, "measure");
  return machine;
}

Machine estimate(const Context& context, int threads) {
  Machine machine = describe_machine(context, read_topology(), threads);
  machine.rates = RateSource::estimated;
  constexpr double kHertz = 2.5e9;
  const double cycles_per_s = kHertz * threads;
  ComputeUnit& unit = machine.compute_units.front();
  // Per cycle and thread, of one vector port: multiply-adds of 8 or 16 lanes; int8 dots of 4 bytes a lane, which take
  // three instructions without VNNI.
  const bool avx512 = machine.isa == "avx512";
  const double lanes = avx512 ? 16 : machine.isa == "avx2" ? 8 : 1;
  unit.f32_flops_per_s = cycles_per_s * 2 * lanes;
  unit.int8_ops_per_s = cycles_per_s * 8 * lanes / (avx512 ? 1 : 3);
  unit.bf16_flops_per_s = avx512 && context.features().avx512_bf16 ? cycles_per_s * 4 * lanes : 0;
  for (Memory& memory : machine.memories) {
    if (memory.name == "L2") memory.read_bytes_per_s = cycles_per_s * 32;
    if (memory.name == "L3") memory.read_bytes_per_s = cycles_per_s * 8;
    if (memory.kind == MemoryKind::ram) memory.read_bytes_per_s = std::min(10e9 * threads, 40e9);
  }
  validate(machine, "estimate");
  return machine;
}

Machine load_or_measure(Context& context, const std::string& folder, double budget_s) {
  const int threads = context.threads().workers();
  const std::string path = fmt::format("{}/machine-{}-threads.json", folder, threads);
  const Machine expected = describe_machine(context, read_topology(), threads);
  if (std::filesystem::exists(path)) {
    try {
      Machine kept = read_machine(path);
      const bool same = kept.rates == RateSource::measured && kept.cpu_model == expected.cpu_model &&
                        kept.cores == expected.cores && kept.threads == threads && kept.isa == expected.isa;
      if (same) return kept;
      context.log().info("{}: is of another machine; measuring", path);
    } catch (const Error& error) {
      context.log().warn("{}; measuring anew", error.what());
    }
  }
  Machine machine = measure(context, budget_s);
  try {
    std::error_code error;
    std::filesystem::create_directories(folder, error);  // if it fails, so does the writing, with a message
    write_machine(machine, path);
  } catch (const Error& error) {
    context.log().warn("{}; the measurement is not kept", error.what());
  }
  return machine;
}

}  // namespace headrace::machine
