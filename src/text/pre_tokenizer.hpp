// Pre-tokenizers: how byte-level BPE cuts text into words before it merges. Each is one entry of a table: a sequence of
// regular expressions, run by PCRE2 with JIT.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace headrace::text {

/// What a vocabulary's pre-tokenizer name stands for.
struct PreTokenizerRule {
  /// GGUF's name, tokenizer.ggml.pre.
  std::string_view name;
  /// Applied in turn, each to every piece that the one before left, seeing nothing of the neighbours. A match is a
  /// piece, and so is what lies between two matches. Trailing empty ones are unused.
  std::string_view patterns[3];
  /// Text is brought into normalization form C first.
  bool normalize_nfc = false;
  /// A word that is a token is taken as it is, without merges.
  bool ignore_merges = false;
  /// The models with this pre-tokenizer begin a text with BOS, unless their vocabulary says otherwise.
  bool add_bos = false;
};

/// All of them.
[[nodiscard]] std::span<const PreTokenizerRule> pre_tokenizer_rules() noexcept;

/// The one of that name. Throws InputError that lists the supported names; `source` is named in it.
[[nodiscard]] const PreTokenizerRule& find_pre_tokenizer_rule(std::string_view name, std::string_view source);

/// The pattern of ours for a regular expression as a tokenizer.json spells it: one of a table, since a strange one
/// could take exponential time. Throws InputError that quotes it if it is not known; `source` is named in it.
[[nodiscard]] std::string_view find_word_pattern(std::string_view regex, std::string_view source);

/// What `tokenizers`' ByteLevel and Digits do, as regular expressions that find_word_pattern knows.
inline constexpr std::string_view byte_level_regex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view single_digits_regex = R"(\p{N})";

/// Cuts text by one rule. Immutable, so that threads may share it.
class PreTokenizer {
 public:
  /// Throws InternalError if a pattern does not compile.
  explicit PreTokenizer(const PreTokenizerRule& rule);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  /// The words of `text` (valid UTF-8), in order; together they are all of it, and none is empty. Time and memory are
  /// linear in the length of the text. Throws ResourceError if PCRE2 lacks memory.
  [[nodiscard]] std::vector<std::string_view> split(std::string_view text) const;

 private:
  class Pattern;
  std::vector<Pattern> patterns_;
};

}  // namespace headrace::text
