// The syntax tree of a template. Trees are immutable and may be evaluated from several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/operators.hpp"
#include "text/jinja/value.hpp"

namespace headrace::text::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<const Expression>;
using Body = std::vector<std::unique_ptr<const Statement>>;
using NameId = std::uint32_t;  ///< index into Template's names

struct FilterEntry;
struct TestEntry;

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keyword;
  ExpressionPtr star;         ///< *args
  ExpressionPtr double_star;  ///< **kwargs
};

namespace node {

struct Constant {
  Value value;
};
struct Name {
  NameId id;
};
struct NamespaceTarget {  ///< name.attribute, as a target of set
  NameId id;
  std::string attribute;
};
struct List {
  std::vector<ExpressionPtr> items;
  Sequence::Kind kind;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct Not {
  ExpressionPtr operand;
};
struct Sign {
  bool negative;
  ExpressionPtr operand;
};
struct Binary {
  Arithmetic op;
  ExpressionPtr left, right;
};
struct Logical {
  bool is_and;
  ExpressionPtr left, right;
};
struct Compare {
  ExpressionPtr first;
  std::vector<std::pair<Comparison, ExpressionPtr>> rest;
};
struct Concat {
  std::vector<ExpressionPtr> parts;
};
struct Conditional {
  ExpressionPtr test, yes, no;  ///< no may be null
};
struct Attribute {
  ExpressionPtr object;
  Value name;
};
struct Item {
  ExpressionPtr object, key;
};
struct Slice {
  ExpressionPtr object, start, stop, step;  ///< bounds may be null
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
struct FilterInput {};  ///< the text that a filter block or a filtered set captures
struct Filter {
  ExpressionPtr input;
  std::string name;
  const FilterEntry* entry;  ///< null if there is none of that name
  CallArguments arguments;
};
struct Test {
  ExpressionPtr input;
  std::string name;
  const TestEntry* entry;
  CallArguments arguments;
};

struct Text {
  std::string text;
};
struct Print {
  ExpressionPtr expression;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};
struct For {
  ExpressionPtr target, iterable, test;  ///< test may be null
  Body body, otherwise;
  bool recursive;
};
struct Set {
  ExpressionPtr target, value;
};
struct SetBlock {
  ExpressionPtr target, filter;  ///< filter may be null
  Body body;
};
struct Signature {
  std::vector<NameId> parameters;
  std::vector<ExpressionPtr> defaults;  ///< of the last parameters
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
};
struct Macro {
  NameId id;
  Signature signature;
  Body body;
};
struct CallBlock {
  Signature signature;
  ExpressionPtr call;
  Body body;
};
struct FilterBlock {
  ExpressionPtr filter;
  Body body;
};
struct With {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> assignments;
  Body body;
};
struct Scoped {  ///< {% generation %} and {% block %}: a scope of its own
  Body body;
};
struct Break {};
struct Continue {};

}  // namespace node

struct Expression {
  using Node =
      std::variant<node::Constant, node::Name, node::NamespaceTarget, node::List, node::DictLiteral, node::Not,
                   node::Sign, node::Binary, node::Logical, node::Compare, node::Concat, node::Conditional,
                   node::Attribute, node::Item, node::Slice, node::Call, node::FilterInput, node::Filter, node::Test>;
  Node node;
  std::size_t line = 1;
  std::size_t depth = 1;  ///< levels of expressions, this one included
};

struct Statement {
  using Node = std::variant<node::Text, node::Print, node::If, node::For, node::Set, node::SetBlock, node::Macro,
                            node::CallBlock, node::FilterBlock, node::With, node::Scoped, node::Break, node::Continue>;
  Node node;
  std::size_t line = 1;
};

/// A parsed template.
struct Template {
  std::string name;
  std::vector<std::string> names;  ///< every variable's name, by NameId
  Body body;
};

}  // namespace headrace::text::jinja
