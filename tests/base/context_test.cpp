// The Context keeps to the limits and says once what it changed; the budget counts; the log repeats no warning.
#include "base/context.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace headrace {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

ContextOptions options_for(int threads, int affinity, std::ostream& out) {
  ContextOptions options;
  options.threads = threads;
  options.log_out = &out;
  options.limits_source = {.sysroot = "/nonexistent", .affinity = affinity};
  return options;
}

TEST(Context, TakesTheThreadsThatTheLimitsAllow) {
  std::ostringstream out;
  EXPECT_EQ(Context::create(options_for(0, 3, out))->threads().workers(), 3);
  EXPECT_EQ(Context::create(options_for(2, 3, out))->threads().workers(), 2);
  EXPECT_THAT(out.str(), IsEmpty());
}

TEST(Context, ReducesTooManyThreadsAndSaysSoOnce) {
  std::ostringstream out;
  const auto context = Context::create(options_for(8, 2, out));
  EXPECT_EQ(context->threads().workers(), 2);
  EXPECT_EQ(out.str(), "warning: threads: 8 were asked for, but this process may use 2 CPUs: using 2\n");
}

TEST(Context, RefusesANegativeThreadCount) {
  std::ostringstream out;
  EXPECT_THROW(Context::create(options_for(-1, 2, out)), InputError);
}

TEST(Context, WorksOnThisMachine) {
  const auto context = Context::create();
  EXPECT_GE(context->threads().workers(), 1);
  EXPECT_GT(context->memory().limit_bytes(), 1u << 20);
  EXPECT_THAT(context->limits().warnings, IsEmpty());
}

TEST(Log, SaysAWarningOnce) {
  std::ostringstream out;
  Log log(LogLevel::info, &out);
  for (int i = 0; i < 3; ++i) log.warn("disk {} is slow", 7);
  log.warn("disk {} is slow", 8);
  log.info("reading {}", "a");
  log.info("reading {}", "a");
  log.debug("not written");
  EXPECT_EQ(out.str(), "warning: disk 7 is slow\nwarning: disk 8 is slow\ninfo: reading a\ninfo: reading a\n");
}

TEST(Log, KeepsBracesAndPercentOfItsArguments) {
  std::ostringstream out;
  Log log(LogLevel::warning, &out);
  log.warn("{}", "{} %v %s");
  EXPECT_EQ(out.str(), "warning: {} %v %s\n");
}

TEST(Log, BoundsWhatItRemembers) {
  std::ostringstream out;
  Log log(LogLevel::warning, &out);
  for (int i = 0; i < 5000; ++i) log.warn("request {}", i);
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1000);
  EXPECT_THAT(text, testing::EndsWith("warning: request 999 (further new warnings are not shown)\n"));
}

TEST(MemoryBudget, CountsAndGivesBack) {
  MemoryBudget budget(100);
  {
    MemoryReservation first = budget.reserve(60, "weights");
    const MemoryReservation second = std::move(first);
    EXPECT_EQ(budget.reserved_bytes(), 60u);
    EXPECT_EQ(second.bytes(), 60u);
    try {
      const MemoryReservation third = budget.reserve(41, "state");
      ADD_FAILURE() << "expected ResourceError";
    } catch (const ResourceError& error) {
      EXPECT_THAT(error.what(), HasSubstr("state: expected at most 40 bytes"));
    }
    EXPECT_EQ(budget.reserve(40, "state").bytes(), 40u);
  }
  EXPECT_EQ(budget.reserved_bytes(), 0u);
  EXPECT_EQ(budget.peak_bytes(), 100u);
  EXPECT_THROW((void)budget.reserve(UINT64_MAX, "x"), ResourceError);
}

}  // namespace
}  // namespace headrace
