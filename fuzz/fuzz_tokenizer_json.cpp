// A tokenizer.json of any bytes, and any text: nothing but InputError with a message of one line may come out, and what
// is encoded decodes in pieces as it does at once. Input: the JSON; behind a byte FE, a text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "checks.hpp"
#include "text/tokenizer.hpp"
#include "text/tokenizer_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headrace::text;
  using headrace::fuzz::check;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\xFE'), size);
  const std::string_view text = input.substr(std::min(end + 1, size));
  try {
    const Tokenizer tokenizer(read_tokenizer_json("fuzz", input.substr(0, end)));
    for (const bool special : {false, true}) {
      const std::vector<TokenId> ids = tokenizer.encode(text, {.add_special = special, .parse_special = special});
      StreamingDecoder decoder(tokenizer, false);
      std::string streamed;
      for (const TokenId id : ids) streamed += decoder.push(id);
      check(streamed + decoder.flush() == tokenizer.decode(ids, false));
    }
  } catch (const headrace::InputError& error) {
    check(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
