// The pool and its barrier: every worker runs, nobody passes the barrier early, and no failure can hang it.
#include "base/thread_pool.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace headrace {
namespace {

TEST(Split, CoversAllInOrderAndEvenly) {
  for (const std::int64_t count : {0, 1, 2, 7, 8, 9, 1000}) {
    for (int workers = 1; workers <= 9; ++workers) {
      std::int64_t next = 0;
      for (int worker = 0; worker < workers; ++worker) {
        const Range range = split(count, worker, workers);
        EXPECT_EQ(range.begin, next);
        EXPECT_TRUE(range.size() == count / workers || range.size() == count / workers + 1);
        next = range.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(Split, DoesNotOverflow) {
  constexpr std::int64_t kMost = INT64_MAX;
  EXPECT_EQ(split(kMost, 63, 64).end, kMost);
}

class ThreadPoolTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, ThreadPoolTest, testing::Values(1, 2, 3, 5));

TEST_P(ThreadPoolTest, RunsEveryWorkerOnceWithTheCallerAsWorkerZero) {
  ThreadPool pool(GetParam());
  std::vector<int> calls(static_cast<std::size_t>(GetParam()));
  std::vector<std::thread::id> ids(calls.size());
  for (int round = 1; round <= 200; ++round) {
    pool.run([&](int worker, int workers) {
      EXPECT_EQ(workers, GetParam());
      ++calls[static_cast<std::size_t>(worker)];
      ids[static_cast<std::size_t>(worker)] = std::this_thread::get_id();
    });
    EXPECT_THAT(calls, testing::Each(round));
  }
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  for (std::size_t i = 1; i < ids.size(); ++i) EXPECT_NE(ids[i], ids[i - 1]);
}

// Each step reads what all workers wrote in the step before, without atomics: TSan and the sums both tell of a barrier
// that lets someone pass early.
TEST_P(ThreadPoolTest, BarrierSeparatesSteps) {
  const int workers = GetParam();
  ThreadPool pool(workers);
  constexpr int kSteps = 300;
  std::vector<std::int64_t> even(static_cast<std::size_t>(workers), 1);
  std::vector<std::int64_t> odd(static_cast<std::size_t>(workers), 0);
  pool.run([&](int worker, int) {
    for (int step = 0; step < kSteps; ++step) {
      const auto& from = step % 2 == 0 ? even : odd;
      auto& to = step % 2 == 0 ? odd : even;
      to[static_cast<std::size_t>(worker)] = (std::accumulate(from.begin(), from.end(), std::int64_t{0}) + step) % 1009;
      if (!pool.barrier().wait()) return;
    }
  });
  std::int64_t each = 1;
  for (int step = 0; step < kSteps; ++step) each = (each * workers + step) % 1009;
  EXPECT_THAT(even, testing::Each(each));
}

TEST_P(ThreadPoolTest, WaitsThatSleepAreWoken) {
  ThreadPool pool(GetParam());
  for (int slow = 0; slow < GetParam(); ++slow) {
    std::atomic<int> after{0};
    pool.run([&](int worker, int workers) {
      if (worker == slow) std::this_thread::sleep_for(std::chrono::milliseconds(3));  // the others sleep by now
      EXPECT_EQ(after.load(), 0);
      EXPECT_TRUE(pool.barrier().wait());
      ++after;
      EXPECT_TRUE(pool.barrier().wait());
      EXPECT_EQ(after.load(), workers);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // idle workers sleep
  }
}

TEST_P(ThreadPoolTest, AnExceptionOfAnyWorkerReleasesTheOthersAndIsRethrown) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 50; ++round) {
    for (int failing = 0; failing < GetParam(); ++failing) {
      std::atomic<int> passed{0};
      const auto step = [&](int worker, int) {
        if (!pool.barrier().wait()) return;
        if (worker == failing) throw InputError("worker " + std::to_string(worker));
        if (pool.barrier().wait()) ++passed;
        if (pool.barrier().wait()) ++passed;
      };
      try {
        pool.run(step);
        ADD_FAILURE() << "expected InputError";
      } catch (const InputError& error) {
        EXPECT_EQ(error.what(), "worker " + std::to_string(failing));
      }
      EXPECT_EQ(passed.load(), 0);
    }
    int sum = 0;
    pool.run([&](int worker, int) {
      ASSERT_TRUE(pool.barrier().wait());  // usable again
      if (worker == 0) sum = 1;
    });
    EXPECT_EQ(sum, 1);
  }
}

TEST_P(ThreadPoolTest, OfManyFailuresTheFirstIsRethrown) {
  ThreadPool pool(GetParam());
  for (int first = 0; first < GetParam(); ++first) {
    try {
      pool.run([&](int worker, int) {
        if (worker == first) throw InputError("the cause");
        while (pool.barrier().wait()) {
        }
        throw InputError("a consequence");
      });
      ADD_FAILURE() << "expected InputError";
    } catch (const InputError& error) {
      EXPECT_STREQ(error.what(), "the cause");
    }
    pool.run([](int, int) {});  // and it is not thrown again
  }
}

TEST_P(ThreadPoolTest, NestedRunIsAnError) {
  ThreadPool pool(GetParam());
  const auto nested = [&](int worker, int workers) {
    if (worker == workers - 1) pool.run([](int, int) {});
  };
  EXPECT_THROW(pool.run(nested), InternalError);
  pool.run([](int, int) {});
}

TEST(ThreadPool, RunFromASecondThreadMeanwhileIsAnError) {
  ThreadPool pool(2);
  pool.run([&](int worker, int) {
    if (worker != 0) return;
    std::thread second([&] { EXPECT_THROW(pool.run([](int, int) {}), InternalError); });
    second.join();
  });
}

// Whoever comes first, the one that leaves or the one that waits, it must end, and with an error.
TEST_P(ThreadPoolTest, AWorkerThatLeavesWhileOthersWaitIsAnErrorAndNoHang) {
  if (GetParam() == 1) return;  // alone, nobody waits
  ThreadPool pool(GetParam());
  for (int round = 0; round < 200; ++round) {
    EXPECT_THROW(pool.run([&](int worker, int workers) {
      if (!pool.barrier().wait()) return;
      if (worker == round % workers) return;
      EXPECT_FALSE(pool.barrier().wait());
    }),
                 InternalError);
  }
}

// A worker that leaves right after a barrier, while others are still on their way out of it, is no error.
TEST_P(ThreadPoolTest, LeavingAfterTheLastBarrierIsFine) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 3000; ++round) {
    pool.run([&](int, int) { EXPECT_TRUE(pool.barrier().wait()); });
  }
}

TEST_P(ThreadPoolTest, ParallelForGivesEachItemOnce) {
  ThreadPool pool(GetParam());
  for (const std::int64_t count : {0, 1, 3, 100}) {
    std::vector<int> seen(static_cast<std::size_t>(count));
    pool.parallel_for(count, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_LT(begin, end);
      for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
    });
    EXPECT_THAT(seen, testing::Each(1));
  }
}

TEST_P(ThreadPoolTest, CanBeDestroyedAtOnceAndWhileIdle) {
  for (int round = 0; round < 50; ++round) {
    ThreadPool unused(GetParam());
    ThreadPool used(GetParam());
    used.run([](int, int) {});
    if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(ThreadPool, RefusesNoWorkers) { EXPECT_THROW(ThreadPool(0), InternalError); }

// The CPU time of a pool that waits: a spin without end would use all of it.
TEST(ThreadPool, IdleWorkersSleep) {
  ThreadPool pool(3);
  pool.run([](int, int) {});
  const std::clock_t before = std::clock();  // of the whole process
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const double used_s = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(used_s, 0.1);
}

TEST(ThreadPool, WorkersAtTheBarrierSleep) {
  ThreadPool pool(3);
  const std::clock_t before = std::clock();
  pool.run([&](int worker, int) {
    if (worker == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_TRUE(pool.barrier().wait());
  });
  const double used_s = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(used_s, 0.1);
}

}  // namespace
}  // namespace headrace
