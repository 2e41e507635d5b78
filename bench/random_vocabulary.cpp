#include "random_vocabulary.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace headrace::bench {
namespace {

/// As GGUF numbers them.
enum TokenType : std::int32_t { normal = 1, control = 3, unused = 5 };

/// The character that stands for a byte in GPT-2's byte-level BPE: itself if it is printable Latin-1, else the next one
/// from U+0100 on.
std::string character_of(int byte, int& next) {
  const bool is_printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  const int code = is_printable ? byte : next++;
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

}  // namespace

std::vector<formats::GgufEntry> vocabulary_entries(std::int64_t tokens) {
  StringArray names;
  StringArray merges;
  std::vector<std::int32_t> types;
  const auto add = [&](std::string_view name, TokenType type) {
    names.append(name);
    types.push_back(type);
  };
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) add(character_of(byte, next), normal);
  const auto begin = static_cast<std::uint32_t>(types.size());
  add("<|begin|>", control);
  add("<|end|>", control);
  const auto room = [&] { return static_cast<std::int64_t>(types.size()) < tokens; };
  const auto merge = [&](const std::string& left, const std::string& right) {
    if (!room()) return;
    add(left + right, normal);
    merges.append(left + " " + right);
  };
  constexpr std::string_view letters = "etaoinshrdlcumwfgypbvkjxqz";  // by how often English has them
  const std::string space = "\xc4\xa0";                               // U+0120 stands for the space
  for (const char letter : letters) merge(space, {letter});
  for (const char left : letters) {
    for (const char right : letters) merge({left}, {right});
  }
  for (std::int64_t i = 0; room(); ++i) add(fmt::format("<|unused_{}|>", i), unused);

  std::vector<formats::GgufEntry> entries;
  entries.push_back(formats::gguf_entry("tokenizer.ggml.model", "gpt2"));
  entries.push_back(formats::gguf_entry("tokenizer.ggml.pre", "gpt-2"));
  entries.push_back(formats::gguf_entry("tokenizer.ggml.tokens", names));
  entries.push_back(formats::gguf_entry("tokenizer.ggml.token_type", std::span<const std::int32_t>(types)));
  entries.push_back(formats::gguf_entry("tokenizer.ggml.merges", merges));
  entries.push_back(formats::gguf_entry("tokenizer.ggml.bos_token_id", begin));
  entries.push_back(formats::gguf_entry("tokenizer.ggml.eos_token_id", begin + 1));
  entries.push_back(formats::gguf_entry("tokenizer.ggml.add_bos_token", false));
  entries.push_back(formats::gguf_entry("tokenizer.chat_template",
                                        "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"));
  return entries;
}

}  // namespace headrace::bench
