// A language model as people name it: its file, tokenizer, chat template, Program and Engine together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/context.hpp"
#include "compile/plan.hpp"
#include "models/checkpoint.hpp"
#include "models/family.hpp"
#include "run/engine.hpp"
#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace headrace::models {

/// Where the models that have names lie: HEADRACE_CACHE, or XDG_CACHE_HOME/headrace, or HOME/.cache/headrace, given
/// the values of these variables; the environment itself is read in cli/.
struct CacheLocation {
  std::string headrace_cache;
  std::string xdg_cache_home;
  std::string home;
  /// Throws InputError if none of them is set.
  [[nodiscard]] std::string folder() const;
};

/// The path of MODEL as the command line takes it: a known name ("smollm2") or a path. Throws InputError if a known
/// name's file is not there yet (saying which command fetches it), or if neither a file nor a known name.
std::string resolve_model(const std::string& model, const CacheLocation& cache);

/// A model's Checkpoint with everything that needs no weights.
class ModelFile {
 public:
  /// A file or a directory. Throws InputError.
  explicit ModelFile(const std::string& path) : checkpoint_(open_checkpoint(path)) {}

  [[nodiscard]] const std::string& path() const noexcept { return checkpoint_->path(); }
  [[nodiscard]] const Checkpoint& checkpoint() const noexcept { return *checkpoint_; }
  /// Made at the first use. Throws InputError if the file's tokenizer is not supported.
  [[nodiscard]] const text::Tokenizer& tokenizer() const;
  /// The file's own, if it has one.
  [[nodiscard]] const std::optional<text::ChatTemplate>& chat_template() const;
  /// The Program for steps of this size.
  [[nodiscard]] Model model(const StepLimits& limits) const { return build_model(*checkpoint_, limits); }
  /// The Weights' bytes; the ModelFile must outlive it.
  [[nodiscard]] std::unique_ptr<stream::WeightStore> store() const { return checkpoint_->store(); }

 private:
  std::unique_ptr<Checkpoint> checkpoint_;
  mutable std::unique_ptr<text::Tokenizer> tokenizer_;
  mutable std::optional<std::optional<text::ChatTemplate>> chat_template_;
};

/// The context that a model gets if nobody asks for another: its own, but not more than this.
inline constexpr std::int64_t default_context_limit = 4096;

/// `options` with what is left open settled for this model: its context if it is 0, and no more rows than positions.
/// Warns of a context that is longer than the model was trained for. Throws as ModelFile::model does.
run::EngineOptions complete_options(const ModelFile& file, run::EngineOptions options, Log& log);

/// The Plan that load_engine would make, with nothing loaded; `options` are completed, `memory_bytes` 0 is no limit.
/// Throws as ModelFile::model and compile::plan do.
compile::Plan plan_model(const ModelFile& file, const run::EngineOptions& options,
                         const compile::KernelCatalog& catalog, std::uint64_t memory_bytes);

/// Loads the model for running, with completed options. Throws as ModelFile::model and Engine::create do.
std::unique_ptr<run::Engine> load_engine(const ModelFile& file, run::EngineOptions options, Context& context);

}  // namespace headrace::models
