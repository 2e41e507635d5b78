// Machine files round-trip and refuse what is wrong; the time model and the report on values computed by hand.
#include "machine/machine.hpp"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "machine/report.hpp"

namespace headrace::machine {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Machine example() {
  Machine m;
  m.name = "example";
  m.rates = RateSource::published;
  m.cpu_model = "Some CPU \"X\"";
  m.cores = 8;
  m.threads = 4;
  m.isa = "avx512";
  m.memories = {{"L2", MemoryKind::cache, 4u << 20, 400e9},
                {"L3", MemoryKind::cache, 32u << 20, 200e9},
                {"ram", MemoryKind::ram, 64ull << 30, 50e9},
                {"nvme0", MemoryKind::disk, 1ull << 40, 3.123456789e9}};
  m.compute_units = {{"cpu", "avx512", 500e9, 2000e9, 1000e9}};
  m.links = {{"nvme0", "ram", 7e9, 80e-6}};
  return m;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    (void)machine_from_json(text, "m.json");
  } catch (const InputError& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected InputError for " << text;
  return "";
}

TEST(MachineJson, RoundTrips) { EXPECT_EQ(machine_from_json(machine_to_json(example()), "m.json"), example()); }

TEST(MachineJson, RefusesWhatIsWrongAndNamesTheField) {
  const std::string good = machine_to_json(example());
  const struct {
    const char* from;
    const char* to;
    const char* error;
  } cases[] = {
      {"\"cores\": 8", "\"cores\": -8", "m.json: cores: expected a whole number"},
      {"\"cores\": 8", "\"cores\": 8.5", "cores: expected a whole number from 0 to 1048576, found 8.5"},
      {"\"cores\": 8", "\"cores\": 0", "cores: expected at least 1, found 0"},
      {"\"cores\": 8", "\"cores\": 4294967297", "cores: expected a whole number"},
      {"\"cores\": 8", "\"cores\": [8]", "cores: expected a whole number from 0 to 1048576, found an array"},
      {"\"cores\": 8,", "", "m.json: cores: expected this field, found none"},
      {"\"cores\": 8", "\"cores\": 8, \"speed\": 1", "m.json: unknown field \"speed\""},
      {"\"kind\": \"ram\"", "\"kind\": \"tape\"", "memories[2].kind: expected one of cache, ram, disk, found \"tape\""},
      {"\"kind\": \"ram\"", "\"kind\": \"disk\"", "memories: expected exactly one of kind ram, found 0"},
      {"\"kind\": \"disk\"", "\"kind\": \"ram\"", "memories: expected exactly one of kind ram, found 2"},
      {"\"kind\": \"ram\"", "\"kind\": \"ram\", \"x\": {}", "unknown field \"memories[2].x\""},
      {"\"name\": \"L3\"", "\"name\": \"L2\"", "memories[1].name: \"L2\" is there twice"},
      {"\"name\": \"L3\"", "\"name\": \"\"", "memories[1].name: expected a name"},
      {"\"name\": \"L3\"", "\"name\": 3", "memories[1].name: expected a string, found 3"},
      {"50000000000.0", "0", "memories[2].read_bytes_per_s: expected a positive number, found 0"},
      {"50000000000.0", "-1.5", "memories[2].read_bytes_per_s: expected a positive number"},
      {"50000000000.0", "1e999", "m.json: not JSON"},
      {"\"capacity_bytes\": 4194304", "\"capacity_bytes\": 0", "memories[0].capacity_bytes: expected more than 0"},
      {"\"int8_ops_per_s\": 2000000000000.0", "\"int8_ops_per_s\": 0", "compute_units[0].int8_ops_per_s: expected a p"},
      {"\"from\": \"nvme0\"", "\"from\": \"nvme1\"", "links[0].from: expected the name of a memory or a compute unit"},
      {"\"rates\": \"published\"", "\"rates\": \"guessed\"", "rates: expected one of measured, published, estimated"},
      {"headrace-machine-1", "headrace-machine-9", "format: expected \"headrace-machine-1\", found"},
  };
  for (const auto& c : cases) EXPECT_THAT(error_of(replaced(good, c.from, c.to)), HasSubstr(c.error)) << c.to;
}

TEST(MachineJson, RefusesWhatIsNoMachine) {
  const std::string good = machine_to_json(example());
  for (const std::string bad :
       {"", "[]", "3", "null", "{}", "{\"format\": \"x\"}", "\xff\xfe", "{\"name\": \"\xc3\"}"}) {
    EXPECT_THAT(error_of(bad), StartsWith("m.json: "));
    EXPECT_THAT(error_of(bad), testing::Not(HasSubstr("\n")));
  }
  EXPECT_THAT(error_of(std::string(200000, '[')), HasSubstr("not JSON at offset 200000"));
  for (std::size_t length = 0; length + 2 < good.size(); ++length) (void)error_of(good.substr(0, length));
}

TEST(MachineJson, RefusesMachinesWithoutUnits) {
  Machine m = example();
  m.compute_units.clear();
  EXPECT_THAT(error_of(machine_to_json(m)), HasSubstr("compute_units: expected at least one"));
}

TEST(MachineFile, WritesWholeOrNotAtAll) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "headrace_machine_file";
  std::filesystem::remove_all(folder);
  EXPECT_THROW(write_machine(example(), (folder / "m.json").string()), ResourceError);
  std::filesystem::create_directories(folder);
  write_machine(example(), (folder / "m.json").string());
  write_machine(example(), (folder / "m.json").string());
  EXPECT_EQ(read_machine((folder / "m.json").string()), example());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "no temporary file is left";
  std::filesystem::remove_all(folder);
}

TEST(MachineFile, MissingFileIsAnInputError) { EXPECT_THROW((void)read_machine("/nonexistent.json"), InputError); }

TEST(MachineFile, TheShippedOnesAreValid) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HEADRACE_MACHINES_DIR)) {
    EXPECT_NO_THROW((void)read_machine(entry.path().string())) << entry.path();
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(PredictedTime, IsTheSlowerOfReadingAndComputing) {
  const Machine m = example();
  const OpTime reads = predicted_time(m, {.bytes_read = 100e6, .int8_ops = 200e6, .f32_flops = 50e6});
  EXPECT_DOUBLE_EQ(reads.memory_s, 2e-3);          // 100 MB at 50 GB/s
  EXPECT_DOUBLE_EQ(reads.compute_s, 1e-4 + 1e-4);  // the two kinds share the ports
  EXPECT_DOUBLE_EQ(reads.seconds(), 2e-3);
  const OpTime computes = predicted_time(m, {.bytes_read = 100e6, .bf16_flops = 10e9});
  EXPECT_DOUBLE_EQ(computes.seconds(), 10e-3);
}

TEST(PredictedTime, TakesTheFastestMemoryThatHoldsTheWorkingSet) {
  const Machine m = example();
  const auto memory_s = [&](std::uint64_t set) {
    return predicted_time(m, {.bytes_read = 1e9, .working_set_bytes = set}).memory_s;
  };
  EXPECT_DOUBLE_EQ(memory_s(0), 1 / 50.0);
  EXPECT_DOUBLE_EQ(memory_s(4u << 20), 1 / 400.0);
  EXPECT_DOUBLE_EQ(memory_s((4u << 20) + 1), 1 / 200.0);
  EXPECT_DOUBLE_EQ(memory_s((32u << 20) + 1), 1 / 50.0);
}

TEST(PredictedTime, WithoutBf16UnitsUsesF32AndOfSeveralUnitsTheFastest) {
  Machine m = example();
  m.compute_units[0].bf16_flops_per_s = 0;
  EXPECT_DOUBLE_EQ(predicted_time(m, {.bf16_flops = 1e9}).compute_s, 2e-3);
  m.compute_units.push_back({"gpu0", "x", 5000e9, 1000e9, 0});
  EXPECT_DOUBLE_EQ(predicted_time(m, {.bf16_flops = 1e9}).compute_s, 2e-4);
  EXPECT_DOUBLE_EQ(predicted_time(m, {.int8_ops = 2e9}).compute_s, 1e-3);
}

TEST(MachineReport, TellsWhatMatters) {
  ResourceLimits limits;
  limits.threads = 4;
  limits.affinity = 16;
  limits.cpu_quota = 4.5;
  limits.memory_limit_bytes = 3ull << 30;
  limits.memory_total_bytes = 64ull << 30;
  limits.warnings = {"/sys/x: odd"};
  CpuFeatures features;
  features.avx2 = true;
  const std::string text = machine_report(example(), limits, features);
  for (const char* part :
       {"Some CPU \"X\", 8 cores", "4 (affinity 16 CPUs, quota 4.5 CPUs)", "limit 3.0 GiB", "published, of 4 threads",
        "50.0 GB/s", "int8 2.00 TOP/s", "bf16 1.00 TFLOP/s", "80.0 µs", "/sys/x: odd"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  const std::string json = machine_report_json(example(), limits, features);
  for (const char* part : {"\"cpu_quota\": 4.5", "\"cpuset\": null", "\"memory_limit_bytes\": 3221225472"}) {
    EXPECT_THAT(json, HasSubstr(part));
  }
}

}  // namespace
}  // namespace headrace::machine
