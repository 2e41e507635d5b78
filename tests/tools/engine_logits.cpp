// engine_logits MODEL ISA CLASS CHUNK BATCH KV: reads lines of token ids from stdin, and writes for each line its
// teacher-forced logits f32 [T, V] by the Engine to stdout. ISA: a name, or best; CLASS: prompt or generated; CHUNK:
// rows of one sequence in a step; BATCH: sequences that step together; KV: how keys and values are held.
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

struct Sequence {
  std::vector<run::TokenId> tokens;
  std::vector<float> logits;
};

/// Feeds all sequences to their ends, each with up to `chunk` rows a step.
void feed(run::Engine& engine, std::span<Sequence> sequences, run::TokenClass token_class, std::int64_t chunk) {
  std::vector<run::Session> sessions;
  for (std::size_t i = 0; i < sequences.size(); ++i) sessions.push_back(engine.open());
  while (true) {
    std::vector<run::StepEntry> entries;
    std::vector<Sequence*> owners;
    std::vector<std::int64_t> rows(static_cast<std::size_t>(chunk));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const auto begin = static_cast<std::size_t>(sessions[i].length());
      const std::size_t count = std::min(rows.size(), sequences[i].tokens.size() - begin);
      if (count == 0) continue;
      entries.push_back({&sessions[i], std::span(sequences[i].tokens).subspan(begin, count), token_class,
                         std::span(rows).first(count)});
      owners.push_back(&sequences[i]);
    }
    if (entries.empty()) return;
    engine.step(entries);
    std::int64_t row = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      for (std::size_t t = 0; t < entries[i].tokens.size(); ++t, ++row) {
        const auto logits = engine.logits(row);
        owners[i]->logits.insert(owners[i]->logits.end(), logits.begin(), logits.end());
      }
      entries[i].session->commit();
    }
  }
}

void write_logits(const std::string& path, const std::string& isa_name, const std::string& class_name,
                  std::int64_t chunk, std::int64_t batch, const std::string& kv_name) {
  const models::ModelFile file(path);
  const auto context = Context::create({});
  run::EngineOptions options;
  options.rows = chunk * batch;
  options.wanted = chunk * batch;
  options.sequences = batch;
  options.context = 1024;
  bool found = false;
  for (const kernels::Isa isa : kernels::available_isas()) {
    if (isa_name != "best" && kernels::isa_name(isa) != isa_name) continue;
    options.isa = isa;
    found = true;
  }
  if (!found) fail<UsageError>("expected an ISA of this machine, got {}", isa_name);
  found = false;
  for (const auto kv : {kernels::KvEncoding::f16, kernels::KvEncoding::bf16, kernels::KvEncoding::q8_0}) {
    if (kernels::kv_encoding_name(kv) != kv_name) continue;
    options.kv = kv;
    found = true;
  }
  if (!found) fail<UsageError>("expected f16, bf16 or q8_0, got {}", kv_name);
  if (class_name != "prompt" && class_name != "generated") fail<UsageError>("expected a class, got {}", class_name);
  const auto token_class = class_name == "prompt" ? run::TokenClass::prompt : run::TokenClass::generated;
  const auto engine = models::load_engine(file, options, *context);
  std::vector<Sequence> sequences;
  const auto flush = [&] {
    feed(*engine, sequences, token_class, chunk);
    for (const Sequence& each : sequences) std::fwrite(each.logits.data(), sizeof(float), each.logits.size(), stdout);
    sequences.clear();
  };
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream stream(line);
    sequences.emplace_back();
    for (run::TokenId id = 0; stream >> id;) sequences.back().tokens.push_back(id);
    if (static_cast<std::int64_t>(sequences.size()) == batch) flush();
  }
  if (!sequences.empty()) flush();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fputs("usage: engine_logits MODEL ISA CLASS CHUNK BATCH KV < ids\n", stderr);
    return 2;
  }
  try {
    write_logits(argv[1], argv[2], argv[3], std::strtol(argv[4], nullptr, 10), std::strtol(argv[5], nullptr, 10),
                 argv[6]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  return 0;
}
