// Attention over long contexts, as the Engine calls it: all layers of a model in turn, so that K and V come from
// memory, on one and two threads. Shares are of a plain read loop over the same bytes by as many threads, run in turn
// with it.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/memory.hpp"
#include "base/thread_pool.hpp"
#include "ir/op.hpp"
#include "kernels/catalog.hpp"
#include "limits.hpp"

namespace headrace::bench {
namespace {

struct Shape {
  std::string name;
  std::int64_t heads, kv_heads, width;
};

struct Problem {
  kernels::Isa isa = kernels::Isa::portable;
  Shape shape;
  std::string kv = "f16";
  std::int64_t sequences = 1;
  std::int64_t past = 0;
  std::int64_t rows = 1;  ///< of each sequence
  int threads = 1;
};

ir::Type state_type(const Problem& problem, const std::string& order) {
  return ir::parse_type(
      fmt::format("state append {}{}[{}, {}]", problem.kv, order, problem.shape.kv_heads, problem.shape.width));
}

/// Everything that the calls of a step need, for all layers.
class Attention {
 public:
  explicit Attention(const Problem& problem)
      : problem_(problem), catalog_(kernels::make_catalog(problem.isa)), pool_(problem.threads) {
    const Shape& s = problem.shape;
    const std::int64_t rows = problem.sequences * problem.rows;
    const ir::Dim t(rows);
    const std::vector<ir::Type> types = {ir::Type::tensor(ir::ElementType::f32, {t, s.heads, s.width}),
                                         state_type(problem, ".columns16"), state_type(problem, ""),
                                         ir::Type::tensor(ir::ElementType::i32, {t}),
                                         ir::Type::tensor(ir::ElementType::i32, {t})};
    const ir::OpDef& op = *ir::find_op("attention");
    ir::Attributes attributes = {{"scale", 0.125}};
    ir::check_op(op, types, attributes);
    kernel_ = *catalog_->find(op, types, attributes);
    const std::int64_t side = catalog_->page_bytes(types[1]);
    const std::int64_t positions = problem.past + problem.rows;
    const std::int64_t pages = ceil_div(positions, catalog_->page_positions());
    constexpr std::int64_t enough = std::int64_t{192} << 20;  // far beyond any cache
    const std::int64_t layer_bytes = 2 * side * pages * problem.sequences;
    layers_ = ceil_div(enough, layer_bytes);
    page_bytes_ = layers_ * 2 * side;
    memory_ = Buffer(static_cast<std::size_t>(page_bytes_ * pages * problem.sequences), "KV");
    fill();
    std::byte* next = memory_.data();
    for (std::int64_t b = 0; b < problem.sequences; ++b) {
      auto& table = tables_.emplace_back();
      for (std::int64_t page = 0; page < pages; ++page, next += page_bytes_) table.push_back(next);
      lengths_.push_back(positions);
      for (std::int64_t row = 0; row < problem.rows; ++row) {
        sequence_.push_back(static_cast<std::int32_t>(b));
        position_.push_back(static_cast<std::int32_t>(problem.past + row));
      }
    }
    for (const auto& table : tables_) bases_.push_back(table.data());
    q_.resize(static_cast<std::size_t>(rows * s.heads * s.width));
    std::mt19937 random(2);
    for (float& x : q_) x = std::normal_distribution<float>()(random);
    out_.resize(q_.size());
    for (const ir::Type& type : types) {
      compile::View view;
      view.rank = static_cast<std::uint8_t>(type.shape.size());
      view.element = type.element;
      for (std::size_t i = 0; i < type.shape.size(); ++i) view.dims[i] = type.shape[i].constant();
      if (type.is_state()) {
        view.state.pages = bases_.data();
        view.state.sequences = problem.sequences;
        view.state.lengths = lengths_.data();
        view.state.longest = positions;
      }
      views_.push_back(view);
    }
    views_[0].data = bytes_of(q_);
    views_[3].data = bytes_of(sequence_);
    views_[4].data = bytes_of(position_);
    side_ = side;
    compile::KernelCall sizes;
    sizes.operands = views_;
    sizes.data = kernel_.data.get();
    scratch_bytes_ = align_up<std::size_t>(kernel_.scratch_bytes(sizes), 4096);
    scratch_ = Buffer(scratch_bytes_ * static_cast<std::size_t>(problem.threads), "scratch");
    shared_ = Buffer(kernel_.shared_bytes(sizes), "shared scratch");
  }

  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(memory_.size()); }
  [[nodiscard]] std::int64_t layers() const { return layers_; }

  /// One step's attention in one layer.
  void run(std::int64_t layer) {
    views_[1].state.offset = layer * 2 * side_;
    views_[2].state.offset = (layer * 2 + 1) * side_;
    pool_.run([&](int worker, int workers) {
      compile::View result = views_[0];
      result.data = bytes_of(out_);
      compile::KernelCall call;
      call.operands = views_;
      call.results = std::span(&result, 1);
      call.data = kernel_.data.get();
      call.worker = worker;
      call.workers = workers;
      call.scratch = {scratch_.data() + scratch_bytes_ * static_cast<std::size_t>(worker), scratch_bytes_};
      call.shared = {shared_.data(), shared_.size()};
      for (call.phase = 0; call.phase < kernel_.phases; ++call.phase) {
        if (call.phase > 0 && workers > 1 && !pool_.barrier().wait()) return;
        kernel_.run(call);
      }
    });
    benchmark::DoNotOptimize(out_.data());
  }

  /// As many bytes as a layer's, read from end to end.
  void read(std::int64_t layer) {
    const Reader loop = reader();
    const std::int64_t layer_bytes = bytes() / layers_ / 4096 * 4096;
    pool_.run([&](int worker, int workers) {
      const Range own = split(layer_bytes / 4096, worker, workers);
      loop(memory_.data() + layer * layer_bytes + own.begin * 4096, own.size() * 4096);
    });
  }

 private:
  template <class T>
  static std::byte* bytes_of(std::vector<T>& values) {
    return static_cast<std::byte*>(static_cast<void*>(values.data()));
  }

  /// Halves in [2^-6, 1): no number that would slow a unit down, be it one of f16 or a scale; codes may be any.
  void fill() {
    std::uint64_t state = 88172645463325252u;
    const auto words = memory_.size() / 8;
    auto* out = static_cast<std::uint64_t*>(static_cast<void*>(memory_.data()));
    for (std::size_t i = 0; i < words; ++i) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      out[i] = (state & 0x97ff97ff97ff97ffu) | 0x2400240024002400u;
    }
  }

  Problem problem_;
  std::unique_ptr<compile::KernelCatalog> catalog_;
  ThreadPool pool_;
  compile::Kernel kernel_;
  std::int64_t layers_ = 0;
  std::int64_t page_bytes_ = 0;
  std::int64_t side_ = 0;
  Buffer memory_;
  Buffer scratch_;
  Buffer shared_;
  std::size_t scratch_bytes_ = 0;
  std::vector<std::vector<std::byte*>> tables_;
  std::vector<std::byte* const*> bases_;
  std::vector<std::int64_t> lengths_;
  std::vector<std::int32_t> sequence_;
  std::vector<std::int32_t> position_;
  std::vector<float> q_;
  std::vector<float> out_;
  std::vector<compile::View> views_;
};

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

/// Layer by layer, since other processes only ever add time, and a short call is often left alone.
void decode(benchmark::State& state, const Problem& problem) {
  Attention attention(problem);
  std::vector<double> seconds;
  std::vector<double> reads;
  for (auto _ : state) {
    for (int i = 0; i < 3; ++i) {
      for (std::int64_t layer = 0; layer < attention.layers(); ++layer) {
        reads.push_back(seconds_of([&] { attention.read(layer); }));
      }
      for (std::int64_t layer = 0; layer < attention.layers(); ++layer) {
        seconds.push_back(seconds_of([&] { attention.run(layer); }));
      }
    }
  }
  const auto bytes = static_cast<double>(attention.bytes() / attention.layers());
  const auto report = [&](const std::string& name, double q) {
    state.counters[name + "GB/s"] = bytes / quantile(seconds, q) * 1e-9;
    state.counters[name + "read_GB/s"] = bytes / quantile(reads, q) * 1e-9;
    state.counters[name + "share"] = quantile(reads, q) / quantile(seconds, q);
  };
  report("best_", 0.1);
  report("median_", 0.5);
}

void prefill(benchmark::State& state, const Problem& problem) {
  Attention attention(problem);
  double best = 1e30;
  for (auto _ : state) best = std::min(best, best_seconds([&] { attention.run(0); }, 0));
  double pairs = 0;
  for (std::int64_t t = 0; t < problem.rows; ++t) pairs += static_cast<double>(problem.past + t + 1);
  const double multiply_adds = pairs * 2 * static_cast<double>(problem.shape.heads * problem.shape.width) *
                               static_cast<double>(problem.sequences);
  state.counters["GMAC/s"] = multiply_adds / best * 1e-9;
  const double limit = f32_fma_rate() * problem.threads;
  if (limit > 0) state.counters["share_of_fma"] = multiply_adds / best / limit;
}

void register_all() {
  const std::vector<Shape> shapes = {
      {"9x3x64", 9, 3, 64}, {"32x8x64", 32, 8, 64}, {"32x8x128", 32, 8, 128}, {"16x2x128", 16, 2, 128}};
  const auto add = [](const std::string& name, auto run, const Problem& problem) {
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& s) { run(s, problem); })
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  };
  for (const kernels::Isa isa : kernels::available_isas()) {
    if (isa == kernels::Isa::portable) continue;
    for (const std::string kv : {"f16", "bf16", "q8_0"}) {
      for (const Shape& shape : shapes) {
        const std::string name = fmt::format("{}/{}/{}", kernels::isa_name(isa), kv, shape.name);
        for (const int threads : {1, 2}) {
          for (const std::int64_t past : {8191, 32767}) {
            add(fmt::format("decode/{}/P{}/threads{}", name, past + 1, threads), decode,
                Problem{isa, shape, kv, 1, past, 1, threads});
          }
          add(fmt::format("decode/{}/P8192/B16/threads{}", name, threads), decode,
              Problem{isa, shape, kv, 16, 8191, 1, threads});
        }
        for (const std::int64_t past : {2048, 8192}) {
          add(fmt::format("prefill/{}/P{}/T64", name, past), prefill, Problem{isa, shape, kv, 1, past, 64, 1});
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace::bench

int main(int argc, char** argv) {
  headrace::bench::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
