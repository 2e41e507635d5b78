#include "cli/conversation.hpp"

#include <utility>

#include "base/error.hpp"
#include "text/utf8.hpp"

namespace headrace::cli {

Conversation::Conversation(const models::ModelFile& file) : file_(file) {
  if (!file.chat_template()) {
    fail<InputError>("{}: tokenizer.chat_template: expected a chat template, found none", file.path());
  }
}

void Conversation::add(const char* role, std::string text) {
  messages_.push_back({{"role", role}, {"content", text::repair_utf8(text)}});
}

void Conversation::set_system(std::string text) { system_ = text::repair_utf8(text); }

void Conversation::remove_last() {
  if (!messages_.empty()) messages_.erase(messages_.size() - 1);
}

void Conversation::clear() { messages_.clear(); }

std::vector<text::TokenId> Conversation::prompt() const {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  if (!system_.empty()) all.push_back({{"role", "system"}, {"content", system_}});
  all.insert(all.end(), messages_.begin(), messages_.end());
  const std::string text = file_.chat_template()->render(all);
  // The template writes BOS itself where the model wants it.
  return file_.tokenizer().encode(text, {.add_special = false, .parse_special = true});
}

std::vector<text::TokenId> raw_prompt(const models::ModelFile& file, const std::string& text) {
  return file.tokenizer().encode(text, {.add_special = true, .parse_special = true});
}

}  // namespace headrace::cli
