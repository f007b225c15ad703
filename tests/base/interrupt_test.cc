#include "base/interrupt.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore>
#include <signal.h>
#include <unistd.h>
#include <vector>

namespace locket {
namespace {

bool is_blocked(int signal) {
  sigset_t mask = {};
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

// As from outside: to the process, not to a thread.
void send(int signal) { ASSERT_EQ(::kill(::getpid(), signal), 0); }

TEST(InterruptWatcherTest, CallsTheHandlerForEveryInterrupt) {
  std::counting_semaphore<8> calls(0);
  const InterruptWatcher watcher([&] { calls.release(); });
  send(SIGINT);
  calls.acquire();
  send(SIGINT);
  calls.acquire();
}

TEST(InterruptWatcherTest, CountsBothSignalsTogether) {
  std::vector<std::size_t> counts;
  std::counting_semaphore<8> calls(0);
  const InterruptWatcher watcher(InterruptWatcher::Signals::kInterruptAndFinish,
                                 [&](std::size_t count) {
                                   counts.push_back(count);
                                   calls.release();
                                 });
  for (const int signal : {SIGTERM, SIGINT, SIGTERM}) {
    send(signal);
    calls.acquire();
  }
  EXPECT_EQ(counts, (std::vector<std::size_t>{1, 2, 3}));
}

TEST(InterruptWatcherTest, LeavesTerminationAloneUnlessAskedForIt) {
  const InterruptWatcher watcher([] {});
  EXPECT_TRUE(is_blocked(SIGINT));
  EXPECT_FALSE(is_blocked(SIGTERM));
}

TEST(InterruptWatcherTest, SignalsMeanWhatTheyMeantAfterIt) {
  ASSERT_FALSE(is_blocked(SIGINT));
  {
    const InterruptWatcher watcher(InterruptWatcher::Signals::kInterruptAndFinish,
                                   [](std::size_t) {});
    EXPECT_TRUE(is_blocked(SIGINT));
    EXPECT_TRUE(is_blocked(SIGTERM));
  }
  EXPECT_FALSE(is_blocked(SIGINT));
  EXPECT_FALSE(is_blocked(SIGTERM));
}

}  // namespace
}  // namespace locket
