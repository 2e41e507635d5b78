#include "run/trace.hpp"

#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"

namespace headrace::run {

namespace {

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Trace::Trace(int workers, std::size_t events_per_worker) : start_(Clock::now()) {
  require(workers >= 1, "Trace: at least one worker");
  lanes_.resize(static_cast<std::size_t>(workers));
  // Pages of a reservation cost nothing until events are written to them; add() must not allocate.
  for (Lane& lane : lanes_) lane.events.reserve(events_per_worker);
}

void Trace::add(int worker, std::string_view name, Clock::time_point begin, Clock::time_point end) noexcept {
  if (worker < 0 || static_cast<std::size_t>(worker) >= lanes_.size()) return;
  Lane& lane = lanes_[static_cast<std::size_t>(worker)];
  lane.kernels_ns += std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
  if (lane.events.size() == lane.events.capacity()) {
    ++lane.dropped;
    return;
  }
  lane.events.push_back({name, since_start(begin), since_start(end)});
}

void Trace::add_step(std::int64_t rows, Clock::time_point begin, Clock::time_point end) {
  std::int64_t kernels_ns = 0;
  for (const Lane& lane : lanes_) kernels_ns += lane.kernels_ns;
  steps_.push_back({rows, since_start(begin), since_start(end),
                    static_cast<double>(kernels_ns - kernels_ns_) / static_cast<double>(lanes_.size())});
  kernels_ns_ = kernels_ns;
}

Trace::Spent Trace::spent(bool one_row) const noexcept {
  Spent spent;
  for (const Step& step : steps_) {
    if ((step.rows == 1) != one_row) continue;
    ++spent.steps;
    spent.wall_s += static_cast<double>(step.end_ns - step.begin_ns) * 1e-9;
    spent.kernels_s += step.kernels_ns * 1e-9;
  }
  return spent;
}

std::size_t Trace::events() const noexcept {
  std::size_t count = 0;
  for (const Lane& lane : lanes_) count += lane.events.size();
  return count;
}

std::size_t Trace::dropped() const noexcept {
  std::size_t count = 0;
  for (const Lane& lane : lanes_) count += lane.dropped;
  return count;
}

double Trace::busy_s(int worker) const {
  std::int64_t sum_ns = 0;
  for (const Event& event : lanes_.at(static_cast<std::size_t>(worker)).events) sum_ns += event.end_ns - event.begin_ns;
  return static_cast<double>(sum_ns) * 1e-9;
}

void Trace::clear() noexcept {
  for (Lane& lane : lanes_) {
    lane.events.clear();
    lane.dropped = 0;
    lane.kernels_ns = 0;
  }
  steps_.clear();
  kernels_ns_ = 0;
}

std::string Trace::json() const {
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  text += R"({"name":"process_name","ph":"M","pid":1,"args":{"name":"headrace"}})";
  const auto append = std::back_inserter(text);
  for (std::size_t worker = 0; worker < lanes_.size(); ++worker) {
    const Lane& lane = lanes_[worker];
    fmt::format_to(append,
                   ",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":{},\"args\":{{\"name\":"
                   "\"worker {}\"}}}}",
                   worker, worker);
    for (const Event& event : lane.events) {
      // Times are in microseconds.
      fmt::format_to(append, ",\n{{\"name\":{},\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}}}",
                     json_string(event.name), worker, static_cast<double>(event.begin_ns) / 1000,
                     static_cast<double>(event.end_ns - event.begin_ns) / 1000);
    }
  }
  const std::size_t step_lane = lanes_.size();
  fmt::format_to(append,
                 ",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":{},\"args\":{{\"name\":\"steps\"}}}}",
                 step_lane);
  for (const Step& step : steps_) {
    fmt::format_to(append,
                   ",\n{{\"name\":\"{} row{}\",\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}}}",
                   step.rows, step.rows == 1 ? "" : "s", step_lane, static_cast<double>(step.begin_ns) / 1000,
                   static_cast<double>(step.end_ns - step.begin_ns) / 1000);
  }
  const auto spent_json = [](const Spent& each) {
    return fmt::format("{{\"steps\":{},\"wall_s\":{:.9f},\"kernels_s\":{:.9f},\"outside_share\":{:.4f}}}", each.steps,
                       each.wall_s, each.kernels_s, each.outside_share());
  };
  fmt::format_to(append, "\n],\"otherData\":{{\"dropped_events\":{},\"steps_of_one_row\":{},\"other_steps\":{}}}}}\n",
                 dropped(), spent_json(spent(true)), spent_json(spent(false)));
  return text;
}

void Trace::write(const std::string& path) const { write_file(path, json()); }

}  // namespace headrace::run
