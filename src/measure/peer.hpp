// Another runtime, measured in turn with ours: a small driver program over it that stays, keeps its model loaded and
// its sequences filled, and times the same tests. The drivers and what builds them: bench/peers/,
// scripts/bench_peers.sh.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "measure/child_process.hpp"
#include "measure/test.hpp"

namespace headrace::measure {

struct PeerOptions {
  std::string model;  ///< path of the GGUF file
  int threads = 1;
  TestSizes sizes;
  bool keep_stderr = false;
};

/// Names of peers that have a driver: "llama.cpp", "openvino".
std::span<const std::string_view> peer_names();

/// The path of a peer's driver, CACHE/peers/NAME/peer. Throws InputError, saying which script builds it, if it is not
/// there.
std::string find_peer(const std::string& name, const std::string& cache_folder);

/// The driver talks in lines. It is started as
///     peer --model PATH --threads N --context POSITIONS --sequences N
/// and says `ready VERSION` when its model is loaded. To `prefill|decode TOKENS DEPTH SEQUENCES` it answers
/// `seconds S`, the wall time of just these tokens; `unsupported REASON` if it cannot run such a test; `error REASON`.
class Peer {
 public:
  /// Starts the driver and waits until its model is loaded. Throws as find_peer does, and ResourceError, with its
  /// reason, if it does not start.
  Peer(std::string name, const std::string& cache_folder, const PeerOptions& options);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// What it says of itself.
  [[nodiscard]] const std::string& version() const noexcept { return version_; }

  /// Seconds of one run of `test`, or nothing if the peer has no such test. Throws ResourceError if it fails.
  std::optional<double> run(const Test& test);

 private:
  std::string name_;
  ChildProcess process_;
  std::string version_;
};

}  // namespace headrace::measure
