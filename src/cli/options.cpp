#include "cli/options.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <map>

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

}  // namespace

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
  const auto read = [&value, minimum, maximum, expected, names](const CLI::results_t& results) {
    const std::optional<T> number = parse_number<T>(results.back());
    if (!number || *number < minimum || *number > maximum) {
      const std::string longest = names.substr(names.rfind(',') + 1);
      throw CLI::ValidationError(longest,
                                 fmt::format("expected {}, got {}", expected, headrace::quoted(results.back())));
    }
    value = *number;
    return true;
  };
  CLI::Option* option = app.add_option(names, read, description);
  option->type_name("N")->default_str(fmt::format("{}", value))->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return option;
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
  app.add_option("MODEL", model, "a GGUF file, a Hugging Face directory, or the name of a known model (smollm2)")
      ->required()
      ->type_name("");
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
  app.add_option_function<std::string>(
         "--isa",
         [&flags](const std::string& name) {
           for (const kernels::Isa isa : kernels::known_isas()) {
             if (kernels::isa_name(isa) == name) flags.isa = isa;
           }
           if (!flags.isa || kernels::isa_name(*flags.isa) != name) {
             throw CLI::ValidationError(
                 "--isa", fmt::format("expected one of {}, got {}", names_of_isas(), headrace::quoted(name)));
           }
         },
         fmt::format("kernels for this instruction set ({}); default: the best one", names_of_isas()))
      ->type_name("NAME");
}

void add_kv(CLI::App& app, EngineFlags& flags) {
  const std::map<std::string, kernels::KvEncoding> encodings = {
      {"f16", kernels::KvEncoding::f16}, {"bf16", kernels::KvEncoding::bf16}, {"q8_0", kernels::KvEncoding::q8_0}};
  app.add_option_function<std::string>(
         "--kv",
         [&flags, encodings](const std::string& name) {
           const auto place = encodings.find(name);
           if (place == encodings.end()) {
             throw CLI::ValidationError("--kv",
                                        fmt::format("expected one of f16, bf16, q8_0, got {}", headrace::quoted(name)));
           }
           flags.kv = place->second;
         },
         "how keys and values are held (f16, bf16, q8_0: half of f16's bytes); default: f16")
      ->type_name("NAME");
}

void add_engine_flags(CLI::App& app, EngineFlags& flags) {
  add_context(app, flags);
  add_kv(app, flags);
  add_threads(app, flags);
  add_isa(app, flags);
  app.add_option("--trace", flags.trace, "write what happened when to this file, for ui.perfetto.dev")
      ->type_name("FILE");
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

void add_json(CLI::App& app, bool& json) { app.add_flag("--json", json, "print one JSON object instead of text"); }

}  // namespace headrace::cli
