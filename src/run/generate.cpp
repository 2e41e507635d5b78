#include "run/generate.hpp"

#include <algorithm>
#include <chrono>

#include "base/error.hpp"

namespace headrace::run {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

bool cancelled(const GenerateOptions& options) {
  return options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed);
}

/// How much of the prompt went in: less than all after a cancellation between two steps.
std::int64_t prefill(Engine& engine, Session& session, std::span<const TokenId> prompt,
                     const GenerateOptions& options) {
  const std::int64_t rows = engine.options().rows;
  const std::int64_t count = std::ssize(prompt);
  for (std::int64_t begin = 0; begin < count; begin += rows) {
    if (cancelled(options)) return begin;
    const std::int64_t size = std::min(rows, count - begin);
    const std::int64_t last_row = size - 1;
    StepEntry entry{&session,
                    prompt.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size)),
                    TokenClass::prompt,
                    {}};
    if (begin + size == count) entry.wanted = {&last_row, 1};
    engine.step({&entry, 1});
    session.commit();
    if (options.on_prefill) options.on_prefill(begin + size, count);
  }
  return count;
}

}  // namespace

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
  }
  throw InternalError("finish_reason_name: unknown reason");
}

GenerateResult generate(Engine& engine, Session& session, std::span<const TokenId> prompt,
                        const GenerateOptions& options) {
  const std::int64_t context = engine.options().context;
  const std::int64_t past = session.length();
  if (prompt.empty()) fail<InputError>("the prompt has no tokens; expected at least 1");
  if (std::ssize(prompt) > context - past) {
    fail<InputError>("the prompt has {} tokens; expected at most {}, since the context holds {} and {} are used",
                     prompt.size(), context - past, context, past);
  }
  // The last token is chosen and not computed, so it needs no position.
  const std::int64_t limit = std::clamp<std::int64_t>(options.max_tokens, 0, context - past - std::ssize(prompt) + 1);

  GenerateResult result;
  result.prompt_tokens = std::ssize(prompt);
  const auto prefill_begin = Clock::now();
  if (past == 0) result.shared_tokens = session.share_prefix(prompt, TokenClass::prompt);
  const auto rest = prompt.subspan(static_cast<std::size_t>(result.shared_tokens));
  result.prefill_tokens = prefill(engine, session, rest, options);
  result.prefill_s = seconds_since(prefill_begin);
  if (result.prefill_tokens < std::ssize(rest)) {
    result.finish_reason = FinishReason::cancelled;
    return result;
  }

  const auto decode_begin = Clock::now();
  std::vector<std::int64_t> recent(session.tokens().begin(), session.tokens().end());
  while (std::ssize(result.tokens) < limit) {
    const auto position = static_cast<std::uint64_t>(session.length());
    const auto token = static_cast<TokenId>(text::sample(engine.logits(0), recent, options.sampler, position));
    if (options.is_stop && options.is_stop(token)) {
      result.finish_reason = FinishReason::stop;
      break;
    }
    result.tokens.push_back(token);
    if (options.on_token) options.on_token(token);
    if (std::ssize(result.tokens) == limit) break;
    if (cancelled(options)) {
      result.finish_reason = FinishReason::cancelled;
      break;
    }
    const std::int64_t row = 0;
    const StepEntry entry{&session, {&token, 1}, TokenClass::generated, {&row, 1}};
    engine.step({&entry, 1});
    session.commit();
    recent.push_back(token);
    ++result.decode_steps;
  }
  result.decode_s = seconds_since(decode_begin);
  return result;
}

}  // namespace headrace::run
