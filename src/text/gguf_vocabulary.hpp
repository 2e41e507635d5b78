// The vocabulary in a GGUF file's metadata, as the plain data that a Tokenizer is made from.
// Keys: the GGUF page of ggml's documentation, section "Tokenizer".
#pragma once

#include "formats/gguf.hpp"
#include "text/vocabulary.hpp"

namespace headrace::text {

/// Throws InputError that names the file and the key if one that must be there is missing, or has the wrong type or
/// range.
[[nodiscard]] VocabularyData read_vocabulary(const formats::Gguf& file);

}  // namespace headrace::text
