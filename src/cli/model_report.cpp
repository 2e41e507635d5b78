#include "cli/model_report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "formats/format.hpp"

namespace headrace::cli {

namespace {

std::string size_text(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.2f} GB", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.1f} MB", bytes / 1e6);
  return fmt::format("{:.1f} kB", bytes / 1e3);
}

std::string count_text(std::int64_t count) {
  const double value = static_cast<double>(count);
  if (value >= 1e9) return fmt::format("{:.2f} billion", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f} million", value / 1e6);
  return fmt::format("{}", count);
}

void count_format(std::vector<FormatUse>& uses, const models::CheckpointTensor& tensor) {
  auto use =
      std::find_if(uses.begin(), uses.end(), [&](const FormatUse& each) { return each.format == tensor.format_name; });
  if (use == uses.end()) use = uses.insert(use, FormatUse{tensor.format_name, 0, 0, std::nullopt});
  ++use->tensors;
  use->elements += tensor.elements();
  if (tensor.bytes) use->bytes = use->bytes.value_or(0) + *tensor.bytes;
}

}  // namespace

ModelReport report_of(const models::ModelFile& file) {
  const models::Checkpoint& checkpoint = file.checkpoint();
  ModelReport report;
  report.path = file.path();
  report.file_bytes = checkpoint.file_bytes();
  report.container = checkpoint.container_name();
  report.architecture = checkpoint.architecture();
  report.name = checkpoint.model_name();
  report.tensors = std::ssize(checkpoint.tensors());
  for (const models::CheckpointTensor& tensor : checkpoint.tensors()) {
    report.parameters += tensor.elements();
    count_format(report.formats, tensor);
  }
  std::stable_sort(report.formats.begin(), report.formats.end(),
                   [](const FormatUse& a, const FormatUse& b) { return a.elements > b.elements; });
  if (checkpoint.has_vocabulary()) {
    const text::VocabularyData vocabulary = checkpoint.vocabulary();
    report.tokenizer_model = vocabulary.model;
    report.pre_tokenizer = vocabulary.pre_tokenizer;
    report.tokens = std::ssize(vocabulary.tokens);
  }
  report.chat_template = checkpoint.chat_template().has_value();
  return report;
}

MemoryUse memory_of(const compile::Plan& plan) {
  MemoryUse memory;
  for (const auto& [name, value] : plan.limits.sizes) {
    if (name == "P") memory.context = value;
  }
  memory.weight_bytes = plan.weight_bytes;
  memory.kv_encoding = plan.limits.kv_encoding;
  memory.kv_bytes = plan.state_bytes;
  if (plan.page_positions > 0) memory.kv_bytes_per_position = plan.page_bytes / plan.page_positions;
  memory.arena_bytes = plan.arena_bytes;
  return memory;
}

std::string to_text(const ModelReport& report) {
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<14}{}\n", name, value);
  };
  line("file",
       fmt::format("{} ({}, {})", report.path, size_text(static_cast<double>(report.file_bytes)), report.container));
  line("architecture", report.architecture.empty() ? "not named" : report.architecture);
  if (!report.name.empty()) line("name", report.name);
  line("tensors", fmt::format("{}, {} parameters", report.tensors, count_text(report.parameters)));
  for (const FormatUse& use : report.formats) {
    line("", fmt::format("{:<6} {:>5} tensors {:>14} elements  {}", use.format, use.tensors, count_text(use.elements),
                         use.bytes ? size_text(static_cast<double>(*use.bytes)) : "of unknown size"));
  }
  if (report.shape) {
    const models::ModelShape& s = *report.shape;
    line("shape", fmt::format("{} layers of width {}, feed-forward {}", s.layers, s.width, s.feed_forward_width));
    if (s.experts > 0) line("experts", fmt::format("{}, of which each token uses {}", s.experts, s.experts_used));
    line("attention", fmt::format("{} heads, {} key/value heads, of width {}", s.heads, s.kv_heads, s.head_width));
    line("context", fmt::format("trained for {} positions", s.context_length));
    line("vocabulary", fmt::format("{} tokens", s.vocabulary));
  }
  if (report.tokens > 0) {
    line("tokenizer", fmt::format("{}{}{}, {} tokens, {}", report.tokenizer_model,
                                  report.pre_tokenizer.empty() ? "" : " with pre-tokenizer ", report.pre_tokenizer,
                                  report.tokens, report.chat_template ? "a chat template" : "no chat template"));
  }
  if (report.memory) {
    const MemoryUse& m = *report.memory;
    const auto size = [](std::int64_t bytes) { return size_text(static_cast<double>(bytes)); };
    line("memory", fmt::format("{} at a context of {} (-c): weights {}, KV {} ({}, {} a position), activations {}",
                               size(m.total_bytes()), m.context, size(m.weight_bytes), size(m.kv_bytes), m.kv_encoding,
                               size(m.kv_bytes_per_position), size(m.arena_bytes)));
    line("a token", fmt::format("reads {} of weights", size(m.token_bytes)));
  }
  if (!report.reason.empty()) line("cannot be run", report.reason);
  return text;
}

nlohmann::ordered_json to_json(const ModelReport& report) {
  using Json = nlohmann::ordered_json;
  Json formats = Json::array();
  for (const FormatUse& use : report.formats) {
    formats.push_back({{"format", use.format},
                       {"tensors", use.tensors},
                       {"elements", use.elements},
                       {"bytes", use.bytes ? Json(*use.bytes) : Json(nullptr)}});
  }
  Json json = {{"path", report.path},
               {"file_bytes", report.file_bytes},
               {"container", report.container},
               {"architecture", report.architecture},
               {"name", report.name},
               {"tensors", report.tensors},
               {"parameters", report.parameters},
               {"formats", formats},
               {"tokenizer",
                {{"model", report.tokenizer_model},
                 {"pre_tokenizer", report.pre_tokenizer},
                 {"tokens", report.tokens},
                 {"chat_template", report.chat_template}}},
               {"runnable", report.memory.has_value()},
               {"shape", nullptr},
               {"memory", nullptr}};
  if (report.shape) {
    const models::ModelShape& s = *report.shape;
    json["shape"] = {{"layers", s.layers},         {"width", s.width},
                     {"heads", s.heads},           {"kv_heads", s.kv_heads},
                     {"head_width", s.head_width}, {"feed_forward_width", s.feed_forward_width},
                     {"vocabulary", s.vocabulary}, {"context_length", s.context_length},
                     {"experts", s.experts},       {"experts_used", s.experts_used}};
  }
  if (report.memory) {
    const MemoryUse& m = *report.memory;
    json["memory"] = {{"context", m.context},
                      {"weight_bytes", m.weight_bytes},
                      {"kv_encoding", m.kv_encoding},
                      {"kv_bytes", m.kv_bytes},
                      {"kv_bytes_per_position", m.kv_bytes_per_position},
                      {"arena_bytes", m.arena_bytes},
                      {"total_bytes", m.total_bytes()},
                      {"token_bytes", m.token_bytes}};
  }
  if (!report.reason.empty()) json["reason"] = report.reason;
  return json;
}

}  // namespace headrace::cli
