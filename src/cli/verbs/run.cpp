// headrace run: one prompt, one answer.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "cli/answer.hpp"
#include "cli/conversation.hpp"
#include "cli/interrupt.hpp"
#include "cli/load.hpp"
#include "cli/options.hpp"
#include "cli/peak_memory.hpp"
#include "cli/verb.hpp"

namespace headrace::cli {

namespace {

/// No context holds more text than this.
constexpr std::uint64_t prompt_limit_bytes = std::uint64_t{64} << 20;

struct Options {
  std::string model;
  std::optional<std::string> prompt;
  std::string file;
  std::string system;
  bool raw = false;
  bool json = false;
  EngineFlags engine;
  SamplingFlags sampling;
};

/// A file's text without the line end that editors and echo put behind it, so that it equals -p TEXT.
std::string read_prompt_file(const std::string& path) {
  std::string text = read_text(path, prompt_limit_bytes);
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

std::string read_prompt(const Options& options, const Console& console) {
  if (options.prompt) return *options.prompt;
  if (!options.file.empty()) return read_prompt_file(options.file);
  if (console.in_is_terminal()) throw UsageError("expected a prompt: -p TEXT, -f FILE, or standard input");
  std::string text = read_prompt_file("-");
  if (text.empty()) throw UsageError("expected a prompt: -p TEXT, -f FILE, or text on standard input, which is empty");
  return text;
}

std::vector<text::TokenId> prompt_tokens(const models::ModelFile& file, const Options& options, Console& console) {
  const std::string prompt = read_prompt(options, console);
  if (options.raw) return raw_prompt(file, prompt);
  if (!file.chat_template()) {
    console.note("warning: " + file.path() + " has no chat template; the prompt goes in as it is (as with --raw)");
    return raw_prompt(file, prompt);
  }
  Conversation conversation(file);
  conversation.set_system(options.system);
  conversation.add_user(prompt);
  return conversation.prompt();
}

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json to_json(const Answer& answer) {
  return {{"text", answer.text},
          {"token_ids", answer.result.tokens},
          {"prompt_tokens", answer.result.prompt_tokens},
          {"generated_tokens", answer.result.tokens.size()},
          {"finish_reason", run::finish_reason_name(answer.result.finish_reason)},
          {"time_to_first_token_s", or_null(answer.time_to_first_token_s)},
          {"prefill_tokens_per_s", or_null(answer.prefill_tokens_per_s())},
          {"decode_tokens_per_s", or_null(answer.decode_tokens_per_s())},
          {"peak_memory_bytes", peak_memory_bytes()}};
}

int run_model(const Options& options, Invocation& invocation) {
  Console& console = invocation.console;
  Interrupt interrupt;
  const models::ModelFile file = open_model(options.model, invocation.environment);
  // A prompt that does not fit is refused before the weights are read.
  const std::vector<text::TokenId> prompt = prompt_tokens(file, options, console);
  const std::unique_ptr<Context> context = make_context(options.engine, invocation.verbose);
  const run::EngineOptions engine_flags = engine_options(file, options.engine, /*wanted=*/1, context->log());
  if (prompt.empty()) throw InputError("the prompt is empty: expected text that has at least one token");
  if (std::ssize(prompt) > engine_flags.context) {
    fail<InputError>("the prompt has {} tokens, but the context holds {}; -c N makes it longer", prompt.size(),
                     engine_flags.context);
  }
  const std::unique_ptr<run::Engine> engine = load(file, engine_flags, *context, console);
  TraceFile trace(*engine, options.engine.trace);
  run::Session session = engine->open();
  const Answer result =
      answer(*engine, session, prompt, file.tokenizer(), options.sampling, !options.json, interrupt, console);
  interrupt.release();
  console.write(options.json ? "" : "\n");
  if (options.json) console.write_json(to_json(result));
  trace.write();
  if (!options.json && console.out_is_terminal() && console.err_is_terminal()) console.note(statistics_line(result));
  return result.result.finish_reason == run::FinishReason::cancelled ? interrupted_status : 0;
}

std::function<int(Invocation&)> declare(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_model(app, options->model);
  CLI::Option* prompt = add_text(app, "-p,--prompt", "TEXT", "the prompt", options->prompt);
  exclude(add_text(app, "-f,--file", "FILE", "a file that holds the prompt; - is standard input", options->file),
          prompt);
  CLI::Option* raw = add_flag(app, "--raw", "the prompt as it is, without the model's chat template", options->raw);
  exclude(add_text(app, "--system", "TEXT", "what the chat template gets as the system's message", options->system),
          raw);
  add_sampling_flags(app, options->sampling);
  add_engine_flags(app, options->engine);
  add_json(app, options->json);
  return [options](Invocation& invocation) { return run_model(*options, invocation); };
}

}  // namespace

Verb verb_run() {
  return {
      .name = "run",
      .summary = "answer one prompt",
      .details =
          "The prompt comes from -p, -f or standard input; one line end behind a file's text is not part of it.\n"
          "Ctrl-C ends the answer between two tokens (exit status 130); a second one kills.\n"
          "--json prints text, token_ids, prompt_tokens, generated_tokens, finish_reason (stop, length, cancelled),\n"
          "time_to_first_token_s (from the loaded model on), prefill_tokens_per_s, decode_tokens_per_s and\n"
          "peak_memory_bytes; a rate that nothing was measured for is null.\n"
          "",
      .example =
          "  headrace run smollm2 -p 'Why is the sky blue?'\n"
          "  headrace run model.gguf --raw -p 'Once upon a time' --temp 0.8 --seed 7 -n 100\n"
          "  headrace run smollm2 --json < question.txt",
      .declare = declare};
}

}  // namespace headrace::cli
