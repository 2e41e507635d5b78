// Truth, equality, order and containment.
#include <cmath>

#include "text/jinja/operators.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {
namespace {

using Kind = Sequence::Kind;

std::string_view symbol(Comparison op) {
  switch (op) {
    case Comparison::less:
      return "<";
    case Comparison::less_equal:
      return "<=";
    case Comparison::greater:
      return ">";
    case Comparison::greater_equal:
      return ">=";
    case Comparison::equal:
      return "==";
    case Comparison::not_equal:
      return "!=";
    case Comparison::in:
      return "in";
    case Comparison::not_in:
      return "not in";
  }
  return "?";
}

bool holds(Comparison op, int order) {
  switch (op) {
    case Comparison::less:
      return order < 0;
    case Comparison::less_equal:
      return order <= 0;
    case Comparison::greater:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool is_ordered_kind(Kind kind) { return kind == Kind::list || kind == Kind::tuple; }

bool is_set_view(Kind kind) { return kind == Kind::keys || kind == Kind::items; }

bool same_items(Runtime& runtime, const Sequence& a, const Sequence& b) {
  if (a.items.size() != b.items.size()) return false;
  if (is_set_view(a.kind)) {
    const Value other(std::make_shared<const Sequence>(b));
    runtime.charge(b.items.size());
    for (const auto& item : a.items) {
      if (!contains(runtime, other, item)) return false;
    }
    return true;
  }
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(runtime, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool same_entries(Runtime& runtime, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const auto* other = b.find(runtime, key);
    if (other == nullptr || !equal(runtime, value, *other)) return false;
  }
  return true;
}

}  // namespace

bool is_true(const Value& value) noexcept {
  struct Visitor {
    bool operator()(const Undefined&) const noexcept { return false; }
    bool operator()(const None&) const noexcept { return false; }
    bool operator()(bool b) const noexcept { return b; }
    bool operator()(std::int64_t i) const noexcept { return i != 0; }
    bool operator()(double d) const noexcept { return d != 0.0; }
    bool operator()(const std::shared_ptr<const String>& s) const noexcept { return !s->bytes.empty(); }
    bool operator()(const std::shared_ptr<const Sequence>& s) const noexcept {
      return s->kind == Kind::generator || !s->items.empty();
    }
    bool operator()(const std::shared_ptr<const Dict>& d) const noexcept { return !d->entries.empty(); }
    bool operator()(const std::shared_ptr<Object>&) const noexcept { return true; }
  };
  return std::visit(Visitor{}, value.data());
}

std::optional<int> compare_numbers(const Value& a, const Value& b) noexcept {
  const auto i = a.integer();
  const auto j = b.integer();
  if (i && j) return *i < *j ? -1 : (*i > *j ? 1 : 0);
  // long double holds every int64 exactly on the machines that we build for, so mixed comparisons are exact.
  const long double x = i ? static_cast<long double>(*i) : static_cast<long double>(*a.number());
  const long double y = j ? static_cast<long double>(*j) : static_cast<long double>(*b.number());
  if (std::isnan(x) || std::isnan(y)) return std::nullopt;
  return x < y ? -1 : (x > y ? 1 : 0);
}

bool equal(Runtime& runtime, const Value& a, const Value& b) {
  runtime.charge(1);
  if (a.number() && b.number()) return compare_numbers(a, b) == 0;
  if (const auto *s = a.string(), *t = b.string(); s != nullptr && t != nullptr) {
    if (s->bytes.size() != t->bytes.size()) return false;
    runtime.charge_bytes(s->bytes.size());
    return s->bytes == t->bytes;
  }
  if (const auto *s = a.sequence(), *t = b.sequence(); s != nullptr && t != nullptr) {
    if (s == t) return true;
    if (is_set_view(s->kind) && is_set_view(t->kind)) return same_items(runtime, *s, *t);
    if (s->kind != t->kind || s->kind == Kind::generator || s->kind == Kind::values) return false;
    return same_items(runtime, *s, *t);
  }
  if (const auto *s = a.dict(), *t = b.dict(); s != nullptr && t != nullptr) {
    return s == t || same_entries(runtime, *s, *t);
  }
  if (a.object() != nullptr && b.object() != nullptr) return a.object() == b.object();
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

bool compare(Runtime& runtime, Comparison op, const Value& a, const Value& b) {
  switch (op) {
    case Comparison::equal:
      return equal(runtime, a, b);
    case Comparison::not_equal:
      return !equal(runtime, a, b);
    case Comparison::in:
      return contains(runtime, b, a);
    case Comparison::not_in:
      return !contains(runtime, b, a);
    default:
      break;
  }
  runtime.charge(1);
  if (a.number() && b.number()) {
    const auto order = compare_numbers(a, b);
    return order && holds(op, *order);
  }
  if (const auto *s = a.string(), *t = b.string(); s != nullptr && t != nullptr) {
    runtime.charge_bytes(std::min(s->bytes.size(), t->bytes.size()));
    return holds(op, s->bytes.compare(t->bytes));  // UTF-8 sorts as code points do
  }
  if (const auto *s = a.sequence(), *t = b.sequence();
      s != nullptr && t != nullptr && s->kind == t->kind && is_ordered_kind(s->kind)) {
    for (std::size_t i = 0; i < std::min(s->items.size(), t->items.size()); ++i) {
      if (!equal(runtime, s->items[i], t->items[i])) return compare(runtime, op, s->items[i], t->items[i]);
    }
    return holds(op, s->items.size() < t->items.size() ? -1 : (s->items.size() > t->items.size() ? 1 : 0));
  }
  for (const auto* side : {&a, &b}) {
    if (const auto* undefined = std::get_if<Undefined>(&side->data()); undefined != nullptr && undefined->message) {
      runtime.fail("{}", *undefined->message);
    }
  }
  runtime.fail("'{}': expected operands that can be ordered, found {} and {}", symbol(op), type_name(a), type_name(b));
}

void require_hashable(Runtime& runtime, const Value& value) {
  if (value.dict() != nullptr) runtime.fail("expected a hashable key, found dict");
  if (const auto* sequence = value.sequence()) {
    if (sequence->kind == Kind::tuple) {
      for (const auto& item : sequence->items) require_hashable(runtime, item);
    } else if (sequence->kind != Kind::generator && sequence->kind != Kind::range && sequence->kind != Kind::values) {
      runtime.fail("expected a hashable key, found {}", type_name(value));
    }
  }
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  if (const auto* string = container.string()) {
    const auto* needle = item.string();
    if (needle == nullptr) runtime.fail("'in': expected a str to look for in a str, found {}", type_name(item));
    runtime.charge_bytes(string->bytes.size() + needle->bytes.size());
    return unicode::find(string->bytes, needle->bytes) != std::string_view::npos;
  }
  if (const auto* dict = container.dict()) return dict->find(runtime, item) != nullptr;
  if (const auto* sequence = container.sequence()) {
    // `is` before `==`, as Python does: a NaN is found in the list that holds it only by identity, which we have not.
    for (; sequence->kind == Kind::generator && sequence->consumed < sequence->items.size();) {
      if (equal(runtime, sequence->items[sequence->consumed++], item)) return true;
    }
    if (sequence->kind == Kind::generator) return false;
    for (const auto& each : sequence->items) {
      if (equal(runtime, each, item)) return true;
    }
    return false;
  }
  if (container.is_undefined()) return false;
  runtime.fail("'in': expected a container, found {}", type_name(container));
}

}  // namespace headrace::text::jinja
