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
