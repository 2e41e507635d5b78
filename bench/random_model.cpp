// random_model: writes a GGUF model of any shape and Format with random weights, gigabytes in seconds, for benchmarks
// that no real model of that size is at hand for. It runs, here and in llama.cpp, and says nothing sensible.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/context.hpp"
#include "base/error.hpp"
#include "formats/format.hpp"
#include "formats/gguf_writer.hpp"
#include "random_vocabulary.hpp"

namespace headrace::bench {
namespace {

struct Shape {
  std::string architecture = "llama";
  std::int64_t layers = 2;          ///< L
  std::int64_t width = 256;         ///< D
  std::int64_t feed_forward = 512;  ///< F, of an expert where there are experts
  std::int64_t heads = 4;           ///< H
  std::int64_t kv_heads = 2;        ///< K
  std::int64_t vocabulary = 512;    ///< V
  std::int64_t experts = 0;         ///< X
  std::int64_t experts_used = 0;
  bool is_tied = true;  ///< the embedding is the output too
  std::int64_t context = 131072;
  [[nodiscard]] std::int64_t kv_width() const { return width / heads * kv_heads; }
};

struct Options {
  std::string out;
  std::string preset = "tiny";
  std::string format = "q4_0";
  std::uint64_t seed = 1;
  int threads = 0;
};

/// 1b: the 1.17 billion parameters of the project's tables. 3b, 8b: Llama 3's. moe64: OLMoE's.
const std::map<std::string, Shape>& presets() {
  static const std::map<std::string, Shape> table = {
      {"tiny", {}},
      {"1b",
       {.layers = 16,
        .width = 2048,
        .feed_forward = 8192,
        .heads = 32,
        .kv_heads = 8,
        .vocabulary = 48128,
        .is_tied = false}},
      {"3b", {.layers = 28, .width = 3072, .feed_forward = 8192, .heads = 24, .kv_heads = 8, .vocabulary = 128256}},
      {"8b",
       {.layers = 32,
        .width = 4096,
        .feed_forward = 14336,
        .heads = 32,
        .kv_heads = 8,
        .vocabulary = 128256,
        .is_tied = false}},
      {"moe64",
       {.architecture = "olmoe",
        .layers = 16,
        .width = 2048,
        .feed_forward = 1024,
        .heads = 16,
        .kv_heads = 16,
        .vocabulary = 50304,
        .experts = 64,
        .experts_used = 8,
        .is_tied = false}},
  };
  return table;
}

/// A tensor and the deviation of its numbers; a deviation of 0 stands for ones.
struct RandomTensor {
  formats::GgufNewTensor tensor;
  double deviation = 0;
};

/// Deviations are such that activations keep their size from layer to layer.
std::vector<RandomTensor> tensors_of(const Shape& shape, const formats::Format& format) {
  const formats::Format* f32 = formats::find_format("f32");
  std::vector<RandomTensor> tensors;
  const auto matrix = [&](const std::string& name, std::int64_t inputs, std::int64_t outputs,
                          std::int64_t experts = 0) {
    std::vector<std::int64_t> dimensions = {inputs, outputs};
    if (experts > 0) dimensions.push_back(experts);
    tensors.push_back({{name, dimensions, &format}, 1 / std::sqrt(static_cast<double>(inputs))});
  };
  const auto ones = [&](const std::string& name, std::int64_t width) { tensors.push_back({{name, {width}, f32}, 0}); };
  matrix("token_embd.weight", shape.width, shape.vocabulary);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const std::string prefix = fmt::format("blk.{}.", layer);
    ones(prefix + "attn_norm.weight", shape.width);
    matrix(prefix + "attn_q.weight", shape.width, shape.width);
    matrix(prefix + "attn_k.weight", shape.width, shape.kv_width());
    matrix(prefix + "attn_v.weight", shape.width, shape.kv_width());
    matrix(prefix + "attn_output.weight", shape.width, shape.width);
    ones(prefix + "ffn_norm.weight", shape.width);
    if (shape.experts == 0) {
      matrix(prefix + "ffn_gate.weight", shape.width, shape.feed_forward);
      matrix(prefix + "ffn_up.weight", shape.width, shape.feed_forward);
      matrix(prefix + "ffn_down.weight", shape.feed_forward, shape.width);
      continue;
    }
    ones(prefix + "attn_q_norm.weight", shape.width);
    ones(prefix + "attn_k_norm.weight", shape.kv_width());
    tensors.push_back({{prefix + "ffn_gate_inp.weight", {shape.width, shape.experts}, f32},
                       1 / std::sqrt(static_cast<double>(shape.width))});
    matrix(prefix + "ffn_gate_exps.weight", shape.width, shape.feed_forward, shape.experts);
    matrix(prefix + "ffn_up_exps.weight", shape.width, shape.feed_forward, shape.experts);
    matrix(prefix + "ffn_down_exps.weight", shape.feed_forward, shape.width, shape.experts);
  }
  ones("output_norm.weight", shape.width);
  if (!shape.is_tied) matrix("output.weight", shape.width, shape.vocabulary);
  return tensors;
}

/// What llama.cpp calls a file whose matrices are mostly of this Format (enum llama_ftype); OpenVINO wants it.
std::uint32_t file_type_of(const formats::Format& format) {
  const std::map<std::string_view, std::uint32_t> types = {{"f32", 0},     {"f16", 1},     {"q4_0", 2},  {"q4_1", 3},
                                                           {"q8_0", 7},    {"q5_0", 8},    {"q5_1", 9},  {"q2_k", 10},
                                                           {"q3_k", 12},   {"q4_k", 14},   {"q5_k", 16}, {"q6_k", 18},
                                                           {"iq4_nl", 25}, {"iq4_xs", 30}, {"bf16", 32}, {"mxfp4", 38}};
  const auto found = types.find(format.name);
  return found == types.end() ? 0 : found->second;
}

std::vector<formats::GgufEntry> entries_of(const Shape& shape, const formats::Format& format, const Options& options) {
  std::vector<formats::GgufEntry> entries;
  const auto add = [&](const std::string& key, auto value) { entries.push_back(formats::gguf_entry(key, value)); };
  const auto size = [&](const std::string& key, std::int64_t value) {
    add(shape.architecture + "." + key, static_cast<std::uint32_t>(value));
  };
  add("general.architecture", std::string_view(shape.architecture));
  add("general.name", std::string_view(fmt::format("random {} {}", options.preset, options.format)));
  add("general.file_type", file_type_of(format));
  add("general.quantization_version", std::uint32_t{2});
  size("block_count", shape.layers);
  size("context_length", shape.context);
  size("embedding_length", shape.width);
  size("feed_forward_length", shape.feed_forward);
  size("attention.head_count", shape.heads);
  size("attention.head_count_kv", shape.kv_heads);
  size("rope.dimension_count", shape.width / shape.heads);
  size("vocab_size", shape.vocabulary);
  add(shape.architecture + ".attention.layer_norm_rms_epsilon", 1e-5F);
  add(shape.architecture + ".rope.freq_base", 500000.0F);
  if (shape.experts > 0) {
    size("expert_count", shape.experts);
    size("expert_used_count", shape.experts_used);
  }
  for (formats::GgufEntry& entry : vocabulary_entries(shape.vocabulary)) entries.push_back(std::move(entry));
  return entries;
}

/// Encoded numbers of one Format and deviation, from which tensors are put together: encoding all of a tensor would
/// take minutes for some Formats.
class BlockPool {
 public:
  BlockPool(const formats::Format& format, double deviation, std::uint64_t seed, ThreadPool& threads)
      : block_bytes_(format.block_bytes), blocks_(pool_elements / format.block_elements) {
    bytes_.resize(static_cast<std::size_t>(blocks_ * block_bytes_));
    threads.run([&](int worker, int workers) {
      const Range part = split(blocks_, worker, workers);
      std::mt19937_64 random(seed + static_cast<std::uint64_t>(worker));
      std::normal_distribution<float> normal(0, static_cast<float>(deviation));
      std::vector<float> numbers(static_cast<std::size_t>(part.size() * format.block_elements));
      for (float& number : numbers) number = deviation == 0 ? 1.0F : normal(random);
      format.encode(numbers.data(), part.size(), bytes_.data() + part.begin * block_bytes_);
    });
  }

  /// Fills `out`, whole blocks, with runs of blocks from random places.
  void fill(std::span<std::byte> out, std::mt19937_64& random) const {
    const std::int64_t most = std::min<std::int64_t>(blocks_, std::max<std::int64_t>(run_bytes / block_bytes_, 1));
    for (std::size_t done = 0; done < out.size();) {
      const auto first = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(blocks_ - most + 1));
      const std::size_t count = std::min(out.size() - done, static_cast<std::size_t>(most * block_bytes_));
      std::memcpy(out.data() + done, bytes_.data() + first * block_bytes_, count);
      done += count;
    }
  }

 private:
  static constexpr std::int64_t pool_elements = 1 << 20;
  static constexpr std::int64_t run_bytes = 8192;

  std::int64_t block_bytes_;
  std::int64_t blocks_;
  std::vector<std::byte> bytes_;
};

void check(const Shape& shape, const formats::Format& format) {
  if (shape.heads < 1 || shape.width % shape.heads != 0 || shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0) {
    fail<UsageError>(
        "expected heads that divide the width and key/value heads that divide the heads, got width {}, {} "
        "and {}",
        shape.width, shape.heads, shape.kv_heads);
  }
  if (shape.vocabulary < smallest_vocabulary) {
    fail<UsageError>("--vocabulary: expected at least {}, got {}", smallest_vocabulary, shape.vocabulary);
  }
  if (format.encode == nullptr) fail<UsageError>("--format {}: has no encoder", format.name);
}

void write_model(const Shape& shape, const Options& options) {
  const formats::Format* format = formats::find_format(options.format);
  if (format == nullptr) {
    std::string names;
    for (const formats::Format& each : formats::format_table())
      names += (names.empty() ? "" : ", ") + std::string(each.name);
    fail<UsageError>("--format: expected one of {}, got {}", names, options.format);
  }
  check(shape, *format);
  ContextOptions context_options;
  context_options.threads = options.threads;
  const std::unique_ptr<Context> context = Context::create(context_options);
  ThreadPool& threads = context->threads();

  const std::vector<RandomTensor> tensors = tensors_of(shape, *format);
  formats::GgufContents contents;
  contents.entries = entries_of(shape, *format, options);
  std::int64_t parameters = 0;
  for (const RandomTensor& each : tensors) {
    contents.tensors.push_back(each.tensor);
    std::int64_t elements = 1;
    for (const std::int64_t dimension : each.tensor.dimensions) elements *= dimension;
    parameters += elements;
  }
  formats::GgufWriter writer(options.out, contents);
  std::map<std::pair<const formats::Format*, double>, BlockPool> pools;
  std::vector<std::mt19937_64> randoms;
  for (int worker = 0; worker < threads.workers(); ++worker) {
    randoms.emplace_back(options.seed + 1000 + static_cast<std::uint64_t>(worker));
  }
  std::vector<std::byte> staging;
  for (const RandomTensor& each : tensors) {
    const formats::Format& own = *each.tensor.format;
    const auto [pool, is_new] = pools.try_emplace({&own, each.deviation}, own, each.deviation, options.seed, threads);
    std::int64_t rows = 1;
    for (std::size_t axis = 1; axis < each.tensor.dimensions.size(); ++axis) rows *= each.tensor.dimensions[axis];
    const std::int64_t row_bytes = own.row_bytes(each.tensor.dimensions[0]);
    const std::int64_t rows_at_once = std::max<std::int64_t>((std::int64_t{64} << 20) / row_bytes, 1);
    for (std::int64_t row = 0; row < rows; row += rows_at_once) {
      const std::int64_t count = std::min(rows_at_once, rows - row);
      staging.resize(static_cast<std::size_t>(count * row_bytes));
      threads.run([&, &blocks = pool->second](int worker, int workers) {
        const Range part = split(count, worker, workers);
        blocks.fill(std::span(staging).subspan(static_cast<std::size_t>(part.begin * row_bytes),
                                               static_cast<std::size_t>(part.size() * row_bytes)),
                    randoms[static_cast<std::size_t>(worker)]);
      });
      writer.write(staging);
    }
  }
  writer.finish();
  fmt::print("{}: {:.3f} billion parameters, {:.2f} GB\n", options.out, static_cast<double>(parameters) / 1e9,
             static_cast<double>(writer.file_bytes()) / 1e9);
}

int run(int argc, char** argv) {
  CLI::App app("Writes a GGUF model with random weights.", "random_model");
  Options options;
  std::map<std::string, std::int64_t> changes;
  std::vector<std::string> names;
  for (const auto& [name, shape] : presets()) names.push_back(name);
  app.add_option("OUT", options.out, "the file to write")->required();
  app.add_option("--preset", options.preset, "the shape")->check(CLI::IsMember(names))->capture_default_str();
  app.add_option("--format", options.format, "of all matrices, such as q4_0 or bf16")->capture_default_str();
  app.add_option("--seed", options.seed, "of the weights")->capture_default_str();
  app.add_option("--threads", options.threads, "0: as many as this process may use")->check(CLI::NonNegativeNumber);
  for (const char* name : {"layers", "width", "feed-forward", "heads", "kv-heads", "vocabulary", "context"}) {
    app.add_option(std::string("--") + name, changes[name], "instead of the preset's")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  }
  app.footer("Example:\n  random_model 1b.q4_0.gguf --preset 1b --format q4_0");
  CLI11_PARSE(app, argc, argv);
  Shape shape = presets().at(options.preset);
  const auto change = [&](const char* name, std::int64_t& value) {
    if (changes.at(name) != 0) value = changes.at(name);
  };
  change("layers", shape.layers);
  change("width", shape.width);
  change("feed-forward", shape.feed_forward);
  change("heads", shape.heads);
  change("kv-heads", shape.kv_heads);
  change("vocabulary", shape.vocabulary);
  change("context", shape.context);
  write_model(shape, options);
  return 0;
}

}  // namespace
}  // namespace headrace::bench

int main(int argc, char** argv) {
  try {
    return headrace::bench::run(argc, argv);
  } catch (const headrace::Error& error) {
    std::fprintf(stderr, "random_model: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "random_model: %s\n", error.what());
    return static_cast<int>(headrace::ExitCode::internal);
  }
}
