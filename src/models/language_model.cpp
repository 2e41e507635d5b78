#include "models/language_model.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/quote.hpp"
#include "run/engine_limits.hpp"

namespace headrace::models {

namespace {

/// A model that has a name, and what fetches its file.
struct NamedModel {
  std::string_view name;
  std::string_view file;  ///< below the cache's folder
  std::string_view fetch;
};

constexpr std::array named_models = {
    NamedModel{"smollm2", "models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "scripts/fetch_model.sh"},
};

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// The literal text of a special token, or "" where the vocabulary has none.
std::string token_text(const text::Tokenizer& tokenizer, std::optional<text::TokenId> id) {
  return id ? std::string(tokenizer.token_bytes(*id)) : std::string();
}

}  // namespace

std::string CacheLocation::folder() const {
  if (!headrace_cache.empty()) return headrace_cache;
  if (!xdg_cache_home.empty()) return xdg_cache_home + "/headrace";
  if (!home.empty()) return home + "/.cache/headrace";
  throw InputError("the cache folder is unknown: expected HEADRACE_CACHE, XDG_CACHE_HOME or HOME to be set");
}

std::string resolve_model(const std::string& model, const CacheLocation& cache) {
  std::string names;
  for (const NamedModel& named : named_models) {
    if (model == named.name) {
      std::string path = cache.folder() + "/" + std::string(named.file);
      if (!exists(path)) fail<InputError>("{}: {} is not there yet; {} fetches it", model, path, named.fetch);
      return path;
    }
    names += (names.empty() ? "" : ", ") + std::string(named.name);
  }
  // What looks like a path is one, and opening it says what is wrong with it.
  if (!exists(model) && model.find('/') == std::string::npos && !model.ends_with(".gguf")) {
    fail<InputError>("{}: expected a model file or a name ({}), found no such file", headrace::quoted(model), names);
  }
  return model;
}

const text::Tokenizer& ModelFile::tokenizer() const {
  if (tokenizer_ == nullptr) tokenizer_ = std::make_unique<text::Tokenizer>(checkpoint_->vocabulary());
  return *tokenizer_;
}

const std::optional<text::ChatTemplate>& ModelFile::chat_template() const {
  if (!chat_template_) {
    std::optional<text::ChatTemplate> parsed;
    if (const std::optional<std::string> source = checkpoint_->chat_template()) {
      parsed.emplace(*source, token_text(tokenizer(), tokenizer().bos()), token_text(tokenizer(), tokenizer().eos()));
    }
    chat_template_ = std::move(parsed);
  }
  return *chat_template_;
}

run::EngineOptions complete_options(const ModelFile& file, run::EngineOptions options, Log& log) {
  const std::int64_t trained = file.model({}).shape.context_length;
  if (options.context == 0) options.context = std::min(trained, default_context_limit);
  if (options.context > trained) {
    log.warn("{}: the model was trained for {} positions; beyond them its text may break down", file.path(), trained);
  }
  // A step never has more rows than all its sequences have positions.
  const std::optional<std::int64_t> positions = checked_mul(options.context, options.sequences);
  if (positions) options.rows = std::min(options.rows, *positions);
  options.wanted = std::min(options.wanted, options.rows);
  return options;
}

compile::Plan plan_model(const ModelFile& file, const run::EngineOptions& options,
                         const compile::KernelCatalog& catalog, std::uint64_t memory_bytes) {
  const Model model = file.model({options.rows, options.wanted, options.sequences, options.context});
  return compile::plan(model.program, catalog, run::engine_limits(options, catalog, memory_bytes), {});
}

std::unique_ptr<run::Engine> load_engine(const ModelFile& file, run::EngineOptions options, Context& context) {
  options = complete_options(file, std::move(options), context.log());
  const Model model = file.model({options.rows, options.wanted, options.sequences, options.context});
  return run::Engine::create(model.program, *file.store(), options, context);
}

}  // namespace headrace::models
