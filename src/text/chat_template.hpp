// A model's chat template: messages in, prompt text out, as transformers' apply_chat_template renders it.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace headrace::text {

namespace jinja {
struct Template;
}

class ChatTemplate {
 public:
  /// Parses the Jinja source (GGUF's tokenizer.chat_template). A token that is empty is left undefined in the
  /// template. Raises InputError `chat template:line: expected …, found …`.
  ChatTemplate(std::string_view source, std::string bos_token, std::string eos_token);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// The prompt of `messages` (a list of objects with `role`, `content` and what the template knows besides) and
  /// `tools` (a list of JSON schemas, or null). The members of the object `extra` become variables too and win over
  /// the others. `now` is what strftime_now prints, local time by default. May be called from several threads.
  /// Raises InputError if the template goes wrong, exceeds its bounds, or calls raise_exception (with its message).
  [[nodiscard]] std::string render(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools,
                                   bool add_generation_prompt, const nlohmann::ordered_json& extra,
                                   const std::optional<std::tm>& now = std::nullopt) const;
  /// The same with no tools and no more variables, up to where the answer begins.
  [[nodiscard]] std::string render(const nlohmann::ordered_json& messages) const;

 private:
  std::unique_ptr<const jinja::Template> template_;
  std::string bos_token_;
  std::string eos_token_;
};

}  // namespace headrace::text
