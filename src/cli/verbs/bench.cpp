// headrace bench: how fast a model runs here, as shares of what this machine can give, and beside other runtimes.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/quote.hpp"
#include "cli/load.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/verb.hpp"
#include "kernels/kernels.hpp"
#include "machine/measure.hpp"
#include "measure/bench.hpp"
#include "measure/report.hpp"

namespace headrace::cli {

namespace {

/// Positions are i32 in Programs.
constexpr std::int64_t most_positions = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t most_sequences = 4096;
constexpr std::size_t longest_list = 64;

struct Options {
  std::string model;
  measure::TestChoice tests;
  std::int64_t context = 0;
  int repeats = 5;
  std::vector<std::string> peers;
  bool json = false;
  EngineFlags engine;
};

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

/// Adds an option that takes numbers in [minimum, maximum], separated by commas; each of them counts once.
void add_list(CLI::App& app, const std::string& name, std::vector<std::int64_t>& values, std::int64_t minimum,
              std::int64_t maximum, const std::string& description) {
  const auto read = [&values, minimum, maximum](const std::string& text) {
    values.clear();
    for (const std::string& item : split_list(text)) {
      const auto number = parse_number<std::int64_t>(item);
      if (!number || *number < minimum || *number > maximum || values.size() == longest_list) {
        return fmt::format("expected at most {} whole numbers from {} to {}, separated by commas, got {}", longest_list,
                           minimum, maximum, headrace::quoted(text));
      }
      if (std::find(values.begin(), values.end(), *number) == values.end()) values.push_back(*number);
    }
    return std::string();
  };
  add_option(app, name, "N,N", description, read, fmt::format("{}", fmt::join(values, ",")));
}

void add_peers(CLI::App& app, std::vector<std::string>& peers) {
  const auto read = [&peers](const std::string& text) {
    peers.clear();
    const auto known = measure::peer_names();
    for (const std::string& item : split_list(text)) {
      if (std::find(known.begin(), known.end(), item) == known.end()) {
        return fmt::format("expected names of {}, separated by commas, got {}", fmt::join(known, ", "),
                           headrace::quoted(text));
      }
      if (std::find(peers.begin(), peers.end(), item) == peers.end()) peers.push_back(item);
    }
    return std::string();
  };
  add_option(app, "--vs", "NAME,NAME",
             fmt::format("other runtimes that take turns ({}); scripts/bench_peers.sh builds them",
                         fmt::join(measure::peer_names(), ", ")),
             read);
}

std::vector<std::unique_ptr<measure::Peer>> start_peers(const Options& options, const models::ModelFile& file,
                                                        const measure::TestSizes& sizes, int threads,
                                                        Invocation& invocation) {
  std::vector<std::unique_ptr<measure::Peer>> peers;
  for (const std::string& name : options.peers) {
    peers.push_back(std::make_unique<measure::Peer>(
        name, invocation.environment.cache.folder(),
        measure::PeerOptions{
            .model = file.path(), .threads = threads, .sizes = sizes, .keep_stderr = invocation.verbose}));
  }
  return peers;
}

int run_bench(const Options& options, Invocation& invocation) {
  Console& console = invocation.console;
  const models::ModelFile file = open_model(options.model, invocation.environment);
  const std::int64_t trained = file.model({}).shape.context_length;
  const std::vector<measure::Test> tests =
      measure::choose_tests(options.tests, options.context > 0 ? options.context : trained);
  const measure::TestSizes sizes = measure::sizes_of(tests);
  for (const std::string& name : options.peers) (void)measure::find_peer(name, invocation.environment.cache.folder());
  const std::unique_ptr<Context> context = make_context(options.engine, invocation.verbose);
  EngineFlags flags = options.engine;
  flags.context = sizes.context;
  run::EngineOptions engine_flags = engine_options(file, flags, sizes.sequences, context->log());
  engine_flags.sequences = sizes.sequences;
  engine_flags.wanted = sizes.sequences;
  engine_flags.rows = std::max(engine_flags.rows, sizes.sequences);
  engine_flags.kv_positions = sizes.positions;

  measure::BenchReport report;
  report.model = file.path();
  report.isa = kernels::isa_name(engine_flags.isa);
  report.threads = context->threads().workers();
  const machine::Machine machine = machine::measure(*context);
  report.cpu_model = machine.cpu_model;
  report.rates = measure::rates_of(machine);
  const std::unique_ptr<run::Engine> engine = load(file, engine_flags, *context, console);
  const models::Model model =
      file.model({engine_flags.rows, engine_flags.wanted, engine_flags.sequences, engine_flags.context});
  const std::vector<std::unique_ptr<measure::Peer>> peers =
      start_peers(options, file, sizes, report.threads, invocation);
  for (const auto& peer : peers) report.peers.push_back({peer->name(), peer->version()});

  measure::BenchOptions bench_options;
  bench_options.repeats = options.repeats;
  bench_options.experts_used = model.shape.experts_used;
  std::string what = "benchmark";
  std::unique_ptr<Progress> progress;
  bench_options.on_progress = [&](std::string_view now, std::int64_t done, std::int64_t total) {
    if (progress == nullptr || what != now) progress = std::make_unique<Progress>(console, what = now);
    progress->update(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
  };
  measure::Bench bench(*engine, model.program, report.rates, peers, bench_options);
  for (const measure::Test& test : tests) report.results.push_back(bench.run(test));
  progress.reset();
  if (options.json) {
    console.write_json(measure::to_json(report));
  } else {
    console.write(measure::to_text(report));
  }
  return 0;
}

std::function<int(Invocation&)> declare(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_model(app, options->model);
  add_number<std::int64_t>(app, "--prompt-tokens", options->tests.prompt_tokens, 0, most_positions,
                           "tokens of the prompt of the prefill test; 0: no such test");
  add_number<std::int64_t>(app, "--tokens", options->tests.tokens, 0, most_positions,
                           "tokens that each sequence decodes in a run; 0: no such tests");
  add_list(app, "--depth", options->tests.depths, 0, most_positions,
           "positions that a sequence holds before it decodes");
  add_list(app, "--sequences", options->tests.sequences, 1, most_sequences, "sequences that decode together");
  add_number<int>(app, "--repeats", options->repeats, 1, 1000, "runs of each test, after one that is not counted");
  add_peers(app, options->peers);
  add_number<std::int64_t>(app, "-c,--context", options->context, 0, most_positions,
                           "positions that no test may exceed; 0: as many as the model was trained for");
  add_threads(app, options->engine);
  add_isa(app, options->engine);
  add_kv(app, options->engine);
  add_json(app, options->json);
  return [options](Invocation& invocation) { return run_bench(*options, invocation); };
}

}  // namespace

Verb verb_bench() {
  return {.name = "bench",
          .summary = "how fast a model runs here, and how much of what this machine can give that is",
          .details =
              "Tests prefill, and decode at every depth with every number of sequences, on random tokens. Rates are\n"
              "medians. The limit of a test is what reading its bytes (Weights as in the file, and KV) or computing\n"
              "its operations takes at least, at rates that plain loops reach in the same minute; share is of that.\n"
              "Outside is the share of a step in which no kernel runs. With --vs, other runtimes take turns with\n"
              "Headrace, run by run; ratio is to the best of them.\n"
              "",
          .example =
              "  headrace bench smollm2\n"
              "  headrace bench model.gguf --depth 0,8192 --sequences 1,4,16 --json\n"
              "  headrace bench model.gguf --vs llama.cpp",
          .declare = declare};
}

}  // namespace headrace::cli
