#include "cli/options.hpp"

#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/quote.hpp"
#include "models/language_model.hpp"

namespace headrace::cli {

namespace {

/// Positions are i32 in Programs.
constexpr std::int64_t largest_context = std::numeric_limits<std::int32_t>::max();

std::string names_of_isas() {
  std::string names;
  for (const kernels::Isa isa : kernels::known_isas()) {
    names += (names.empty() ? "" : ", ") + std::string(kernels::isa_name(isa));
  }
  return names;
}

/// The name that errors give: the last, which is the longest.
std::string shown_name(const std::string& names) { return names.substr(names.rfind(',') + 1); }

}  // namespace

CLI::Option* add_option(CLI::App& app, const std::string& names, const std::string& value_name,
                        const std::string& description, ReadOption read, const std::string& default_text) {
  CLI::Option* option = app.add_option(
      names,
      [read = std::move(read), name = shown_name(names)](const CLI::results_t& results) {
        if (const std::string fault = read(results.back()); !fault.empty()) throw CLI::ValidationError(name, fault);
        return true;
      },
      description);
  option->type_name(value_name)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  if (!default_text.empty()) option->default_str(default_text);
  return option;
}

CLI::Option* add_text(CLI::App& app, const std::string& names, const std::string& value_name,
                      const std::string& description, std::string& value) {
  const auto read = [&value](const std::string& text) {
    value = text;
    return std::string();
  };
  return add_option(app, names, value_name, description, read, value);
}

CLI::Option* add_text(CLI::App& app, const std::string& names, const std::string& value_name,
                      const std::string& description, std::optional<std::string>& value) {
  const auto read = [&value](const std::string& text) {
    value = text;
    return std::string();
  };
  return add_option(app, names, value_name, description, read);
}

CLI::Option* add_flag(CLI::App& app, const std::string& name, const std::string& description, bool& value) {
  return app.add_flag(name, value, description);
}

void add_argument(CLI::App& app, const std::string& name, const std::string& description, std::string& value) {
  app.add_option(name, value, description)->required()->type_name("");
}

void set_required(CLI::Option* option) { option->required(); }

void exclude(CLI::Option* option, CLI::Option* other) { option->excludes(other); }

template <class T>
std::optional<T> parse_number(const std::string& text) {
  T value{};
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') ++begin;
  const auto [rest, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || rest != end) return std::nullopt;
  if constexpr (std::floating_point<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& names, T& value, T minimum, T maximum,
                        const std::string& description) {
  const std::string expected =
      maximum == std::numeric_limits<T>::max()
          ? fmt::format("{} of at least {}", std::integral<T> ? "a whole number" : "a number", minimum)
          : fmt::format("{} from {} to {}", std::integral<T> ? "a whole number" : "a number", minimum, maximum);
  const auto read = [&value, minimum, maximum, expected](const std::string& text) {
    const std::optional<T> number = parse_number<T>(text);
    if (!number || *number < minimum || *number > maximum) {
      return fmt::format("expected {}, got {}", expected, headrace::quoted(text));
    }
    value = *number;
    return std::string();
  };
  return add_option(app, names, "N", description, read, fmt::format("{}", value));
}

template std::optional<int> parse_number(const std::string&);
template std::optional<std::int64_t> parse_number(const std::string&);
template std::optional<std::uint64_t> parse_number(const std::string&);
template std::optional<double> parse_number(const std::string&);

template CLI::Option* add_number(CLI::App&, const std::string&, int&, int, int, const std::string&);
template CLI::Option* add_number(CLI::App&, const std::string&, std::int64_t&, std::int64_t, std::int64_t,
                                 const std::string&);
template CLI::Option* add_number(CLI::App&, const std::string&, std::uint64_t&, std::uint64_t, std::uint64_t,
                                 const std::string&);
template CLI::Option* add_number(CLI::App&, const std::string&, double&, double, double, const std::string&);

void add_model(CLI::App& app, std::string& model) {
  add_argument(app, "MODEL", "a GGUF file, a Hugging Face directory, or the name of a known model (smollm2)", model);
}

void add_context(CLI::App& app, EngineFlags& flags) {
  add_number<std::int64_t>(
      app, "-c,--context", flags.context, 0, largest_context,
      fmt::format("positions of the context; 0: the model's own, at most {}", models::default_context_limit));
}

void add_threads(CLI::App& app, EngineFlags& flags) {
  add_number<int>(app, "--threads", flags.threads, 0, 1 << 20,
                  "threads that compute; 0: as many as this process may use");
}

void add_isa(CLI::App& app, EngineFlags& flags) {
  add_option(app, "--isa", "NAME",
             fmt::format("kernels for this instruction set ({}); default: the best one", names_of_isas()),
             [&flags](const std::string& name) {
               for (const kernels::Isa isa : kernels::known_isas()) {
                 if (kernels::isa_name(isa) != name) continue;
                 flags.isa = isa;
                 return std::string();
               }
               return fmt::format("expected one of {}, got {}", names_of_isas(), headrace::quoted(name));
             });
}

void add_kv(CLI::App& app, EngineFlags& flags) {
  const std::map<std::string, kernels::KvEncoding> encodings = {
      {"f16", kernels::KvEncoding::f16}, {"bf16", kernels::KvEncoding::bf16}, {"q8_0", kernels::KvEncoding::q8_0}};
  add_option(app, "--kv", "NAME", "how keys and values are held (f16, bf16, q8_0: half of f16's bytes); default: f16",
             [&flags, encodings](const std::string& name) {
               const auto place = encodings.find(name);
               if (place == encodings.end()) {
                 return fmt::format("expected one of f16, bf16, q8_0, got {}", headrace::quoted(name));
               }
               flags.kv = place->second;
               return std::string();
             });
}

void add_engine_flags(CLI::App& app, EngineFlags& flags) {
  add_context(app, flags);
  add_kv(app, flags);
  add_threads(app, flags);
  add_isa(app, flags);
  add_text(app, "--trace", "FILE", "write what happened when to this file, for ui.perfetto.dev", flags.trace);
}

void add_sampling_flags(CLI::App& app, SamplingFlags& flags) {
  text::SamplerParams& sampler = flags.sampler;
  add_number<std::int64_t>(app, "-n,--max-tokens", flags.max_tokens, 0, std::numeric_limits<std::int64_t>::max(),
                           "new tokens at most");
  add_number<double>(app, "--temp", sampler.temperature, 0, 1000, "temperature; 0: always the likeliest token");
  add_number<std::size_t>(app, "--top-k", sampler.top_k, 0, std::numeric_limits<std::size_t>::max(),
                          "choose among the K likeliest tokens; 0: all");
  add_number<double>(app, "--top-p", sampler.top_p, 0, 1,
                     "choose among the likeliest tokens that hold this probability");
  add_number<double>(app, "--min-p", sampler.min_p, 0, 1,
                     "choose among tokens with this share of the likeliest one's probability");
  add_number<double>(app, "--repeat-penalty", sampler.repetition_penalty, 0.01, 100,
                     "divide the odds of tokens that have occurred; 1: no penalty");
  add_number<std::uint64_t>(app, "--seed", sampler.seed, 0, std::numeric_limits<std::uint64_t>::max(),
                            "of the choice; the same seed gives the same text");
}

void add_json(CLI::App& app, bool& json) { add_flag(app, "--json", "print one JSON object instead of text", json); }

}  // namespace headrace::cli
