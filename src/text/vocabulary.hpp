// What a tokenizer is made from, as plain data: the tokens, their types, merges and special ids of one vocabulary.
// Files are turned into this elsewhere (gguf_vocabulary.hpp), so that the tokenizers know no file format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headrace::text {

using TokenId = std::int32_t;

/// The numbers are those of GGUF's tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct VocabularyData {
  /// Named in errors, usually the path of the file.
  std::string source;
  /// The algorithm, by GGUF's name: "gpt2" is byte-level BPE.
  std::string model;
  /// How text is cut into words before BPE, by GGUF's name, such as "llama-bpe".
  std::string pre_tokenizer;

  /// By id. Normal tokens of byte-level BPE are in GPT-2's printable alphabet ("Ġthe"); all others are literal text.
  std::vector<std::string> tokens;
  /// By id; empty means all normal.
  std::vector<TokenType> types;
  /// By id, or empty. BPE does not use them.
  std::vector<float> scores;
  /// "left right", the first has the highest priority.
  std::vector<std::string> merges;

  std::optional<TokenId> bos, eos, eot, eom, unknown, padding;
  /// Whether encoding adds BOS and EOS; without a value, what the pre-tokenizer's models do.
  std::optional<bool> add_bos, add_eos;
  /// Whether a space is put before text that does not start with one.
  bool add_space_prefix = false;
};

}  // namespace headrace::text
