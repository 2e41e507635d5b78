// Puts together the variables that transformers gives to a chat template.
#include "text/chat_template.hpp"

#include <chrono>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "text/jinja/evaluator.hpp"
#include "text/jinja/parser.hpp"

namespace headrace::text {
namespace {

std::tm local_time() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm result{};
  localtime_r(&now, &result);
  return result;
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, std::string bos_token, std::string eos_token)
    : template_(std::make_unique<const jinja::Template>(jinja::parse(source, "chat template", {}))),
      bos_token_(std::move(bos_token)),
      eos_token_(std::move(eos_token)) {}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools,
                                 bool add_generation_prompt, const nlohmann::ordered_json& extra,
                                 const std::optional<std::tm>& now) const {
  if (!messages.is_array()) fail<InputError>("messages: expected a list, found {}", messages.type_name());
  if (!extra.is_object()) fail<InputError>("template variables: expected an object, found {}", extra.type_name());
  nlohmann::ordered_json variables;
  variables["messages"] = messages;
  variables["tools"] = tools;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = add_generation_prompt;
  if (!bos_token_.empty()) variables["bos_token"] = bos_token_;
  if (!eos_token_.empty()) variables["eos_token"] = eos_token_;
  for (const auto& [name, value] : extra.items()) variables[name] = value;
  return jinja::render(*template_, variables, now ? *now : local_time());
}

std::string ChatTemplate::render(const nlohmann::ordered_json& messages) const {
  return render(messages, nullptr, true, nlohmann::ordered_json::object());
}

}  // namespace headrace::text
