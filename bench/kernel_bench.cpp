// The production kernels, on one core (cores2: on two), as shares of the limit that each is bound by: of the read rate
// over a working set of the same size (T = 1), or of the rate of the unit that does its multiply-adds (T = 512).
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include "base/half.hpp"
#include "base/thread_pool.hpp"
#include "formats/format.hpp"
#include "kernels/kernels.hpp"
#include "limits.hpp"

namespace headrace::bench {
namespace {

using namespace headrace::kernels;

constexpr std::size_t huge_page = std::size_t{2} << 20;

struct Buffer {
  explicit Buffer(std::int64_t bytes)
      : data(new(std::align_val_t{huge_page}) std::byte[static_cast<std::size_t>(bytes)]), size(bytes) {
    madvise(data.get(), static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // as the Engine does for Weights
    std::memset(data.get(), 0, static_cast<std::size_t>(bytes));
  }
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{huge_page}); }
  };
  std::unique_ptr<std::byte[], Free> data;
  std::int64_t size;
};

std::vector<std::byte> random_rows(const formats::Format& format, std::int64_t bytes) {
  std::vector<std::byte> rows(static_cast<std::size_t>(bytes));
  std::mt19937 random(1);
  for (auto& byte : rows) byte = static_cast<std::byte>(random() & 0x3f);  // finite as any number
  if (format.kind == formats::Format::Kind::grouped) {
    const std::uint16_t half = f32_to_f16(0.01F);
    for (std::int64_t at = 0; at < bytes; at += format.block_bytes) {
      if (format.scales == formats::Format::Scales::e8m0) {
        rows[static_cast<std::size_t>(at + format.scale_at)] = std::byte{120};
        continue;
      }
      std::memcpy(rows.data() + at + format.scale_at, &half, 2);
      if (format.has_minimum) std::memcpy(rows.data() + at + format.minimum_at, &half, 2);
    }
  }
  return rows;
}

/// Read rate over `bytes`, measured once a size.
double limit_of_read(const Buffer& buffer) {
  static std::map<std::int64_t, double> rates;
  auto& rate = rates[buffer.size];
  if (rate == 0) rate = read_rate(buffer.data.get(), buffer.size);
  return rate;
}

/// On `threads` cores, which share the panels; the limit is their read of the same bytes, between the runs.
void linear(benchmark::State& state, Isa isa, const formats::Format& format, std::int64_t outputs, std::int64_t inputs,
            std::int64_t rows, int threads = 1) {
  const KernelTable& table = kernel_table(isa);
  const Layout layout = *layout_of(format);
  Buffer packed(packed_bytes(layout, outputs, inputs));
  const auto source = random_rows(format, outputs * format.row_bytes(inputs));
  table.pack_panels(format, layout, source.data(), outputs, inputs, 0, panel_count(outputs), packed.data.get());
  std::vector<float> x(static_cast<std::size_t>(rows * inputs));
  std::mt19937 random(2);
  for (float& v : x) v = std::normal_distribution<float>()(random);
  LinearArgs args;
  args.activation_stride = layout.grouped() ? a16_row_bytes(inputs) : 4 * inputs;
  Buffer activations(args.activation_stride * rows);
  if (layout.grouped()) {
    table.encode_a16(x.data(), inputs, activations.data.get(), args.activation_stride, inputs, rows);
  } else {
    std::memcpy(activations.data.get(), x.data(), 4 * x.size());
  }
  std::vector<float> out(static_cast<std::size_t>(rows * outputs));
  args.layout = layout;
  args.outputs = outputs;
  args.inputs = inputs;
  args.packed = packed.data.get();
  args.rows = rows;
  args.activations = activations.data.get();
  args.out = out.data();
  args.out_stride = outputs;
  const auto function = table.find_linear(layout, linear_numerics(layout, TokenClass::generated, isa));
  ThreadPool pool(threads);
  const Reader read = reader();
  const std::int64_t panel_bytes = layout.panel_bytes(inputs);
  const auto run_kernel = [&] {
    pool.parallel_for(panel_count(outputs), [&](std::int64_t begin, std::int64_t end) { function(args, begin, end); });
  };
  const auto run_read = [&] {
    pool.parallel_for(panel_count(outputs), [&](std::int64_t begin, std::int64_t end) {
      read(packed.data.get() + begin * panel_bytes, (end - begin) * panel_bytes);
    });
  };
  double best = 1e30;
  double best_read = 1e30;
  for (auto _ : state) {
    best = std::min(best, seconds_of(run_kernel));
    if (rows == 1) best_read = std::min(best_read, seconds_of(run_read));
  }
  if (rows == 1) {
    // Of the file's bytes, by which decode is judged; the limit is that of a read of as many as are packed.
    const double rate = static_cast<double>(source.size()) / best;
    state.counters["GB/s"] = rate * 1e-9;
    state.counters["share_of_read"] = rate * best_read / static_cast<double>(packed.size);
  }
  const double multiply_adds = static_cast<double>(outputs) * static_cast<double>(inputs * rows) / best;
  const double limit = threads * (layout.grouped() ? int8_dot_rate() : f32_fma_rate());
  state.counters["GMAC/s"] = multiply_adds * 1e-9;
  if (limit > 0) state.counters["share_of_unit"] = multiply_adds / limit;
}

void attention(benchmark::State& state, Isa isa, std::int64_t past, std::int64_t rows) {
  const KernelTable& table = kernel_table(isa);
  const std::int64_t heads = 9;
  const std::int64_t kv_heads = 3;
  const std::int64_t width = 64;
  const std::int64_t side = kv_page_bytes(KvEncoding::f16, kv_heads, width);
  const std::int64_t positions = past + rows;
  const std::int64_t page_count = (positions + page_positions - 1) / page_positions;
  Buffer pages(page_count * 2 * side);
  std::vector<const std::byte*> page_table;
  for (std::int64_t i = 0; i < page_count; ++i) page_table.push_back(pages.data.get() + i * 2 * side);
  std::vector<float> q(static_cast<std::size_t>(rows * heads * width), 0.1F);
  std::vector<float> out(q.size());
  std::vector<const std::byte* const*> row_pages(static_cast<std::size_t>(rows), page_table.data());
  std::vector<std::int64_t> row_positions;
  for (std::int64_t t = 0; t < rows; ++t) row_positions.push_back(past + t);
  std::vector<AttentionTile> tiles(static_cast<std::size_t>(rows));
  AttentionArgs args;
  args.heads = heads;
  args.kv_heads = kv_heads;
  args.head_width = width;
  args.scale = 0.125F;
  args.q = q.data();
  args.q_stride = args.out_stride = heads * width;
  args.out = out.data();
  args.pages = row_pages.data();
  args.positions = row_positions.data();
  args.v_offset = side;
  args.tiles = tiles.data();
  const std::int64_t items = attention_tiles(row_pages.data(), rows, tiles.data()) * kv_heads;
  double best = 1e30;
  for (auto _ : state) best = std::min(best, best_seconds([&] { table.attention(args, 0, items); }, 0));
  double pairs = 0;
  for (const std::int64_t position : row_positions) pairs += static_cast<double>(position + 1);
  const double rate = pairs * static_cast<double>(heads * width * 2) / best;
  state.counters["GMAC/s"] = rate * 1e-9;
  if (f32_fma_rate() > 0) state.counters["share_of_fma"] = rate / f32_fma_rate();
  if (rows == 1) state.counters["share_of_read"] = static_cast<double>(pages.size) / best / limit_of_read(pages);
}

void rows_kernel(benchmark::State& state, const std::string& name, Isa isa, std::int64_t width) {
  const KernelTable& t = kernel_table(isa);
  std::vector<float> a(static_cast<std::size_t>(width), 0.3F);
  std::vector<float> b(a);
  std::vector<float> y(a);
  Buffer encoded(a16_row_bytes(width));
  const auto call = [&] {
    if (name == "encode_a16") t.encode_a16(a.data(), width, encoded.data.get(), encoded.size, width, 1);
    if (name == "rms_norm") t.rms_norm(a.data(), width, b.data(), 1e-5F, y.data(), width, width, 1);
    if (name == "silu_multiply") t.silu_multiply(a.data(), b.data(), y.data(), width);
    if (name == "exp") t.exp(a.data(), y.data(), width);
    benchmark::DoNotOptimize(y.data());
  };
  for (auto _ : state) call();
  state.counters["Gelement/s"] = benchmark::Counter(
      static_cast<double>(width) * static_cast<double>(state.iterations()) * 1e-9, benchmark::Counter::kIsRate);
}

/// Packs half a megabyte of rows, as the loader does, from L2; the rows' bytes a second.
void pack(benchmark::State& state, Isa isa, const formats::Format& format) {
  const std::int64_t inputs = 2048;
  const std::int64_t outputs = (std::int64_t{512} << 10) / format.row_bytes(inputs) / panel_outputs * panel_outputs;
  const Layout layout = *layout_of(format);
  const auto source = random_rows(format, outputs * format.row_bytes(inputs));
  Buffer packed(packed_bytes(layout, outputs, inputs));
  double best = 1e30;
  for (auto _ : state) {
    best = std::min(best, seconds_of([&] {
                      kernel_table(isa).pack_panels(format, layout, source.data(), outputs, inputs, 0,
                                                    panel_count(outputs), packed.data.get());
                    }));
  }
  state.counters["GB/s"] = static_cast<double>(source.size()) / best * 1e-9;
}

void add(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run);
}

void register_all() {
  for (const Isa isa : available_isas()) {
    for (const formats::Format& format : formats::format_table()) {
      if (!layout_of(format)) continue;
      const std::string name = fmt::format("linear/{}/{}", format.name, isa_name(isa));
      for (const std::int64_t rows : {1, 4, 16, 512}) {
        if (isa == Isa::portable && rows == 512) continue;
        add(fmt::format("{}/1024x768/T{}", name, rows),
            [=, &format](benchmark::State& s) { linear(s, isa, format, 1024, 768, rows); });
      }
      if (isa == Isa::portable) continue;
      for (const int threads : {1, static_cast<int>(std::thread::hardware_concurrency())}) {
        add(fmt::format("{}/65536x2048/T1/cores{}", name, threads),
            [=, &format](benchmark::State& s) { linear(s, isa, format, 65536, 2048, 1, threads); });
      }
    }
    for (const auto& [past, rows] : {std::pair{255, 1}, {2047, 1}, {0, 512}}) {
      add(fmt::format("attention/{}/P{}/T{}", isa_name(isa), past, rows),
          [=, p = past, r = rows](benchmark::State& s) { attention(s, isa, p, r); });
    }
    for (const char* name : {"encode_a16", "rms_norm", "silu_multiply", "exp"}) {
      add(fmt::format("{}/{}/1536", name, isa_name(isa)),
          [=](benchmark::State& s) { rows_kernel(s, name, isa, 1536); });
    }
  }
  for (const Isa isa : available_isas()) {
    for (const formats::Format& format : formats::format_table()) {
      if (layout_of(format)) {
        add(fmt::format("pack/{}/{}", format.name, isa_name(isa)),
            [=, &format](benchmark::State& s) { pack(s, isa, format); });
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
