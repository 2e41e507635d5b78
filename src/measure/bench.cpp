#include "measure/bench.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "kernels/catalog.hpp"
#include "run/trace.hpp"

namespace headrace::measure {

namespace {

using Clock = std::chrono::steady_clock;

/// Before each turn, where there are peers: threads of the one before may still look for work.
constexpr auto rest = std::chrono::milliseconds(50);
/// Beyond it a buffer's size says nothing new: it is many times what any cache holds.
constexpr std::uint64_t largest_read_buffer = std::uint64_t{2} << 30;
/// Decode runs whose kernels are timed, and the tokens of each. Of prefill, one is enough: its kernels are long.
constexpr int traced_runs = 3;
constexpr std::int64_t traced_tokens = 32;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

Rates rates_of(const machine::Machine& machine) {
  const machine::ComputeUnit& unit = machine.compute_units.at(0);
  return {.read_bytes_per_s = machine.ram().read_bytes_per_s,
          .int8_ops_per_s = unit.int8_ops_per_s,
          .bf16_flops_per_s = unit.bf16_flops_per_s,
          .f32_flops_per_s = unit.f32_flops_per_s};
}

Bench::Bench(run::Engine& engine, const ir::Program& program, const Rates& rates,
             std::span<const std::unique_ptr<Peer>> peers, const BenchOptions& options)
    : engine_(engine),
      program_(program),
      rates_(rates),
      peers_(peers),
      options_(options),
      catalog_(kernels::make_catalog(engine.options().isa)),
      random_(options.seed) {}

Bench::Tokens Bench::random_tokens(std::int64_t count) {
  std::uniform_int_distribution<run::TokenId> token(0, static_cast<run::TokenId>(engine_.vocabulary() - 1));
  Tokens tokens(static_cast<std::size_t>(count));
  for (run::TokenId& each : tokens) each = token(random_);
  return tokens;
}

void Bench::fill(const Test& test) {
  if (test.depth != depth_) sessions_.clear();
  depth_ = test.depth;
  for (run::Session& session : sessions_) session.truncate(depth_);
  // Sequences of their own, since pages that several shared would be read from a cache.
  while (std::ssize(sessions_) < test.sequences) {
    sessions_.push_back(engine_.open());
    run::Session& session = sessions_.back();
    while (session.length() < depth_) {
      const Tokens tokens = random_tokens(std::min(engine_.options().rows, depth_ - session.length()));
      const run::StepEntry entry{&session, tokens, run::TokenClass::prompt, {}};
      engine_.step({&entry, 1});
      session.commit();
      if (options_.on_progress) options_.on_progress("filling to the depth", session.length(), depth_);
    }
  }
}

double Bench::prefill(std::int64_t tokens) {
  const Tokens prompt = random_tokens(tokens);
  run::Session session = engine_.open();
  const std::int64_t rows = engine_.options().rows;
  const auto begin = Clock::now();
  for (std::int64_t done = 0; done < tokens; done += rows) {
    const std::int64_t count = std::min(rows, tokens - done);
    const std::int64_t last = count - 1;
    run::StepEntry entry{&session,
                         std::span(prompt).subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count)),
                         run::TokenClass::prompt,
                         {}};
    if (done + count == tokens) entry.wanted = {&last, 1};
    engine_.step({&entry, 1});
    session.commit();
  }
  return seconds_since(begin);
}

double Bench::decode(const Test& test) {
  const Tokens tokens = random_tokens(test.tokens * test.sequences);
  const std::int64_t row = 0;
  std::vector<run::StepEntry> entries(static_cast<std::size_t>(test.sequences));
  const auto begin = Clock::now();
  std::size_t next = 0;
  for (std::int64_t step = 0; step < test.tokens; ++step) {
    for (std::size_t i = 0; i < entries.size(); ++i, ++next) {
      entries[i] = {&sessions_[i], std::span(tokens).subspan(next, 1), run::TokenClass::generated, {&row, 1}};
    }
    engine_.step(entries);
    for (std::size_t i = 0; i < entries.size(); ++i) sessions_[i].commit();
  }
  const double seconds = seconds_since(begin);
  for (run::Session& session : sessions_) session.truncate(depth_);
  return seconds;
}

double Bench::run_once(const Test& test) {
  return test.kind == TestKind::prefill ? prefill(test.tokens) : decode(test);
}

double Bench::outside_kernels(const Test& test) {
  Test short_test = test;
  const bool is_decode = test.kind == TestKind::decode;
  if (is_decode) short_test.tokens = std::min(test.tokens, traced_tokens);
  const int workers = engine_.context().threads().workers();
  run::Trace trace(workers);
  engine_.set_trace(&trace);
  std::vector<double> shares;
  // The first run touches the memory of the events, which only short kernels notice.
  for (int i = is_decode ? -1 : 0; i < (is_decode ? traced_runs : 1); ++i) {
    trace.clear();
    const double wall = run_once(short_test);
    double busy = 0;
    for (int worker = 0; worker < workers; ++worker) busy += trace.busy_s(worker) / workers;
    if (i >= 0) shares.push_back(1 - busy / wall);
  }
  engine_.set_trace(nullptr);
  return summarize(shares).median;
}

Work Bench::work_of(const Test& test) const {
  Work all;
  const auto add = [&](const StepSize& step, double times) {
    const Work work = step_work(program_, engine_.plan(), *catalog_, step, options_.experts_used);
    all.weight_bytes += times * work.weight_bytes;
    all.kv_bytes += times * work.kv_bytes;
    all.int8_ops += times * work.int8_ops;
    all.bf16_flops += times * work.bf16_flops;
    all.f32_flops += times * work.f32_flops;
  };
  if (test.kind == TestKind::decode) {
    const double past = static_cast<double>(test.depth) + static_cast<double>(test.tokens - 1) / 2;
    add({test.sequences, test.sequences, test.sequences, past}, static_cast<double>(test.tokens));
    return all;
  }
  const std::int64_t rows = engine_.options().rows;
  for (std::int64_t done = 0; done < test.tokens; done += rows) {
    const std::int64_t count = std::min(rows, test.tokens - done);
    add({count, done + count == test.tokens ? 1 : 0, 1, static_cast<double>(done)}, 1);
  }
  return all;
}

TestResult Bench::run(const Test& test) {
  TestResult result;
  result.test = test;
  result.work = work_of(test);
  const double steps = test.kind == TestKind::decode
                           ? static_cast<double>(test.tokens)
                           : static_cast<double>(ceil_div(test.tokens, engine_.options().rows));
  const auto step_bytes = static_cast<std::uint64_t>(result.work.bytes() / steps);
  ReadLoop read(engine_.context(), std::min(step_bytes, largest_read_buffer));
  result.read_buffer_bytes = read.capacity_bytes();

  if (test.kind == TestKind::decode) fill(test);
  std::vector<std::vector<double>> seconds(1 + peers_.size());
  std::vector<bool> supported(seconds.size(), true);
  std::vector<double> read_rates;
  const auto turn = [&](std::size_t who, bool is_kept) {
    if (!peers_.empty()) std::this_thread::sleep_for(rest);
    const std::optional<double> time = who == 0 ? run_once(test) : peers_[who - 1]->run(test);
    supported[who] = supported[who] && time.has_value();
    if (is_kept && time) seconds[who].push_back(*time);
  };
  for (std::size_t who = 0; who < seconds.size(); ++who) turn(who, false);
  for (int repeat = 0; repeat < options_.repeats; ++repeat) {
    if (options_.on_progress) options_.on_progress("measuring", repeat, options_.repeats);
    read_rates.push_back(read.rate(result.read_buffer_bytes));
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      const std::size_t who = (i + static_cast<std::size_t>(repeat)) % seconds.size();
      if (supported[who]) turn(who, true);
    }
  }
  result.seconds = summarize(seconds[0]);
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (supported[i + 1]) result.peers.push_back({peers_[i]->name(), summarize(seconds[i + 1])});
  }
  result.outside_kernels_share = outside_kernels(test);
  result.read_bytes_per_s = summarize(read_rates).median;
  Rates rates = rates_;
  rates.read_bytes_per_s = result.read_bytes_per_s;
  const StepLimit limit = step_limit(result.work, rates);
  result.limit_s = limit.seconds;
  result.limited_by = limit.by;
  return result;
}

}  // namespace headrace::measure
