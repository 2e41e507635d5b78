#include "measure/report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace headrace::measure {

namespace {

using Json = nlohmann::ordered_json;

/// Tokens per second of runs that took so long; the slow quartile of seconds is the low one of rates.
Json spread(const Summary& seconds, double tokens) {
  return {{"lower", tokens / seconds.upper},
          {"upper", tokens / seconds.lower},
          {"smallest", tokens / seconds.largest},
          {"largest", tokens / seconds.smallest},
          {"runs", seconds.count}};
}

double best_peer(const TestResult& result) {
  double best = 0;
  for (const PeerResult& peer : result.peers) best = std::max(best, result.tokens() / peer.seconds.median);
  return best;
}

std::string rate_text(double per_s) {
  if (per_s <= 0) return "none";
  return per_s >= 1e12 ? fmt::format("{:.2f} T/s", per_s / 1e12) : fmt::format("{:.0f} G/s", per_s / 1e9);
}

std::string number_text(double value) { return fmt::format("{:.{}f}", value, value < 100 ? 2 : value < 1000 ? 1 : 0); }

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// Columns as wide as what is in them; the first one begins at the left, the others end at the right.
std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += i == 0 ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    text += "\n";
  }
  return text;
}

Json result_json(const TestResult& result) {
  const double tokens = result.tokens();
  const double rate = tokens / result.seconds.median;
  Json peers = Json::array();
  for (const PeerResult& peer : result.peers) {
    const double peer_rate = tokens / peer.seconds.median;
    peers.push_back({{"name", peer.name},
                     {"tokens_per_s", peer_rate},
                     {"ratio", rate / peer_rate},
                     {"spread", spread(peer.seconds, tokens)}});
  }
  const double runs_steps = result.test.kind == TestKind::decode ? static_cast<double>(result.test.tokens) : 1;
  return {{"test", test_kind_name(result.test.kind)},
          {"tokens", result.test.tokens},
          {"depth", result.test.depth},
          {"sequences", result.test.sequences},
          {"tokens_per_s", rate},
          {"tokens_per_s_each", rate / static_cast<double>(result.test.sequences)},
          {"limit", tokens / result.limit_s},
          {"share_of_limit", result.limit_s / result.seconds.median},
          {"limited_by", result.limited_by},
          {"spread", spread(result.seconds, tokens)},
          {"outside_kernels_share", result.outside_kernels_share},
          {"weight_bytes", result.work.weight_bytes / runs_steps},
          {"kv_bytes", result.work.kv_bytes / runs_steps},
          {"int8_ops", result.work.int8_ops / runs_steps},
          {"bf16_flops", result.work.bf16_flops / runs_steps},
          {"f32_flops", result.work.f32_flops / runs_steps},
          {"read_bytes_per_s", result.read_bytes_per_s},
          {"read_buffer_bytes", result.read_buffer_bytes},
          {"peers", peers}};
}

}  // namespace

Json to_json(const BenchReport& report) {
  Json peers = Json::array();
  for (const BenchReport::PeerVersion& peer : report.peers) {
    peers.push_back({{"name", peer.name}, {"version", peer.version}});
  }
  Json results = Json::array();
  for (const TestResult& result : report.results) results.push_back(result_json(result));
  return {{"model", report.model},
          {"machine",
           {{"cpu_model", report.cpu_model},
            {"isa", report.isa},
            {"threads", report.threads},
            {"read_bytes_per_s", report.rates.read_bytes_per_s},
            {"int8_ops_per_s", report.rates.int8_ops_per_s},
            {"bf16_flops_per_s", report.rates.bf16_flops_per_s},
            {"f32_flops_per_s", report.rates.f32_flops_per_s}}},
          {"peers", peers},
          {"results", results}};
}

std::string to_text(const BenchReport& report) {
  std::string text = fmt::format("{:<9}{}\n{:<9}{}, {} threads, {} kernels\n", "model", report.model, "machine",
                                 report.cpu_model, report.threads, report.isa);
  text += fmt::format("{:<9}reads {:.1f} GB/s; int8 {}, bf16 {}, f32 {}\n", "", report.rates.read_bytes_per_s / 1e9,
                      rate_text(report.rates.int8_ops_per_s), rate_text(report.rates.bf16_flops_per_s),
                      rate_text(report.rates.f32_flops_per_s));
  for (const BenchReport::PeerVersion& peer : report.peers) {
    text += fmt::format("{:<9}{} {}\n", "beside", peer.name, peer.version);
  }
  std::vector<std::vector<std::string>> rows = {
      {"test", "tokens/s", "quartiles", "each", "limit", "of", "share", "outside"}};
  for (const BenchReport::PeerVersion& peer : report.peers) rows[0].push_back(peer.name);
  if (!report.peers.empty()) rows[0].push_back("ratio");
  for (const TestResult& result : report.results) {
    const Test& test = result.test;
    const double tokens = result.tokens();
    const double rate = tokens / result.seconds.median;
    std::string name = fmt::format("{} {}", test_kind_name(test.kind), test.tokens);
    if (test.depth > 0) name += fmt::format(" at {}", test.depth);
    if (test.sequences > 1) name += fmt::format(" x {}", test.sequences);
    rows.push_back({std::move(name), number_text(rate),
                    number_text(tokens / result.seconds.upper) + "-" + number_text(tokens / result.seconds.lower),
                    number_text(rate / static_cast<double>(test.sequences)), number_text(tokens / result.limit_s),
                    std::string(result.limited_by), percent_text(result.limit_s / result.seconds.median),
                    percent_text(result.outside_kernels_share)});
    for (const BenchReport::PeerVersion& peer : report.peers) {
      const auto found = std::find_if(result.peers.begin(), result.peers.end(),
                                      [&](const PeerResult& each) { return each.name == peer.name; });
      rows.back().push_back(found == result.peers.end() ? "-" : number_text(tokens / found->seconds.median));
    }
    if (!report.peers.empty()) {
      const double best = best_peer(result);
      rows.back().push_back(best > 0 ? fmt::format("{:.2f}", rate / best) : "-");
    }
  }
  return text + table_text(rows);
}

}  // namespace headrace::measure
