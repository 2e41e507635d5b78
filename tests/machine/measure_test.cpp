// Topology from fake trees; measuring gives a valid, plausible Machine and is kept. Rates are not asserted tightly:
// a shared machine is never quiet.
#include "machine/measure.hpp"

#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "machine/measure_loops.hpp"
#include "machine/topology.hpp"

namespace headrace::machine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / (std::string("headrace_measure_") + test->name());
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path full = folder_ / path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }

  std::filesystem::path folder_;
};

using TopologyTest = FolderTest;
using KeptTest = FolderTest;

TEST_F(TopologyTest, CountsSharedCoresAndCachesOnce) {
  for (int cpu = 0; cpu < 8; ++cpu) {  // 4 cores of 2 threads; one L3 for 2 cores each
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/";
    put(folder + "topology/core_id", std::to_string(cpu % 4 % 2) + "\n");
    put(folder + "topology/physical_package_id", std::to_string(cpu % 4 / 2) + "\n");
    const std::string core_list = std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4);
    const struct {
      const char* type;
      const char* level;
      const char* size;
      std::string sharers;
    } caches[] = {{"Data", "1", "48K", core_list},
                  {"Instruction", "1", "32K", core_list},
                  {"Unified", "2", "2048K", core_list},
                  {"Unified", "3", "16M", cpu % 4 < 2 ? "0-1,4-5" : "2-3,6-7"}};
    for (int index = 0; index < 4; ++index) {
      const std::string cache = folder + "cache/index" + std::to_string(index) + "/";
      put(cache + "type", caches[index].type);
      put(cache + "level", caches[index].level);
      put(cache + "size", caches[index].size);
      put(cache + "shared_cpu_list", caches[index].sharers);
    }
  }
  put("sys/devices/system/cpu/cpufreq/topology/core_id", "9");  // not a CPU
  put("sys/devices/system/cpu/cpu9/online", "0");               // offline
  const Topology topology = read_topology(folder_.string());
  EXPECT_EQ(topology.cores, 4);
  EXPECT_THAT(topology.caches,
              ElementsAre(CacheLevel{1, 48u << 10, 4}, CacheLevel{2, 2u << 20, 4}, CacheLevel{3, 16u << 20, 2}));
}

TEST_F(TopologyTest, LeavesOutWhatIsMalformed) {
  EXPECT_EQ(read_topology(folder_.string()).cores, 0);
  put("sys/devices/system/cpu/cpu0/topology/core_id", "0");
  for (const std::string size : {"", "-1K", "0", "99999999999999999999K", "18446744073709551615G", "12Q"}) {
    put("sys/devices/system/cpu/cpu0/cache/index0/type", "Unified");
    put("sys/devices/system/cpu/cpu0/cache/index0/level", "2");
    put("sys/devices/system/cpu/cpu0/cache/index0/size", size);
    const Topology topology = read_topology(folder_.string());
    EXPECT_EQ(topology.cores, 1);
    EXPECT_THAT(topology.caches, IsEmpty()) << size;
  }
}

std::vector<MeasureLoops> all_loops() {
  const CpuFeatures features = detect_cpu_features();
  std::vector<MeasureLoops> loops = {measure_loops_portable()};
#if defined(__x86_64__)
  if (features.avx2) loops.push_back(measure_loops_avx2());
  if (features.avx512_vnni) loops.push_back(measure_loops_avx512(features));
#endif
  return loops;
}

// A read loop that skips bytes would report a rate that is too high: each word must count in the result.
TEST(MeasureLoops, ReadEveryWord) {
  constexpr std::size_t kBytes = 4096;
  alignas(64) static std::byte data[kBytes];
  for (const MeasureLoops& loops : all_loops()) {
    std::fill(std::begin(data), std::end(data), std::byte{0});
    EXPECT_EQ(loops.read(data, kBytes), 0u);
    for (std::size_t i = 0; i < kBytes; ++i) {
      data[i] = std::byte{1};
      EXPECT_NE(loops.read(data, kBytes), 0u) << loops.isa << " skips byte " << i;
      data[i] = std::byte{0};
    }
  }
}

TEST(MeasureLoops, TakeLongerForMoreIterations) {
  // A loop that the compiler folded would take the same time for any count.
  for (const MeasureLoops& loops : all_loops()) {
    for (const RateLoop& loop : {loops.f32, loops.int8, loops.bf16}) {
      if (loop.run == nullptr) continue;
      const auto best_s = [&](std::int64_t iterations) {
        double best = 1e9;
        for (int attempt = 0; attempt < 5; ++attempt) {
          const auto start = std::chrono::steady_clock::now();
          loop.run(iterations);
          best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        }
        return best;
      };
      EXPECT_GT(best_s(200000), 5 * best_s(2000)) << loops.isa;
    }
  }
}

TEST(Measure, GivesAValidMachine) {
  const auto context = Context::create();
  const Machine machine = measure(*context, 0.1);
  EXPECT_NO_THROW(validate(machine, "measured"));
  EXPECT_EQ(machine.rates, RateSource::measured);
  EXPECT_EQ(machine.threads, context->threads().workers());
  EXPECT_GT(machine.ram().read_bytes_per_s, 1e8);
  EXPECT_LT(machine.ram().read_bytes_per_s, 1e14);
  EXPECT_EQ(machine.compute_units.at(0).isa, machine.isa);
  EXPECT_EQ(machine.compute_units[0].bf16_flops_per_s > 0, context->features().avx512_bf16);
  EXPECT_EQ(context->memory().reserved_bytes(), 0u);
  EXPECT_EQ(machine_from_json(machine_to_json(machine), "m"), machine);
}

TEST(Measure, KeepsToTheMemoryBudget) {
  ContextOptions options;
  options.memory_limit_bytes = 16u << 20;
  const auto context = Context::create(options);
  (void)measure(*context, 0.02);
  EXPECT_LE(context->memory().peak_bytes(), 4u << 20);
  options.memory_limit_bytes = 1000;
  EXPECT_THROW((void)measure(*Context::create(options), 0.02), ResourceError);
}

TEST(Estimate, GivesAValidMachineOfAnyThreadCount) {
  const auto context = Context::create();
  for (const int threads : {1, 3, 200}) {
    const Machine machine = estimate(*context, threads);
    EXPECT_EQ(machine.threads, threads);
    EXPECT_EQ(machine.rates, RateSource::estimated);
  }
}

TEST_F(KeptTest, IsMeasuredOnceAndAgainIfForeignOrBroken) {
  std::ostringstream log;
  ContextOptions options;
  options.log_out = &log;
  const auto context = Context::create(options);
  const std::string folder = (folder_ / "a" / "b").string();
  const Machine first = load_or_measure(*context, folder, 0.02);
  const std::string path = folder + "/machine-" + std::to_string(first.threads) + "-threads.json";
  EXPECT_EQ(load_or_measure(*context, folder, 0.02), first);

  Machine foreign = first;
  foreign.cpu_model = "another CPU";
  write_machine(foreign, path);
  EXPECT_EQ(load_or_measure(*context, folder, 0.02).cpu_model, first.cpu_model);
  EXPECT_EQ(read_machine(path).cpu_model, first.cpu_model);
  EXPECT_THAT(log.str(), IsEmpty());

  std::ofstream(path) << "{";
  EXPECT_EQ(load_or_measure(*context, folder, 0.02).cpu_model, first.cpu_model);
  EXPECT_THAT(log.str(), HasSubstr("not JSON at offset 1; measuring anew"));
  EXPECT_NO_THROW((void)read_machine(path));
}

TEST_F(KeptTest, AFolderThatCannotBeWrittenIsAWarning) {
  put("file", "");
  std::ostringstream log;
  ContextOptions options;
  options.log_out = &log;
  const auto context = Context::create(options);
  EXPECT_NO_THROW((void)load_or_measure(*context, (folder_ / "file" / "x").string(), 0.02));
  EXPECT_THAT(log.str(), HasSubstr("the measurement is not kept"));
}

}  // namespace
}  // namespace headrace::machine
