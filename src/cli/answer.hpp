// An answer as it comes: generated, decoded, and written token by token.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cli/console.hpp"
#include "cli/interrupt.hpp"
#include "cli/options.hpp"
#include "run/generate.hpp"
#include "text/tokenizer.hpp"

namespace headrace::cli {

struct Answer {
  run::GenerateResult result;
  std::string text;
  /// From the call to the first token; nothing if there was none.
  std::optional<double> time_to_first_token_s;

  /// Nothing where there was nothing to count.
  [[nodiscard]] std::optional<double> prefill_tokens_per_s() const;
  [[nodiscard]] std::optional<double> decode_tokens_per_s() const;
};

/// Generates after `prompt` until an end of the model's, a limit, or Ctrl-C. With `stream` the text goes to stdout as
/// it comes, whole characters at a time. Throws as generate() does.
Answer answer(run::Engine& engine, run::Session& session, std::span<const text::TokenId> prompt,
              const text::Tokenizer& tokenizer, const SamplingFlags& sampling, bool stream, Interrupt& interrupt,
              Console& console);

/// "[28 prompt tokens, 312.0/s; 57 tokens, 98.3/s; …]" for people.
std::string statistics_line(const Answer& answer);

}  // namespace headrace::cli
