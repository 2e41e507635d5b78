// The vocabulary in a tokenizer.json of PyPI `tokenizers`, as the plain data that a Tokenizer is made from: byte-level
// BPE (GPT-2, Llama 3, Qwen) and SentencePiece's BPE (Llama 2, Mistral, Mixtral). What it cannot express is refused.
#pragma once

#include <string>
#include <string_view>

#include "text/vocabulary.hpp"

namespace headrace::text {

/// `name` is the file's, for messages. BOS and EOS are those that the post-processor adds, if any. Throws InputError
/// naming the file and the field, and what of it is not supported.
[[nodiscard]] VocabularyData read_tokenizer_json(const std::string& name, std::string_view text);

}  // namespace headrace::text
