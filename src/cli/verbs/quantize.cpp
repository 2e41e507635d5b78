// headrace quantize: a GGUF file with its tensors in other Formats.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/quote.hpp"
#include "cli/interrupt.hpp"
#include "cli/load.hpp"
#include "cli/options.hpp"
#include "cli/peak_memory.hpp"
#include "cli/progress.hpp"
#include "cli/verb.hpp"
#include "formats/gguf.hpp"
#include "models/language_model.hpp"
#include "models/quantize.hpp"

namespace headrace::cli {

namespace {

struct Options {
  std::string in;
  std::string out;
  const models::Recipe* recipe = nullptr;
  bool pure = false;
  bool json = false;
  EngineFlags engine;
};

/// All names, separated by commas; a line feed goes before what would make a line longer than `width`.
std::string recipe_names(std::size_t width = std::string::npos) {
  std::string names;
  std::size_t line = 0;
  for (const models::Recipe& recipe : models::recipe_table()) {
    const bool wraps = line + recipe.name.size() + 2 > width;
    if (!names.empty()) names += wraps ? ",\n" : ", ";
    if (wraps) line = 0;
    names += recipe.name;
    line += recipe.name.size() + 2;
  }
  return names;
}

double bits_per_weight(const models::QuantizeReport& report) {
  double bits = 0;
  double elements = 0;
  for (const models::QuantizedTensor& tensor : report.tensors) {
    bits += 8 * static_cast<double>(tensor.bytes);
    elements += static_cast<double>(tensor.elements);
  }
  return elements > 0 ? bits / elements : 0;
}

std::string line_of(const models::QuantizedTensor& tensor, std::size_t name_width) {
  std::string line = fmt::format("{:<{}}  {:>6} -> {:<6}", headrace::quoted(tensor.name), name_width, tensor.from->name,
                                 tensor.to->name);
  if (tensor.error) {
    line += fmt::format("  error {:.3e}, at most {:.3e}", tensor.error->relative_rms, tensor.error->max);
  } else {
    line += "  copied";
  }
  if (tensor.wanted != nullptr) {
    line += fmt::format("; {} needs rows of a multiple of {}", tensor.wanted->name, tensor.wanted->block_elements);
  }
  return line + "\n";
}

std::string to_text(const models::QuantizeReport& report, const Options& options) {
  std::size_t width = 0;
  for (const models::QuantizedTensor& tensor : report.tensors) {
    width = std::max(width, headrace::quoted(tensor.name).size());
  }
  std::string text;
  for (const models::QuantizedTensor& tensor : report.tensors) text += line_of(tensor, width);
  constexpr double megabyte = 1e6;
  return text + fmt::format("{}: {:.1f} MB, {:.2f} bits a weight; the input has {:.1f} MB\n", options.out,
                            static_cast<double>(report.out_bytes) / megabyte, bits_per_weight(report),
                            static_cast<double>(report.in_bytes) / megabyte);
}

nlohmann::ordered_json to_json(const models::QuantizeReport& report, const Options& options, const std::string& in) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const models::QuantizedTensor& tensor : report.tensors) {
    nlohmann::ordered_json item = {{"name", tensor.name},
                                   {"elements", tensor.elements},
                                   {"from", tensor.from->name},
                                   {"to", tensor.to->name},
                                   {"wanted", tensor.wanted != nullptr ? tensor.wanted->name : tensor.to->name},
                                   {"bytes", tensor.bytes}};
    item["relative_rms_error"] = tensor.error ? nlohmann::ordered_json(tensor.error->relative_rms) : nullptr;
    item["max_error"] = tensor.error ? nlohmann::ordered_json(tensor.error->max) : nullptr;
    tensors.push_back(std::move(item));
  }
  return {{"in", in},
          {"out", options.out},
          {"recipe", options.recipe->name},
          {"pure", options.pure},
          {"in_bytes", report.in_bytes},
          {"out_bytes", report.out_bytes},
          {"bits_per_weight", bits_per_weight(report)},
          {"peak_memory_bytes", peak_memory_bytes()},
          {"tensors", std::move(tensors)}};
}

int quantize(const Options& options, Invocation& invocation) {
  Console& console = invocation.console;
  Interrupt interrupt;
  const File in(models::resolve_model(options.in, invocation.environment.cache));
  std::error_code error;
  if (std::filesystem::equivalent(in.path(), options.out, error)) {
    throw UsageError("OUT: expected another file than IN");
  }
  const formats::Gguf gguf = formats::Gguf::read(in);
  const std::unique_ptr<Context> context = make_context(options.engine, invocation.verbose);
  Progress progress(console, "quantizing");
  models::QuantizeOptions work{.recipe = options.recipe, .pure = options.pure, .progress = {}};
  work.progress = [&](std::uint64_t done, std::uint64_t total) {
    progress.update(done, total);
    return !interrupt.requested().load();
  };
  interrupt.catch_first();
  const auto report = models::quantize(in, gguf, options.out, work, *context);
  interrupt.release();
  progress.finish();
  if (!report) return interrupted_status;
  if (options.json) {
    console.write_json(to_json(*report, options, in.path()));
  } else {
    console.write(to_text(*report, options));
  }
  return 0;
}

std::function<int(Invocation&)> declare(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_argument(app, "IN", "a GGUF file, or the name of a known model (smollm2)", options->in);
  add_argument(app, "OUT", "the new GGUF file", options->out);
  set_required(add_option(app, "--to", "NAME", "the Format or mix, of those named above",
                          [options = options.get()](const std::string& name) {
                            options->recipe = models::find_recipe(name);
                            if (options->recipe != nullptr) return std::string();
                            return fmt::format("expected one of {}, got {}", recipe_names(), headrace::quoted(name));
                          }));
  add_flag(app, "--pure", "one Format for all matrices, without the mix that the name stands for", options->pure);
  add_threads(app, options->engine);
  add_json(app, options->json);
  return [options](Invocation& invocation) { return quantize(*options, invocation); };
}

}  // namespace

Verb verb_quantize() {
  return {.name = "quantize",
          .summary = "a GGUF file with its tensors in other Formats",
          .details =
              "Names stand for what they stand for elsewhere: q4_k_m is mostly q4_k, with q6_k where it matters most.\n"
              "Norms and vectors become f32. OUT appears whole or not at all. For every tensor the report gives the\n"
              "relative RMS error and the largest error against IN. NAME is one of\n" +
              recipe_names(100) + ".\n",
          .example =
              "  headrace quantize model-f16.gguf model-q4.gguf --to q4_k_m\n"
              "  headrace quantize smollm2 smollm2-f16.gguf --to f16 --json",
          .declare = declare};
}

}  // namespace headrace::cli
