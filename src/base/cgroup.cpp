// Finds this process's directory in each cgroup hierarchy and takes the tightest limit from there up to the mount.
#include "base/cgroup.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>

#include <sched.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/file.hpp"

namespace headrace {

namespace {

constexpr std::uint64_t kFileLimitBytes = 16u << 20;  // mountinfo of a busy container host has thousands of lines
constexpr std::size_t kPathLimit = 4096;              // PATH_MAX: a longer one names no directory
constexpr std::uint64_t kNoLimitBytes = 1ull << 62;   // v1 says "no limit" with about 2^63

// Of /proc/self/mountinfo, a mount of a cgroup file system.
struct Mount {
  std::string root;   // the directory of the hierarchy that is mounted
  std::string point;  // where
  bool v2 = false;
  std::vector<std::string> controllers;  // v1 only
};

// Of /proc/self/cgroup, the directory of this process in one hierarchy.
struct Membership {
  std::vector<std::string> controllers;  // empty for v2
  std::string path;
};

std::optional<std::string> read_if_present(const std::string& path) {
  try {
    return read_text(path, kFileLimitBytes);
  } catch (const Error&) {
    return std::nullopt;  // missing, forbidden, or removed while we read: no limit that we could know
  }
}

std::vector<std::string> split_text(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  text = trim(text);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto is_octal = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && is_octal(i + 1) && is_octal(i + 2) && is_octal(i + 3)) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

// "31 23 0:28 ROOT POINT options [optional …] - FSTYPE source superoptions"
std::vector<Mount> parse_mounts(std::string_view text) {
  std::vector<Mount> mounts;
  for (const std::string& line : split_text(text, '\n')) {
    const std::vector<std::string> fields = split_text(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4) continue;
    const std::string& type = *(dash + 1);
    if (type != "cgroup" && type != "cgroup2") continue;
    Mount mount{unescape(fields[3]), unescape(fields[4]), type == "cgroup2", {}};
    if (!mount.v2) mount.controllers = split_text(*(dash + 3), ',');
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

// "4:memory:/path" for v1, "0::/path" for v2
std::vector<Membership> parse_memberships(std::string_view text) {
  std::vector<Membership> memberships;
  for (const std::string& line : split_text(text, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    memberships.push_back(
        {split_text(std::string_view(line).substr(first + 1, second - first - 1), ','), line.substr(second + 1)});
  }
  return memberships;
}

bool contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// The part of `path` below `root`, or nothing if it is not below.
std::optional<std::string> below(const std::string& path, const std::string& root) {
  if (root == "/") return path == "/" ? "" : path;
  if (!path.starts_with(root)) return std::nullopt;
  if (path.size() > root.size() && path[root.size()] != '/') return std::nullopt;
  return path.substr(root.size());
}

class Reader {
 public:
  Reader(const std::string& sysroot, ResourceLimits& limits) : sysroot_(sysroot), limits_(limits) {
    mounts_ = parse_mounts(read_if_present(sysroot + "/proc/self/mountinfo").value_or(""));
    memberships_ = parse_memberships(read_if_present(sysroot + "/proc/self/cgroup").value_or(""));
  }

  // Calls `take(file, contents)` for `name` in the process's directory and in each one above it, up to the mount.
  // Empty `controller` means v2.
  void each_level(std::string_view controller, const std::string& name,
                  const std::function<void(const std::string&, std::string_view)>& take) const {
    const bool v2 = controller.empty();
    const auto membership = std::find_if(memberships_.begin(), memberships_.end(), [&](const Membership& m) {
      return v2 ? m.controllers.empty() : contains(m.controllers, controller);
    });
    const Mount* mount = nullptr;
    std::string relative;
    for (const Mount& candidate : mounts_) {
      if (candidate.v2 != v2 || (!v2 && !contains(candidate.controllers, controller))) continue;
      if (mount == nullptr) mount = &candidate;
      if (membership == memberships_.end()) break;
      if (auto rest = below(membership->path, candidate.root)) {
        mount = &candidate;
        relative = std::move(*rest);
        break;
      }
      // In a container without a cgroup namespace the path is the host's and no part of it is mounted: what is
      // mounted is then the container's own directory, and `relative` stays empty.
    }
    if (mount == nullptr) return;
    if (relative.size() > kPathLimit || contains(split_text(relative, '/'), "..")) relative.clear();
    for (;;) {
      const std::string file = mount->point + (relative.ends_with('/') ? relative : relative + "/") + name;
      if (const auto text = read_if_present(sysroot_ + file)) take(file, *text);
      if (relative.empty()) break;
      relative.erase(relative.rfind('/') == std::string::npos ? 0 : relative.rfind('/'));
    }
  }

  void warn(const std::string& file, std::string_view expected, std::string_view text) const {
    limits_.warnings.push_back(fmt::format("{}: expected {}, found \"{}\"; taken as no limit", file, expected,
                                           printable(trim(text).substr(0, 60))));
  }

  void take_quota(const std::string& file, std::int64_t quota_us, std::int64_t period_us) const {
    if (quota_us <= 0 || period_us <= 0) return warn(file, "a positive quota and period", std::to_string(quota_us));
    const double quota = static_cast<double>(quota_us) / static_cast<double>(period_us);
    limits_.cpu_quota = std::min(limits_.cpu_quota.value_or(quota), quota);
  }

  void take_cpuset(const std::string& file, std::string_view text) const {
    if (trim(text).empty()) return;  // v1 and v2: nothing set here
    const auto count = count_cpu_list(text);
    if (!count) return warn(file, "a list of CPUs", text);
    limits_.cpuset = std::min(limits_.cpuset.value_or(*count), *count);
  }

  void take_memory(const std::string& file, std::string_view text) const {
    if (trim(text) == "max") return;
    const auto bytes = parse_number<std::uint64_t>(text);
    if (!bytes) return warn(file, "a number of bytes or max", text);
    if (*bytes >= kNoLimitBytes) return;
    limits_.memory_limit_bytes = std::min(limits_.memory_limit_bytes.value_or(*bytes), *bytes);
  }

  void read_v1() const {
    each_level("cpu", "cpu.cfs_quota_us", [&](const std::string& file, std::string_view text) {
      const auto quota = parse_number<std::int64_t>(text);
      if (!quota) return warn(file, "a number of microseconds", text);
      if (*quota == -1) return;
      const std::string period_file = file.substr(0, file.rfind('/')) + "/cpu.cfs_period_us";
      const std::string period_text = read_if_present(sysroot_ + period_file).value_or("");
      const auto period = parse_number<std::int64_t>(period_text);
      if (!period) return warn(period_file, "a number of microseconds", period_text);
      take_quota(file, *quota, *period);
    });
    const auto cpuset = [&](const std::string& file, std::string_view text) { take_cpuset(file, text); };
    each_level("cpuset", "cpuset.cpus", cpuset);
    each_level("cpuset", "cpuset.effective_cpus", cpuset);
    each_level("memory", "memory.limit_in_bytes",
               [&](const std::string& file, std::string_view text) { take_memory(file, text); });
  }

  void read_v2() const {
    each_level("", "cpu.max", [&](const std::string& file, std::string_view text) {
      const std::vector<std::string> parts = split_text(trim(text), ' ');
      if (!parts.empty() && parts[0] == "max") return;
      const auto quota = parse_number<std::int64_t>(parts.empty() ? "" : parts[0]);
      const auto period = parse_number<std::int64_t>(parts.size() < 2 ? "100000" : parts[1]);
      if (!quota || !period || parts.size() > 2) return warn(file, "a quota and a period, or max", text);
      take_quota(file, *quota, *period);
    });
    each_level("", "cpuset.cpus.effective",
               [&](const std::string& file, std::string_view text) { take_cpuset(file, text); });
    // Above memory.high a process is slowed to a crawl, so it is a limit too.
    for (const char* name : {"memory.max", "memory.high"}) {
      each_level("", name, [&](const std::string& file, std::string_view text) { take_memory(file, text); });
    }
  }

  void read_meminfo() const {
    const std::string file = "/proc/meminfo";
    const auto text = read_if_present(sysroot_ + file);
    if (!text) return;
    for (const std::string& line : split_text(*text, '\n')) {
      for (const auto& [key, value] : {std::pair{"MemTotal:", &limits_.memory_total_bytes},
                                       std::pair{"MemAvailable:", &limits_.memory_available_bytes}}) {
        if (!line.starts_with(key)) continue;
        std::string_view number = trim(std::string_view(line).substr(std::string_view(key).size()));
        if (number.ends_with("kB")) number.remove_suffix(2);
        const auto kilobytes = parse_number<std::uint64_t>(number);
        const auto bytes = kilobytes ? checked_mul<std::uint64_t>(*kilobytes, 1024) : std::nullopt;
        if (bytes) {
          *value = *bytes;
        } else {
          warn(file, "a number of kB", line);
        }
      }
    }
  }

 private:
  // A warning is one plain line, whatever the file holds.
  static std::string printable(std::string_view text) {
    std::string result(text);
    std::replace_if(result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return result;
  }

  const std::string& sysroot_;
  ResourceLimits& limits_;
  std::vector<Mount> mounts_;
  std::vector<Membership> memberships_;
};

int kernel_affinity() {
  // The kernel refuses a mask shorter than its own, so grow it: machines with more than 1024 CPUs exist.
  for (int cpus = CPU_SETSIZE; cpus <= (1 << 20); cpus *= 2) {
    cpu_set_t* const set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    CPU_ZERO_S(bytes, set);
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

std::uint64_t ResourceLimits::usable_memory_bytes() const noexcept {
  const std::uint64_t available = memory_available_bytes != 0 ? memory_available_bytes : memory_total_bytes;
  if (!memory_limit_bytes) return available;
  return available == 0 ? *memory_limit_bytes : std::min(*memory_limit_bytes, available);
}

std::optional<int> count_cpu_list(std::string_view list) {
  constexpr std::int64_t kCpuLimit = 1 << 20;
  std::int64_t count = 0;
  for (const std::string& part : split_text(trim(list), ',')) {
    const std::size_t dash = part.find('-');
    const auto first = parse_number<std::int64_t>(std::string_view(part).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : parse_number<std::int64_t>(std::string_view(part).substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kCpuLimit) return std::nullopt;
    count += *last - *first + 1;
    if (count > kCpuLimit) return std::nullopt;
  }
  if (count == 0) return std::nullopt;
  return static_cast<int>(count);
}

ResourceLimits read_limits(const LimitsSource& source) {
  ResourceLimits limits;
  limits.affinity = std::max(1, source.affinity ? *source.affinity : kernel_affinity());
  const Reader reader(source.sysroot, limits);
  reader.read_v1();
  reader.read_v2();
  reader.read_meminfo();
  limits.threads = limits.affinity;
  if (limits.cpuset) limits.threads = std::min(limits.threads, *limits.cpuset);
  if (limits.cpu_quota && *limits.cpu_quota < limits.threads) limits.threads = static_cast<int>(*limits.cpu_quota);
  limits.threads = std::max(1, limits.threads);
  return limits;
}

}  // namespace headrace
