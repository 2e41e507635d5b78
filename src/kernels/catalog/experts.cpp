// Mixtures of experts: the choice of experts, their linears, and the sum over slots.
//
// expert_linear groups the (row, slot) pairs of a step by expert and makes one linear of each used expert over its
// rows, so that a step reads the experts that it uses, each once. Limit: their bytes for few rows a expert, the
// linear's own for many. Which rows share a call changes no bit: a linear computes each row alone.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "formats/format.hpp"
#include "kernels/adapter.hpp"

namespace headrace::kernels {
namespace {

using ir::ElementType;

// ---- top_k ---------------------------------------------------------------------------------------------------------

/// Larger first, of equals the lower id, NaN last.
bool comes_before(float a, std::int64_t a_id, float b, std::int64_t b_id) noexcept {
  const bool a_nan = std::isnan(a);
  const bool b_nan = std::isnan(b);
  if (a_nan != b_nan) return b_nan;
  if (!a_nan && a != b) return a > b;
  return a_id < b_id;
}

void run_top_k(const KernelCall& call) noexcept {
  const View& x = call.operands[0];
  const std::int64_t width = row_width(x);
  const std::int64_t k = row_width(call.results[0]);
  const Range rows = share(call, row_count(x));
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* in = x.as<const float>() + row * width;
    auto* out = call.results[0].as<std::int32_t>() + row * k;
    std::int64_t last = -1;
    for (std::int64_t i = 0; i < k; ++i) {  // the first of those behind the last one
      std::int64_t best = -1;
      for (std::int64_t id = 0; id < width; ++id) {
        const bool behind = last < 0 || comes_before(in[last], last, in[id], id);
        if (behind && (best < 0 || comes_before(in[id], id, in[best], best))) best = id;
      }
      out[i] = static_cast<std::int32_t>(best);
      last = best;
    }
  }
}

std::optional<Kernel> make_top_k(const KernelRequest& request) {
  if (!is_plain(request.operands[0], ElementType::f32)) return std::nullopt;
  Kernel kernel;
  kernel.name = "top_k";
  kernel.numerics = "exact";
  kernel.run = run_top_k;
  return kernel;
}

// ---- expert_linear -------------------------------------------------------------------------------------------------

/// Panels whose outputs for all rows of an expert are kept until they are scattered.
constexpr std::int64_t block_panels = 8;
constexpr std::int64_t block_outputs = block_panels * panel_outputs;

struct Linear {
  Layout layout;
  LinearFunction run = nullptr;
};

struct ExpertData {
  Linear linear;
  Linear bias;  ///< of K = 1; no function without one
  bool encoded = false;

  [[nodiscard]] std::int64_t row_bytes(std::int64_t inputs) const noexcept {
    return encoded ? a16_row_bytes(inputs) : 4 * inputs;
  }
  /// Of the rows that are gathered.
  [[nodiscard]] std::int64_t row_stride(std::int64_t inputs) const noexcept {
    return align_up<std::int64_t>(row_bytes(inputs), 64);
  }
};

/// The pairs of a step by expert, rows in order: expert e has order[first[e]] to order[first[e + 1]], where pair
/// p = row * A + slot. Pairs with an id out of bounds have no expert.
struct Grouping {
  std::int64_t pairs = 0;
  std::int64_t experts = 0;
  std::int32_t* first = nullptr;  ///< [X + 2]; the last two are for the counting
  std::int32_t* order = nullptr;  ///< [pairs]

  static std::size_t bytes(std::int64_t pairs, std::int64_t experts) noexcept {
    return static_cast<std::size_t>(align_up<std::int64_t>(4 * (pairs + experts + 2), 64));
  }

  /// Lays the grouping out in a worker's scratch. Each worker makes its own: sorting is cheaper than waiting.
  explicit Grouping(const KernelCall& call) noexcept
      : pairs(call.operands[2].elements()), experts(call.operands[1].dims[0]) {
    const auto* ids = call.operands[2].as<const std::int32_t>();
    first = as_array<std::int32_t>(call.scratch.data());
    order = first + experts + 2;
    std::fill_n(first, experts + 2, 0);
    for (std::int64_t p = 0; p < pairs; ++p) {
      if (is_expert(ids[p])) ++first[ids[p] + 2];
    }
    for (std::int64_t e = 0; e < experts; ++e) first[e + 2] += first[e + 1];
    // first[e + 1] counts up from where expert e begins to where it ends.
    for (std::int64_t p = 0; p < pairs; ++p) {
      if (is_expert(ids[p])) order[first[ids[p] + 1]++] = static_cast<std::int32_t>(p);
    }
  }
  [[nodiscard]] bool is_expert(std::int32_t id) const noexcept { return id >= 0 && id < experts; }
  [[nodiscard]] std::int64_t count(std::int64_t expert) const noexcept { return first[expert + 1] - first[expert]; }
};

/// Bytes of what one worker keeps of the outputs of a block: those of all rows, and a bias.
std::size_t block_bytes(std::int64_t pairs) noexcept {
  return static_cast<std::size_t>((pairs + 1) * block_outputs) * sizeof(float);
}

std::size_t expert_scratch(const KernelCall& sizes) {
  const std::int64_t pairs = sizes.operands[2].elements();
  return Grouping::bytes(pairs, sizes.operands[1].dims[0]) + block_bytes(pairs);
}

std::size_t expert_shared(const KernelCall& sizes) {
  const auto& data = data_of<ExpertData>(sizes);
  return static_cast<std::size_t>(sizes.operands[2].elements() * data.row_stride(sizes.operands[1].dims[2]));
}

/// One call of expert_linear on one worker.
class ExpertCall {
 public:
  explicit ExpertCall(const KernelCall& call) noexcept
      : call_(call),
        data_(data_of<ExpertData>(call)),
        grouping_(call),
        outputs_(call.operands[1].dims[1]),
        inputs_(call.operands[1].dims[2]),
        slots_(call.operands[0].rank == 2 ? call.operands[2].dims[1] : 1),
        row_bytes_(data_.row_bytes(inputs_)),
        row_stride_(data_.row_stride(inputs_)) {
    const auto used = Grouping::bytes(grouping_.pairs, grouping_.experts);
    block_ = as_array<float>(call.scratch.data() + used);
    bias_ = block_ + grouping_.pairs * block_outputs;
  }

  /// Phase 0: rows of an expert that has several stand one after the other.
  void gather() noexcept {
    const Range own = share(call_, grouping_.first[grouping_.experts]);
    std::int64_t expert = 0;
    for (std::int64_t i = own.begin; i < own.end; ++i) {
      while (grouping_.first[expert + 1] <= i) ++expert;
      if (grouping_.count(expert) < 2) continue;
      std::memcpy(call_.shared.data() + i * row_stride_, source(grouping_.order[i]),
                  static_cast<std::size_t>(row_bytes_));
    }
  }

  /// Phase 1: this worker's panels of each used expert. A panel costs its bytes, which a few rows would take too, and
  /// its rows; workers get ranges of equal cost.
  void run() noexcept {
    zero_strays();
    const std::int64_t panels = panel_count(outputs_);
    const auto cost = [&](std::int64_t expert) {
      const std::int64_t rows = grouping_.count(expert);
      return rows == 0 ? 0 : rows + 4;
    };
    std::int64_t total = 0;
    for (std::int64_t e = 0; e < grouping_.experts; ++e) total += cost(e) * panels;
    const Range own = share(call_, total);
    std::int64_t begin = 0;
    for (std::int64_t e = 0; e < grouping_.experts && begin < own.end; ++e) {
      const std::int64_t each = cost(e);
      if (each == 0) continue;
      // Panel j begins at begin + j * each; it is whose range it begins in.
      const std::int64_t first = ceil_div(std::max<std::int64_t>(own.begin - begin, 0), each);
      const std::int64_t last = std::min(ceil_div(std::max<std::int64_t>(own.end - begin, 0), each), panels);
      if (first < last) run_expert(e, first, last);
      begin += each * panels;
    }
  }

 private:
  [[nodiscard]] const std::byte* source(std::int64_t pair) const noexcept {
    return call_.operands[0].data + pair / slots_ * row_bytes_;
  }
  [[nodiscard]] float* result(std::int64_t pair) const noexcept {
    return call_.results[0].as<float>() + pair * outputs_;
  }

  /// The step fails; what it leaves is defined all the same.
  void zero_strays() noexcept {
    const auto* ids = call_.operands[2].as<const std::int32_t>();
    if (call_.worker != 0 || grouping_.first[grouping_.experts] == grouping_.pairs) return;
    set_failed(call_);
    for (std::int64_t p = 0; p < grouping_.pairs; ++p) {
      if (!grouping_.is_expert(ids[p])) std::fill_n(result(p), outputs_, 0.0f);
    }
  }

  /// The linear of panels [first, last) of one matrix of a stacked Weight, as if they were all that it has.
  [[nodiscard]] LinearArgs panels_of(const Layout& layout, const View& weight, std::int64_t expert, std::int64_t first,
                                     std::int64_t last) const noexcept {
    LinearArgs args;
    args.layout = layout;
    args.inputs = weight.dims[2];
    args.outputs = std::min(outputs_, last * panel_outputs) - first * panel_outputs;
    args.packed =
        weight.data + expert * packed_bytes(layout, outputs_, args.inputs) + first * layout.panel_bytes(args.inputs);
    return args;
  }

  void run_expert(std::int64_t expert, std::int64_t first, std::int64_t last) noexcept {
    const std::int32_t* pairs = grouping_.order + grouping_.first[expert];
    const std::int64_t rows = grouping_.count(expert);
    if (rows == 1) {  // no copies: in from where the row is, out to where it goes
      LinearArgs args = panels_of(data_.linear.layout, call_.operands[1], expert, first, last);
      args.rows = 1;
      args.activations = source(pairs[0]);
      args.activation_stride = row_stride_;
      args.out = result(pairs[0]) + first * panel_outputs;
      args.out_stride = outputs_;
      data_.linear.run(args, 0, last - first);
    }
    for (std::int64_t block = first; block < last; block += block_panels) {
      const std::int64_t end = std::min(block + block_panels, last);
      LinearArgs args = panels_of(data_.linear.layout, call_.operands[1], expert, block, end);
      const std::int64_t width = args.outputs;
      const std::int64_t column = block * panel_outputs;
      if (rows > 1) {
        args.rows = rows;
        args.activations = call_.shared.data() + grouping_.first[expert] * row_stride_;
        args.activation_stride = row_stride_;
        args.out = block_;
        args.out_stride = block_outputs;
        data_.linear.run(args, 0, end - block);
        for (std::int64_t r = 0; r < rows; ++r) {
          std::memcpy(result(pairs[r]) + column, block_ + r * block_outputs, static_cast<std::size_t>(4 * width));
        }
      }
      if (data_.bias.run != nullptr) add_bias(expert, block, end, {pairs, static_cast<std::size_t>(rows)});
    }
  }

  void add_bias(std::int64_t expert, std::int64_t block, std::int64_t end,
                std::span<const std::int32_t> pairs) noexcept {
    LinearArgs args = panels_of(data_.bias.layout, call_.operands[3], expert, block, end);
    const float one = 1;
    args.rows = 1;
    args.activations = static_cast<const std::byte*>(static_cast<const void*>(&one));
    args.activation_stride = 4;
    args.out = bias_;
    args.out_stride = block_outputs;
    data_.bias.run(args, 0, end - block);
    for (const std::int32_t pair : pairs) {
      float* out = result(pair) + block * panel_outputs;
      for (std::int64_t i = 0; i < args.outputs; ++i) out[i] += bias_[i];
    }
  }

  const KernelCall& call_;
  const ExpertData& data_;
  Grouping grouping_;
  std::int64_t outputs_;
  std::int64_t inputs_;
  std::int64_t slots_;  ///< of one row of the input
  std::int64_t row_bytes_;
  std::int64_t row_stride_;
  float* block_ = nullptr;  ///< [rows][block_outputs]
  float* bias_ = nullptr;   ///< [block_outputs]
};

void run_expert_linear(const KernelCall& call) noexcept {
  if (call.operands[2].elements() == 0) return;
  ExpertCall worker(call);
  call.phase == 0 ? worker.gather() : worker.run();
}

KernelCost expert_cost(const KernelCall& call) {
  const auto& data = data_of<ExpertData>(call);
  const View& w = call.operands[1];
  const auto experts = static_cast<double>(w.dims[0]);
  const auto rows = static_cast<double>(call.operands[2].dims[0]);
  const auto slots = static_cast<double>(call.operands[2].dims[1]);
  KernelCost cost;
  // Ids are not known yet: of experts that are used alike, those that some row uses.
  const double used = experts * (1 - std::pow(1 - std::min(slots / experts, 1.0), rows));
  cost.bytes_read = used * static_cast<double>(packed_bytes(data.linear.layout, w.dims[1], w.dims[2]));
  if (data.bias.run != nullptr)
    cost.bytes_read += used * static_cast<double>(packed_bytes(data.bias.layout, w.dims[1], 1));
  const double products = 2.0 * rows * slots * static_cast<double>(w.dims[1] * w.dims[2]);
  (data.encoded ? cost.int8_ops : cost.f32_flops) = products;
  return cost;
}

/// The linear on one matrix of a stacked Weight.
std::optional<Linear> find_linear(const KernelTable& table, const ir::Type& type, LinearNumerics* numerics) {
  const formats::Format* format = formats::find_format(type.encoding);
  const auto layout = format == nullptr ? std::nullopt : layout_of(*format);
  if (!layout || !type.is_weight() || type.shape.size() != 3) return std::nullopt;
  *numerics = linear_numerics(*layout, TokenClass::generated, table.isa);
  const LinearFunction run = table.find_linear(*layout, *numerics);
  if (run == nullptr) return std::nullopt;
  return Linear{*layout, run};
}

std::optional<Kernel> make_expert_linear(const KernelRequest& request) {
  const ir::Type& x = request.operands[0];
  LinearNumerics numerics{};
  const auto linear = find_linear(request.table, request.operands[1], &numerics);
  if (!linear || !is_plain(request.operands[2], ElementType::i32)) return std::nullopt;
  ExpertData data;
  data.linear = *linear;
  data.encoded = numerics != LinearNumerics::two_chains;
  if (data.encoded ? x.encoding != "a16" : !x.is_tensor()) return std::nullopt;
  if (request.operands.size() == 4) {
    LinearNumerics of_bias{};
    const auto bias = find_linear(request.table, request.operands[3], &of_bias);
    if (!bias || of_bias != LinearNumerics::two_chains) return std::nullopt;
    data.bias = *bias;
  }
  Kernel kernel;
  kernel.name = "expert_linear." + request.operands[1].encoding + "." + std::string(isa_name(request.table.isa));
  kernel.numerics = linear_numerics_name(numerics);
  kernel.phases = 2;
  kernel.run = run_expert_linear;
  kernel.scratch_bytes = expert_scratch;
  kernel.shared_bytes = expert_shared;
  kernel.cost = expert_cost;
  kernel.data = share_data(data);
  return kernel;
}

// ---- weighted_sum --------------------------------------------------------------------------------------------------

/// One chain over the slots in their order. Few rows are divided by columns.
void run_weighted_sum(const KernelCall& call) noexcept {
  const auto& table = data_of<KernelTable>(call);
  const View& y = call.operands[0];
  const std::int64_t rows = y.dims[0];
  const std::int64_t slots = y.dims[1];
  const std::int64_t width = y.dims[2];
  const bool by_rows = rows >= call.workers;
  const Range own_rows = by_rows ? share(call, rows) : Range{0, rows};
  const Range columns = by_rows ? Range{0, width} : share_elements(call, width);
  if (columns.size() <= 0) return;
  for (std::int64_t row = own_rows.begin; row < own_rows.end; ++row) {
    const float* weights = call.operands[1].as<const float>() + row * slots;
    const float* in = y.as<const float>() + row * slots * width + columns.begin;
    float* out = call.results[0].as<float>() + row * width + columns.begin;
    table.scale(in, weights[0], out, columns.size());
    for (std::int64_t a = 1; a < slots; ++a) table.add_scaled(in + a * width, weights[a], out, columns.size());
  }
}

std::optional<Kernel> make_weighted_sum(const KernelRequest& request) {
  if (!is_plain(request.operands[0], ElementType::f32) || !is_plain(request.operands[1], ElementType::f32)) {
    return std::nullopt;
  }
  Kernel kernel;
  kernel.name = "weighted_sum." + std::string(isa_name(request.table.isa));
  kernel.numerics = "weighted_sum.f32";
  kernel.run = run_weighted_sum;
  kernel.data = std::shared_ptr<const void>(std::shared_ptr<const void>(), &request.table);  // a constant: not owned
  return kernel;
}

}  // namespace

CatalogFamily catalog_experts() {
  return {{"top_k", make_top_k}, {"expert_linear", make_expert_linear}, {"weighted_sum", make_weighted_sum}};
}

}  // namespace headrace::kernels
