// The Jinja engine alone: what it prints, what it refuses and how it says so, and the bounds that hold for any
// template. tests/python/test_templates.py compares it with jinja2 at length.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "text/chat_template.hpp"
#include "text/jinja/evaluator.hpp"
#include "text/jinja/parser.hpp"

namespace headrace::text {
namespace {

using nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string rendered(const std::string& source, const ordered_json& variables = ordered_json::object(),
                     const jinja::Limits& limits = {}) {
  const std::tm now{};
  return jinja::render(jinja::parse(source, "t", limits), variables, now, limits);
}

std::string error_of(const std::string& source, const ordered_json& variables = ordered_json::object(),
                     const jinja::Limits& limits = {}) {
  try {
    return "no error, but: " + rendered(source, variables, limits).substr(0, 200);
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

TEST(Jinja, PrintsValuesAsPythonDoes) {
  EXPECT_EQ(rendered("{{ [1, 2.0, 1e16, true, none, 'a\\'b', {'k': (1,)}] }}"),
            "[1, 2.0, 1e+16, True, None, \"a'b\", {'k': (1,)}]");
  EXPECT_EQ(rendered("{{ 7 // -2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** -1 }} {{ 0.1 + 0.2 }}"),
            "-4 2 3.5 0.5 0.30000000000000004");
  EXPECT_EQ(rendered("{{ 'naïve 😀'[-1] }}{{ 'naïve'[::-1] }}{{ 'abc'[1:] }}"), "😀evïanbc");
}

TEST(Jinja, TrimsBlocksAndStripsTheirIndentation) {
  EXPECT_EQ(rendered("a\n  {% if true %}\n  b\n  {% endif %}\nc\n"), "a\n  b\nc");
  EXPECT_EQ(rendered("a\n  {%+ if true %}\nb{% endif %}"), "a\n  b");
  EXPECT_EQ(rendered("a  {{- ' b ' -}}  c"), "a b c");
  EXPECT_EQ(rendered("{% raw %}{{ x }}{% endraw %}{# gone #}!"), "{{ x }}!");
}

TEST(Jinja, ScopesAreThoseOfJinja2) {
  EXPECT_EQ(rendered("{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{% endfor %}{{ x }}"), "1");
  EXPECT_EQ(rendered("{% set n = namespace(x=1) %}{% for i in [1] %}{% set n.x = 2 %}{% endfor %}{{ n.x }}"), "2");
  EXPECT_EQ(rendered("{% if true %}{% set x = 3 %}{% endif %}{{ x }}"), "3");
  EXPECT_EQ(rendered("{% macro m(a, b=a ~ '!') %}{{ a }}{{ b }}{{ caller() }}{% endmacro %}"
                     "{% call m('x') %}body{% endcall %}"),
            "xx!body");
}

TEST(Jinja, ErrorsNameTheTemplateTheLineTheExpectedAndTheFound) {
  EXPECT_EQ(error_of("a\n{% if x %}\n"),
            "t:2: expected '{% elif %}' or '{% else %}' or '{% endif %}', found the end "
            "of the template");
  EXPECT_EQ(error_of("\n\n{{ x.y }}"), "t:3: 'x' is undefined");
  EXPECT_EQ(error_of("{{ 1 + 'a' }}"), "t:1: '+': expected operands that fit together, found int and str");
  EXPECT_EQ(error_of("{{ x|nope }}"), "t:1: expected a known filter, found 'nope'");
  EXPECT_EQ(error_of("{{ (1 }}"), "t:1: expected ')', found '}'");
  EXPECT_EQ(error_of("\xff"), "t:1: expected UTF-8 text, found invalid bytes");
  EXPECT_EQ(error_of("{{ raise_exception('No\\nway') }}"), "t:1: No way");
  EXPECT_EQ(error_of("{{ [].append(1) }}"), "t:1: expected something to call: list has no attribute or item 'append'");
  EXPECT_THAT(error_of("{{ 9223372036854775807 + 1 }}"), HasSubstr("at most 64 bits"));
}

TEST(JinjaBounds, NestingOfTheSource) {
  struct Nest {
    const char *open, *inside, *close;
  };
  for (const auto& [open, inside, close] : std::initializer_list<Nest>{{"(", "1", ")"},
                                                                       {"[", "", "]"},
                                                                       {"not ", "1", ""},
                                                                       {"-", "1", ""},
                                                                       {"{1:", "1", "}"},
                                                                       {"x[", "1", "]"},
                                                                       {"x(", "", ")"},
                                                                       {"x is eq(", "1", ")"},
                                                                       {"1 if 1 else ", "1", ""}}) {
    EXPECT_THAT(error_of("{{ " + repeated(open, 100'000) + inside + repeated(close, 100'000) + " }}"),
                AllOf(StartsWith("t:1: "), HasSubstr("nested at most")))
        << open;
  }
  for (const char* link : {"+1", ".x", "|abs", " and 1", " ** 1", "[0]", "()", " if 1"}) {
    EXPECT_THAT(error_of("{{ x" + repeated(link, 50'000) + " }}"), HasSubstr("levels")) << link;
  }
  EXPECT_THAT(error_of(repeated("{% if 1 %}", 100'000)), HasSubstr("nested at most"));
  EXPECT_THAT(error_of("{% set " + repeated("(", 9999) + "x" + repeated(")", 9999) + " = 1 %}"),
              HasSubstr("nested at most"));
}

TEST(JinjaBounds, NestingOfEvaluationAndValues) {
  EXPECT_THAT(error_of("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), HasSubstr("evaluation nested at most"));
  EXPECT_THAT(error_of("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"), HasSubstr("evaluation nested"));
  EXPECT_THAT(error_of("{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}"),
              HasSubstr("containers nested at most"));
  EXPECT_THAT(error_of("{% set n = namespace() %}{% set n.x = [n] %}{{ n }}"), HasSubstr("nested at most"));
  ordered_json deep = 1;
  for (int i = 0; i < 1000; ++i) deep = ordered_json::array({std::move(deep)});
  EXPECT_THAT(error_of("{{ x }}", {{"x", std::move(deep)}}), HasSubstr("containers nested at most"));
}

TEST(JinjaBounds, ChainsOfNamespacesAreFreedWithoutRecursion) {
  EXPECT_EQ(rendered("{% set n = namespace(x=none) %}{% for i in range(90000) %}"
                     "{% set n.x = namespace(x=n.x) %}{% endfor %}done"),
            "done");
}

TEST(JinjaBounds, WorkAndMemory) {
  const std::string loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
  const char* const sources[] = {
      "{{ 'a' * 10**9 }}",
      "{{ [1] * 10**12 }}",
      "{{ 'a' * 10**18 }}",
      "{{ ('a' * 10**6)|replace('a', 'a' * 10**6) }}",
      "{{ ('a' * 10**6).replace('', 'b' * 10**6) }}",
      "{{ ('\\n' * 10**6)|indent(10**6) }}",
      "{{ 'x'.center(10**12) }}",
      "{{ ([1] * 10**6)|join('a' * 10**6) }}",
      "{{ '%99999s' * 10**4 % ((1,) * 10**4) }}",
      "{% set n = namespace(l=[1]) %}{% for i in range(999) %}{% set n.l = n.l + n.l %}{% endfor %}",
      "{% set n = namespace(l='a') %}{% for i in range(999) %}{% set n.l = n.l ~ n.l %}{% endfor %}",
      "{% set n = namespace(l=[]) %}{% for i in range(99) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}",
      "{% set l = range(99999)|list %}{% for i in l %}{{ -1 in l }}{% endfor %}",
      "{% set s = 'a' * 10**6 %}{% for i in range(99999) %}{{ 'b' in s }}{% endfor %}",
      "{{ ([[0] * 9] * 99999)|sum(start=[]) }}",
      "{{ [1]|slice(10**12)|list }}",
      "{{ [1]|batch(10**12, 0)|list }}",
  };
  for (const std::string source : sources) EXPECT_THAT(error_of(source), HasSubstr("units of work")) << source;
  EXPECT_THAT(error_of(loops), HasSubstr("units of work"));
  EXPECT_THAT(error_of("{{ range(10**9) }}"), HasSubstr("at most 100000 items"));
  EXPECT_THAT(error_of("{{ '{:>9999999}'.format(1) }}"), HasSubstr("width"));
}

TEST(JinjaBounds, OutputAndSource) {
  jinja::Limits limits;
  limits.output_bytes = 1000;
  EXPECT_EQ(rendered("{{ 'a' * 1000 }}", {}, limits).size(), 1000U);
  EXPECT_THAT(error_of("{% for i in range(11) %}{{ 'a' * 100 }}{% endfor %}", {}, limits),
              HasSubstr("at most 1000 bytes of output"));
  limits.source_bytes = 10;
  EXPECT_THAT(error_of("12345678901", {}, limits), HasSubstr("at most 10 bytes of template"));
}

TEST(JinjaBounds, LargeInputBringsItsOwnBudget) {
  // A conversation of 20 MB is copied a few times; that is no attack.
  const std::string text(20'000'000, 'x');
  EXPECT_EQ(rendered("{{ (m|trim ~ '.')|upper|length }}", {{"m", text}}), "20000001");
}

constexpr const char* chatml =
    "{% for m in messages %}{{ '<|' ~ m.role ~ '|>' ~ m.content ~ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}{% if tools %}T{% endif %}{{ extra }}";

TEST(ChatTemplate, RendersWithTransformersVariables) {
  const ChatTemplate chat(chatml, "<s>", "</s>");
  const ordered_json messages = {{{"role", "user"}, {"content", "Hi"}}};
  EXPECT_EQ(chat.render(messages), "<|user|>Hi</s><|assistant|>");
  EXPECT_EQ(chat.render(messages, {1}, false, {{"extra", "E"}}), "<|user|>Hi</s>TE");
  EXPECT_EQ(ChatTemplate("{{ bos_token is defined }}", "", "").render(messages), "False");
}

TEST(ChatTemplate, ErrorsAreInputErrors) {
  EXPECT_THROW(ChatTemplate("{% if %}", "", ""), InputError);
  const ChatTemplate chat("{{ raise_exception('roles must alternate') }}", "", "");
  EXPECT_THAT([&] { static_cast<void>(chat.render(ordered_json::array())); },
              testing::ThrowsMessage<InputError>("chat template:1: roles must alternate"));
  EXPECT_THAT([&] { static_cast<void>(chat.render("text")); },
              testing::ThrowsMessage<InputError>("messages: expected a list, found string"));
}

TEST(ChatTemplate, TimeIsGivenOrLocal) {
  const ChatTemplate chat("{{ strftime_now('%Y-%m-%d') }}", "", "");
  std::tm now{};
  now.tm_year = 126;
  now.tm_mon = 2;
  now.tm_mday = 4;
  EXPECT_EQ(chat.render(ordered_json::array(), nullptr, true, ordered_json::object(), now), "2026-03-04");
  EXPECT_THAT(chat.render(ordered_json::array()), testing::MatchesRegex("20..-..-.."));
}

}  // namespace
}  // namespace headrace::text
