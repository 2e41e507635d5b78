// Jinja templates from bytes: whatever they are, rendering ends in time with text or an InputError.
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "text/jinja/evaluator.hpp"
#include "text/jinja/parser.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using nlohmann::ordered_json;
  static const ordered_json variables = {
      {"messages",
       {{{"role", "user"}, {"content", "Hi \xC3\xBC <b>"}}, {{"role", "assistant"}, {"content", nullptr}, {"n", 1.5}}}},
      {"tools", {{{"name", "f"}, {"parameters", {{"type", "object"}}}}}},
      {"x", -7},
      {"add_generation_prompt", true}};
  headrace::text::jinja::Limits limits;
  limits.work = 20'000;  // so that an input takes milliseconds
  try {
    const std::string_view source(reinterpret_cast<const char*>(data), size);
    const auto parsed = headrace::text::jinja::parse(source, "template", limits);
    static_cast<void>(headrace::text::jinja::render(parsed, variables, std::tm{}, limits));
  } catch (const headrace::InputError&) {
  }
  return 0;
}
