// The trace is JSON that ui.perfetto.dev reads: one lane a worker, times in microseconds, names escaped.
#include "run/trace.hpp"

#include <chrono>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headrace::run {
namespace {

using std::chrono::microseconds;

TEST(Trace, WritesEventsOfEachWorker) {
  Trace trace(2);
  const auto now = Trace::Clock::now();
  trace.add(0, "linear", now, now + microseconds(1500));
  trace.add(1, "say \"hi\"\n", now + microseconds(10), now + microseconds(10));
  EXPECT_EQ(trace.events(), 2U);
  const auto json = nlohmann::json::parse(trace.json());
  std::vector<nlohmann::json> events;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") == "X") events.push_back(event);
  }
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].at("name"), "linear");
  EXPECT_EQ(events[0].at("tid"), 0);
  EXPECT_DOUBLE_EQ(events[0].at("dur"), 1500.0);
  EXPECT_GE(events[0].at("ts"), 0.0);
  EXPECT_EQ(events[1].at("name"), "say \"hi\"\n");
  EXPECT_EQ(events[1].at("tid"), 1);
  EXPECT_NEAR(events[1].at("ts").get<double>() - events[0].at("ts").get<double>(), 10, 1e-2);
  EXPECT_EQ(json.at("otherData").at("dropped_events"), 0);
}

TEST(Trace, TellsWhatStepsSpentOutsideKernels) {
  Trace trace(2, 2);
  const auto at = [start = Trace::Clock::now()](int us) { return start + microseconds(us); };
  trace.add(0, "x", at(0), at(90));
  trace.add(1, "x", at(10), at(80));
  trace.add_step(7, at(0), at(100));
  for (int i = 0; i < 3; ++i) {  // beyond the room for events
    const int begin = 100 * (i + 2);
    trace.add(0, "x", at(begin), at(begin + 30));
    trace.add(1, "x", at(begin), at(begin + 30));
    trace.add(0, "y", at(begin + 30), at(begin + 50));
    trace.add_step(1, at(begin), at(begin + 50));
  }
  EXPECT_EQ(trace.spent(false).steps, 1);
  EXPECT_NEAR(trace.spent(false).kernels_s, 80e-6, 1e-9);
  EXPECT_NEAR(trace.spent(false).outside_share(), 0.2, 1e-9);
  EXPECT_EQ(trace.spent(true).steps, 3);
  EXPECT_NEAR(trace.spent(true).wall_s, 150e-6, 1e-9);
  EXPECT_NEAR(trace.spent(true).outside_share(), 0.2, 1e-9);
  EXPECT_EQ(Trace(1, 1).spent(true).outside_share(), 0);
  const auto json = nlohmann::json::parse(trace.json());
  const auto& decode = json.at("otherData").at("steps_of_one_row");
  EXPECT_EQ(decode.at("steps"), 3);
  EXPECT_DOUBLE_EQ(decode.at("outside_share"), 0.2);
  EXPECT_EQ(json.at("traceEvents").back().at("name"), "1 row");
  EXPECT_EQ(json.at("traceEvents").back().at("tid"), 2);
  trace.clear();
  EXPECT_EQ(trace.spent(true).steps, 0);
}

TEST(Trace, CountsWhatItHasNoRoomFor) {
  Trace trace(1, 2);
  const auto now = Trace::Clock::now();
  for (int i = 0; i < 5; ++i) trace.add(0, "x", now, now);
  trace.add(7, "of no worker", now, now);
  EXPECT_EQ(trace.events(), 2U);
  EXPECT_EQ(trace.dropped(), 3U);
  EXPECT_EQ(nlohmann::json::parse(trace.json()).at("otherData").at("dropped_events"), 3);
}

TEST(Trace, SumsTheTimeOfAWorkerUntilCleared) {
  Trace trace(2, 2);
  const auto now = Trace::Clock::now();
  trace.add(0, "x", now, now + microseconds(1500));
  trace.add(0, "y", now + microseconds(2000), now + microseconds(2500));
  trace.add(0, "dropped", now, now + microseconds(1));
  EXPECT_DOUBLE_EQ(trace.busy_s(0), 2e-3);
  EXPECT_EQ(trace.busy_s(1), 0);
  trace.clear();
  EXPECT_EQ(trace.events(), 0U);
  EXPECT_EQ(trace.dropped(), 0U);
  EXPECT_EQ(trace.busy_s(0), 0);
}

}  // namespace
}  // namespace headrace::run
