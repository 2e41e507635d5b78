// headrace info: what is in a model file, and what running it takes.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/load.hpp"
#include "cli/model_report.hpp"
#include "cli/options.hpp"
#include "cli/verb.hpp"
#include "compile/plan.hpp"
#include "ir/text.hpp"
#include "kernels/catalog.hpp"
#include "machine/measure.hpp"
#include "measure/work.hpp"

namespace headrace::cli {

namespace {

struct Options {
  std::string model;
  bool program = false;
  bool plan = false;
  bool json = false;
  EngineFlags engine;
};

/// The Plan's times are for a step in which one sequence decodes at the end of its context.
ir::Bindings decode_sizes(const run::EngineOptions& options) {
  return {{"T", 1}, {"S", 1}, {"B", 1}, {"P", options.context}};
}

int show(const Options& options, Invocation& invocation) {
  Console& console = invocation.console;
  const models::ModelFile file = open_model(options.model, invocation.environment);
  const std::unique_ptr<Context> context = make_context(options.engine, invocation.verbose);
  ModelReport report = report_of(file);
  std::optional<models::Model> model;
  std::optional<compile::Plan> plan;
  run::EngineOptions engine_flags;
  std::unique_ptr<compile::KernelCatalog> catalog;
  try {
    engine_flags = engine_options(file, options.engine, /*wanted=*/1, context->log());
    model = file.model({engine_flags.rows, engine_flags.wanted, engine_flags.sequences, engine_flags.context});
    report.shape = model->shape;
    catalog = kernels::make_catalog(engine_flags.isa);
    plan = models::plan_model(file, engine_flags, *catalog, /*memory_bytes=*/0);
    report.memory = memory_of(*plan);
    const measure::Work token = measure::step_work(model->program, *plan, *catalog, {}, model->shape.experts_used);
    report.memory->token_bytes = static_cast<std::int64_t>(token.weight_bytes);
  } catch (const InputError& error) {
    // A file that cannot be run still has a header to show, but no Program.
    if (options.program || options.plan) throw;
    report.reason = error.what();
  }
  const std::string program_text = options.program ? ir::print(model->program) : "";
  std::string plan_text;
  if (options.plan) {
    const machine::Machine machine = machine::estimate(*context, context->threads().workers());
    plan_text = compile::print_plan(*plan, *catalog, machine, decode_sizes(engine_flags));
  }
  if (options.json) {
    nlohmann::ordered_json json = to_json(report);
    if (options.program) json["program"] = program_text;
    if (options.plan) json["plan"] = plan_text;
    console.write_json(json);
  } else if (options.program || options.plan) {
    console.write(program_text + plan_text);
  } else {
    console.write(to_text(report));
  }
  return 0;
}

std::function<int(Invocation&)> declare(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_model(app, options->model);
  add_flag(app, "--program", "print the Program in its text form", options->program);
  add_flag(app, "--plan", "print the Plan, with predicted times of decoding at the end of the context", options->plan);
  add_context(app, options->engine);
  add_threads(app, options->engine);
  add_isa(app, options->engine);
  add_kv(app, options->engine);
  add_json(app, options->json);
  return [options](Invocation& invocation) { return show(*options, invocation); };
}

}  // namespace

Verb verb_info() {
  return {.name = "info",
          .summary = "what is in a model file, and what running it takes",
          .details = "Reads the header only. Memory is that of one sequence with a context of -c positions.\n",
          .example =
              "  headrace info smollm2\n"
              "  headrace info model.gguf -c 32768 --kv q8_0 --json\n"
              "  headrace info smollm2 --program",
          .declare = declare};
}

}  // namespace headrace::cli
