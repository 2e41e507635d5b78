// The time model, and what a Machine must fulfil.
#include "machine/machine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.hpp"

namespace headrace::machine {

namespace {

void check_rate(double rate, bool may_be_zero, std::string_view where, std::string_view field) {
  if (std::isfinite(rate) && (rate > 0 || (may_be_zero && rate == 0))) return;
  fail<InputError>("{}: {}: expected a {} number, found {}", where, field, may_be_zero ? "non-negative" : "positive",
                   rate);
}

void check_name(const std::string& name, std::set<std::string>& names, std::string_view where, std::string_view field) {
  if (name.empty()) fail<InputError>("{}: {}: expected a name, found \"\"", where, field);
  if (!names.insert(name).second) fail<InputError>("{}: {}: \"{}\" is there twice", where, field, name);
}

double compute_time(const ComputeUnit& unit, const OpCost& cost) {
  const double bf16_rate = unit.bf16_flops_per_s > 0 ? unit.bf16_flops_per_s : unit.f32_flops_per_s;
  return cost.int8_ops / unit.int8_ops_per_s + cost.bf16_flops / bf16_rate + cost.f32_flops / unit.f32_flops_per_s;
}

}  // namespace

const Memory& Machine::ram() const {
  const auto found =
      std::find_if(memories.begin(), memories.end(), [](const Memory& m) { return m.kind == MemoryKind::ram; });
  require(found != memories.end(), "Machine: no ram");
  return *found;
}

OpTime predicted_time(const Machine& machine, const OpCost& cost) {
  require(!machine.compute_units.empty(), "predicted_time: the Machine has no compute unit");
  double read_rate = machine.ram().read_bytes_per_s;
  for (const Memory& memory : machine.memories) {
    if (memory.kind == MemoryKind::cache && cost.working_set_bytes != 0 &&
        memory.capacity_bytes >= cost.working_set_bytes) {
      read_rate = std::max(read_rate, memory.read_bytes_per_s);
    }
  }
  OpTime time;
  time.memory_s = cost.bytes_read / read_rate;
  time.compute_s = std::numeric_limits<double>::infinity();
  for (const ComputeUnit& unit : machine.compute_units)
    time.compute_s = std::min(time.compute_s, compute_time(unit, cost));
  return time;
}

std::string_view name_of(MemoryKind kind) noexcept {
  switch (kind) {
    case MemoryKind::cache:
      return "cache";
    case MemoryKind::ram:
      return "ram";
    case MemoryKind::disk:
      break;
  }
  return "disk";
}

std::string_view name_of(RateSource source) noexcept {
  switch (source) {
    case RateSource::measured:
      return "measured";
    case RateSource::published:
      return "published";
    case RateSource::estimated:
      break;
  }
  return "estimated";
}

void validate(const Machine& machine, std::string_view where) {
  std::set<std::string> names;
  if (machine.name.empty()) fail<InputError>("{}: name: expected a name, found \"\"", where);
  if (machine.cores < 1) fail<InputError>("{}: cores: expected at least 1, found {}", where, machine.cores);
  if (machine.threads < 1) fail<InputError>("{}: threads: expected at least 1, found {}", where, machine.threads);
  std::size_t rams = 0;
  for (std::size_t i = 0; i < machine.memories.size(); ++i) {
    const Memory& memory = machine.memories[i];
    const std::string field = fmt::format("memories[{}]", i);
    check_name(memory.name, names, where, field + ".name");
    if (memory.capacity_bytes == 0) fail<InputError>("{}: {}.capacity_bytes: expected more than 0", where, field);
    check_rate(memory.read_bytes_per_s, false, where, field + ".read_bytes_per_s");
    rams += memory.kind == MemoryKind::ram;
  }
  if (rams != 1) fail<InputError>("{}: memories: expected exactly one of kind ram, found {}", where, rams);
  if (machine.compute_units.empty()) fail<InputError>("{}: compute_units: expected at least one, found none", where);
  for (std::size_t i = 0; i < machine.compute_units.size(); ++i) {
    const ComputeUnit& unit = machine.compute_units[i];
    const std::string field = fmt::format("compute_units[{}]", i);
    check_name(unit.name, names, where, field + ".name");
    check_rate(unit.f32_flops_per_s, false, where, field + ".f32_flops_per_s");
    check_rate(unit.int8_ops_per_s, false, where, field + ".int8_ops_per_s");
    check_rate(unit.bf16_flops_per_s, true, where, field + ".bf16_flops_per_s");
  }
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    const Link& link = machine.links[i];
    const std::string field = fmt::format("links[{}]", i);
    for (const auto& [key, name] : {std::pair{"from", &link.from}, std::pair{"to", &link.to}}) {
      if (names.count(*name) != 0) continue;
      fail<InputError>("{}: {}.{}: expected the name of a memory or a compute unit, found \"{}\"", where, field, key,
                       *name);
    }
    check_rate(link.bytes_per_s, false, where, field + ".bytes_per_s");
    check_rate(link.latency_s, true, where, field + ".latency_s");
  }
}

}  // namespace headrace::machine
