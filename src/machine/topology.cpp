// Walks the online CPUs once; a core or a cache that several of them share counts once.
#include "machine/topology.hpp"

#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/file.hpp"

namespace headrace::machine {

namespace {

constexpr int kCacheIndexLimit = 16;

std::optional<std::string> read_line(const std::string& path) {
  try {
    std::string text = read_text(path, 1u << 16);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// "1024K", "32M", "512"
std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (suffix.empty()) return value;
  if (suffix == "K") return checked_mul<std::uint64_t>(value, 1u << 10);
  if (suffix == "M") return checked_mul<std::uint64_t>(value, 1u << 20);
  if (suffix == "G") return checked_mul<std::uint64_t>(value, 1u << 30);
  return std::nullopt;
}

}  // namespace

CacheLevel Topology::cache(int level) const noexcept {
  for (const CacheLevel& cache : caches) {
    if (cache.level == level) return cache;
  }
  return {.level = level, .instance_bytes = 0, .instances = 0};
}

Topology read_topology(const std::string& sysroot) {
  std::set<std::pair<std::string, std::string>> cores;                    // (package, core)
  std::map<int, std::pair<std::uint64_t, std::set<std::string>>> levels;  // level -> (bytes, CPU lists that share one)
  std::error_code error;
  for (std::filesystem::directory_iterator entry(sysroot + "/sys/devices/system/cpu", error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string cpu = entry->path().filename().string();
    if (!cpu.starts_with("cpu") || cpu.find_first_not_of("0123456789", 3) != std::string::npos || cpu.size() == 3)
      continue;
    const std::string folder = entry->path().string() + "/";
    const auto core = read_line(folder + "topology/core_id");
    if (!core) continue;  // offline
    cores.emplace(read_line(folder + "topology/physical_package_id").value_or(""), *core);
    for (int index = 0; index < kCacheIndexLimit; ++index) {
      const std::string cache = fmt::format("{}cache/index{}/", folder, index);
      const auto type = read_line(cache + "type");
      if (!type) break;
      const auto level = parse_size(read_line(cache + "level").value_or(""));
      const auto bytes = parse_size(read_line(cache + "size").value_or(""));
      if (*type == "Instruction" || !level || *level < 1 || *level > 9 || !bytes || *bytes == 0) continue;
      auto& [instance_bytes, sharers] = levels[static_cast<int>(*level)];
      instance_bytes = *bytes;
      sharers.insert(read_line(cache + "shared_cpu_list").value_or(cpu));
    }
  }
  Topology topology;
  topology.cores = static_cast<int>(cores.size());
  for (const auto& [level, entry] : levels) {
    topology.caches.push_back({level, entry.first, static_cast<int>(entry.second.size())});
  }
  return topology;
}

}  // namespace headrace::machine
