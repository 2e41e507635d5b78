#include "ir/type.hpp"

#include <array>

#include "base/error.hpp"

namespace headrace::ir {

namespace {

struct ElementInfo {
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array<ElementInfo, 9> elements = {{
    {"f32", 4},
    {"f16", 2},
    {"bf16", 2},
    {"f64", 8},
    {"i8", 1},
    {"u8", 1},
    {"i32", 4},
    {"i64", 8},
    {"bool", 1},
}};

const ElementInfo& info(ElementType element) { return elements.at(static_cast<std::size_t>(element)); }

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape[i].str();
  }
  return text + "]";
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::string_view element_name(ElementType element) { return info(element).name; }
std::int64_t element_bytes(ElementType element) { return info(element).bytes; }

bool is_float(ElementType element) {
  return element == ElementType::f32 || element == ElementType::f16 || element == ElementType::bf16 ||
         element == ElementType::f64;
}

bool is_integer(ElementType element) { return !is_float(element) && element != ElementType::boolean; }

bool is_encoding(std::string_view name) { return name == "a16"; }

Type Type::tensor(ElementType element, Shape shape) { return {Kind::tensor, element, std::move(shape), "", ""}; }

Type Type::encoded(std::string encoding, Shape shape) {
  return {Kind::tensor, ElementType::f32, std::move(shape), std::move(encoding), ""};
}

Type Type::weight(std::string format, Shape shape) {
  return {Kind::weight, ElementType::f32, std::move(shape), std::move(format), ""};
}

Type Type::state(ElementType element, Shape shape) { return {Kind::state, element, std::move(shape), "", ""}; }

std::string Type::str() const {
  switch (kind) {
    case Kind::weight:
      return "weight " + encoding + shape_text(shape);
    case Kind::state:
      return "state append " + (encoding.empty() ? std::string(element_name(element)) : encoding) +
             (order.empty() ? "" : "." + order) + shape_text(shape);
    case Kind::tensor:
      break;
  }
  return (encoding.empty() ? std::string(element_name(element)) : encoding) + shape_text(shape);
}

Type parse_type(std::string_view text) {
  const std::string_view whole = text;
  Type type;
  if (take_prefix(text, "weight ")) {
    type.kind = Type::Kind::weight;
  } else if (take_prefix(text, "state append ")) {
    type.kind = Type::Kind::state;
  }
  const auto bracket = text.find('[');
  if (bracket == std::string_view::npos || text.back() != ']') {
    fail<InputError>("type '{}': expected a name and a shape, e.g. f32[T, 64]", whole);
  }
  std::string_view name = text.substr(0, bracket);
  if (type.kind == Type::Kind::state && name.ends_with(".columns16")) {
    type.order = "columns16";
    name.remove_suffix(type.order.size() + 1);
  }
  if (type.kind == Type::Kind::weight) {
    if (name.empty()) fail<InputError>("type '{}': expected a Format after 'weight'", whole);
    type.encoding = name;
  } else if ((type.kind == Type::Kind::tensor && is_encoding(name)) ||
             (type.kind == Type::Kind::state && name == "q8_0")) {
    type.encoding = name;
  } else {
    std::size_t index = 0;
    while (index < elements.size() && elements[index].name != name) ++index;
    if (index == elements.size()) fail<InputError>("type '{}': expected an element type, got '{}'", whole, name);
    type.element = static_cast<ElementType>(index);
  }
  std::string_view dims = text.substr(bracket + 1, text.size() - bracket - 2);
  while (!dims.empty()) {
    const auto comma = dims.find(',');
    type.shape.push_back(Dim::parse(dims.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    dims.remove_prefix(comma + 1);
  }
  return type;
}

}  // namespace headrace::ir
