// Generation: prefill in chunks, then one token at a time, until a stop token, the limit, or cancellation.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "run/engine.hpp"
#include "text/sampler.hpp"

namespace headrace::run {

enum class FinishReason : std::uint8_t { stop, length, cancelled };
/// "stop", "length", "cancelled".
std::string_view finish_reason_name(FinishReason reason);

struct GenerateOptions {
  text::SamplerParams sampler;
  std::int64_t max_tokens = 256;                               ///< new tokens at most
  std::function<bool(TokenId)> is_stop;                        ///< a token that ends the text and is not part of it
  std::function<void(TokenId)> on_token;                       ///< each token as it is chosen
  std::function<void(std::int64_t, std::int64_t)> on_prefill;  ///< positions done, of all
  const std::atomic<bool>* cancel = nullptr;                   ///< looked at between steps
};

struct GenerateResult {
  std::vector<TokenId> tokens;
  FinishReason finish_reason = FinishReason::length;
  std::int64_t prompt_tokens = 0;
  std::int64_t shared_tokens = 0;   ///< of the prompt, taken over from earlier sessions
  std::int64_t prefill_tokens = 0;  ///< of the prompt, computed here
  double prefill_s = 0;             ///< up to the first token's logits
  double decode_s = 0;              ///< from there to the last token
  std::int64_t decode_steps = 0;
};

/// Appends `prompt` (at least one token) to the session as class prompt, and generates as class generated. All tokens
/// but the last are committed to the session, also after a cancellation between steps. Throws as Engine::step does.
GenerateResult generate(Engine& engine, Session& session, std::span<const TokenId> prompt,
                        const GenerateOptions& options);

}  // namespace headrace::run
