// headrace perplexity: how well a model predicts a text, teacher-forced.
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/quote.hpp"
#include "cli/load.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/verb.hpp"
#include "run/score.hpp"

namespace headrace::cli {

namespace {

constexpr std::uint64_t text_limit_bytes = std::uint64_t{1} << 30;

/// Logits are large: V floats a row.
constexpr std::int64_t scored_rows = 64;

struct Options {
  std::string model;
  std::string file;
  std::string token_class = "prompt";
  bool json = false;
  EngineFlags engine;
};

/// Cuts `ids` into consecutive windows that fill the context, each begun with BOS if the vocabulary wants it. A rest
/// without a token to score is left out.
std::vector<std::vector<text::TokenId>> cut_windows(std::span<const text::TokenId> ids,
                                                    const text::Tokenizer& tokenizer, std::int64_t context) {
  std::vector<text::TokenId> head;
  if (tokenizer.adds_bos() && tokenizer.bos()) head.push_back(*tokenizer.bos());
  const auto room = static_cast<std::size_t>(context) - head.size();
  std::vector<std::vector<text::TokenId>> windows;
  for (std::size_t begin = 0; begin < ids.size(); begin += room) {
    const auto part = ids.subspan(begin, std::min(room, ids.size() - begin));
    std::vector<text::TokenId> window = head;
    window.insert(window.end(), part.begin(), part.end());
    if (window.size() >= 2) windows.push_back(std::move(window));
  }
  return windows;
}

int measure_perplexity(const Options& options, Invocation& invocation) {
  Console& console = invocation.console;
  const models::ModelFile file = open_model(options.model, invocation.environment);
  const std::string text = read_text(options.file, text_limit_bytes);
  const std::vector<text::TokenId> ids = file.tokenizer().encode(text, {.add_special = false, .parse_special = true});
  const std::unique_ptr<Context> context = make_context(options.engine, invocation.verbose);
  const run::EngineOptions engine_flags = engine_options(file, options.engine, scored_rows, context->log());
  if (engine_flags.context < 2) throw UsageError("--context: expected at least 2 positions, got 1");
  const auto windows = cut_windows(ids, file.tokenizer(), engine_flags.context);
  if (windows.empty()) {
    fail<InputError>("{}: expected a text of at least 2 tokens, found {}",
                     options.file == "-" ? "standard input" : options.file, ids.size());
  }
  const std::unique_ptr<run::Engine> engine = load(file, engine_flags, *context, console);
  TraceFile trace(*engine, options.engine.trace);

  Progress progress(console, "scoring");
  run::ScoreOptions score;
  score.token_class = options.token_class == "prompt" ? run::TokenClass::prompt : run::TokenClass::generated;
  double sum = 0;
  std::int64_t scored = 0;
  std::uint64_t read = 0;
  score.on_progress = [&](std::int64_t done, std::int64_t) {
    progress.update(read + static_cast<std::uint64_t>(done), ids.size());
  };
  for (const std::vector<text::TokenId>& window : windows) {
    const std::vector<double> values = run::log_likelihoods(*engine, window, score);
    sum = std::accumulate(values.begin(), values.end(), sum);
    scored += std::ssize(values);
    read += window.size();
  }
  progress.finish();
  const double mean = sum / static_cast<double>(scored);
  const double perplexity = std::exp(-mean);
  if (options.json) {
    console.write_json({{"perplexity", perplexity},
                        {"mean_log_likelihood", mean},
                        {"tokens", ids.size()},
                        {"scored_tokens", scored},
                        {"windows", windows.size()},
                        {"context", engine_flags.context},
                        {"class", options.token_class}});
  } else {
    console.write(
        fmt::format("perplexity           {:.4f}\n"
                    "mean log-likelihood  {:.6f} nats a token\n"
                    "tokens               {}, of which {} are scored, in {} window{} of at most {}\n"
                    "class                {}\n",
                    perplexity, mean, ids.size(), scored, windows.size(), windows.size() == 1 ? "" : "s",
                    engine_flags.context, options.token_class));
  }
  trace.write();
  return 0;
}

std::function<int(Invocation&)> declare(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_model(app, options->model);
  add_argument(app, "FILE", "the text; - is standard input", options->file);
  add_option(
      app, "--class", "NAME", "the arithmetic to score: prompt or generated",
      [options = options.get()](const std::string& name) {
        if (name != "prompt" && name != "generated") {
          return fmt::format("expected prompt or generated, got {}", headrace::quoted(name));
        }
        options->token_class = name;
        return std::string();
      },
      options->token_class);
  add_engine_flags(app, options->engine);
  add_json(app, options->json);
  return [options](Invocation& invocation) { return measure_perplexity(*options, invocation); };
}

}  // namespace

Verb verb_perplexity() {
  return {
      .name = "perplexity",
      .summary = "how well a model predicts a text",
      .details =
          "The text becomes tokens as by the verb tokenize. They are cut into consecutive windows of the context "
          "(-c),\n"
          "each begun anew, with BOS if the vocabulary wants one. Every token is scored given those before it in its\n"
          "window; a window's first token is not scored. Perplexity is exp(-mean log-likelihood).\n"
          "",
      .example =
          "  headrace perplexity smollm2 text.txt\n"
          "  headrace perplexity model.gguf text.txt -c 512 --class generated --json",
      .declare = declare};
}

}  // namespace headrace::cli
