// Text and JSON of a machine and its limits.
#include "machine/report.hpp"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace headrace::machine {

namespace {

std::string format_bytes(std::uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes >= 1ull << 30) return fmt::format("{:.1f} GiB", value / (1ull << 30));
  if (bytes >= 1ull << 20) return fmt::format("{:.1f} MiB", value / (1ull << 20));
  return fmt::format("{:.0f} KiB", value / (1ull << 10));
}

std::string format_rate(double per_s, std::string_view unit) {
  if (per_s >= 1e12) return fmt::format("{:.2f} T{}/s", per_s / 1e12, unit);
  return fmt::format("{:.1f} G{}/s", per_s / 1e9, unit);
}

// "CPU" or "CPUs"
std::string cpus(double count) { return fmt::format("{:g} CPU{}", count, count == 1 ? "" : "s"); }

std::string thread_reasons(const ResourceLimits& limits) {
  std::string text = "affinity " + cpus(limits.affinity);
  text += limits.cpuset ? ", cpuset " + cpus(*limits.cpuset) : "";
  text += limits.cpu_quota ? ", quota " + cpus(*limits.cpu_quota) : ", no quota";
  return text;
}

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string machine_report(const Machine& machine, const ResourceLimits& limits, const CpuFeatures& features) {
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<10}{}\n", name, value);
  };
  line("CPU", fmt::format("{}, {} core{}", machine.cpu_model, machine.cores, machine.cores == 1 ? "" : "s"));
  line("ISA", fmt::format("{} (of {})", machine.isa, describe(features)));
  line("threads", fmt::format("{} ({})", machine.threads, thread_reasons(limits)));
  line("memory",
       fmt::format("{} in all, {} available, {}", format_bytes(limits.memory_total_bytes),
                   format_bytes(limits.memory_available_bytes),
                   limits.memory_limit_bytes ? "limit " + format_bytes(*limits.memory_limit_bytes) : "no limit"));
  line("rates",
       fmt::format("{}, of {} thread{}", name_of(machine.rates), machine.threads, machine.threads == 1 ? "" : "s"));
  for (const Memory& memory : machine.memories) {
    line("  " + memory.name, fmt::format("{:>10}  read {}", format_bytes(memory.capacity_bytes),
                                         format_rate(memory.read_bytes_per_s, "B")));
  }
  for (const ComputeUnit& unit : machine.compute_units) {
    std::string rates = fmt::format("{}: f32 {}, int8 {}", unit.isa, format_rate(unit.f32_flops_per_s, "FLOP"),
                                    format_rate(unit.int8_ops_per_s, "OP"));
    if (unit.bf16_flops_per_s > 0) rates += ", bf16 " + format_rate(unit.bf16_flops_per_s, "FLOP");
    line("  " + unit.name, rates);
  }
  for (const Link& link : machine.links) {
    line("  link", fmt::format("{} to {}: {}, {:.1f} µs", link.from, link.to, format_rate(link.bytes_per_s, "B"),
                               link.latency_s * 1e6));
  }
  for (const std::string& warning : limits.warnings) line("warning", warning);
  return text;
}

std::string machine_report_json(const Machine& machine, const ResourceLimits& limits, const CpuFeatures& features) {
  nlohmann::ordered_json json;
  json["machine"] = nlohmann::ordered_json::parse(machine_to_json(machine));
  json["limits"] = {{"threads", limits.threads},
                    {"affinity", limits.affinity},
                    {"cpuset", or_null(limits.cpuset)},
                    {"cpu_quota", or_null(limits.cpu_quota)},
                    {"memory_limit_bytes", or_null(limits.memory_limit_bytes)},
                    {"memory_total_bytes", limits.memory_total_bytes},
                    {"memory_available_bytes", limits.memory_available_bytes},
                    {"warnings", limits.warnings}};
  json["features"] = {{"avx2", features.avx2},
                      {"avx512", features.avx512},
                      {"avx512_vnni", features.avx512_vnni},
                      {"avx512_vbmi", features.avx512_vbmi},
                      {"avx512_bf16", features.avx512_bf16},
                      {"amx_int8", features.amx_int8},
                      {"amx_bf16", features.amx_bf16}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace headrace::machine
