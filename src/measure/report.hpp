// What was measured, as people and as programs read it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "measure/bench.hpp"

namespace headrace::measure {

struct BenchReport {
  std::string model;
  std::string cpu_model;
  std::string isa;  ///< of the kernels that ran
  int threads = 1;
  Rates rates;
  struct PeerVersion {
    std::string name;
    std::string version;
  };
  std::vector<PeerVersion> peers;
  std::vector<TestResult> results;
};

/// One object: `model`, `machine`, `peers`, `results`. Rates are of all sequences together but where a name says
/// `each`; `limit` is in tokens per second too; `lower` and `upper` are quartiles.
nlohmann::ordered_json to_json(const BenchReport& report);

/// A table with a line a test.
std::string to_text(const BenchReport& report);

}  // namespace headrace::measure
