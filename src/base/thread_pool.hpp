// The Engine's threads: a fixed number of workers that run one function together, and a barrier inside it.
// The calling thread is worker 0. Waits spin for at most 20 µs and then sleep: spinning longer burns a CPU quota and
// starves I/O on small machines. Nothing here allocates after the constructor.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace headrace {

/// A counter that threads wait on until it moves.
class Generation {
 public:
  [[nodiscard]] std::uint32_t value() const noexcept { return value_.load(std::memory_order_seq_cst); }
  /// Moves the counter and wakes who waits. What was written before is seen by who returns from wait_past().
  void advance() noexcept;
  /// Returns once value() != seen.
  void wait_past(std::uint32_t seen) noexcept;

 private:
  std::atomic<std::uint32_t> value_{0};
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
};

/// A barrier for a fixed number of workers, usable again at once.
class Barrier {
 public:
  explicit Barrier(int workers) noexcept : workers_(workers) {}

  /// Waits for all workers. True: all have arrived, and what they wrote before is visible. False: a worker failed or
  /// left for good; the caller must return, and every later wait() of this run is false too.
  [[nodiscard]] bool wait() noexcept;

  /// Releases all who wait, now and later, with false; until reset().
  void abort() noexcept;
  /// For a worker that will not come again in this run. Aborts if others are waiting for it, now or later.
  void leave() noexcept;
  /// Whether a worker left while others waited for it: their code calls wait() unequally often.
  [[nodiscard]] bool mismatched() const noexcept { return mismatched_.load(std::memory_order_seq_cst); }
  /// Makes ready for a new run. No worker may be inside.
  void reset() noexcept;

 private:
  const int workers_;
  std::atomic<int> arrived_{0};
  std::atomic<int> left_{0};
  std::atomic<bool> aborted_{false};
  std::atomic<bool> mismatched_{false};
  Generation generation_;
};

/// A half-open range of items.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// The share of `worker` of `count` (>= 0) items: contiguous, in the order of workers, sizes differing by at most 1.
[[nodiscard]] constexpr Range split(std::int64_t count, int worker, int workers) noexcept {
  const std::int64_t each = count / workers;
  const std::int64_t more = count % workers;  // this many workers, the first ones, get one item more
  const std::int64_t begin = worker * each + (worker < more ? worker : more);
  return {begin, begin + each + (worker < more ? 1 : 0)};
}

class ThreadPool {
 public:
  /// Starts `workers` - 1 threads (`workers` >= 1, else InternalError). Throws ResourceError if the system refuses.
  explicit ThreadPool(int workers);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  [[nodiscard]] int workers() const noexcept { return workers_; }

  /// For use inside run(): every worker must call wait() equally often, and return when it is false.
  [[nodiscard]] Barrier& barrier() noexcept { return barrier_; }

  /// Calls `fn(worker, workers)` on every worker, the caller being worker 0, and returns when all have returned.
  /// The first exception of any worker is rethrown here; it also aborts the barrier, so that the others come out.
  /// Throws InternalError if a run is in progress already (nested, or from a second thread), and if a worker returned
  /// while others wait at the barrier.
  template <class F>
  void run(F&& fn) {
    using Function = std::remove_reference_t<F>;
    run_erased([](void* object, int worker, int workers) { (*static_cast<Function*>(object))(worker, workers); },
               const_cast<void*>(static_cast<const void*>(std::addressof(fn))));
  }

  /// Calls `fn(begin, end)` on every worker with its share of `count` items (see split); workers without any are not
  /// called. Errors as run().
  template <class F>
  void parallel_for(std::int64_t count, F&& fn) {
    run([&](int worker, int workers) {
      const Range range = split(count, worker, workers);
      if (range.size() > 0) fn(range.begin, range.end);
    });
  }

 private:
  using Invoke = void (*)(void* object, int worker, int workers);

  void run_erased(Invoke invoke, void* object);
  void work(int worker) noexcept;
  void worker_loop(int worker) noexcept;
  void latch(std::exception_ptr error) noexcept;
  void stop() noexcept;

  const int workers_;
  Barrier barrier_;
  Generation start_;
  Generation done_;
  Invoke invoke_ = nullptr;
  void* object_ = nullptr;
  std::atomic<int> pending_{0};
  std::atomic<bool> running_{false};
  std::atomic<bool> stopping_{false};
  std::mutex error_mutex_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace headrace
