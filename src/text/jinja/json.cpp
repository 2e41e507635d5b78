// json.dumps as the tojson filter of transformers' chat templates calls it, and HTML escaping.
#include <algorithm>
#include <cmath>

#include "text/jinja/operators.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {
namespace {

class Writer {
 public:
  Writer(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  void write(const Value& value, std::size_t level) {
    runtime_.charge(1);
    if (const auto* string = value.string()) {
      write_string(string->bytes);
    } else if (value.is_none()) {
      out_ += "null";
    } else if (value.is_bool()) {
      out_ += is_true(value) ? "true" : "false";
    } else if (value.number()) {
      out_ += number_text(value);
    } else if (const auto* dict = value.dict()) {
      write_dict(*dict, level);
    } else if (const auto* sequence = value.sequence();
               sequence != nullptr &&
               (sequence->kind == Sequence::Kind::list || sequence->kind == Sequence::Kind::tuple)) {
      write_list(*sequence, level);
    } else {
      runtime_.fail("tojson: expected a value that JSON can hold, found {}", type_name(value));
    }
  }

  [[nodiscard]] std::string take() {
    runtime_.charge_bytes(out_.size());
    return std::move(out_);
  }

 private:
  static std::string number_text(const Value& value) {
    if (const auto integer = value.integer()) return fmt::format("{}", *integer);
    const double number = *value.number();
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
    return float_repr(number);
  }

  std::string key_text(const Value& key) const {
    if (const auto* string = key.string()) return string->bytes;
    if (key.is_none()) return "null";
    if (key.is_bool()) return is_true(key) ? "true" : "false";
    if (key.number()) return number_text(key);
    runtime_.fail("tojson: expected keys that are str, int, float, bool or None, found {}", type_name(key));
  }

  void break_line(std::size_t level) {
    if (!style_.indent) return;
    runtime_.charge_bytes(level * style_.indent->size());
    out_ += '\n';
    for (std::size_t i = 0; i < level; ++i) out_ += *style_.indent;
  }

  void write_list(const Sequence& sequence, std::size_t level) {
    if (sequence.items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    for (std::size_t i = 0; i < sequence.items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      break_line(level + 1);
      write(sequence.items[i], level + 1);
    }
    break_line(level);
    out_ += ']';
  }

  void write_dict(const Dict& dict, std::size_t level) {
    if (dict.entries.empty()) {
      out_ += "{}";
      return;
    }
    std::vector<const std::pair<Value, Value>*> entries;
    entries.reserve(dict.entries.size());
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
        return compare(runtime_, Comparison::less, a->first, b->first);
      });
    }
    out_ += '{';
    bool first = true;
    for (const auto* entry : entries) {
      if (!first) out_ += style_.item_separator;
      first = false;
      break_line(level + 1);
      write_string(key_text(entry->first));
      out_ += style_.key_separator;
      write(entry->second, level + 1);
    }
    break_line(level);
    out_ += '}';
  }

  void write_string(std::string_view text) {
    runtime_.charge_bytes(text.size());
    out_ += '"';
    for (std::size_t offset = 0; offset < text.size();) {
      const char32_t c = unicode::next(text, offset);
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += static_cast<char>(c);
      } else if (c == '\n') {
        out_ += "\\n";
      } else if (c == '\r') {
        out_ += "\\r";
      } else if (c == '\t') {
        out_ += "\\t";
      } else if (c == '\b') {
        out_ += "\\b";
      } else if (c == '\f') {
        out_ += "\\f";
      } else if (c < 0x20 || (style_.ensure_ascii && c >= 0x7F && c < 0x10000)) {
        if (c == 0x7F) {
          out_ += '\x7F';
        } else {
          out_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        }
      } else if (style_.ensure_ascii && c >= 0x10000) {
        const auto pair = static_cast<unsigned>(c) - 0x10000U;
        out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800U | pair >> 10U, 0xDC00U | (pair & 0x3FFU));
      } else {
        unicode::append(out_, c);
      }
    }
    out_ += '"';
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string out_;
};

}  // namespace

std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  Writer writer(runtime, style);
  writer.write(value, 0);
  return writer.take();
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace headrace::text::jinja
