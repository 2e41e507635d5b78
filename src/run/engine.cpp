#include "run/engine.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "kernels/catalog.hpp"
#include "run/engine_limits.hpp"
#include "run/executor.hpp"
#include "run/loader.hpp"
#include "run/session_data.hpp"

namespace headrace::run {

struct Engine::Data {
  Data(Context& the_context, const EngineOptions& the_options) : context(the_context), options(the_options) {}

  void check(std::span<const StepEntry> entries) const;
  void reserve(std::span<const StepEntry> entries);
  void write_inputs(std::span<const StepEntry> entries);

  Context& context;
  EngineOptions options;
  std::unique_ptr<compile::KernelCatalog> catalog;
  compile::Plan plan;
  MemoryReservation reservation;
  LoadedWeights weights;
  std::unique_ptr<PagePool> pages;
  std::unique_ptr<Executor> executor;
  std::vector<std::byte* const*> page_tables;  ///< one a sequence; the executor keeps its address
  std::vector<std::int64_t> lengths;           ///< of each sequence, the step's rows included; likewise
  std::int64_t vocabulary = 0;
  std::int64_t wanted = 0;  ///< rows of the last step
  Trace* trace = nullptr;
};

std::unique_ptr<Engine> Engine::create(const ir::Program& program, const stream::WeightStore& store,
                                       const EngineOptions& options, Context& context,
                                       std::unique_ptr<compile::KernelCatalog> catalog) {
  auto data = std::make_unique<Data>(context, options);
  data->catalog = catalog != nullptr ? std::move(catalog) : kernels::make_catalog(options.isa);
  const MemoryBudget& budget = context.memory();
  const std::uint64_t available = budget.limit_bytes() - std::min(budget.limit_bytes(), budget.reserved_bytes());
  data->plan = compile::plan(program, *data->catalog, engine_limits(options, *data->catalog, available), {});
  const compile::Plan& plan = data->plan;
  data->reservation = context.memory().reserve(
      static_cast<std::uint64_t>(plan.weight_bytes + plan.state_bytes + plan.arena_bytes), "the model");
  data->weights = load_weights(plan, store, kernels::kernel_table(options.isa), context.threads(), options.progress);
  data->pages = std::make_unique<PagePool>(plan.limits.pages, plan.page_bytes, plan.page_positions);
  data->executor = std::make_unique<Executor>(plan, *data->catalog, data->weights.weights, context.threads());
  data->page_tables.resize(static_cast<std::size_t>(options.sequences), nullptr);
  data->lengths.resize(static_cast<std::size_t>(options.sequences), 0);
  const ir::Function& entry = plan.program.entry();
  const ir::Type& logits = entry.type(entry.results.at(0));
  require(logits.shape.size() == 2 && logits.shape[1].is_constant(),
          "a language model's first result is logits [S, V]");
  data->vocabulary = logits.shape[1].constant();
  return std::unique_ptr<Engine>(new Engine(std::move(data)));
}

Engine::Engine(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Engine::~Engine() = default;

Session Engine::open() { return Session(std::make_unique<Session::Data>(*data_->pages)); }

void Engine::Data::check(std::span<const StepEntry> entries) const {
  std::int64_t rows = 0;
  std::int64_t wanted_rows = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const StepEntry& entry = entries[i];
    require(entry.session != nullptr && !entry.tokens.empty(), "an entry of a step has a session and tokens");
    const Session::Data& session = *entry.session->data_;
    require(&session.pool == pages.get(), "a session belongs to the engine that steps it");
    require(static_cast<std::int64_t>(session.tokens.size()) == session.length,
            "a session is committed or aborted before its next step");
    for (std::size_t j = 0; j < i; ++j) require(entries[j].session != entry.session, "a session occurs once in a step");
    const auto count = static_cast<std::int64_t>(entry.tokens.size());
    if (session.length + count > options.context) {
      fail<InputError>("context: expected at most {} positions, got {} more after {}", options.context, count,
                       session.length);
    }
    for (const TokenId token : entry.tokens) {
      if (token < 0 || token >= vocabulary)
        fail<InputError>("token: expected an id below {}, got {}", vocabulary, token);
    }
    for (const std::int64_t row : entry.wanted) require(row >= 0 && row < count, "a wanted row is one of the entry's");
    rows += count;
    wanted_rows += static_cast<std::int64_t>(entry.wanted.size());
  }
  require(!entries.empty(), "a step has entries");
  if (static_cast<std::int64_t>(entries.size()) > options.sequences || rows > options.rows ||
      wanted_rows > options.wanted) {
    fail<InputError>("step: expected at most {} sequences, {} rows and {} wanted rows, got {}, {} and {}",
                     options.sequences, options.rows, options.wanted, entries.size(), rows, wanted_rows);
  }
}

void Engine::Data::reserve(std::span<const StepEntry> entries) {
  std::int64_t needed = 0;
  for (const StepEntry& entry : entries) {
    needed += entry.session->data_->pages_needed(static_cast<std::int64_t>(entry.tokens.size()));
  }
  if (needed > 0 && needed > pages->available()) {
    fail<ResourceError>("KV pages: {} more pages of {} positions are needed, {} are left", needed, pages->positions(),
                        pages->available());
  }
  for (const StepEntry& entry : entries) {
    entry.session->data_->reserve(static_cast<std::int64_t>(entry.tokens.size()));
  }
}

void Engine::Data::write_inputs(std::span<const StepEntry> entries) {
  const auto integers = [&](std::string_view name) {
    return static_cast<std::int32_t*>(static_cast<void*>(executor->input(name)));  // 64-byte aligned
  };
  auto* tokens = integers("tokens");
  auto* sequences = integers("sequence");
  auto* positions = integers("position");
  auto* rows = integers("rows");
  std::int32_t row = 0;
  std::int32_t wanted_row = 0;
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Session::Data& session = *entries[i].session->data_;
    page_tables[i] = session.bases.data();
    for (const std::int64_t index : entries[i].wanted) rows[wanted_row++] = row + static_cast<std::int32_t>(index);
    for (std::size_t t = 0; t < entries[i].tokens.size(); ++t, ++row) {
      tokens[row] = entries[i].tokens[t];
      sequences[row] = static_cast<std::int32_t>(i);
      positions[row] = static_cast<std::int32_t>(session.length + static_cast<std::int64_t>(t));
    }
    lengths[i] = session.length + static_cast<std::int64_t>(entries[i].tokens.size());
    longest = std::max(longest, lengths[i]);
  }
  wanted = wanted_row;
  executor->set_pages(page_tables.data(), lengths.data(), static_cast<std::int64_t>(entries.size()));
  executor->set_sizes(
      {{"T", row}, {"S", wanted_row}, {"B", static_cast<std::int64_t>(entries.size())}, {"P", longest}});
}

void Engine::step(std::span<const StepEntry> entries) {
  const auto begin = data_->trace == nullptr ? Trace::Clock::time_point() : Trace::Clock::now();
  data_->check(entries);
  data_->reserve(entries);
  data_->write_inputs(entries);
  data_->executor->run(data_->trace);
  for (const StepEntry& entry : entries) {
    Session::Data& session = *entry.session->data_;
    session.tokens.insert(session.tokens.end(), entry.tokens.begin(), entry.tokens.end());
    session.classes.insert(session.classes.end(), entry.tokens.size(), entry.token_class);
  }
  if (data_->trace != nullptr) {
    std::int64_t rows = 0;
    for (const StepEntry& entry : entries) rows += std::ssize(entry.tokens);
    data_->trace->add_step(rows, begin, Trace::Clock::now());
  }
}

std::span<const float> Engine::logits(std::int64_t index) const {
  require(index >= 0 && index < data_->wanted, "logits are of a wanted row of the last step");
  const compile::View& view = data_->executor->output(0);
  return {view.as<const float>() + index * data_->vocabulary, static_cast<std::size_t>(data_->vocabulary)};
}

const compile::Plan& Engine::plan() const noexcept { return data_->plan; }
const EngineOptions& Engine::options() const noexcept { return data_->options; }
std::int64_t Engine::vocabulary() const noexcept { return data_->vocabulary; }
Context& Engine::context() noexcept { return data_->context; }
void Engine::set_trace(Trace* trace) noexcept { data_->trace = trace; }

}  // namespace headrace::run
