// A conversation as a model reads it: messages, rendered by the model's own chat template, as token ids.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/language_model.hpp"

namespace headrace::cli {

class Conversation {
 public:
  /// `file` must outlive the conversation. Throws InputError if it has no chat template.
  explicit Conversation(const models::ModelFile& file);

  /// Replaces the system message; an empty text removes it.
  void set_system(std::string text);
  void add_user(std::string text) { add("user", std::move(text)); }
  void add_assistant(std::string text) { add("assistant", std::move(text)); }
  /// Takes the last message back.
  void remove_last();
  /// Forgets all messages but the system's.
  void clear();

  /// The whole conversation up to where the assistant begins to speak. Throws InputError if the template refuses it.
  [[nodiscard]] std::vector<text::TokenId> prompt() const;

 private:
  void add(const char* role, std::string text);

  const models::ModelFile& file_;
  std::string system_;
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
};

/// Text as it is, with BOS where the vocabulary wants it; control tokens in it count.
std::vector<text::TokenId> raw_prompt(const models::ModelFile& file, const std::string& text);

}  // namespace headrace::cli
