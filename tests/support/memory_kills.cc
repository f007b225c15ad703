#include "tests/support/memory_kills.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <ctime>
#include <fmt/format.h>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "engine/session.h"
#include "tests/support/tiny_models.h"

namespace locket::test_support {
namespace {

using engine::TokenId;
using Tokens = std::vector<TokenId>;

constexpr int kOpenFailed = 3;
constexpr int kDone = 0;

// What parent and children share.
struct Board {
  std::atomic<std::int64_t> turns = 0;  // on disk
  std::atomic<std::int64_t> steps = 0;  // of the living child, so that the parent need not guess
  std::atomic<std::int64_t> checks = 0;
  std::atomic<std::int64_t> lost = 0;
  std::atomic<std::int64_t> wrong = 0;
};

class SharedBoard {
 public:
  SharedBoard()
      : place_(::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                      -1, 0)),
        board_(new (place_) Board()) {}
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;
  ~SharedBoard() { ::munmap(place_, sizeof(Board)); }
  Board& board() { return *board_; }

 private:
  void* place_;
  Board* board_;
};

// One process: checks what the ones before it wrote, then writes until it is killed.
class Writer {
 public:
  Writer(const model::V41Model& model, const KillOptions& options, Board& board)
      : model_(model),
        options_(options),
        board_(board),
        pool_(model.memory().layout.page_bytes(), std::uint64_t{1} << 28),
        cold_pool_(model.memory().layout.page_bytes(), std::uint64_t{1} << 28) {}

  bool open() {
    auto disk = cache::DiskStore::open({.directory = options_.directory, .read_threads = 2});
    if (!disk || !(*disk)->is_writable()) return false;
    disk_ = std::move(*disk);
    cache::PrefixMemoryOptions memory;
    memory.identity.numerics_mode = model_.numerics().memory_name();
    memory.restart_tokens = model_.config().boundary * (model_.config().sliding_window - 1);
    memory.disk = disk_.get();
    memory_ = std::make_unique<cache::PrefixMemory>(model_.memory().layout, pool_, memory);
    return true;
  }

  void check(std::int64_t turn) {
    const Tokens prompt = prompt_of(turn);
    engine::Session warm(model_, pool_, workers_, {.memory = memory_.get()});
    engine::Session cold(model_, cold_pool_, workers_, {});
    if (!warm.prefill(prompt) || !cold.prefill(prompt)) {
      board_.wrong += 1;
      return;
    }
    board_.checks += 1;
    if (warm.memory_use().hit_tokens != prompt.size() / 2 * 2) board_.lost += 1;
    if (!std::ranges::equal(std::as_bytes(warm.logits()), std::as_bytes(cold.logits()))) {
      board_.wrong += 1;
    }
  }

  // Never returns but by a failed write.
  void write_on() {
    while (memory_->counts().turns_not_written == 0) {
      const std::int64_t turn = board_.turns;
      engine::Session session(model_, pool_, workers_, {.memory = memory_.get()});
      if (!session.prefill(prompt_of(turn))) return;
      board_.steps += 1;
      session.end_turn();
      board_.steps += 1;
      memory_->flush();
      board_.turns += 1;
      board_.steps += 1;
    }
  }

  // Some of them share a beginning, and each is longer than the turn of the same beginning before.
  Tokens prompt_of(std::int64_t turn) const {
    const auto seed = static_cast<std::uint32_t>(options_.seed * 1'000 + turn % 3);
    const std::int64_t vocabulary = model_.config().vocabulary_size;
    Tokens tokens = random_ids(seed, 140 + static_cast<std::size_t>(turn % 7) * 16, vocabulary);
    const Tokens own = random_ids(static_cast<std::uint32_t>(turn) + 77,
                                  30 + static_cast<std::size_t>(turn * 37 % 150), vocabulary);
    tokens.insert(tokens.end(), own.begin(), own.end());
    return tokens;
  }

 private:
  const model::V41Model& model_;
  const KillOptions& options_;
  Board& board_;
  WorkerPool workers_{1};
  cache::PagePool pool_;
  cache::PagePool cold_pool_;
  std::unique_ptr<cache::DiskStore> disk_;
  std::unique_ptr<cache::PrefixMemory> memory_;
};

// The newest turns, which a kill would hurt, and some old ones.
int check_and_write(const model::V41Model& model, const KillOptions& options, Board& board,
                    std::uint64_t round) {
  Writer writer(model, options, board);
  if (!writer.open()) return kOpenFailed;
  const std::int64_t turns = board.turns;
  std::mt19937_64 random(options.seed + round);
  for (std::int64_t turn = std::max<std::int64_t>(0, turns - 2); turn < turns; ++turn) {
    writer.check(turn);
  }
  if (turns > 0) writer.check(static_cast<std::int64_t>(random() % turns));
  board.steps += 1;
  writer.write_on();
  return kDone;
}

int check_all(const model::V41Model& model, const KillOptions& options, Board& board) {
  Writer writer(model, options, board);
  if (!writer.open()) return kOpenFailed;
  for (std::int64_t turn = 0; turn < board.turns; ++turn) writer.check(turn);
  return kDone;
}

void wait_briefly(std::int64_t microseconds) {
  const timespec pause = {.tv_sec = 0, .tv_nsec = static_cast<long>(microseconds * 1'000)};
  ::nanosleep(&pause, nullptr);
}

// Kills the child some steps after its start, and a moment that falls anywhere within a step.
void kill_somewhere(pid_t child, Board& board, std::mt19937_64& random) {
  const auto steps = static_cast<std::int64_t>(random() % 8);
  while (board.steps < steps && ::waitpid(child, nullptr, WNOHANG) == 0) wait_briefly(200);
  wait_briefly(static_cast<std::int64_t>(random() % 12'000));
  ::kill(child, SIGKILL);
}

}  // namespace

std::string KillReport::text() const {
  return fmt::format("{} kills: {} turns on disk, {} read again, {} crashes, {} lost, {} wrong",
                     kills, turns, checks, crashes, lost, wrong);
}

KillReport run_kills(const model::V41Model& model, const KillOptions& options) {
  SharedBoard shared;
  Board& board = shared.board();
  KillReport report;
  std::mt19937_64 random(options.seed);
  for (std::int64_t round = 0; round < options.kills; ++round) {
    board.steps = 0;
    const pid_t child = ::fork();
    if (child == 0) {
      ::_exit(check_and_write(model, options, board, static_cast<std::uint64_t>(round)));
    }
    kill_somewhere(child, board, random);
    int status = 0;
    ::waitpid(child, &status, 0);
    report.kills += 1;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) report.crashes += 1;
  }
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check_all(model, options, board));
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != kDone) report.crashes += 1;
  report.turns = board.turns;
  report.checks = board.checks;
  report.lost = board.lost;
  report.wrong = board.wrong;
  return report;
}

}  // namespace locket::test_support
