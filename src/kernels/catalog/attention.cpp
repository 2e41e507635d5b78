// Attention over KV pages, and the append of rows to them.
#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "formats/format.hpp"
#include "kernels/adapter.hpp"

namespace headrace::kernels {
namespace {

using ir::ElementType;

/// How a State [K, E] of this order holds its rows, if attention's kernels read that.
std::optional<KvEncoding> kv_encoding_of(const ir::Type& type, std::string_view order) {
  if (!type.is_state() || type.shape.size() != 2 || type.order != order) return std::nullopt;
  if (type.encoding == "q8_0") return KvEncoding::q8_0;
  if (!type.encoding.empty()) return std::nullopt;
  if (type.element == ElementType::f16) return KvEncoding::f16;
  if (type.element == ElementType::bf16) return KvEncoding::bf16;
  return std::nullopt;
}

// ---- attention -----------------------------------------------------------------------------------------------------

struct AttentionData {
  const KernelTable* table = nullptr;
  float scale = 1;
  std::int64_t window = 0;
  KvEncoding encoding = KvEncoding::f16;
  Layout key_layout;
  LinearFunction key_dots = nullptr;
};

/// Spans of all rows that the partial form keeps at once; longer pasts take the whole form. 256 are 131,072 positions
/// of one row.
constexpr std::int64_t max_partial_spans = 256;
/// Rows of a step up to which the partial form may pay.
constexpr std::int64_t max_partial_rows = 4;

/// What attention needs to know of each row, in a worker's scratch.
struct RowTables {
  const std::byte* const** pages = nullptr;
  std::int64_t* positions = nullptr;
  AttentionTile* tiles = nullptr;
  std::int64_t* seen = nullptr;  ///< positions that the rows of a tile see, all together
  std::int64_t tile_count = 0;
  std::int64_t spans = 0;  ///< the most of a row
  std::int64_t all_seen = 0;
};

std::size_t attention_scratch(const KernelCall& sizes) {
  constexpr std::size_t row = sizeof(const std::byte* const*) + 2 * sizeof(std::int64_t) + sizeof(AttentionTile);
  return static_cast<std::size_t>(sizes.operands[0].dims[0]) * row;
}

std::size_t attention_shared(const KernelCall& sizes) {
  const View& q = sizes.operands[0];
  return static_cast<std::size_t>(max_partial_spans * q.dims[1] * attention_partial_floats(q.dims[2])) * sizeof(float);
}

/// Lays the tables out in scratch. False, and the step fails, if a sequence or a position is out of bounds.
bool fill_tables(const KernelCall& call, std::int64_t window, RowTables& tables) noexcept {
  const std::int64_t rows = call.operands[0].dims[0];
  const compile::StateView& state = call.operands[1].state;
  const auto* sequences = call.operands[3].as<const std::int32_t>();
  const auto* positions = call.operands[4].as<const std::int32_t>();
  std::byte* next = call.scratch.data();
  tables.pages = as_array<const std::byte* const*>(next);
  next += rows * static_cast<std::int64_t>(sizeof(const std::byte* const*));
  tables.positions = as_array<std::int64_t>(next);
  next += rows * static_cast<std::int64_t>(sizeof(std::int64_t));
  tables.seen = as_array<std::int64_t>(next);
  next += rows * static_cast<std::int64_t>(sizeof(std::int64_t));
  tables.tiles = as_array<AttentionTile>(next);
  for (std::int64_t row = 0; row < rows; ++row) {
    if (state_page(call, state, sequences[row], positions[row]) == nullptr) return false;
    tables.pages[row] = state.pages[sequences[row]];
    tables.positions[row] = positions[row];
    tables.spans = std::max(tables.spans, attention_spans(positions[row], window));
    // A tile's rows are of one sequence, in ascending order of position.
    const bool joins = row > 0 && sequences[row] == sequences[row - 1] && positions[row] >= positions[row - 1] &&
                       tables.tiles[tables.tile_count - 1].rows < attention_tile_rows;
    const std::int64_t seen = positions[row] + 1 - attention_first(positions[row], window);
    tables.all_seen += seen;
    if (joins) {
      ++tables.tiles[tables.tile_count - 1].rows;
      tables.seen[tables.tile_count - 1] += seen;
    } else {
      tables.seen[tables.tile_count] = seen;
      tables.tiles[tables.tile_count++] = {row, 1};
    }
  }
  return true;
}

/// The whole form of one row, divided by query heads: by kv heads, 3 of them would keep one of 2 workers idle for a
/// third of the time. A kv head that two workers share is read by both.
void attend_query_heads(const KernelCall& call, const KernelTable& table, const AttentionArgs& args) noexcept {
  const std::int64_t group = args.heads / args.kv_heads;
  Range own = share(call, args.heads);
  while (own.size() > 0) {
    const std::int64_t kv_head = own.begin / group;
    AttentionArgs part = args;
    part.heads = std::min(own.end, (kv_head + 1) * group) - own.begin;
    part.kv_heads = 1;
    part.q += own.begin * args.head_width;
    part.out += own.begin * args.head_width;
    if (part.sinks != nullptr) part.sinks += own.begin;
    part.k_offset += kv_page_bytes(args.encoding, kv_head, args.head_width);
    part.v_offset += kv_page_bytes(args.encoding, kv_head, args.head_width);
    table.attention(part, 0, 1);
    own.begin += part.heads;
  }
}

/// The share of a worker, of about as many positions as any other's.
Range share_positions(const KernelCall& call, const RowTables& tables, const AttentionArgs& args, bool partial) {
  const std::int64_t all = tables.all_seen * args.kv_heads;
  // The item that begins nearest to where `before` positions are done.
  const auto item_at = [&](std::int64_t before) {
    std::int64_t tile = 0;
    for (; tile < tables.tile_count && before >= tables.seen[tile] * args.kv_heads; ++tile) {
      before -= tables.seen[tile] * args.kv_heads;
    }
    if (tile == tables.tile_count) return tile * args.kv_heads * (partial ? args.max_spans : 1);
    const std::int64_t head = tile * args.kv_heads + before / tables.seen[tile];
    const std::int64_t rest = before % tables.seen[tile];
    if (!partial) return head + (2 * rest >= tables.seen[tile] ? 1 : 0);
    const std::int64_t first = attention_first(tables.positions[tile], args.window);  // a tile is a row here
    const std::int64_t part = (first + rest) / attention_span - first / attention_span;
    const std::int64_t begin = std::max<std::int64_t>((first + rest) / attention_span * attention_span - first, 0);
    const std::int64_t end =
        std::min((first + rest) / attention_span * attention_span + attention_span - first, tables.seen[tile]);
    return head * args.max_spans + part + (2 * rest >= begin + end ? 1 : 0);
  };
  return {item_at(all * call.worker / call.workers), item_at(all * (call.worker + 1) / call.workers)};
}

/// Phase 0: the whole form, or the spans of the partial one; phase 1: its spans put together. Both give the same bits,
/// so the choice may depend on anything; it is the same on every worker.
void run_attention(const KernelCall& call) noexcept {
  const auto& data = data_of<AttentionData>(call);
  const View& q = call.operands[0];
  const View& keys = call.operands[1];
  const View& values = call.operands[2];
  const std::int64_t rows = q.dims[0];
  if (rows == 0 || (call.phase == 1 && rows > max_partial_rows)) return;
  RowTables tables;
  if (!fill_tables(call, data.window, tables)) return;

  AttentionArgs args;
  args.encoding = data.encoding;
  args.key_layout = data.key_layout;
  args.key_dots = data.key_dots;
  args.heads = q.dims[1];
  args.kv_heads = keys.dims[0];
  args.head_width = q.dims[2];
  args.scale = data.scale;
  args.window = data.window;
  if (call.operands.size() > 5) args.sinks = call.operands[5].as<const float>();
  args.q = q.as<const float>();
  args.q_stride = args.out_stride = args.heads * args.head_width;
  args.out = call.results[0].as<float>();
  args.pages = tables.pages;
  args.positions = tables.positions;
  args.k_offset = keys.state.offset;
  args.v_offset = values.state.offset;
  args.tiles = tables.tiles;
  args.max_spans = tables.spans;

  const std::int64_t items = tables.tile_count * args.kv_heads;
  const bool partial = rows <= max_partial_rows && tables.tile_count == rows && args.max_spans > 1 &&
                       args.max_spans * rows <= max_partial_spans && call.workers > 1 && items < 8 * call.workers;
  if (!partial) {
    if (rows == 1 && args.kv_heads % call.workers != 0) {
      if (call.phase == 0) attend_query_heads(call, *data.table, args);
      return;
    }
    const Range own = share_positions(call, tables, args, false);
    if (call.phase == 0 && own.size() > 0) data.table->attention(args, own.begin, own.end);
    return;
  }
  args.partials = as_array<float>(call.shared.data());
  if (call.phase == 0) {
    const Range own = share_positions(call, tables, args, true);
    if (own.size() > 0) data.table->attention_partial(args, own.begin, own.end);
  } else {
    const Range own = share(call, items);
    if (own.size() > 0) data.table->attention_combine(args, own.begin, own.end);
  }
}

/// Only a row with more than one span has the partial form, and with it a second phase.
int attention_phases(const KernelCall& call) noexcept {
  const std::int64_t rows = call.operands[0].dims[0];
  if (call.workers == 1 || rows > max_partial_rows) return 1;
  const auto* positions = call.operands[4].as<const std::int32_t>();
  return std::any_of(positions, positions + rows, [](std::int32_t p) { return p >= attention_span; }) ? 2 : 1;
}

KernelCost attention_cost(const KernelCall& call) {
  const View& q = call.operands[0];
  const View& keys = call.operands[1];
  const auto& data = data_of<AttentionData>(call);
  const std::int64_t last = std::max<std::int64_t>(keys.state.longest - 1, 0);
  const auto positions = static_cast<double>(last + 1 - attention_first(last, data.window));
  KernelCost cost;
  // Keys and values of one sequence: what the planner knows of the past is its longest.
  const std::int64_t page = 2 * kv_page_bytes(data.encoding, keys.dims[0], keys.dims[1]);
  cost.bytes_read = positions / static_cast<double>(page_positions) * static_cast<double>(page);
  cost.f32_flops = 4.0 * positions * static_cast<double>(q.elements());
  return cost;
}

std::optional<Kernel> make_attention(const KernelRequest& request) {
  const ir::Type& q = request.operands[0];
  const ir::Type& keys = request.operands[1];
  const std::optional<KvEncoding> encoding = kv_encoding_of(keys, "columns16");
  if (!is_plain(q, ElementType::f32) || !encoding || kv_encoding_of(request.operands[2], "") != encoding ||
      !attention_supports(*encoding, q.shape[2].constant())) {
    return std::nullopt;
  }
  for (const ir::Type& type : request.operands.subspan(3)) {
    if (!is_plain(type)) return std::nullopt;
  }
  Kernel kernel;
  kernel.name = "attention." + std::string(isa_name(request.table.isa));
  kernel.numerics = fmt::format("attention.{}.span512", kv_encoding_name(*encoding));
  kernel.phases = 2;
  kernel.call_phases = attention_phases;
  kernel.run = run_attention;
  kernel.scratch_bytes = attention_scratch;
  kernel.shared_bytes = attention_shared;
  kernel.cost = attention_cost;
  AttentionData data;
  data.table = &request.table;
  data.scale = static_cast<float>(request.attribute<double>("scale"));
  data.window = request.attribute<std::int64_t>("window");
  data.encoding = *encoding;
  if (encoding == KvEncoding::q8_0) {
    data.key_layout = *layout_of(*formats::find_format("q8_0"));
    data.key_dots = request.table.find_linear(data.key_layout, LinearNumerics::a16_group32);
  }
  kernel.data = share_data(data);
  return kernel;
}

// ---- append --------------------------------------------------------------------------------------------------------

struct AppendData {
  const KernelTable* table = nullptr;
  bool columns = false;
};

void run_append(const KernelCall& call) noexcept {
  const auto& data = data_of<AppendData>(call);
  const View& state = call.operands[0];
  const View& x = call.operands[1];
  const auto* sequences = call.operands[2].as<const std::int32_t>();
  const auto* positions = call.operands[3].as<const std::int32_t>();
  KvAppendArgs args;
  args.kv_heads = state.dims[0];
  args.head_width = state.dims[1];
  args.k_stride = args.v_stride = args.kv_heads * args.head_width;
  args.k_offset = args.v_offset = state.state.offset;
  const Range own = own_columns(call, args.k_stride, compile::column_unit);
  if (own.size() == 0) return;
  args.first_column = own.begin;
  args.columns = own.size();
  for (std::int64_t row = 0; row < x.dims[0]; ++row) {
    std::byte* page = state_page(call, state.state, sequences[row], positions[row]);
    if (page == nullptr) continue;
    const std::int64_t position = positions[row];
    (data.columns ? args.k : args.v) = x.as<const float>() + row * args.k_stride;
    args.pages = &page;
    args.positions = &position;
    data.table->kv_append(args, 0, 1);
  }
}

/// Blocks of all rows are divided, so that a row alone is not one worker's.
void run_append_q8(const KernelCall& call) noexcept {
  const auto& data = data_of<AppendData>(call);
  const View& state = call.operands[0];
  const View& x = call.operands[1];
  const auto* sequences = call.operands[2].as<const std::int32_t>();
  const auto* positions = call.operands[3].as<const std::int32_t>();
  const std::int64_t row_elements = state.dims[0] * state.dims[1];
  const Range blocks = share(call, row_elements / kv_block);
  for (std::int64_t row = 0; row < x.dims[0]; ++row) {
    std::byte* page = state_page(call, state.state, sequences[row], positions[row]);
    if (page == nullptr) continue;
    const auto append = data.columns ? data.table->append_keys_q8 : data.table->append_values_q8;
    append(x.as<const float>() + row * row_elements, state.dims[1], blocks.begin, blocks.end,
           positions[row] % page_positions, page + state.state.offset);
  }
}

std::optional<Kernel> make_append(const KernelRequest& request) {
  const ir::Type& state = request.operands[0];
  const bool columns = state.order == "columns16";
  const std::optional<KvEncoding> encoding = kv_encoding_of(state, state.order);
  if (!encoding || encoding == KvEncoding::bf16) return std::nullopt;
  if (!is_plain(request.operands[1], ElementType::f32) || !is_plain(request.operands[2]) ||
      !is_plain(request.operands[3])) {
    return std::nullopt;
  }
  Kernel kernel;
  kernel.name = "append." + std::string(isa_name(request.table.isa));
  kernel.numerics = fmt::format("append.{}", kv_encoding_name(*encoding));
  kernel.run = encoding == KvEncoding::q8_0 ? run_append_q8 : run_append;
  kernel.column_units = {compile::column_unit, compile::column_unit, 0, 0, compile::column_unit};
  kernel.data = share_data(AppendData{&request.table, columns});
  return kernel;
}

}  // namespace

CatalogFamily catalog_attention() { return {{"attention", make_attention}, {"append", make_append}}; }

}  // namespace headrace::kernels
