// From the options of a verb to a model that runs: its file, a Context, an Engine, with progress on a terminal.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/context.hpp"
#include "cli/options.hpp"
#include "cli/verb.hpp"
#include "kernels/kernels.hpp"
#include "models/language_model.hpp"
#include "run/engine.hpp"
#include "run/trace.hpp"

namespace headrace::cli {

/// Throws as resolve_model and ModelFile do.
models::ModelFile open_model(const std::string& model, const Environment& environment);

/// `wanted`, or the fastest of `available` (portable first); that this is no more than portable is said. Throws
/// ResourceError if this machine cannot run `wanted`.
kernels::Isa choose_isa(const std::optional<kernels::Isa>& wanted, std::span<const kernels::Isa> available, Log& log);

std::unique_ptr<Context> make_context(const EngineFlags& flags, bool verbose);

/// The flags as options for this model. `wanted`: rows of a step whose logits are wanted, at most. Throws ResourceError
/// if this machine cannot run the ISA.
run::EngineOptions engine_options(const models::ModelFile& file, const EngineFlags& flags, std::int64_t wanted,
                                  Log& log);

/// Loads the weights.
std::unique_ptr<run::Engine> load(const models::ModelFile& file, run::EngineOptions options, Context& context,
                                  Console& console);

/// Records the steps of an Engine while it lives, if a path was given.
class TraceFile {
 public:
  /// Throws ResourceError if `path` cannot be written, before anything is computed for it.
  TraceFile(run::Engine& engine, std::string path);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  /// Throws ResourceError.
  void write();

 private:
  run::Engine& engine_;
  std::string path_;
  std::unique_ptr<run::Trace> trace_;
};

}  // namespace headrace::cli
