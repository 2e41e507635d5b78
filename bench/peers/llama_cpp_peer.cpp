// llama.cpp as a peer of `headrace bench --vs llama.cpp`: the protocol of src/measure/peer.hpp over its public API.
// Settings are those of its own llama-bench, so that figures of the two agree. Built by scripts/bench_peers.sh.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ggml-cpu.h"
#include "llama.h"

namespace {

using Clock = std::chrono::steady_clock;

template <auto release>
struct Release {
  template <class T>
  void operator()(T* object) const {
    release(object);
  }
};

struct Options {
  std::string model;
  int threads = 1;
};

struct Test {
  bool is_prefill = false;
  std::int32_t tokens = 0;
  std::int32_t depth = 0;
  std::int32_t sequences = 1;
  bool operator==(const Test&) const = default;
};

/// Rows of a step, as llama_decode takes them.
class Batch {
 public:
  explicit Batch(std::int32_t rows) : batch_(llama_batch_init(rows, 0, 1)) {}
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() { llama_batch_free(batch_); }

  void clear() { batch_.n_tokens = 0; }
  void add(llama_token token, llama_pos position, llama_seq_id sequence, bool is_wanted) {
    const std::int32_t row = batch_.n_tokens++;
    batch_.token[row] = token;
    batch_.pos[row] = position;
    batch_.n_seq_id[row] = 1;
    batch_.seq_id[row][0] = sequence;
    batch_.logits[row] = is_wanted ? 1 : 0;
  }
  const llama_batch& get() const { return batch_; }

 private:
  llama_batch batch_;
};

class Runner {
 public:
  explicit Runner(const Options& options) : options_(options) {
    model_.reset(llama_model_load_from_file(options.model.c_str(), llama_model_default_params()));
    if (model_ == nullptr) throw std::runtime_error("the model cannot be loaded");
    ggml_threadpool_params parameters = ggml_threadpool_params_default(options.threads);
    threads_.reset(ggml_threadpool_new(&parameters));
    if (threads_ == nullptr) throw std::runtime_error("the threads cannot be started");
    vocabulary_ = llama_vocab_n_tokens(llama_model_get_vocab(model_.get()));
  }
  ~Runner() { context_.reset(); }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  double run(const Test& test) {
    // Between two runs its threads would go on spinning for a while, at the cost of who comes next.
    ggml_threadpool_resume(threads_.get());
    if (!(test_ == test)) prepare(test);
    llama_memory_t memory = llama_get_memory(context_.get());
    for (std::int32_t i = 0; i < test.sequences; ++i) llama_memory_seq_rm(memory, i, test.depth, -1);
    const auto begin = Clock::now();
    if (test.is_prefill) {
      feed(0, test.depth, test.tokens);
    } else {
      Batch batch(test.sequences);
      for (std::int32_t step = 0; step < test.tokens; ++step) {
        batch.clear();
        for (std::int32_t i = 0; i < test.sequences; ++i) batch.add(token(), test.depth + step, i, true);
        decode(batch);
        llama_synchronize(context_.get());
      }
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    ggml_threadpool_pause(threads_.get());
    return seconds;
  }

 private:
  /// A context for this test, as llama-bench makes one for each.
  void prepare(const Test& test) {
    test_.reset();
    context_.reset();
    llama_context_params parameters = llama_context_default_params();
    parameters.n_ctx = static_cast<std::uint32_t>((test.depth + test.tokens) * test.sequences);
    parameters.n_batch = 2048;
    parameters.n_ubatch = 512;
    parameters.n_seq_max = static_cast<std::uint32_t>(test.sequences);
    parameters.n_threads = options_.threads;
    parameters.n_threads_batch = options_.threads;
    context_.reset(llama_init_from_model(model_.get(), parameters));
    if (context_ == nullptr) throw std::runtime_error("no context of that size");
    llama_attach_threadpool(context_.get(), threads_.get(), nullptr);
    for (std::int32_t i = 0; i < test.sequences; ++i) feed(i, 0, test.depth);
    test_ = test;
  }

  llama_token token() { return std::uniform_int_distribution<llama_token>(0, vocabulary_ - 1)(random_); }

  /// Random tokens behind the first `position` of a sequence.
  void feed(llama_seq_id sequence, llama_pos position, std::int32_t count) {
    constexpr std::int32_t rows = 2048;
    Batch batch(rows);
    for (std::int32_t done = 0; done < count; done += rows) {
      batch.clear();
      for (std::int32_t i = done; i < std::min(done + rows, count); ++i) {
        batch.add(token(), position + i, sequence, i + 1 == std::min(done + rows, count));
      }
      decode(batch);
    }
    llama_synchronize(context_.get());
  }

  void decode(const Batch& batch) {
    const int status = llama_decode(context_.get(), batch.get());
    if (status != 0) throw std::runtime_error("llama_decode gave " + std::to_string(status));
  }

  Options options_;
  std::unique_ptr<llama_model, Release<llama_model_free>> model_;
  std::unique_ptr<ggml_threadpool, Release<ggml_threadpool_free>> threads_;
  std::unique_ptr<llama_context, Release<llama_free>> context_;
  std::int32_t vocabulary_ = 1;
  std::optional<Test> test_;
  std::mt19937_64 random_;
};

Options read_options(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] == "--model") options.model = words[i + 1];
    if (words[i] == "--threads") options.threads = std::stoi(words[i + 1]);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  try {
    Runner runner(read_options({argv + 1, argv + argc}));
    std::cout << "ready " << HEADRACE_PEER_VERSION << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
      std::istringstream words(line);
      std::string kind;
      Test test;
      words >> kind >> test.tokens >> test.depth >> test.sequences;
      test.is_prefill = kind == "prefill";
      if (!words || (kind != "prefill" && kind != "decode")) throw std::runtime_error("unknown request");
      if (test.is_prefill && test.sequences != 1) {
        std::cout << "unsupported prefill of several sequences" << std::endl;
      } else {
        std::cout << "seconds " << runner.run(test) << std::endl;
      }
    }
  } catch (const std::exception& error) {
    std::cout << "error " << error.what() << std::endl;
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
