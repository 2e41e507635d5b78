// Waits, the barrier and the workers' loop. The orders of the atomics are argued where they matter.
#include "base/thread_pool.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <system_error>
#include <utility>

#include <pthread.h>

#include "base/error.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace {

namespace {

constexpr std::chrono::microseconds kSpin{20};
constexpr int kPausesPerClockRead = 16;

void pause() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Blocks the asynchronous signals of the calling thread while it lives: threads made meanwhile inherit the mask, so
// that Ctrl-C always arrives at a thread that expects it. Faults must stay deliverable where they happen.
class SignalBlock {
 public:
  SignalBlock() noexcept {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF}) sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;
  ~SignalBlock() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

void Generation::advance() noexcept {
  value_.fetch_add(1, std::memory_order_seq_cst);
  // Either this load sees the sleeper, or the sleeper's check of value_ (after its increment of sleepers_, both
  // seq_cst) sees the new value. Taking the mutex waits for a sleeper that is between its check and its sleep.
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  {
    const std::lock_guard lock(mutex_);
  }
  wake_.notify_all();
}

void Generation::wait_past(std::uint32_t seen) noexcept {
  if (value() != seen) return;
  const auto until = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (value() != seen) return;
      pause();
    }
  } while (std::chrono::steady_clock::now() < until);
  std::unique_lock lock(mutex_);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  wake_.wait(lock, [&] { return value() != seen; });
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

bool Barrier::wait() noexcept {
  const std::uint32_t generation = generation_.value();
  if (aborted_.load(std::memory_order_seq_cst)) return false;
  if (arrived_.fetch_add(1, std::memory_order_seq_cst) + 1 == workers_) {
    arrived_.store(0, std::memory_order_seq_cst);
    generation_.advance();
    return true;
  }
  // Either we see that a worker has left, or it sees that we have arrived (leave() writes and reads in the other
  // order): nobody waits for one that will not come. One that left after this generation was complete moved it first.
  if (left_.load(std::memory_order_seq_cst) > 0 && generation_.value() == generation) {
    mismatched_.store(true, std::memory_order_seq_cst);
    abort();
    return false;
  }
  generation_.wait_past(generation);
  return !aborted_.load(std::memory_order_seq_cst);
}

void Barrier::abort() noexcept {
  // A thread that read the generation before this store either sees aborted_, or waits for the generation that
  // advance() moves.
  aborted_.store(true, std::memory_order_seq_cst);
  generation_.advance();
}

void Barrier::leave() noexcept {
  left_.fetch_add(1, std::memory_order_seq_cst);
  if (aborted_.load(std::memory_order_seq_cst) || arrived_.load(std::memory_order_seq_cst) == 0) return;
  mismatched_.store(true, std::memory_order_seq_cst);
  abort();
}

void Barrier::reset() noexcept {
  arrived_.store(0, std::memory_order_relaxed);
  left_.store(0, std::memory_order_relaxed);
  aborted_.store(false, std::memory_order_relaxed);
  mismatched_.store(false, std::memory_order_relaxed);
}

ThreadPool::ThreadPool(int workers) : workers_(workers), barrier_(workers) {
  require(workers >= 1, "thread pool: expected at least one worker");
  threads_.reserve(static_cast<std::size_t>(workers - 1));
  const SignalBlock block;
  for (int worker = 1; worker < workers; ++worker) {
    try {
      threads_.emplace_back([this, worker] { worker_loop(worker); });
    } catch (const std::system_error& error) {
      stop();
      fail<ResourceError>("thread pool: thread {} of {} cannot be started: {}", worker + 1, workers, error.what());
    }
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() noexcept {
  stopping_.store(true, std::memory_order_seq_cst);
  start_.advance();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run_erased(Invoke invoke, void* object) {
  if (running_.exchange(true, std::memory_order_acquire)) {
    throw InternalError("thread pool: run() was called while a run is in progress");
  }
  invoke_ = invoke;
  object_ = object;
  barrier_.reset();
  pending_.store(workers_, std::memory_order_relaxed);
  const std::uint32_t done = done_.value();
  start_.advance();
  work(0);
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) != 1) done_.wait_past(done);
  std::exception_ptr error = std::exchange(error_, nullptr);
  const bool mismatched = barrier_.mismatched();
  running_.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(std::move(error));
  require(!mismatched, "thread pool: a worker returned while others wait at the barrier");
}

void ThreadPool::worker_loop(int worker) noexcept {
  char name[16];  // the kernel's limit, the closing zero included
  std::snprintf(name, sizeof name, "headrace-%d", worker % 100000);
  pthread_setname_np(pthread_self(), name);
  for (std::uint32_t seen = 0;; ++seen) {
    start_.wait_past(seen);  // each run moves it by one, and the next only comes when all have finished this one
    if (stopping_.load(std::memory_order_seq_cst)) return;
    work(worker);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_.advance();
  }
}

void ThreadPool::work(int worker) noexcept {
  try {
    invoke_(object_, worker, workers_);
    barrier_.leave();
  } catch (...) {
    latch(std::current_exception());
    barrier_.abort();
  }
}

void ThreadPool::latch(std::exception_ptr error) noexcept {
  const std::lock_guard lock(error_mutex_);
  if (!error_) error_ = std::move(error);
}

}  // namespace headrace
