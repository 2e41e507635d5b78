// headrace chat: a conversation, kept in one Session, of which each turn computes only what is new.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/answer.hpp"
#include "cli/conversation.hpp"
#include "cli/interrupt.hpp"
#include "cli/line_reader.hpp"
#include "cli/load.hpp"
#include "cli/options.hpp"
#include "cli/suggest.hpp"
#include "cli/verb.hpp"

namespace headrace::cli {

namespace {

struct Options {
  std::string model;
  std::string system;
  EngineFlags engine;
  SamplingFlags sampling;
};

constexpr std::string_view commands_help =
    "/help           this text\n"
    "/clear          forget the conversation, but not the system message\n"
    "/system [TEXT]  set or remove the system message; the conversation stays\n"
    "/quit           end (so does Ctrl-D, and Ctrl-C twice)\n"
    "A line that ends in \\ goes on in the next one; \"\"\" begins and ends a text of several lines.\n"
    "Ctrl-C stops an answer.\n";

class Chat {
 public:
  Chat(const models::ModelFile& file, run::Engine& engine, const Options& options, Interrupt& interrupt,
       Console& console)
      : file_(file),
        engine_(engine),
        sampling_(options.sampling),
        interrupt_(interrupt),
        console_(console),
        conversation_(file),
        session_(engine.open()) {
    conversation_.set_system(options.system);
  }

  /// Until the input ends, /quit, or Ctrl-C at the prompt (twice, if a person sits there). The exit status is that of
  /// the last error if the input is a script.
  int run() {
    LineReader reader(console_, interrupt_);
    bool asked_to_quit = false;
    int status = 0;
    for (;;) {
      std::string message;
      bool is_block = false;
      const ReadResult result = reader.read_message(message, is_block);
      if (result == ReadResult::end) {
        if (person()) console_.write("\n");
        return status;
      }
      if (result == ReadResult::interrupted) {
        if (!person() || asked_to_quit) {
          console_.write("\n");
          return interrupted_status;
        }
        asked_to_quit = true;
        console_.write("\n");
        console_.note("(Ctrl-C again, Ctrl-D or /quit ends)");
        continue;
      }
      asked_to_quit = false;
      if (!is_block && message.starts_with('/')) {
        if (!command(message)) return status;
      } else if (message.find_first_not_of(" \t\r\n") != std::string::npos) {
        try {
          turn(message);
        } catch (const InputError& error) {
          status = give_up_turn(error);
        } catch (const ResourceError& error) {
          status = give_up_turn(error);
        }
      }
    }
  }

 private:
  [[nodiscard]] bool person() const { return console_.in_is_terminal() && console_.out_is_terminal(); }

  /// The conversation goes on as if the last message had not been.
  int give_up_turn(const Error& error) {
    conversation_.remove_last();
    console_.note(std::string("headrace: ") + error.what());
    return person() ? 0 : static_cast<int>(error.code());
  }

  /// False: the end.
  bool command(const std::string& line) {
    const std::size_t end = std::min(line.find_first_of(" \t\n"), line.size());
    const std::string name = line.substr(0, end);
    const std::size_t argument = line.find_first_not_of(" \t\n", end);
    if (name == "/quit" || name == "/exit") return false;
    if (name == "/help") {
      console_.write(commands_help);
    } else if (name == "/clear") {
      conversation_.clear();
      console_.note("(the conversation is forgotten)");
    } else if (name == "/system") {
      const bool removed = argument == std::string::npos;
      conversation_.set_system(removed ? "" : line.substr(argument));
      console_.note(removed ? "(the system message is removed)" : "(the system message is set)");
    } else {
      const std::vector<std::string> known = {"/help", "/clear", "/system", "/quit"};
      const std::optional<std::string> meant = nearest(name, known);
      console_.note(fmt::format("unknown command {}; {}", name, meant ? "did you mean " + *meant + "?" : "see /help"));
    }
    return true;
  }

  void turn(const std::string& message) {
    conversation_.add_user(message);
    const std::vector<text::TokenId> prompt = conversation_.prompt();
    const std::int64_t context = engine_.options().context;
    if (std::ssize(prompt) > context) {
      fail<InputError>(
          "the conversation has {} tokens with this message, but the context holds {}; /clear begins "
          "anew, -c N makes it longer",
          prompt.size(), context);
    }
    // What the session has computed already stays; at least one row is wanted for its logits.
    const auto tokens = session_.tokens();
    const auto [same, unused] = std::mismatch(tokens.begin(), tokens.end(), prompt.begin(), prompt.end() - 1);
    const auto kept = same - tokens.begin();
    session_.truncate(kept);
    const Answer result = answer(engine_, session_, std::span(prompt).subspan(static_cast<std::size_t>(kept)),
                                 file_.tokenizer(), sampling_, /*stream=*/true, interrupt_, console_);
    console_.write("\n");
    const bool cancelled = result.result.finish_reason == run::FinishReason::cancelled;
    if (cancelled) console_.note("(stopped)");
    if (cancelled && result.text.empty()) {
      conversation_.remove_last();
    } else {
      conversation_.add_assistant(result.text);
    }
    if (result.result.finish_reason == run::FinishReason::length) {
      const bool full = session_.length() >= context;
      console_.note(full ? fmt::format("(the context of {} tokens is full; /clear begins anew)", context)
                         : fmt::format("(cut off after {} tokens; -n N allows more)", result.result.tokens.size()));
    }
  }

  const models::ModelFile& file_;
  run::Engine& engine_;
  const SamplingFlags& sampling_;
  Interrupt& interrupt_;
  Console& console_;
  Conversation conversation_;
  run::Session session_;
};

int chat(const Options& options, Invocation& invocation) {
  Console& console = invocation.console;
  Interrupt interrupt;
  const models::ModelFile file = open_model(options.model, invocation.environment);
  const Conversation refuses_models_without_template(file);
  const std::unique_ptr<Context> context = make_context(options.engine, invocation.verbose);
  const std::unique_ptr<run::Engine> engine =
      load(file, engine_options(file, options.engine, /*wanted=*/1, context->log()), *context, console);
  TraceFile trace(*engine, options.engine.trace);
  if (console.in_is_terminal() && console.out_is_terminal()) {
    const std::string name = file.checkpoint().model_name();
    console.note(fmt::format("{}; /help says more, Ctrl-D ends", name.empty() ? file.path() : name));
  }
  const int status = Chat(file, *engine, options, interrupt, console).run();
  trace.write();
  return status;
}

std::function<int(Invocation&)> declare(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_model(app, options->model);
  add_text(app, "--system", "TEXT", "what the chat template gets as the system's message", options->system);
  add_sampling_flags(app, options->sampling);
  add_engine_flags(app, options->engine);
  return [options](Invocation& invocation) { return chat(*options, invocation); };
}

}  // namespace

Verb verb_chat() {
  return {.name = "chat",
          .summary = "talk with a model",
          .details = "Type a message and a line feed. In the conversation:\n" + std::string(commands_help),
          .example =
              "  headrace chat smollm2\n"
              "  headrace chat model.gguf --system 'You answer in one sentence.' --temp 0.7\n"
              "  printf 'My name is Ada.\\nWhat is my name?\\n' | headrace chat smollm2",
          .declare = declare};
}

}  // namespace headrace::cli
