// The table of pre-tokenizers, and the walk of their patterns over a text with PCRE2.
#include "text/pre_tokenizer.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.hpp"
#include "base/quote.hpp"

namespace headrace::text {

namespace {

// White space is spelled out as Unicode's property White_Space, which is what \s means in the models' own tokenizers;
// PCRE2's \s has U+180E too. \p{L} and \p{N} are those of PCRE2's Unicode version (14.0 in PCRE2 10.42): characters
// that are younger count as neither.
// In every pattern the possessive ++ and *+ only tell PCRE2 what is so anyway (nothing after them can match what they
// gave back). \s+(?!\S) must give back one character, and \s*[\r\n]+ as many as follow the last line end; then the
// next match starts behind it and scans the rest of the white space once more. So the whole walk is linear.
#define HEADRACE_S "\\t-\\r \\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
#define HEADRACE_SPACES "[" HEADRACE_S "]+(?![^" HEADRACE_S "])|[" HEADRACE_S "]++"
#define HEADRACE_CASELESS_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define HEADRACE_LLAMA3(DIGITS)                                                               \
  HEADRACE_CASELESS_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}++|" DIGITS "| ?[^" HEADRACE_S \
                                 "\\p{L}\\p{N}]++[\\r\\n]*+|"                                 \
                                 "[" HEADRACE_S "]*[\\r\\n]++|" HEADRACE_SPACES

constexpr std::string_view kGpt2 =
    "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^" HEADRACE_S "\\p{L}\\p{N}]++|" HEADRACE_SPACES;

#define HEADRACE_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define HEADRACE_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
// The first class gives back what the second needs: nothing but upper case, so that each character is given back once.
#define HEADRACE_O200K(CONTRACTIONS, DIGITS)                                                                   \
  "[^\\r\\n\\p{L}\\p{N}]?" HEADRACE_UPPER "*" HEADRACE_LOWER "++" CONTRACTIONS                                 \
  "|[^\\r\\n\\p{L}\\p{N}]?" HEADRACE_UPPER "++" HEADRACE_LOWER "*+" CONTRACTIONS "|" DIGITS "| ?[^" HEADRACE_S \
  "\\p{L}\\p{N}]++[\\r\\n/]*+|[" HEADRACE_S "]*[\\r\\n]++|" HEADRACE_SPACES

// The patterns are those of the models' tokenizer.json: openai-community/gpt2 (tokenizers' ByteLevel),
// HuggingFaceTB/SmolLM2 (Digits, then ByteLevel), meta-llama/Meta-Llama-3-8B, Qwen/Qwen2-7B,
// allenai/OLMo-7B, openai/gpt-oss-20b, mistralai/Mistral-Nemo.
constexpr PreTokenizerRule kRules[] = {
    {.name = "gpt-2", .patterns = {kGpt2}},
    {.name = "smollm", .patterns = {"\\p{N}", kGpt2}},
    {.name = "llama-bpe", .patterns = {HEADRACE_LLAMA3("\\p{N}{1,3}+")}, .ignore_merges = true, .add_bos = true},
    {.name = "qwen2", .patterns = {HEADRACE_LLAMA3("\\p{N}")}, .normalize_nfc = true},
    {.name = "olmo", .patterns = {kGpt2}, .normalize_nfc = true},
    {.name = "gpt-4o", .patterns = {HEADRACE_O200K(HEADRACE_CASELESS_CONTRACTIONS "?+", "\\p{N}{1,3}+")}},
    {.name = "tekken", .patterns = {HEADRACE_O200K("", "\\p{N}")}, .ignore_merges = true, .add_bos = true},
};

/// A regular expression as a tokenizer.json spells it, and as it is here.
struct WordPattern {
  std::string_view regex;
  std::string_view pattern;
};

// Besides those of the rules: three digits at a time, and all digits at a time.
constexpr WordPattern kWordPatterns[] = {
    {byte_level_regex, kGpt2},
    {single_digits_regex, "\\p{N}"},
    {R"(\p{N}{1,3})", "\\p{N}{1,3}+"},
    {R"(\p{N}+)", "\\p{N}++"},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     HEADRACE_LLAMA3("\\p{N}{1,3}+")},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     HEADRACE_LLAMA3("\\p{N}")},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     HEADRACE_O200K(HEADRACE_CASELESS_CONTRACTIONS "?+", "\\p{N}{1,3}+")},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
     R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     HEADRACE_O200K("", "\\p{N}")},
};

struct CodeDeleter {
  void operator()(pcre2_code* code) const noexcept { pcre2_code_free(code); }
};

std::string pcre2_message(int error) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(error, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

std::span<const PreTokenizerRule> pre_tokenizer_rules() noexcept { return kRules; }

const PreTokenizerRule& find_pre_tokenizer_rule(std::string_view name, std::string_view source) {
  std::string supported;
  for (const PreTokenizerRule& rule : kRules) {
    if (rule.name == name) return rule;
    supported += supported.empty() ? "" : ", ";
    supported += rule.name;
  }
  fail<InputError>("{}: tokenizer.ggml.pre: expected one of {}, found {}", source, supported, quoted(name));
}

std::string_view find_word_pattern(std::string_view regex, std::string_view source) {
  for (const WordPattern& known : kWordPatterns) {
    if (known.regex == regex) return known.pattern;
  }
  fail<InputError>("{}: pre_tokenizer: expected a regular expression that is known here, found {}", source,
                   quoted(regex, 500));
}

namespace {

/// What one walk needs besides the pattern.
class MatchScratch {
 public:
  MatchScratch() : match_(pcre2_match_data_create(1, nullptr)), context_(pcre2_match_context_create(nullptr)) {
    if (match_ == nullptr || context_ == nullptr) throw ResourceError("out of memory while tokenizing");
    // The default limit of 10 million counts every character that a long run of white space gives back. The patterns
    // backtrack linearly, so no limit is needed.
    pcre2_set_match_limit(context_.get(), std::numeric_limits<std::uint32_t>::max());
    pcre2_set_depth_limit(context_.get(), std::numeric_limits<std::uint32_t>::max());
    pcre2_set_heap_limit(context_.get(), std::numeric_limits<std::uint32_t>::max());
  }
  [[nodiscard]] pcre2_match_data* match() const noexcept { return match_.get(); }
  [[nodiscard]] pcre2_match_context* context() const noexcept { return context_.get(); }

 private:
  struct Deleter {
    void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
    void operator()(pcre2_match_context* context) const noexcept { pcre2_match_context_free(context); }
  };
  std::unique_ptr<pcre2_match_data, Deleter> match_;
  std::unique_ptr<pcre2_match_context, Deleter> context_;
};

}  // namespace

class PreTokenizer::Pattern {
 public:
  explicit Pattern(std::string_view pattern) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr));
    if (code_ == nullptr) {
      fail<InternalError>("pre-tokenizer pattern {:?}, offset {}: {}", pattern, offset, pcre2_message(error));
    }
    has_jit_ = pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE) == 0;
  }

  /// Appends the pieces of `text`: matches, and what lies between them.
  void split(std::string_view text, std::vector<std::string_view>& pieces, const MatchScratch& scratch) const {
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(scratch.match());
    std::size_t at = 0;
    while (at < text.size() && find(text, at, scratch)) {
      require(range[0] >= at && range[1] > range[0] && range[1] <= text.size(), "empty pre-tokenizer match");
      if (range[0] > at) pieces.push_back(text.substr(at, range[0] - at));
      pieces.push_back(text.substr(range[0], range[1] - range[0]));
      at = range[1];
    }
    if (at < text.size()) pieces.push_back(text.substr(at));
  }

 private:
  bool find(std::string_view text, std::size_t at, const MatchScratch& scratch) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    int result = PCRE2_ERROR_JIT_STACKLIMIT;
    if (has_jit_)
      result = pcre2_jit_match(code_.get(), subject, text.size(), at, 0, scratch.match(), scratch.context());
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter has its frames on the heap
      result = pcre2_match(code_.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, scratch.match(),
                           scratch.context());
    }
    if (result == PCRE2_ERROR_NOMATCH) return false;
    if (result == PCRE2_ERROR_NOMEMORY) throw ResourceError("out of memory while tokenizing");
    if (result < 0) fail<InternalError>("pre-tokenizer match at byte {}: {}", at, pcre2_message(result));
    return true;
  }

  std::unique_ptr<pcre2_code, CodeDeleter> code_;
  bool has_jit_ = false;
};

PreTokenizer::PreTokenizer(const PreTokenizerRule& rule) {
  for (const std::string_view pattern : rule.patterns) {
    if (!pattern.empty()) patterns_.emplace_back(pattern);
  }
}

PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  const MatchScratch scratch;
  std::vector<std::string_view> pieces;
  if (!text.empty()) pieces.push_back(text);
  for (const Pattern& pattern : patterns_) {
    std::vector<std::string_view> finer;
    for (const std::string_view piece : pieces) pattern.split(piece, finer, scratch);
    pieces = std::move(finer);
  }
  return pieces;
}

}  // namespace headrace::text
