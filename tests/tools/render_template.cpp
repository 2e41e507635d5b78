// Renders Jinja templates for tests/python/test_templates.py: JSON lines {"template", "variables", "now"} in, one line
// {"text"} or {"error"} out for each. "now" is [year, month, day, hour, minute, second].
#include <ctime>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "text/jinja/evaluator.hpp"
#include "text/jinja/parser.hpp"

namespace {

nlohmann::ordered_json answer(const nlohmann::ordered_json& request) {
  std::tm now{};
  if (const auto given = request.find("now"); given != request.end()) {
    now.tm_year = given->at(0).get<int>() - 1900;
    now.tm_mon = given->at(1).get<int>() - 1;
    now.tm_mday = given->at(2).get<int>();
    now.tm_hour = given->at(3).get<int>();
    now.tm_min = given->at(4).get<int>();
    now.tm_sec = given->at(5).get<int>();
    now.tm_isdst = -1;
    std::mktime(&now);
  }
  try {
    const auto parsed = headrace::text::jinja::parse(request.at("template").get<std::string>(), "template", {});
    return {{"text", headrace::text::jinja::render(parsed, request.at("variables"), now)}};
  } catch (const headrace::InputError& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << answer(nlohmann::ordered_json::parse(line)).dump() << std::endl;
  }
}
