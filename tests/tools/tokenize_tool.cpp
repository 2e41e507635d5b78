// Lets Python compare the tokenizer: tokenize_tool MODEL.gguf or tokenizer.json reads JSON lines {"text",
// "add_special", "parse_special"} and answers each with {"ids", "text" (decoded), "streamed" (decoded token by token)}.
#include <cstdint>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "formats/gguf.hpp"
#include "text/gguf_vocabulary.hpp"
#include "text/tokenizer.hpp"
#include "text/tokenizer_json.hpp"

namespace {

headrace::text::VocabularyData read(const std::string& path) {
  if (path.ends_with(".json")) {
    return headrace::text::read_tokenizer_json(path, headrace::read_text(path, std::uint64_t{1} << 30));
  }
  return headrace::text::read_vocabulary(headrace::formats::Gguf::read(headrace::File(path)));
}

}  // namespace

int main(int argc, char** argv) try {
  using nlohmann::json;
  if (argc != 2) throw headrace::UsageError("usage: tokenize_tool MODEL.gguf|tokenizer.json");
  const headrace::text::Tokenizer tokenizer(read(argv[1]));
  std::string line;
  while (std::getline(std::cin, line)) {
    const json request = json::parse(line);
    headrace::text::EncodeOptions options;
    options.add_special = request.at("add_special").get<bool>();
    options.parse_special = request.at("parse_special").get<bool>();
    const auto ids = tokenizer.encode(request.at("text").get<std::string>(), options);
    headrace::text::StreamingDecoder decoder(tokenizer, false);
    std::string streamed;
    for (const auto id : ids) streamed += decoder.push(id);
    streamed += decoder.flush();
    std::cout << json{{"ids", ids}, {"text", tokenizer.decode(ids, false)}, {"streamed", streamed}} << std::endl;
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << "tokenize_tool: " << error.what() << "\n";
  return 1;
}
