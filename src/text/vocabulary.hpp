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

/// How an added token is looked for in a text, by the names of tokenizer.json.
struct AddedTokenFlags {
  bool lstrip = false;      ///< white space before it is part of it
  bool rstrip = false;      ///< white space behind it is part of it
  bool normalized = false;  ///< it is normalized, and looked for in the normalized text
};

/// Whether a space is put before a text.
enum class SpacePrefix : std::uint8_t { never, always, unless_space };

struct VocabularyData {
  /// Named in errors, usually the path of the file.
  std::string source;
  /// What stands before the names of fields in errors: GGUF's, or tokenizer.json's "model.".
  std::string field_prefix = "tokenizer.ggml.";
  /// The algorithm, by GGUF's name: "gpt2" is byte-level BPE, "llama" is SentencePiece's BPE.
  std::string model;
  /// How text is cut into words before BPE, by GGUF's name, such as "llama-bpe".
  std::string pre_tokenizer;
  /// The same as the regular expressions of a tokenizer.json, applied in turn. If there is a value, the two flags below
  /// hold too, and `pre_tokenizer` is not used.
  std::optional<std::vector<std::string>> word_patterns;
  bool normalize_nfc = false;
  bool ignore_merges = false;

  /// By id. Normal tokens of byte-level BPE are in GPT-2's printable alphabet ("Ġthe"); all others are literal text.
  std::vector<std::string> tokens;
  /// By id; empty means all normal.
  std::vector<TokenType> types;
  /// By id, or empty. SentencePiece's BPE without merges merges what has the highest score first.
  std::vector<float> scores;
  /// "left right", the first has the highest priority.
  std::vector<std::string> merges;
  /// By id, or shorter; those that are not there are all false.
  std::vector<AddedTokenFlags> added_flags;

  std::optional<TokenId> bos, eos, eot, eom, unknown, padding;
  /// Whether encoding adds BOS and EOS; without a value, what the pre-tokenizer's models do.
  std::optional<bool> add_bos, add_eos;
  /// Tokens that end a generation beside eos, eot and eom.
  std::vector<TokenId> end_of_generation;
  /// Before every stretch of text between added tokens.
  SpacePrefix space_prefix = SpacePrefix::never;
  /// Only before the stretch that a text begins with.
  bool prefix_only_at_start = false;
  /// The prefix and "\u2581" for spaces come behind the search for normalized added tokens, not before it.
  bool spaces_behind_added = false;
  /// Whether decoding drops the space that a text begins with.
  bool strip_leading_space = false;
  /// Neighbours that have no token become one unknown token together.
  bool fuse_unknown = true;
};

}  // namespace headrace::text
