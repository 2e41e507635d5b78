// A vocabulary for random models: every byte, some pairs of letters, control tokens, and names that fill the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/gguf_writer.hpp"

namespace headrace::bench {

/// Bytes, and the tokens that begin and end a text.
inline constexpr std::int64_t smallest_vocabulary = 258;

/// The tokenizer.* entries of a byte-level BPE of `tokens` tokens (at least smallest_vocabulary) with a chat template.
std::vector<formats::GgufEntry> vocabulary_entries(std::int64_t tokens);

}  // namespace headrace::bench
