// The tokenizer of a model in a directory as transformers saves it: tokenizer.json, and the files beside it that name
// special tokens and hold the chat template.
#pragma once

#include <optional>
#include <string>

#include "formats/hf_config.hpp"
#include "text/vocabulary.hpp"

namespace headrace::text {

/// Whether DIRECTORY has a tokenizer.json.
[[nodiscard]] bool has_hf_vocabulary(const std::string& directory);

/// DIRECTORY/tokenizer.json; BOS and EOS by tokenizer_config.json or special_tokens_map.json where its post-processor
/// adds none; the ends of a generation by `config`. Throws InputError as read_tokenizer_json does, and if a token that
/// these files name is none of the vocabulary.
[[nodiscard]] VocabularyData read_hf_vocabulary(const std::string& directory, const formats::HfConfig& config);

/// chat_template.jinja, or tokenizer_config.json's chat_template: the only one, or the one named "default".
[[nodiscard]] std::optional<std::string> read_hf_chat_template(const std::string& directory);

}  // namespace headrace::text
