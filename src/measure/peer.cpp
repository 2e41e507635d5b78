#include "measure/peer.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include <unistd.h>

#include "base/error.hpp"
#include "base/quote.hpp"

namespace headrace::measure {

namespace {

constexpr std::array<std::string_view, 2> names = {"llama.cpp", "openvino"};

/// A large model may come from a slow disk, and a deep test on a slow machine takes as long.
constexpr double patience_s = 3600;

std::vector<std::string> command_of(const std::string& name, const std::string& cache_folder,
                                    const PeerOptions& options) {
  return {find_peer(name, cache_folder),
          "--model",
          options.model,
          "--threads",
          std::to_string(options.threads),
          "--context",
          std::to_string(options.sizes.context),
          "--sequences",
          std::to_string(options.sizes.sequences)};
}

/// What follows `word` and a space in `line`, if it begins so.
std::optional<std::string> after(std::string_view line, std::string_view word) {
  if (!line.starts_with(word) || line.size() <= word.size() || line[word.size()] != ' ') return std::nullopt;
  return std::string(line.substr(word.size() + 1));
}

}  // namespace

std::span<const std::string_view> peer_names() { return names; }

std::string find_peer(const std::string& name, const std::string& cache_folder) {
  std::string program = cache_folder + "/peers/" + name + "/peer";
  if (::access(program.c_str(), X_OK) != 0) {
    fail<InputError>("--vs {}: {} is not there yet; scripts/bench_peers.sh {} builds it", name, program, name);
  }
  return program;
}

Peer::Peer(std::string name, const std::string& cache_folder, const PeerOptions& options)
    : name_(std::move(name)), process_(command_of(name_, cache_folder, options), options.keep_stderr) {
  const std::string line = process_.read_line(patience_s);
  const auto version = after(line, "ready");
  if (!version) fail<ResourceError>("{}: {}", name_, after(line, "error").value_or(headrace::quoted(line)));
  version_ = *version;
}

std::optional<double> Peer::run(const Test& test) {
  process_.write_line(fmt::format("{} {} {} {}", test_kind_name(test.kind), test.tokens, test.depth, test.sequences));
  const std::string line = process_.read_line(patience_s);
  if (after(line, "unsupported")) return std::nullopt;
  if (const auto text = after(line, "seconds")) {
    double seconds = 0;
    const auto [rest, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
    if (error == std::errc{} && rest == text->data() + text->size() && std::isfinite(seconds) && seconds > 0) {
      return seconds;
    }
  }
  fail<ResourceError>("{}: {}", name_, after(line, "error").value_or(headrace::quoted(line)));
}

}  // namespace headrace::measure
