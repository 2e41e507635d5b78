// headrace tokenize: text to token ids, and back.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/quote.hpp"
#include "cli/load.hpp"
#include "cli/options.hpp"
#include "cli/verb.hpp"

namespace headrace::cli {

namespace {

/// Ids take a few times the text's bytes.
constexpr std::uint64_t text_limit_bytes = std::uint64_t{1} << 30;

struct Options {
  std::string model;
  std::string file = "-";
  bool decode = false;
  bool no_special = false;
  bool no_parse_special = false;
  bool json = false;
};

std::vector<text::TokenId> parse_ids(std::string_view text, const text::Tokenizer& tokenizer) {
  constexpr std::string_view white_space = " \t\r\n\v\f";
  std::vector<text::TokenId> ids;
  for (std::size_t begin = text.find_first_not_of(white_space); begin != std::string_view::npos;
       begin = text.find_first_not_of(white_space, begin)) {
    const std::size_t end = std::min(text.find_first_of(white_space, begin), text.size());
    const std::string word(text.substr(begin, end - begin));
    const std::optional<text::TokenId> id = parse_number<text::TokenId>(word);
    if (!id || *id < 0 || static_cast<std::size_t>(*id) >= tokenizer.vocabulary_size()) {
      fail<InputError>("token id {}: expected a number from 0 to {}, found {}", ids.size(),
                       tokenizer.vocabulary_size() - 1, headrace::quoted(word));
    }
    ids.push_back(*id);
    begin = end;
  }
  return ids;
}

int tokenize(const Options& options, Invocation& invocation) {
  Console& console = invocation.console;
  const models::ModelFile file = open_model(options.model, invocation.environment);
  const text::Tokenizer& tokenizer = file.tokenizer();
  const std::string input = read_text(options.file, text_limit_bytes);
  if (options.decode) {
    const std::vector<text::TokenId> ids = parse_ids(input, tokenizer);
    const std::string text = tokenizer.decode(ids, /*skip_control=*/false);
    if (options.json) {
      console.write_json({{"text", text}, {"token_ids", ids}});
    } else {
      // Exactly the text, unless a person looks at it.
      console.write(console.out_is_terminal() ? text + "\n" : text);
    }
    return 0;
  }
  const std::vector<text::TokenId> ids =
      tokenizer.encode(input, {.add_special = !options.no_special, .parse_special = !options.no_parse_special});
  if (options.json) {
    console.write_json({{"token_ids", ids}});
  } else {
    console.write(fmt::format("{}\n", fmt::join(ids, " ")));
  }
  return 0;
}

std::function<int(Invocation&)> declare(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_model(app, options->model);
  add_text(app, "-f,--file", "FILE", "read this file; - is standard input", options->file);
  CLI::Option* decode =
      add_flag(app, "--decode", "read ids, separated by white space, and write their text", options->decode);
  exclude(add_flag(app, "--no-special", "add no BOS and EOS", options->no_special), decode);
  exclude(add_flag(app, "--no-parse-special", "control tokens that stand in the text are plain text",
                   options->no_parse_special),
          decode);
  add_json(app, options->json);
  return [options](Invocation& invocation) { return tokenize(*options, invocation); };
}

}  // namespace

Verb verb_tokenize() {
  return {.name = "tokenize",
          .summary = "text to token ids, and back",
          .details =
              "Reads standard input to its end and prints the ids on one line, with BOS and EOS where the vocabulary "
              "says so.\n"
              "Control tokens in the text (such as <|im_end|>) become their ids. Bytes that are no UTF-8 are read as "
              "U+FFFD.\n"
              "",
          .example =
              "  printf 'Hello world' | headrace tokenize smollm2\n"
              "  echo '19556 905' | headrace tokenize smollm2 --decode",
          .declare = declare};
}

}  // namespace headrace::cli
