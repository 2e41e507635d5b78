// Machine files: one JSON object with "format": "headrace-machine-1" and the fields of Machine by their names.
#include <initializer_list>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "machine/machine.hpp"

namespace headrace::machine {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "headrace-machine-1";
constexpr std::uint64_t kFileLimitBytes = 1u << 20;
constexpr std::size_t kNameLimit = 200;

// A JSON object whose fields are all taken by name; what is left over at the end is unknown, and refused.
class Fields {
 public:
  Fields(const Json& json, std::string where, std::string prefix)
      : json_(json), where_(std::move(where)), prefix_(std::move(prefix)) {
    if (!json.is_object()) refuse(prefix_, "an object", json);
  }

  const Json& take(const std::string& key) {
    const auto found = json_.find(key);
    if (found == json_.end()) fail<InputError>("{}: {}: expected this field, found none", where_, path(key));
    taken_.push_back(key);
    return *found;
  }

  std::string text(const std::string& key) {
    const Json& value = take(key);
    if (!value.is_string()) refuse(path(key), "a string", value);
    const auto& result = value.get_ref<const std::string&>();
    if (result.size() > kNameLimit) {
      fail<InputError>("{}: {}: expected at most {} bytes, found {}", where_, path(key), kNameLimit, result.size());
    }
    return result;
  }

  double number(const std::string& key) {
    const Json& value = take(key);
    if (!value.is_number()) refuse(path(key), "a number", value);
    return value.get<double>();
  }

  std::uint64_t whole(const std::string& key, std::uint64_t most) {
    const Json& value = take(key);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
      refuse(path(key), fmt::format("a whole number from 0 to {}", most), value);
    }
    return value.get<std::uint64_t>();
  }

  template <class Enum>
  Enum choice(const std::string& key, std::initializer_list<Enum> values) {
    const Json& value = take(key);
    std::string names;
    for (const Enum candidate : values) {
      if (value.is_string() && value.get_ref<const std::string&>() == name_of(candidate)) return candidate;
      names += (names.empty() ? "" : ", ") + std::string(name_of(candidate));
    }
    refuse(path(key), "one of " + names, value);
  }

  // Calls `read(Fields&)` for each object of the array `key`.
  template <class F>
  void each(const std::string& key, F&& read) {
    const Json& array = take(key);
    if (!array.is_array()) refuse(path(key), "an array", array);
    for (std::size_t i = 0; i < array.size(); ++i) {
      Fields fields(array[i], where_, fmt::format("{}[{}]", path(key), i));
      read(fields);
      fields.finish();
    }
  }

  void finish() const {
    for (const auto& item : json_.items()) {
      if (std::find(taken_.begin(), taken_.end(), item.key()) != taken_.end()) continue;
      fail<InputError>("{}: unknown field {}", where_,
                       Json(path(item.key().substr(0, kNameLimit))).dump(-1, ' ', true));
    }
  }

 private:
  [[nodiscard]] std::string path(const std::string& key) const { return prefix_.empty() ? key : prefix_ + "." + key; }

  [[noreturn]] void refuse(const std::string& field, std::string_view expected, const Json& found) const {
    // A whole array or object would not be one plain line, and could be long.
    const std::string what = found.is_structured() ? std::string("an ") + found.type_name() : found.dump(-1, ' ', true);
    fail<InputError>("{}: {}: expected {}, found {}", where_, field.empty() ? "the file" : field, expected,
                     what.substr(0, 80));
  }

  const Json& json_;
  std::string where_;
  std::string prefix_;
  std::vector<std::string> taken_;
};

Memory read_memory(Fields& fields) {
  Memory memory;
  memory.name = fields.text("name");
  memory.kind = fields.choice("kind", {MemoryKind::cache, MemoryKind::ram, MemoryKind::disk});
  memory.capacity_bytes = fields.whole("capacity_bytes", UINT64_MAX);
  memory.read_bytes_per_s = fields.number("read_bytes_per_s");
  return memory;
}

ComputeUnit read_unit(Fields& fields) {
  ComputeUnit unit;
  unit.name = fields.text("name");
  unit.isa = fields.text("isa");
  unit.f32_flops_per_s = fields.number("f32_flops_per_s");
  unit.int8_ops_per_s = fields.number("int8_ops_per_s");
  unit.bf16_flops_per_s = fields.number("bf16_flops_per_s");
  return unit;
}

Link read_link(Fields& fields) {
  Link link;
  link.from = fields.text("from");
  link.to = fields.text("to");
  link.bytes_per_s = fields.number("bytes_per_s");
  link.latency_s = fields.number("latency_s");
  return link;
}

Json parse(std::string_view text, std::string_view where) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    fail<InputError>("{}: not JSON at offset {}", where, error.byte == 0 ? 0 : error.byte - 1);
  } catch (const Json::exception& error) {
    fail<InputError>("{}: not JSON: a number is out of range", where);
  }
}

}  // namespace

Machine machine_from_json(std::string_view text, std::string_view where) {
  const Json json = parse(text, where);
  Fields fields(json, std::string(where), "");
  if (const std::string format = fields.text("format"); format != kFormat) {
    fail<InputError>("{}: format: expected \"{}\", found {}", where, kFormat, Json(format).dump(-1, ' ', true));
  }
  constexpr std::uint64_t kCountLimit = 1u << 20;
  Machine machine;
  machine.name = fields.text("name");
  machine.rates = fields.choice("rates", {RateSource::measured, RateSource::published, RateSource::estimated});
  machine.cpu_model = fields.text("cpu_model");
  machine.cores = static_cast<int>(fields.whole("cores", kCountLimit));
  machine.threads = static_cast<int>(fields.whole("threads", kCountLimit));
  machine.isa = fields.text("isa");
  fields.each("memories", [&](Fields& memory) { machine.memories.push_back(read_memory(memory)); });
  fields.each("compute_units", [&](Fields& unit) { machine.compute_units.push_back(read_unit(unit)); });
  fields.each("links", [&](Fields& link) { machine.links.push_back(read_link(link)); });
  fields.finish();
  validate(machine, where);
  return machine;
}

Machine read_machine(const std::string& path) { return machine_from_json(read_text(path, kFileLimitBytes), path); }

std::string machine_to_json(const Machine& machine) {
  Json json;
  json["format"] = kFormat;
  json["name"] = machine.name;
  json["rates"] = name_of(machine.rates);
  json["cpu_model"] = machine.cpu_model;
  json["cores"] = machine.cores;
  json["threads"] = machine.threads;
  json["isa"] = machine.isa;
  json["memories"] = Json::array();
  for (const Memory& memory : machine.memories) {
    json["memories"].push_back({{"name", memory.name},
                                {"kind", name_of(memory.kind)},
                                {"capacity_bytes", memory.capacity_bytes},
                                {"read_bytes_per_s", memory.read_bytes_per_s}});
  }
  json["compute_units"] = Json::array();
  for (const ComputeUnit& unit : machine.compute_units) {
    json["compute_units"].push_back({{"name", unit.name},
                                     {"isa", unit.isa},
                                     {"f32_flops_per_s", unit.f32_flops_per_s},
                                     {"int8_ops_per_s", unit.int8_ops_per_s},
                                     {"bf16_flops_per_s", unit.bf16_flops_per_s}});
  }
  json["links"] = Json::array();
  for (const Link& link : machine.links) {
    json["links"].push_back(
        {{"from", link.from}, {"to", link.to}, {"bytes_per_s", link.bytes_per_s}, {"latency_s", link.latency_s}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_machine(const Machine& machine, const std::string& path) { write_file(path, machine_to_json(machine)); }

}  // namespace headrace::machine
