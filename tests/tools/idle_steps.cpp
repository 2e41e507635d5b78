// idle_steps MODEL STEPS: decodes STEPS tokens on one thread with kernels that do nothing, and prints the Plan's steps
// and barriers. Under callgrind with --instr-atstart=no only those decode steps are counted: what a step costs outside
// its kernels.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

#include <valgrind/callgrind.h>

#include "base/context.hpp"
#include "kernels/catalog.hpp"
#include "kernels/wrapped_catalog.hpp"
#include "models/language_model.hpp"
#include "run/engine.hpp"

namespace {

using namespace headrace;  // a program of one file

void run_steps(const std::string& path, long steps) {
  const models::ModelFile file(path);
  ContextOptions context_options;
  context_options.threads = 1;
  const auto context = Context::create(context_options);
  run::EngineOptions options;
  options.context = 1024;
  options.isa = kernels::available_isas().back();
  options = models::complete_options(file, options, context->log());
  const models::Model model = file.model({options.rows, options.wanted, options.sequences, options.context});
  const auto engine =
      run::Engine::create(model.program, *file.store(), options, *context,
                          std::make_unique<headrace::testing::IdleCatalog>(kernels::make_catalog(options.isa)));
  run::Session session = engine->open();
  const std::int64_t row = 0;
  const run::TokenId token = 1;
  const run::StepEntry entry{&session, {&token, 1}, run::TokenClass::generated, {&row, 1}};
  const auto step = [&] {
    engine->step({&entry, 1});
    session.commit();
  };
  step();  // the first one sets sizes
  CALLGRIND_START_INSTRUMENTATION;
  for (long i = 0; i < steps; ++i) step();
  CALLGRIND_STOP_INSTRUMENTATION;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: idle_steps MODEL STEPS\n", stderr);
    return 2;
  }
  try {
    run_steps(argv[1], std::strtol(argv[2], nullptr, 10));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  return 0;
}
