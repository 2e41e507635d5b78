// attention: every ISA against portable with ==, a row alone against a row in a tile, whole against partial form;
// portable against softmax in double over the stored f16 values.
#include <numeric>

#include "kernels/common.hpp"

namespace headrace::kernels {
namespace {

/// Sequences with their K and V in pages at shuffled places, and the rows that ask.
struct Problem {
  std::int64_t heads, kv_heads, width;
  std::vector<std::int64_t> lengths;     ///< of the sequences
  std::vector<std::vector<float>> k, v;  ///< per sequence [length][K][E]
  std::vector<Bytes> page_bytes;
  std::vector<std::vector<const std::byte*>> tables;  ///< per sequence
  std::vector<std::int64_t> row_sequence, positions;
  std::vector<const std::byte* const*> pages;  ///< per row
  std::vector<float> q;
  float scale;
  std::int64_t window = 0;
  std::vector<float> sinks = {};
  KvEncoding encoding = KvEncoding::f16;
};

/// What State holds of a row of E, computed apart from the kernels, and the scales of q8_0 of its elements.
std::vector<float> held(KvEncoding encoding, const float* row, std::int64_t width, std::vector<float>* scales) {
  if (scales != nullptr) scales->assign(static_cast<std::size_t>(width), 0);
  std::vector<float> values(row, row + width);
  for (float& x : values) {
    if (encoding == KvEncoding::f16) x = f16_to_f32(f32_to_f16(x));
    if (encoding == KvEncoding::bf16) x = bf16_to_f32(f32_to_bf16(x));
  }
  for (std::int64_t first = 0; encoding == KvEncoding::q8_0 && first < width; first += 32) {
    float largest = 0;
    for (std::int64_t e = first; e < first + 32; ++e) largest = std::max(largest, std::abs(row[e]));
    const float scale = f16_to_f32(f32_to_f16(largest / 127));
    for (std::int64_t e = first; e < first + 32; ++e) {
      if (scales != nullptr) (*scales)[static_cast<std::size_t>(e)] = scale;
      values[static_cast<std::size_t>(e)] = scale == 0 ? 0 : std::nearbyint(row[e] / scale) * scale;
    }
  }
  return values;
}

/// Writes row `t` of one side, [K][E], as State holds it.
void put(KvEncoding encoding, bool keys, const float* row, std::int64_t kv_heads, std::int64_t width, std::int64_t t,
         std::byte* page) {
  const std::int64_t slot = t % 64;
  if (encoding == KvEncoding::q8_0) {
    const KernelTable& portable = kernel_table(Isa::portable);
    (keys ? portable.append_keys_q8 : portable.append_values_q8)(row, width, 0, kv_heads * width / 32, slot, page);
    return;
  }
  for (std::int64_t i = 0; i < kv_heads * width; ++i) {
    const std::uint16_t half = encoding == KvEncoding::f16 ? f32_to_f16(row[i]) : f32_to_bf16(row[i]);
    const std::int64_t e = i % width;
    const std::int64_t head = i / width * 64 * width;
    const std::int64_t place = keys ? slot / 16 * 16 * width + e * 16 + slot % 16 : slot * width + e;
    std::memcpy(page + 2 * (head + place), &half, 2);
  }
}

Problem make_problem(std::int64_t heads, std::int64_t kv_heads, std::int64_t width,
                     const std::vector<std::int64_t>& lengths, const std::vector<std::int64_t>& new_rows,
                     std::mt19937& random, float deviation = 1, KvEncoding encoding = KvEncoding::f16) {
  Problem p{heads, kv_heads, width, lengths, {}, {}, {}, {}, {}, {}, {}, {}, 1 / std::sqrt(static_cast<float>(width))};
  p.encoding = encoding;
  const std::int64_t side = kv_page_bytes(encoding, kv_heads, width);
  std::int64_t pages = 0;
  for (const std::int64_t length : lengths) pages += (length + 63) / 64;
  std::vector<std::size_t> order(static_cast<std::size_t>(pages));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (std::int64_t i = 0; i < pages; ++i) p.page_bytes.emplace_back(128 + 2 * side);
  std::size_t next = 0;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    p.k.push_back(random_floats(lengths[s] * kv_heads * width, random, deviation));
    p.v.push_back(random_floats(lengths[s] * kv_heads * width, random));
    // Spans differ in their mean, so that weighing one of them wrongly shows.
    for (std::size_t i = 0; i < p.v[s].size(); ++i) {
      p.v[s][i] += static_cast<std::int64_t>(i) / (kv_heads * width) / attention_span % 2 == 0 ? 3.0F : -3.0F;
    }
    p.tables.emplace_back();
    for (std::int64_t t = 0; t < lengths[s]; ++t) {
      if (t % 64 == 0) p.tables[s].push_back(p.page_bytes[order[next++]].data());
      auto* page = const_cast<std::byte*>(p.tables[s].back());
      put(encoding, true, p.k[s].data() + t * kv_heads * width, kv_heads, width, t, page + 128);
      put(encoding, false, p.v[s].data() + t * kv_heads * width, kv_heads, width, t, page + 128 + side);
    }
  }
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    for (std::int64_t t = lengths[s] - new_rows[s]; t < lengths[s]; ++t) {
      p.row_sequence.push_back(static_cast<std::int64_t>(s));
      p.positions.push_back(t);
      p.pages.push_back(p.tables[s].data());
    }
  }
  p.q = random_floats(static_cast<std::int64_t>(p.positions.size()) * heads * width, random, deviation);
  return p;
}

AttentionArgs arguments(const KernelTable& table, const Problem& p, std::size_t first_row, std::vector<float>& out) {
  out.assign(p.q.size() - first_row * static_cast<std::size_t>(p.heads * p.width), -7.0F);
  AttentionArgs args;
  args.encoding = p.encoding;
  args.key_layout = *layout_of(*formats::find_format("q8_0"));
  args.key_dots = table.find_linear(args.key_layout, LinearNumerics::a16_group32);
  args.heads = p.heads;
  args.kv_heads = p.kv_heads;
  args.head_width = p.width;
  args.scale = p.scale;
  args.window = p.window;
  args.sinks = p.sinks.empty() ? nullptr : p.sinks.data();
  args.q = p.q.data() + first_row * static_cast<std::size_t>(p.heads * p.width);
  args.q_stride = args.out_stride = p.heads * p.width;
  args.out = out.data();
  args.pages = p.pages.data() + first_row;
  args.positions = p.positions.data() + first_row;
  args.k_offset = 128;
  args.v_offset = 128 + kv_page_bytes(p.encoding, p.kv_heads, p.width);
  return args;
}

std::vector<float> whole(const KernelTable& table, const Problem& p) {
  std::vector<float> out;
  AttentionArgs args = arguments(table, p, 0, out);
  std::vector<AttentionTile> tiles(p.positions.size());
  const auto count = attention_tiles(args.pages, static_cast<std::int64_t>(p.positions.size()), tiles.data());
  args.tiles = tiles.data();
  const std::int64_t items = count * p.kv_heads;
  table.attention(args, items / 2, items);
  table.attention(args, 0, items / 2);
  return out;
}

/// Each row in a tile of its own.
std::vector<float> alone(const KernelTable& table, const Problem& p) {
  std::vector<float> out;
  AttentionArgs args = arguments(table, p, 0, out);
  std::vector<AttentionTile> tiles;
  for (std::size_t row = 0; row < p.positions.size(); ++row) tiles.push_back({static_cast<std::int64_t>(row), 1});
  args.tiles = tiles.data();
  for (std::int64_t item = static_cast<std::int64_t>(tiles.size()) * p.kv_heads; item-- > 0;) {
    table.attention(args, item, item + 1);
  }
  return out;
}

std::vector<float> partial(const KernelTable& table, const Problem& p) {
  std::vector<float> out;
  AttentionArgs args = arguments(table, p, 0, out);
  const auto rows = static_cast<std::int64_t>(p.positions.size());
  for (const std::int64_t position : p.positions) {
    args.max_spans = std::max(args.max_spans, attention_spans(position, p.window));
  }
  std::vector<float> partials(
      static_cast<std::size_t>(rows * p.heads * args.max_spans * attention_partial_floats(p.width)), std::nanf(""));
  args.partials = partials.data();
  const std::int64_t items = rows * p.kv_heads * args.max_spans;
  for (std::int64_t item = items; item-- > 0;) table.attention_partial(args, item, item + 1);
  table.attention_combine(args, 0, rows * p.kv_heads);
  return out;
}

template <class Function>
void for_each_problem(Function function) {
  std::mt19937 random(12);
  struct Case {
    std::int64_t heads, kv_heads, width;
    std::vector<std::int64_t> lengths, rows;
    std::int64_t window = 0;
    bool has_sinks = false;
    KvEncoding encoding = KvEncoding::f16;
  };
  const std::vector<Case> cases = {
      {9, 3, 64, {1, 40, 77}, {1, 33, 5}},
      {9, 3, 64, {1100, 513, 512}, {37, 1, 2}},
      {4, 4, 80, {530, 9}, {20, 9}},
      {8, 1, 96, {70}, {70}},
      {34, 2, 128, {600}, {3}},
      {2, 2, 24, {100, 515}, {17, 18}},
      {3, 1, 256, {90}, {4}},
      {5, 5, 16, {33}, {33}},
      {4, 2, 64, {200, 1}, {150, 1}, 37},
      {2, 1, 48, {1150}, {9}, 600},
      {2, 1, 32, {540}, {40}, 1},
      {8, 2, 24, {540}, {40}, 16},
      {9, 3, 32, {540, 3}, {10, 3}, 1 << 24, true},
      {2, 2, 24, {1540}, {6}, 513, true},
      {34, 1, 16, {40}, {40}, 0, true},
      {9, 3, 64, {1100, 1}, {5, 1}, 0, false, KvEncoding::q8_0},
      {8, 1, 96, {70}, {70}, 0, false, KvEncoding::q8_0},
      {4, 4, 32, {530, 77}, {20, 9}, 37, true, KvEncoding::q8_0},
      {5, 1, 256, {90}, {4}, 0, false, KvEncoding::q8_0},
      {9, 3, 64, {1100, 1}, {5, 1}, 0, false, KvEncoding::bf16},
      {4, 2, 24, {530, 77}, {20, 9}, 300, true, KvEncoding::bf16},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << "H=" << c.heads << " K=" << c.kv_heads << " E=" << c.width);
    Problem problem = make_problem(c.heads, c.kv_heads, c.width, c.lengths, c.rows, random, 1, c.encoding);
    problem.window = c.window;
    if (c.has_sinks) problem.sinks = random_floats(c.heads, random, 3);
    function(problem);
  }
}

class AttentionTest : public IsaTest {};

TEST_P(AttentionTest, EqualsPortable) {
  for_each_problem([&](const Problem& p) { EXPECT_TRUE(same_bits(whole(table(), p), whole(portable_table(), p))); });
}

TEST_P(AttentionTest, RowsDependOnNothingElse) {
  for_each_problem([&](const Problem& p) {
    const auto expected = whole(table(), p);
    EXPECT_TRUE(same_bits(alone(table(), p), expected));
    EXPECT_TRUE(same_bits(partial(table(), p), expected));
  });
}

TEST_P(AttentionTest, UnusualNumbersEqualPortable) {
  std::mt19937 random(13);
  for (const float deviation : {1e-4F, 30.0F, 300.0F, 3e4F, 1e20F}) {  // the last overflow f16, then f32
    for (const KvEncoding encoding : {KvEncoding::f16, KvEncoding::bf16, KvEncoding::q8_0}) {
      const Problem p = make_problem(4, 2, 32, {530}, {3}, random, deviation, encoding);
      EXPECT_TRUE(same_bits(whole(table(), p), whole(portable_table(), p))) << deviation;
      EXPECT_TRUE(same_bits(alone(table(), p), whole(portable_table(), p))) << deviation;
    }
  }
}

TEST(Attention, PortableIsCloseToDouble) {
  for_each_problem([&](const Problem& p) {
    std::vector<std::vector<float>> all_k;
    std::vector<std::vector<float>> all_v;
    std::vector<std::vector<float>> all_v_scales;
    for (std::size_t s = 0; s < p.k.size(); ++s) {
      all_k.emplace_back();
      all_v.emplace_back();
      all_v_scales.emplace_back();
      for (std::size_t row = 0; row < p.k[s].size(); row += static_cast<std::size_t>(p.width)) {
        const auto k = held(p.encoding, p.k[s].data() + row, p.width, nullptr);
        std::vector<float> v_scales;
        const auto v = held(p.encoding, p.v[s].data() + row, p.width, &v_scales);
        all_k.back().insert(all_k.back().end(), k.begin(), k.end());
        all_v.back().insert(all_v.back().end(), v.begin(), v.end());
        all_v_scales.back().insert(all_v_scales.back().end(), v_scales.begin(), v_scales.end());
      }
    }
    const auto out = whole(kernel_table(Isa::portable), p);
    for (std::size_t row = 0; row < p.positions.size(); ++row) {
      const auto s = static_cast<std::size_t>(p.row_sequence[row]);
      for (std::int64_t head = 0; head < p.heads; ++head) {
        const std::int64_t kv_head = head / (p.heads / p.kv_heads);
        const float* q = p.q.data() + (static_cast<std::int64_t>(row) * p.heads + head) * p.width;
        std::vector<double> scores;
        double magnitude = 0;
        double lost = 0;
        const double largest_q = static_cast<double>(
            *std::max_element(q, q + p.width, [](float a, float b) { return std::abs(a) < std::abs(b); }));
        const std::int64_t first = p.window == 0 ? 0 : std::max<std::int64_t>(p.positions[row] - p.window + 1, 0);
        for (std::int64_t t = first; t <= p.positions[row]; ++t) {
          double sum = 0;
          double absolute = 0;
          double codes = 0;  // what is lost of q in the codes that q8_0 keys are dotted with
          for (std::int64_t e = 0; e < p.width; ++e) {
            const auto k =
                static_cast<double>(all_k[s][static_cast<std::size_t>((t * p.kv_heads + kv_head) * p.width + e)]);
            const double product = static_cast<double>(q[e]) * k;
            codes += std::abs(largest_q) / 65024 * std::abs(k);
            sum += product;
            absolute += std::abs(product);
          }
          scores.push_back(sum * static_cast<double>(p.scale));
          magnitude = std::max(magnitude, absolute * static_cast<double>(p.scale));
          lost = std::max(lost, codes * static_cast<double>(p.scale));
        }
        const double sink = p.sinks.empty() ? -std::numeric_limits<double>::infinity()
                                            : static_cast<double>(p.sinks[static_cast<std::size_t>(head)]);
        magnitude = std::max(magnitude, p.sinks.empty() ? 0 : std::abs(sink));
        const double largest = std::max(sink, *std::max_element(scores.begin(), scores.end()));
        double total = std::exp(sink - largest);
        for (double& score : scores) total += score = std::exp(score - largest);
        // Relative error of a weight: that of its exponent (a chain of E FMAs, the scale, the difference), exp's own;
        // then a sum of n weights on both sides of the division.
        const double n = static_cast<double>(scores.size());
        const double relative = (static_cast<double>(p.width) + 4) * epsilon * magnitude + 4 * epsilon +
                                (p.encoding == KvEncoding::q8_0 ? lost : 0);
        for (std::int64_t e = 0; e < p.width; ++e) {
          double exact = 0;
          double v_magnitude = 0;
          double v_codes = 0;  // what is lost of the weights in their codes, which have one scale a span
          double span_codes = 0;
          double largest_weight = 0;
          for (std::size_t t = 0; t < scores.size(); ++t) {
            const std::int64_t position = first + static_cast<std::int64_t>(t);
            const auto place = static_cast<std::size_t>((position * p.kv_heads + kv_head) * p.width + e);
            const auto v = static_cast<double>(all_v[s][place]);
            const double weight = scores[t] / total;
            exact += weight * v;
            v_magnitude += weight * std::abs(v);
            const auto v_scale = static_cast<double>(all_v_scales[s][place]);
            if (v_scale != 0) span_codes += std::abs(v) / v_scale;
            largest_weight = std::max(largest_weight, weight * v_scale);
            if (position % attention_span == attention_span - 1 || t + 1 == scores.size()) {
              v_codes += largest_weight / 65024 * span_codes;
              span_codes = largest_weight = 0;
            }
          }
          const auto at = static_cast<std::size_t>((static_cast<std::int64_t>(row) * p.heads + head) * p.width + e);
          ASSERT_NEAR(static_cast<double>(out[at]), exact,
                      2 * (relative + (n + 8) * epsilon) * v_magnitude + 1.01 * v_codes)
              << "row " << row << " head " << head << " e " << e;
        }
      }
    }
  });
}

TEST(Attention, Tiles) {
  const std::byte* pages_a[1] = {};
  const std::byte* pages_b[1] = {};
  std::vector<const std::byte* const*> pages(20, pages_a);
  pages.insert(pages.end(), 3, pages_b);
  std::vector<AttentionTile> tiles(pages.size());
  ASSERT_EQ(attention_tiles(pages.data(), 23, tiles.data()), 3);
  EXPECT_EQ(tiles[0].rows, attention_tile_rows);
  EXPECT_EQ(tiles[1].first_row, attention_tile_rows);
  EXPECT_EQ(tiles[1].rows, 20 - attention_tile_rows);
  EXPECT_EQ(tiles[2].first_row, 20);
  EXPECT_EQ(tiles[2].rows, 3);
}

HEADRACE_TEST_EVERY_ISA(AttentionTest);

}  // namespace
}  // namespace headrace::kernels
