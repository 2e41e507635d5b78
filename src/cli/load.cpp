#include "cli/load.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "cli/progress.hpp"

namespace headrace::cli {

kernels::Isa choose_isa(const std::optional<kernels::Isa>& wanted, std::span<const kernels::Isa> available, Log& log) {
  if (!wanted) {
    if (available.back() == kernels::Isa::portable) {
      log.warn(
          "this CPU has no instruction set that Headrace has fast kernels for (avx2 at least): using portable ones");
    }
    return available.back();
  }
  if (std::find(available.begin(), available.end(), *wanted) == available.end()) {
    fail<ResourceError>("--isa {}: this machine cannot run it; the best that it can is {}", kernels::isa_name(*wanted),
                        kernels::isa_name(available.back()));
  }
  return *wanted;
}

models::ModelFile open_model(const std::string& model, const Environment& environment) {
  return models::ModelFile(models::resolve_model(model, environment.cache));
}

std::unique_ptr<Context> make_context(const EngineFlags& flags, bool verbose) {
  ContextOptions options;
  options.threads = flags.threads;
  options.log_level = verbose ? LogLevel::info : LogLevel::warning;
  return Context::create(options);
}

run::EngineOptions engine_options(const models::ModelFile& file, const EngineFlags& flags, std::int64_t wanted,
                                  Log& log) {
  run::EngineOptions options;
  options.context = flags.context;
  options.wanted = wanted;
  options.kv = flags.kv;
  options.isa = choose_isa(flags.isa, kernels::available_isas(), log);
  return models::complete_options(file, options, log);
}

std::unique_ptr<run::Engine> load(const models::ModelFile& file, run::EngineOptions options, Context& context,
                                  Console& console) {
  Progress progress(console, "reading the weights");
  options.progress = [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); };
  return models::load_engine(file, std::move(options), context);
}

TraceFile::TraceFile(run::Engine& engine, std::string path) : engine_(engine), path_(std::move(path)) {
  if (path_.empty()) return;
  write_file(path_, "");
  trace_ = std::make_unique<run::Trace>(engine.context().threads().workers());
  engine_.set_trace(trace_.get());
}

TraceFile::~TraceFile() { engine_.set_trace(nullptr); }

void TraceFile::write() {
  if (trace_ != nullptr) trace_->write(path_);
}

}  // namespace headrace::cli
