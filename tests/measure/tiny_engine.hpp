// A tiny random llama, loaded: what the tests of this folder measure.
#pragma once

#include <cstdint>
#include <memory>

#include "base/context.hpp"
#include "kernels/catalog.hpp"
#include "run/engine.hpp"
#include "run/tiny_model.hpp"

namespace headrace::measure {

/// Of q4_1 matrices, with the embedding as output too.
struct TinyEngine {
  explicit TinyEngine(std::int64_t rows = 8, std::int64_t sequences = 2, std::int64_t positions = 64) {
    ContextOptions options;
    options.threads = 1;
    options.memory_limit_bytes = std::uint64_t{256} << 20;
    context = Context::create(options);
    run::EngineOptions engine_options;
    engine_options.rows = rows;
    engine_options.wanted = sequences;
    engine_options.sequences = sequences;
    engine_options.context = positions;
    model = tiny.model({rows, sequences, sequences, positions});
    engine = run::Engine::create(model.program, tiny.store, engine_options, *context);
    catalog = kernels::make_catalog(engine_options.isa);
  }

  headrace::testing::TinyModel tiny{"q4_1", {}, 7};
  std::unique_ptr<Context> context;
  models::Model model;
  std::unique_ptr<run::Engine> engine;
  std::unique_ptr<compile::KernelCatalog> catalog;
};

}  // namespace headrace::measure
