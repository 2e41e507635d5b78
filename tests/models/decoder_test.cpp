// What families make of a configuration: kinds of layers, rope, and what they refuse by name.
#include "models/decoder.hpp"

#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "ir/text.hpp"

namespace headrace::models {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A checkpoint of keys and shapes, all of f32.
class FakeCheckpoint : public Checkpoint {
 public:
  using Value = std::variant<std::int64_t, double, bool, std::string>;

  explicit FakeCheckpoint(std::string architecture) : architecture_(std::move(architecture)) {
    keys = {{"block_count", std::int64_t{4}},          {"embedding_length", std::int64_t{8}},
            {"feed_forward_length", std::int64_t{12}}, {"context_length", std::int64_t{64}},
            {"attention.head_count", std::int64_t{2}}, {"attention.layer_norm_rms_epsilon", 1e-5}};
  }

  [[nodiscard]] Container container() const override { return container_kind; }
  [[nodiscard]] std::string container_name() const override { return "fake"; }
  [[nodiscard]] const std::string& path() const override { return path_; }
  [[nodiscard]] std::uint64_t file_bytes() const override { return 0; }
  [[nodiscard]] std::string architecture() const override { return architecture_; }
  [[nodiscard]] std::string_view architecture_key() const override { return "architecture"; }
  [[nodiscard]] std::string model_name() const override { return ""; }
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const override {
    return get<std::int64_t>(key);
  }
  [[nodiscard]] std::optional<double> number(std::string_view key) const override { return get<double>(key); }
  [[nodiscard]] std::optional<bool> boolean(std::string_view key) const override { return get<bool>(key); }
  [[nodiscard]] std::optional<std::string> string(std::string_view key) const override { return get<std::string>(key); }
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(std::string_view) const override { return {}; }
  [[nodiscard]] std::string key_name(std::string_view key) const override { return std::string(key); }
  [[nodiscard]] std::span<const CheckpointTensor> tensors() const override { return tensors_; }
  [[nodiscard]] const CheckpointTensor* find_tensor(std::string_view name) const override {
    for (const CheckpointTensor& tensor : tensors_) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }
  [[nodiscard]] bool has_vocabulary() const override { return false; }
  [[nodiscard]] text::VocabularyData vocabulary() const override { return {}; }
  [[nodiscard]] std::optional<std::string> chat_template() const override { return {}; }
  [[nodiscard]] std::unique_ptr<stream::WeightStore> store() const override { return nullptr; }

  void add(const std::string& name, std::vector<std::int64_t> shape) {
    tensors_.push_back({name, std::move(shape), formats::find_format("f32"), "f32", std::nullopt});
  }
  void add_ends() {
    add("token_embd.weight", {10, 8});
    add("output_norm.weight", {8});
  }
  /// The attention of all layers, two heads of 4.
  void add_attention() {
    for (int layer = 0; layer < 4; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      add(prefix + "attn_norm.weight", {8});
      for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) add(prefix + name + ".weight", {8, 8});
    }
  }
  void add_swiglu() {
    for (int layer = 0; layer < 4; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      add(prefix + "ffn_norm.weight", {8});
      add(prefix + "ffn_gate.weight", {12, 8});
      add(prefix + "ffn_up.weight", {12, 8});
      add(prefix + "ffn_down.weight", {8, 12});
    }
  }
  void add_experts(const std::string& norm) {
    for (int layer = 0; layer < 4; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      add(prefix + norm, {8});
      add(prefix + "ffn_gate_inp.weight", {3, 8});
      add(prefix + "ffn_gate_exps.weight", {3, 12, 8});
      add(prefix + "ffn_up_exps.weight", {3, 12, 8});
      add(prefix + "ffn_down_exps.weight", {3, 8, 12});
    }
  }

  std::map<std::string, Value, std::less<>> keys;
  Container container_kind = Container::gguf;

 private:
  template <class T>
  std::optional<T> get(std::string_view key) const {
    const auto place = keys.find(key);
    if (place == keys.end()) return std::nullopt;
    return std::get<T>(place->second);
  }

  std::string architecture_;
  std::string path_ = "fake";
  std::vector<CheckpointTensor> tensors_;
};

FakeCheckpoint llama() {
  FakeCheckpoint file("llama");
  file.add_ends();
  file.add_attention();
  file.add_swiglu();
  return file;
}

FakeCheckpoint gpt_oss() {
  FakeCheckpoint file("gpt-oss");
  file.add_ends();
  file.add_attention();
  file.add_experts("post_attention_norm.weight");
  for (int layer = 0; layer < 4; ++layer) file.add("blk." + std::to_string(layer) + ".attn_sinks.weight", {2});
  file.keys["expert_count"] = std::int64_t{3};
  file.keys["expert_used_count"] = std::int64_t{2};
  file.keys["attention.sliding_window"] = std::int64_t{16};
  return file;
}

std::string program_text(const Checkpoint& file) { return ir::print(build_model(file, {}).program); }

std::vector<std::string> calls(const Checkpoint& file) {
  std::vector<std::string> callees;
  const Model model = build_model(file, {});
  for (const ir::Node& node : model.program.entry().body) {
    if (node.is_call()) callees.push_back(node.callee);
  }
  return callees;
}

void expect_refused(const Checkpoint& file, const std::string& message) {
  try {
    build_model(file, {});
    ADD_FAILURE() << "accepted, instead of: " << message;
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

TEST(Families, LlamasPairNeighboursInGgufAndHalvesElsewhere) {
  FakeCheckpoint file = llama();
  EXPECT_THAT(program_text(file), HasSubstr("pairing = \"adjacent\""));
  EXPECT_THAT(program_text(file), Not(HasSubstr("halves")));
  file.container_kind = Checkpoint::Container::hugging_face;
  EXPECT_THAT(program_text(file), HasSubstr("pairing = \"halves\""));
  EXPECT_THAT(program_text(file), Not(HasSubstr("adjacent")));
}

TEST(Families, WindowsAlternateInGptOss) {
  FakeCheckpoint file = gpt_oss();
  EXPECT_THAT(calls(file), ::testing::ElementsAre("window_layer", "layer", "window_layer", "layer"));
  EXPECT_THAT(program_text(file), HasSubstr("window = 16"));
  file.keys["attention.sliding_window_pattern"] = std::int64_t{3};
  EXPECT_THAT(calls(file), ::testing::ElementsAre("window_layer", "window_layer", "layer", "window_layer"));
  file.keys["attention.sliding_window_pattern"] = std::int64_t{0};
  EXPECT_THAT(calls(file), ::testing::Each("window_layer"));
  file.keys["attention.sliding_window_pattern"] = std::int64_t{1};
  EXPECT_THAT(calls(file), ::testing::Each("layer"));
  file.keys["attention.sliding_window_pattern"] = std::int64_t{5};
  expect_refused(file, "fake: attention.sliding_window_pattern: expected a number of 4 layers, found 5");
  file.keys.erase("attention.sliding_window_pattern");
  file.keys["attention.sliding_window"] = std::int64_t{0};
  EXPECT_THAT(calls(file), ::testing::Each("layer"));
}

TEST(Families, ALlamaWithAWindowHasItEverywhere) {
  FakeCheckpoint file = llama();
  EXPECT_THAT(calls(file), ::testing::Each("layer"));
  file.keys["attention.sliding_window"] = std::int64_t{16};
  EXPECT_THAT(calls(file), ::testing::Each("window_layer"));
}

TEST(Families, ShapeTellsTheExperts) {
  EXPECT_EQ(build_model(llama(), {}).shape.experts, 0);
  FakeCheckpoint file = gpt_oss();
  const ModelShape shape = build_model(file, {}).shape;
  EXPECT_EQ(shape.experts, 3);
  EXPECT_EQ(shape.experts_used, 2);
  EXPECT_EQ(shape.feed_forward_width, 12);
  // The width of an expert comes before that of a dense layer.
  file.keys["feed_forward_length"] = std::int64_t{99};
  file.keys["expert_feed_forward_length"] = std::int64_t{12};
  EXPECT_EQ(build_model(file, {}).shape.feed_forward_width, 12);
  file.keys.erase("feed_forward_length");
  EXPECT_EQ(build_model(file, {}).shape.feed_forward_width, 12);
}

TEST(Families, RefuseByName) {
  FakeCheckpoint file = llama();
  file.add("blk.2.ffn_gate.scale", {1});
  expect_refused(file, "fake: tensor blk.2.ffn_gate.scale: expected none of this name in a model of the family llama");

  FakeCheckpoint none = gpt_oss();
  none.keys.erase("expert_count");
  expect_refused(none, "fake: expert_count: expected a number of experts, found none");
  FakeCheckpoint many = gpt_oss();
  many.keys["expert_used_count"] = std::int64_t{4};
  expect_refused(many, "fake: expert_used_count: expected at most 3 experts, found 4");
  FakeCheckpoint other = gpt_oss();
  other.keys["expert_count"] = std::int64_t{4};
  expect_refused(other, "fake: tensor blk.0.ffn_gate_inp.weight: expected shape [4, 8], found [3, 8]");
  // Mixtral's layers in a llama, without experts.
  FakeCheckpoint mixed("llama");
  mixed.add_ends();
  mixed.add_attention();
  mixed.add_experts("ffn_norm.weight");
  expect_refused(mixed, "fake: tensor blk.0.ffn_gate.weight: expected it, found none of this name");

  FakeCheckpoint rope = llama();
  rope.keys["rope.scaling.type"] = std::string("longrope");
  rope.keys["rope.scaling.factor"] = 4.0;
  expect_refused(rope, "fake: rope.scaling.type: expected none, linear, yarn or llama3, found longrope");
  rope.keys["rope.scaling.type"] = std::string("yarn");
  expect_refused(rope, "fake: rope.scaling.original_context_length: expected a size, found nothing");
  rope.keys["rope.scaling.original_context_length"] = std::int64_t{32};
  rope.keys["rope.scaling.yarn_ext_factor"] = 0.5;
  expect_refused(rope, "fake: rope.scaling.yarn_ext_factor: expected 1, found 0.5");
  rope.keys["rope.scaling.yarn_ext_factor"] = 1.0;
  EXPECT_NO_THROW(build_model(rope, {}));
  rope.keys["rope.scaling.type"] = std::string("llama3");
  rope.keys["rope.scaling.low_freq_factor"] = 4.0;
  rope.keys["rope.scaling.high_freq_factor"] = 4.0;
  expect_refused(rope, "fake: rope.scaling.high_freq_factor: expected a number above 4, found 4");
}

/// The constant that rope_frequencies makes.
std::vector<double> frequencies(const Rope& rope) {
  ir::Builder b("f", nullptr);
  const ir::Function function = b.finish({rope_frequencies(b, rope)});
  return std::get<std::vector<double>>(function.body.at(0).attributes.at("values"));
}

TEST(Rope, Frequencies) {
  Rope rope;
  rope.theta = 500000;
  rope.width = 64;
  const auto plain = [&](std::size_t i) { return std::pow(500000.0, -static_cast<double>(i) / 32); };
  for (std::size_t i = 0; i < 32; ++i) EXPECT_NEAR(frequencies(rope)[i], plain(i), 1e-7 * plain(i));
  rope.scaling = Rope::Scaling::linear;
  rope.factor = 8;
  for (std::size_t i = 0; i < 32; ++i) EXPECT_NEAR(frequencies(rope)[i], plain(i) / 8, 1e-7 * plain(i));

  // Llama 3.1: wavelengths below 8192 / 4 stay, above 8192 / 1 are stretched 8 times, between they are mixed.
  rope.scaling = Rope::Scaling::llama3;
  rope.original_length = 8192;
  std::set<int> kinds;
  for (std::size_t i = 0; i < 32; ++i) {
    const double wavelength = 2 * std::numbers::pi / plain(i);
    double expected = plain(i);
    if (wavelength > 8192) {
      expected = plain(i) / 8;
    } else if (wavelength >= 2048) {
      const double smooth = (8192 / wavelength - 1) / 3;
      expected = (1 - smooth) * plain(i) / 8 + smooth * plain(i);
    }
    kinds.insert(wavelength > 8192 ? 2 : wavelength >= 2048 ? 1 : 0);
    EXPECT_NEAR(frequencies(rope)[i], expected, 1e-7 * expected) << i;
  }
  EXPECT_EQ(kinds.size(), 3U);
}

}  // namespace
}  // namespace headrace::models
