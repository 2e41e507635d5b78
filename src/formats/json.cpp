// A tree built from nlohmann-json's events, which lets depth and duplicates be checked on the way; see json.hpp.
#include "formats/json.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.hpp"
#include "base/quote.hpp"

namespace headrace::formats {

namespace {

using nlohmann::json;

/// A key as a step of a path: as it is if it is a word, otherwise quoted.
std::string path_step(std::string_view key) {
  const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const bool plain = !key.empty() && key.size() <= 80 &&
                     std::ranges::all_of(key, [&](char c) { return is_word(c) || (c >= '0' && c <= '9'); }) &&
                     is_word(key.front());
  return plain ? std::string(key) : headrace::quoted(key);
}

class TreeBuilder final : public nlohmann::json_sax<json> {
 public:
  TreeBuilder(const std::string& name, std::string_view text) : name_(name), text_(text) {}

  [[nodiscard]] json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*spelling*/) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // no JSON has any
  bool start_object(std::size_t /*size*/) override { return open(json::object()); }
  bool start_array(std::size_t /*size*/) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    auto& members = open_.back()->get_ref<json::object_t&>();
    const auto [place, is_new] = members.try_emplace(std::move(key));
    if (!is_new)
      fail<InputError>("{}: expected each key of an object once, found {} twice", name_,
                       headrace::quoted(place->first));
    member_ = &place->second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const json::exception& error) override {
    // out_of_range: a number beyond double.
    const std::size_t at = std::min(position, text_.size());
    const std::size_t from = at - std::min<std::size_t>(at, 16);
    fail<InputError>("{}: byte {}: expected {}, found {}", name_, position,
                     error.id == 406 ? "numbers that a double holds" : "JSON",
                     headrace::quoted(text_.substr(from, 24)));
  }

 private:
  bool add(json value) {
    static_cast<void>(place(std::move(value)));
    return true;
  }

  bool open(json value) {
    if (open_.size() >= max_json_depth) {
      fail<InputError>("{}: expected JSON nested at most {} deep, found more", name_, max_json_depth);
    }
    open_.push_back(&place(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  json& place(json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_array()) {
      auto& items = open_.back()->get_ref<json::array_t&>();
      items.push_back(std::move(value));
      return items.back();
    }
    return *member_ = std::move(value);
  }

  const std::string& name_;
  std::string_view text_;
  json root_;
  std::vector<json*> open_;  ///< a container is not moved while one within it is open
  json* member_ = nullptr;   ///< of the innermost object, which waits for its value
};

}  // namespace

json parse_json(const std::string& name, std::string_view text) {
  TreeBuilder builder(name, text);
  const bool is_whole = json::sax_parse(text.begin(), text.end(), &builder);
  require(is_whole, "parse_json: an error that was not reported");
  return builder.take();
}

std::string describe_json(const json& value) {
  if (value.is_string()) return fmt::format("the string {}", headrace::quoted(value.get_ref<const std::string&>()));
  if (value.is_number() || value.is_boolean()) {
    return fmt::format("{}{}", value.is_number() ? "the number " : "", value.dump());
  }
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  return value.is_object() ? "an object" : "null";
}

void JsonField::refuse(std::string_view expected) const {
  fail<InputError>("{}: {}expected {}, found {}", *file_, path_.empty() ? "" : path_ + ": ", expected,
                   describe_json(*value_));
}

void JsonField::require_object() const {
  if (!value_->is_object()) refuse("an object");
}

std::optional<JsonField> JsonField::find(std::string_view key) const {
  require_object();
  const auto& members = value_->get_ref<const json::object_t&>();
  const auto found = members.find(key);
  if (found == members.end() || found->second.is_null()) return std::nullopt;
  return JsonField(*file_, found->second, path_.empty() ? path_step(key) : path_ + "." + path_step(key));
}

JsonField JsonField::at(std::string_view key) const {
  if (auto field = find(key)) return *std::move(field);
  fail<InputError>("{}: {}: expected it to be there, found {}", *file_,
                   path_.empty() ? path_step(key) : path_ + "." + path_step(key),
                   value_->contains(key) ? "null" : "none");
}

std::size_t JsonField::size() const {
  if (!value_->is_array()) refuse("an array");
  return value_->size();
}

JsonField JsonField::operator[](std::size_t i) const {
  require(i < size(), "JsonField: an item within the array");
  return {*file_, (*value_)[i], fmt::format("{}[{}]", path_, i)};
}

const std::string& JsonField::string() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get_ref<const std::string&>();
}

std::uint64_t JsonField::u64() const {
  if (!value_->is_number_unsigned()) refuse("an integer >= 0");
  return value_->get<std::uint64_t>();
}

std::int64_t JsonField::i64() const {
  const bool fits = value_->is_number_unsigned()
                        ? value_->get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}
                        : value_->is_number_integer();
  if (!fits) refuse("an integer of 64 bits");
  return value_->get<std::int64_t>();
}

double JsonField::number() const {
  if (!value_->is_number()) refuse("a number");
  return value_->get<double>();
}

bool JsonField::boolean() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::string JsonField::string(std::string_view key, std::string_view fallback) const {
  const auto field = find(key);
  return field ? field->string() : std::string(fallback);
}

bool JsonField::boolean(std::string_view key, bool fallback) const {
  const auto field = find(key);
  return field ? field->boolean() : fallback;
}

}  // namespace headrace::formats
