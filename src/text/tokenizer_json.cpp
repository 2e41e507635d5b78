// tokenizer.json, part by part: model, added tokens, normalizer, pre-tokenizer, decoder, post-processor.
#include "text/tokenizer_json.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/quote.hpp"
#include "formats/json.hpp"
#include "text/pre_tokenizer.hpp"

namespace headrace::text {

namespace {

using formats::JsonField;

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581, SentencePiece's space
/// Ids that no token has are allowed, but not so many that a small file takes much memory.
constexpr std::size_t kMaxUnusedIds = 65536;

/// The parts of a step: itself, or those of a Sequence, which may nest.
void flatten(const JsonField& step, std::string_view list, std::vector<JsonField>& steps) {
  if (step.at("type").string() != "Sequence") {
    steps.push_back(step);
    return;
  }
  const JsonField items = step.at(list);
  for (std::size_t i = 0; i < items.size(); ++i) flatten(items[i], list, steps);
}

std::vector<JsonField> steps_of(const JsonField& root, std::string_view key, std::string_view list) {
  std::vector<JsonField> steps;
  if (const auto step = root.find(key)) flatten(*step, list, steps);
  return steps;
}

class TokenizerJsonReader {
 public:
  TokenizerJsonReader(const std::string& name, const nlohmann::json& root) : root_(name, root) {
    data_.source = name;
    data_.field_prefix = "model.";
  }

  VocabularyData read() {
    const std::vector<JsonField> cuts = steps_of(root_, "pre_tokenizer", "pretokenizers");
    const std::vector<JsonField> decoders = steps_of(root_, "decoder", "decoders");
    const auto is_byte_level = [](const JsonField& step) { return step.at("type").string() == "ByteLevel"; };
    is_byte_level_ = std::ranges::any_of(cuts, is_byte_level);
    data_.model = is_byte_level_ ? "gpt2" : "llama";
    read_model(root_.at("model"));
    read_added_tokens();
    read_normalizer();
    if (is_byte_level_) {
      read_byte_level_cuts(cuts);
      for (const JsonField& step : decoders) {
        if (!is_byte_level(step)) step.at("type").refuse("ByteLevel, as the pre-tokenizer is");
      }
    } else {
      read_sentencepiece_cuts(cuts);
      read_sentencepiece_decoders(decoders);
    }
    read_post_processor();
    data_.types.resize(data_.tokens.size(), TokenType::normal);
    return std::move(data_);
  }

 private:
  void read_model(const JsonField& model) {
    if (const auto type = model.find("type"); type && type->string() != "BPE") type->refuse("BPE");
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (const auto field = model.find(key); field && !field->string().empty()) field->refuse("null");
    }
    if (const auto dropout = model.find("dropout"); dropout && dropout->number() != 0) dropout->refuse("null");
    data_.ignore_merges = model.boolean("ignore_merges", false);
    data_.fuse_unknown = model.boolean("fuse_unk", false);
    read_tokens(model.at("vocab"));
    read_merges(model.at("merges"));
    const bool byte_fallback = model.boolean("byte_fallback", false);
    if (is_byte_level_ && byte_fallback) model.at("byte_fallback").refuse("false with ByteLevel");
    if (!is_byte_level_ && data_.ignore_merges) model.at("ignore_merges").refuse("false without ByteLevel");
    for (std::size_t i = 0; byte_fallback && i < data_.tokens.size(); ++i) {
      if (is_byte_token(data_.tokens[i])) data_.types[i] = TokenType::byte;
    }
    if (const auto unknown = model.find("unk_token")) {
      const auto found = std::ranges::find(data_.tokens, unknown->string());
      if (found == data_.tokens.end()) unknown->refuse("a token of the vocabulary");
      data_.unknown = static_cast<TokenId>(found - data_.tokens.begin());
      data_.types[static_cast<std::size_t>(*data_.unknown)] = TokenType::unknown;
    }
  }

  static bool is_byte_token(std::string_view token) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    return token.size() == 6 && token.starts_with("<0x") && token[5] == '>' &&
           digits.find(token[3]) != std::string_view::npos && digits.find(token[4]) != std::string_view::npos;
  }

  void read_tokens(const JsonField& vocabulary) {
    vocabulary.require_object();
    const auto& members = vocabulary.json().get_ref<const nlohmann::json::object_t&>();
    const JsonField added = root_.find("added_tokens").value_or(root_.at("model"));
    most_ids_ = members.size() + (added.json().is_array() ? added.size() : 0) + kMaxUnusedIds;
    for (const auto& [token, id] : members) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= most_ids_) {
        vocabulary.at(token).refuse(fmt::format("an id below {}", most_ids_));
      }
      put(id.get<std::size_t>(), token, [&] { return vocabulary.at(token); });
    }
  }

  /// Puts a token at its id; what has no token stays unused.
  template <class Field>
  void put(std::size_t id, const std::string& token, const Field& field) {
    if (id >= data_.tokens.size()) {
      data_.tokens.resize(id + 1);
      data_.types.resize(id + 1, TokenType::unused);
      taken_.resize(id + 1);
    }
    if (taken_[id] && data_.tokens[id] != token) {
      field().refuse(fmt::format("an id that token {} does not have", headrace::quoted(data_.tokens[id])));
    }
    taken_[id] = true;
    data_.tokens[id] = token;
    data_.types[id] = TokenType::normal;
  }

  /// Both forms: "a b" and ["a", "b"].
  void read_merges(const JsonField& merges) {
    const std::size_t count = merges.size();
    data_.merges.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const nlohmann::json& merge = merges.json()[i];
      if (merge.is_string()) {
        data_.merges.push_back(merge.get_ref<const std::string&>());
        continue;
      }
      if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string()) {
        merges[i].refuse("\"a b\" or [\"a\", \"b\"]");
      }
      const auto& left = merge[0].get_ref<const std::string&>();
      const auto& right = merge[1].get_ref<const std::string&>();
      if (left.find(' ') != std::string::npos) merges[i][0].refuse("a token without spaces");
      if (right.find(' ') != std::string::npos) merges[i][1].refuse("a token without spaces");
      data_.merges.push_back(left + " " + right);
    }
  }

  void read_added_tokens() {
    const auto added = root_.find("added_tokens");
    for (std::size_t i = 0; added && i < added->size(); ++i) {
      const JsonField token = (*added)[i];
      const std::uint64_t id = token.at("id").u64();
      if (id >= most_ids_) token.at("id").refuse(fmt::format("an id below {}", most_ids_));
      if (token.boolean("single_word", false)) token.at("single_word").refuse("false");
      const auto place = static_cast<std::size_t>(id);
      put(place, token.at("content").string(), [&] { return token.at("id"); });
      const bool is_special = token.boolean("special", false);
      const bool is_unknown = data_.unknown == static_cast<TokenId>(id);
      data_.types[place] = is_unknown ? TokenType::unknown : is_special ? TokenType::control : TokenType::user_defined;
      data_.added_flags.resize(std::max(data_.added_flags.size(), place + 1));
      data_.added_flags[place] = {token.boolean("lstrip", false), token.boolean("rstrip", false),
                                  token.boolean("normalized", !is_special)};
    }
    if (data_.unknown) data_.types[static_cast<std::size_t>(*data_.unknown)] = TokenType::unknown;
  }

  void read_normalizer() {
    // What SentencePiece's BPE needs may stand here or be the pre-tokenizer Metaspace.
    for (const JsonField& step : steps_of(root_, "normalizer", "normalizers")) {
      const JsonField type = step.at("type");
      if (is_byte_level_) {
        if (type.string() != "NFC") type.refuse("NFC (others are not supported with ByteLevel)");
        data_.normalize_nfc = true;
      } else if (type.string() == "Prepend") {
        if (step.at("prepend").string() != kSpace) step.at("prepend").refuse("'\u2581'");
        if (replaces_spaces_) type.refuse("Prepend before Replace");
        data_.space_prefix = SpacePrefix::always;
      } else if (type.string() == "Replace") {
        check_replace(step, " ", kSpace);
        replaces_spaces_ = true;
      } else {
        type.refuse("Prepend or Replace (others are not supported without ByteLevel)");
      }
    }
  }

  static void check_replace(const JsonField& step, std::string_view from, std::string_view to) {
    const JsonField pattern = step.at("pattern").at("String");
    if (pattern.string() != from) pattern.refuse(fmt::format("'{}'", from));
    if (step.at("content").string() != to) step.at("content").refuse(fmt::format("'{}'", to));
  }

  void read_byte_level_cuts(const std::vector<JsonField>& steps) {
    std::vector<std::string> patterns;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const JsonField& step = steps[i];
      const JsonField type = step.at("type");
      if (type.string() == "Split") {
        const JsonField pattern = step.at("pattern");
        if (step.at("behavior").string() != "Isolated") step.at("behavior").refuse("Isolated");
        if (step.boolean("invert", false)) step.at("invert").refuse("false");
        patterns.push_back(pattern.at("Regex").string());
      } else if (type.string() == "Digits") {
        patterns.emplace_back(step.boolean("individual_digits", false) ? single_digits_regex : R"(\p{N}+)");
      } else if (type.string() == "ByteLevel") {
        if (i + 1 != steps.size()) type.refuse("ByteLevel as the last pre-tokenizer");
        if (step.boolean("add_prefix_space", true)) {
          if (i != 0) step.at("add_prefix_space").refuse("false behind other pre-tokenizers");
          data_.space_prefix = SpacePrefix::unless_space;
        }
        if (step.boolean("use_regex", true)) patterns.emplace_back(byte_level_regex);
      } else {
        type.refuse("Split, Digits or ByteLevel (others are not supported)");
      }
    }
    for (const std::string& pattern : patterns) static_cast<void>(find_word_pattern(pattern, data_.source));
    data_.word_patterns = std::move(patterns);
  }

  void read_sentencepiece_cuts(const std::vector<JsonField>& steps) {
    if (steps.empty()) {
      if (!replaces_spaces_) {
        fail<InputError>("{}: pre_tokenizer: expected ByteLevel or Metaspace, or the normalizer Replace, found none",
                         data_.source);
      }
      return;
    }
    const JsonField type = steps[0].at("type");
    if (steps.size() != 1 || type.string() != "Metaspace") type.refuse("one Metaspace (others are not supported)");
    if (replaces_spaces_ || data_.space_prefix != SpacePrefix::never) {
      type.refuse("no pre-tokenizer with the normalizers Prepend and Replace");
    }
    if (steps[0].at("replacement").string() != kSpace) steps[0].at("replacement").refuse("'\u2581'");
    if (steps[0].boolean("split", true)) {
      fail<InputError>("{}: {}.split: expected false, found true", data_.source, steps[0].path());
    }
    const std::string scheme = steps[0].string("prepend_scheme", "always");
    if (scheme != "always" && scheme != "first" && scheme != "never") {
      steps[0].at("prepend_scheme").refuse("always, first or never");
    }
    data_.space_prefix = scheme == "never" ? SpacePrefix::never : SpacePrefix::unless_space;
    data_.prefix_only_at_start = scheme == "first";
    data_.spaces_behind_added = true;
  }

  void read_sentencepiece_decoders(const std::vector<JsonField>& steps) {
    for (const JsonField& step : steps) {
      const JsonField type = step.at("type");
      if (type.string() == "Replace") {
        check_replace(step, kSpace, " ");
      } else if (type.string() == "Strip") {
        const bool is_one_space =
            step.at("content").string() == " " && step.at("start").u64() == 1 && step.at("stop").u64() == 0;
        if (!is_one_space) type.refuse("Strip of one space at the start");
        data_.strip_leading_space = true;
      } else if (type.string() != "ByteFallback" && type.string() != "Fuse") {
        type.refuse("Replace, ByteFallback, Fuse or Strip (others are not supported)");
      }
    }
  }

  void read_post_processor() {
    data_.add_bos = false;
    data_.add_eos = false;
    for (const JsonField& step : steps_of(root_, "post_processor", "processors")) {
      const JsonField type = step.at("type");
      if (type.string() == "ByteLevel") continue;  // it moves offsets only
      if (type.string() != "TemplateProcessing") type.refuse("ByteLevel or TemplateProcessing");
      read_template(step);
    }
  }

  void read_template(const JsonField& step) {
    const JsonField parts = step.at("single");
    bool is_behind = false;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const JsonField part = parts[i];
      if (part.find("Sequence")) {
        if (is_behind) part.refuse("the text once");
        is_behind = true;
        continue;
      }
      const JsonField token = part.at("SpecialToken").at("id");
      const JsonField ids = step.at("special_tokens").at(token.string()).at("ids");
      std::optional<bool>& adds = is_behind ? data_.add_eos : data_.add_bos;
      if (*adds || ids.size() != 1) token.refuse("at most one token before and one behind the text");
      const std::uint64_t id = ids[0].u64();
      if (id >= data_.tokens.size()) ids[0].refuse(fmt::format("an id below {}", data_.tokens.size()));
      adds = true;
      (is_behind ? data_.eos : data_.bos) = static_cast<TokenId>(id);
    }
  }

  JsonField root_;
  VocabularyData data_;
  std::vector<bool> taken_;  ///< by id
  std::size_t most_ids_ = 0;
  bool is_byte_level_ = false;
  bool replaces_spaces_ = false;
};

}  // namespace

VocabularyData read_tokenizer_json(const std::string& name, std::string_view text) {
  const nlohmann::json root = formats::parse_json(name, text);
  return TokenizerJsonReader(name, root).read();
}

}  // namespace headrace::text
