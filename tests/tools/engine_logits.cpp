// engine_logits MODEL ISA CLASS CHUNK: reads lines of token ids from stdin, and writes for each line its teacher-forced
// logits f32 [T, V] by the Engine to stdout. CLASS: prompt or generated; CHUNK: rows of a step.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "base/context.hpp"
#include "base/error.hpp"
#include "models/language_model.hpp"
#include "run/engine.hpp"

namespace {

using namespace headrace;  // a program of one file

void write_logits(const std::string& path, const std::string& isa_name, const std::string& class_name, std::int64_t chunk) {
  const models::ModelFile file(path);
  const auto context = Context::create({});
  run::EngineOptions options;
  options.rows = chunk;
  options.wanted = chunk;
  options.context = 2048;
  for (const kernels::Isa isa : kernels::available_isas()) {
    if (isa_name == "best" || kernels::isa_name(isa) == isa_name) options.isa = isa;
  }
  if (class_name != "prompt" && class_name != "generated") fail<UsageError>("expected a class, got {}", class_name);
  const auto token_class = class_name == "prompt" ? run::TokenClass::prompt : run::TokenClass::generated;
  const auto engine = models::load_engine(file, options, *context);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream stream(line);
    std::vector<run::TokenId> tokens;
    for (run::TokenId id = 0; stream >> id;) tokens.push_back(id);
    run::Session session = engine->open();
    for (std::size_t begin = 0; begin < tokens.size(); begin += static_cast<std::size_t>(chunk)) {
      const std::size_t count = std::min(static_cast<std::size_t>(chunk), tokens.size() - begin);
      std::vector<std::int64_t> wanted;
      for (std::size_t i = 0; i < count; ++i) wanted.push_back(static_cast<std::int64_t>(i));
      const run::StepEntry entry{&session, std::span(tokens).subspan(begin, count), token_class, wanted};
      engine->step(std::span(&entry, 1));
      for (std::size_t i = 0; i < count; ++i) {
        const auto row = engine->logits(static_cast<std::int64_t>(i));
        std::fwrite(row.data(), sizeof(float), row.size(), stdout);
      }
      session.commit();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: engine_logits MODEL ISA CLASS CHUNK < ids\n", stderr);
    return 2;
  }
  try {
    write_logits(argv[1], argv[2], argv[3], std::strtol(argv[4], nullptr, 10));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  return 0;
}
