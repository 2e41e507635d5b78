// Options that several verbs share, and the ways in which a verb adds its own. They hide CLI11, whose header takes
// longer to compile than any verb.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "kernels/kernels.hpp"
#include "text/sampler.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace headrace::cli {

/// Takes what stands behind an option's name; returns what is wrong with it, "expected …, got …", or nothing.
using ReadOption = std::function<std::string(const std::string& text)>;

/// Adds an option that `read` takes. `value_name` and `default_text` are what --help shows; the latter may be empty.
CLI::Option* add_option(CLI::App& app, const std::string& names, const std::string& value_name,
                        const std::string& description, ReadOption read, const std::string& default_text = {});
/// The same for a text; a default that is not empty is shown.
CLI::Option* add_text(CLI::App& app, const std::string& names, const std::string& value_name,
                      const std::string& description, std::string& value);
CLI::Option* add_text(CLI::App& app, const std::string& names, const std::string& value_name,
                      const std::string& description, std::optional<std::string>& value);
CLI::Option* add_flag(CLI::App& app, const std::string& name, const std::string& description, bool& value);
/// Adds a word that must stand behind the verb.
void add_argument(CLI::App& app, const std::string& name, const std::string& description, std::string& value);
void set_required(CLI::Option* option);
/// Refuses a command line that has both.
void exclude(CLI::Option* option, CLI::Option* other);

/// A number of a command line, all of `text`. Nothing if it is none or does not fit T.
template <class T>
std::optional<T> parse_number(const std::string& text);

/// Adds an option that takes a number in [minimum, maximum]; others are refused as "expected …, got …".
template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& names, T& value, T minimum, T maximum,
                        const std::string& description);

/// MODEL, which every verb but doctor begins with.
void add_model(CLI::App& app, std::string& model);

/// How a model is run.
struct EngineFlags {
  std::int64_t context = 0;  ///< 0: the model's own, at most 4096
  int threads = 0;           ///< 0: as many as this process may use
  std::optional<kernels::Isa> isa;
  kernels::KvEncoding kv = kernels::KvEncoding::f16;
  std::string trace;  ///< path, or empty
};
void add_context(CLI::App& app, EngineFlags& flags);
void add_threads(CLI::App& app, EngineFlags& flags);
void add_isa(CLI::App& app, EngineFlags& flags);
void add_kv(CLI::App& app, EngineFlags& flags);
/// All of them.
void add_engine_flags(CLI::App& app, EngineFlags& flags);

/// How tokens are chosen, and how many.
struct SamplingFlags {
  text::SamplerParams sampler = {.temperature = 0};  ///< greedy unless asked for: the same command, the same text
  std::int64_t max_tokens = 512;
};
void add_sampling_flags(CLI::App& app, SamplingFlags& flags);

/// --json
void add_json(CLI::App& app, bool& json);

}  // namespace headrace::cli
