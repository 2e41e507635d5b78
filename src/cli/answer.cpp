#include "cli/answer.hpp"

#include <chrono>

#include <fmt/format.h>

#include "cli/peak_memory.hpp"
#include "cli/progress.hpp"

namespace headrace::cli {

namespace {

std::optional<double> rate(std::int64_t count, double seconds) {
  if (count <= 0 || seconds <= 0) return std::nullopt;
  return static_cast<double>(count) / seconds;
}

}  // namespace

std::optional<double> Answer::prefill_tokens_per_s() const { return rate(result.prefill_tokens, result.prefill_s); }

std::optional<double> Answer::decode_tokens_per_s() const { return rate(result.decode_steps, result.decode_s); }

Answer answer(run::Engine& engine, run::Session& session, std::span<const text::TokenId> prompt,
              const text::Tokenizer& tokenizer, const SamplingFlags& sampling, bool stream, Interrupt& interrupt,
              Console& console) {
  using Clock = std::chrono::steady_clock;
  Answer answer;
  text::StreamingDecoder decoder(tokenizer, /*skip_control=*/true);
  Progress progress(console, "reading the prompt");
  const auto begin = Clock::now();
  const auto emit = [&](const std::string& text) {
    answer.text += text;
    if (stream && !text.empty()) console.write(text);
  };

  run::GenerateOptions options;
  options.sampler = sampling.sampler;
  options.max_tokens = sampling.max_tokens;
  options.is_stop = [&](text::TokenId id) { return tokenizer.is_end_of_generation(id); };
  options.cancel = &interrupt.requested();
  options.on_prefill = [&](std::int64_t done, std::int64_t total) {
    progress.update(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
  };
  options.on_token = [&](text::TokenId id) {
    if (!answer.time_to_first_token_s) {
      answer.time_to_first_token_s = std::chrono::duration<double>(Clock::now() - begin).count();
      progress.finish();
    }
    emit(decoder.push(id));
  };
  interrupt.catch_first();
  answer.result = run::generate(engine, session, prompt, options);
  emit(decoder.flush());
  return answer;
}

std::string statistics_line(const Answer& answer) {
  const auto counted = [](std::int64_t count, const char* what, std::optional<double> per_s) {
    return fmt::format("{} {}{}", count, what, per_s ? fmt::format(" at {:.1f}/s", *per_s) : "");
  };
  return fmt::format("[{}; {}; peak memory {} MB]",
                     counted(answer.result.prompt_tokens, "prompt tokens", answer.prefill_tokens_per_s()),
                     counted(std::ssize(answer.result.tokens), "new tokens", answer.decode_tokens_per_s()),
                     peak_memory_bytes() / 1000000);
}

}  // namespace headrace::cli
