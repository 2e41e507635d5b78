// Filters that make text of one value.
#include <algorithm>
#include <array>

#include "base/checked.hpp"
#include "text/jinja/format.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/registry.hpp"
#include "text/jinja/string_methods.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {
namespace {

bool is_safe(const Value& value) { return value.is_string() && value.string()->safe; }

/// A text filter without arguments; what it makes of Markup is Markup.
template <std::string (*function)(std::string_view)>
Value map_text(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "filter", arguments, {});
  const std::string text = text_of(runtime, input);
  runtime.charge_bytes(text.size() * 4);
  return runtime.string(function(text), is_safe(input));
}

/// jinja2's own title: words start after white space and after ( { [ < and -.
std::string title(std::string_view text) {
  std::string out;
  std::string word;
  const auto flush = [&] {
    // item[0].upper() + item[1:].lower(), so the first character is upper case, not title case.
    std::size_t first = 0;
    if (!word.empty()) {
      static_cast<void>(unicode::next(word, first));
      out += unicode::upper(std::string_view(word).substr(0, first));
      out += unicode::lower(std::string_view(word).substr(first));
    }
    word.clear();
  };
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    const char32_t c = unicode::next(text, offset);
    if (unicode::is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<') {
      flush();
      out += text.substr(start, offset - start);
    } else {
      word += text.substr(start, offset - start);
    }
  }
  flush();
  return out;
}

Value trim(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "trim", arguments, {"chars"});
  const bool given = parameters.has(0) && !parameters[0].is_none();
  const std::string text = text_of(runtime, input);
  return runtime.string(strip_characters(text, given ? &parameters.text(0) : nullptr, true, true), is_safe(input));
}

Value replace_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "replace", arguments, {"old", "new", "count"}, 2);
  const bool all = !parameters.has(2) || parameters[2].is_none();
  return runtime.string(replace(runtime, text_of(runtime, input), text_of(runtime, parameters[0]),
                                text_of(runtime, parameters[1]), all ? -1 : parameters.integer(2, -1)));
}

Value string(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "string", arguments, {});
  return input.is_string() ? input : runtime.string(text_of(runtime, input));
}

Value safe(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "safe", arguments, {});
  return runtime.string(text_of(runtime, input), true);
}

Value escape(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "escape", arguments, {});
  if (is_safe(input)) return input;
  return runtime.string(escape_html(text_of(runtime, input)), true);
}

Value force_escape(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "forceescape", arguments, {});
  return runtime.string(escape_html(text_of(runtime, input)), true);
}

Value center(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "center", arguments, {"width"});
  Arguments width;
  width.positional.emplace_back(parameters.integer(0, 80));
  const Value text = runtime.string(text_of(runtime, input), is_safe(input));
  return bind_method(runtime, text, "center")->object()->call(runtime, width);
}

Value format(Runtime& runtime, const Value& input, Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.keyword.empty()) {
    runtime.fail("format: expected positional or keyword arguments, found both");
  }
  const Value text = runtime.string(text_of(runtime, input), is_safe(input));
  if (arguments.keyword.empty()) {
    const Value values = runtime.sequence(std::move(arguments.positional), Sequence::Kind::tuple);
    return format_percent(runtime, *text.string(), values);
  }
  DictBuilder builder(runtime);
  for (auto& [name, value] : arguments.keyword) builder.set(runtime.string(name), std::move(value));
  return format_percent(runtime, *text.string(), builder.finish());
}

Value indent(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "indent", arguments, {"width", "first", "blank"});
  std::string indention;
  if (parameters.has(0) && parameters[0].is_string()) {
    indention = parameters.text(0);
  } else {
    const std::int64_t width = std::max<std::int64_t>(parameters.integer(0, 4), 0);
    runtime.charge_bytes(static_cast<std::size_t>(width));
    indention.assign(static_cast<std::size_t>(width), ' ');
  }
  const bool first = parameters.truth(1, false);
  const bool blank = parameters.truth(2, false);
  if (!input.is_string()) runtime.fail("indent: expected a str, found {}", type_name(input));
  const std::string text = input.string()->bytes + "\n";
  const auto lines = split_lines(text, false);
  runtime.charge_bytes(text.size());
  runtime.charge_bytes(checked_mul(lines.size() + 1, indention.size()).value_or(SIZE_MAX));
  std::string out = first ? indention : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      out += '\n';
      if (blank || !lines[i].empty()) out += indention;
    }
    out += lines[i];
  }
  return runtime.string(std::move(out), is_safe(input));
}

Value truncate(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "truncate", arguments, {"length", "killwords", "end", "leeway"});
  const std::string end = parameters.has(2) ? parameters.text(2) : "...";
  const std::int64_t leeway = parameters.has(3) && !parameters[3].is_none() ? parameters.integer(3, 5) : 5;
  const std::int64_t length = parameters.integer(0, 255);
  const auto end_length = static_cast<std::int64_t>(unicode::length(end));
  if (length < end_length || leeway < 0) {
    runtime.fail("truncate: expected a length of at least {} and a leeway of at least 0, found {} and {}", end_length,
                 length, leeway);
  }
  const std::string text = text_of(runtime, input);
  const auto size = static_cast<std::int64_t>(unicode::length(text));
  if (size <= length || size - length <= leeway) return runtime.string(text, is_safe(input));
  std::string kept = text.substr(0, unicode::byte_offset(text, static_cast<std::size_t>(length - end_length)));
  if (!parameters.truth(1, false)) kept = kept.substr(0, std::min(kept.rfind(' '), kept.size()));
  return runtime.string(kept + end, is_safe(input));
}

Value word_count(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "wordcount", arguments, {});
  const std::string text = text_of(runtime, input);
  std::int64_t count = 0;
  bool inside = false;
  for (std::size_t offset = 0; offset < text.size();) {
    const bool word = unicode::is_word(unicode::next(text, offset));
    count += word && !inside ? 1 : 0;
    inside = word;
  }
  return count;
}

Value url_encode(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters none(runtime, "urlencode", arguments, {});
  if (!input.is_string() && is_iterable(input)) runtime.fail("urlencode: expected a str, found {}", type_name(input));
  constexpr std::string_view plain = "_.-~/";
  const std::string text = text_of(runtime, input);
  runtime.charge_bytes(text.size() * 3);
  std::string out;
  for (const char c : text) {
    const bool keeps = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       plain.find(c) != std::string_view::npos;
    out += keeps ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return runtime.string(std::move(out));
}

/// transformers' tojson: json.dumps(x, ensure_ascii, indent, separators, sort_keys).
Value tojson(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Parameters parameters(runtime, "tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = parameters.truth(0, false);
  if (parameters.has(1) && !parameters[1].is_none()) {
    if (parameters[1].is_string()) {
      style.indent = parameters.text(1);
    } else {
      const std::int64_t width = std::max<std::int64_t>(parameters.integer(1, 0), 0);
      runtime.charge_bytes(static_cast<std::size_t>(width));
      style.indent = std::string(static_cast<std::size_t>(width), ' ');
    }
    style.item_separator = ",";
  }
  if (parameters.has(2) && !parameters[2].is_none()) {
    const auto pair = iterate(runtime, parameters[2]);
    if (pair->items.size() != 2 || !pair->items[0].is_string() || !pair->items[1].is_string()) {
      runtime.fail("tojson: expected two str as separators, found something else");
    }
    style.item_separator = pair->items[0].string()->bytes;
    style.key_separator = pair->items[1].string()->bytes;
  }
  style.sort_keys = parameters.truth(3, false);
  return runtime.string(to_json(runtime, input, style));
}

constexpr std::array<FilterEntry, 18> table{{{"capitalize", map_text<unicode::capitalize>},
                                             {"center", center},
                                             {"e", escape},
                                             {"escape", escape},
                                             {"forceescape", force_escape},
                                             {"format", format},
                                             {"indent", indent},
                                             {"lower", map_text<unicode::lower>},
                                             {"replace", replace_filter},
                                             {"safe", safe},
                                             {"string", string},
                                             {"title", map_text<title>},
                                             {"tojson", tojson},
                                             {"trim", trim},
                                             {"truncate", truncate},
                                             {"upper", map_text<unicode::upper>},
                                             {"urlencode", url_encode},
                                             {"wordcount", word_count}}};

}  // namespace

std::span<const FilterEntry> text_filters() { return table; }

}  // namespace headrace::text::jinja
