// Faults that other engines had with remembered prefixes, by the ids of their cases, and the edges
// of a resume.
#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <vector>

#include "tests/engine/memory_fixture.h"

namespace locket::engine {
namespace {

class MemoryCasesTest : public MemoryTest {};

TokenId greedy(const Session& session) {
  const auto logits = session.logits();
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

std::vector<TokenId> answer(Session& session, std::size_t count) {
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(greedy(session));
    EXPECT_TRUE(session.append(tokens.back()));
  }
  return tokens;
}

TEST_F(MemoryCasesTest, B01_TheSamePromptGivesTheSameAnswerThreeTimes) {
  const std::vector<TokenId> prompt = ids(1, 1'501);
  std::vector<std::vector<TokenId>> answers;
  for (int i = 0; i < 3; ++i) {
    Session chat = session();
    ASSERT_TRUE(chat.prefill(prompt));
    EXPECT_EQ(chat.memory_use().hit_tokens, i == 0 ? 0U : 1'500U);
    answers.push_back(answer(chat, 24));
    chat.end_turn();
  }
  EXPECT_EQ(answers[1], answers[0]);
  EXPECT_EQ(answers[2], answers[0]);
}

enum class From { kMemory, kDisk };

class MemoryLengthsTest : public MemoryTest {
 protected:
  // Prompts that have the first tokens of `text` in common with it.
  void read_lengths(const std::vector<TokenId>& text, From from) {
    for (const std::size_t common : {301, 300, 299, 298, 173, 90, 89, 16, 1}) {
      if (common > text.size()) continue;
      SCOPED_TRACE(testing::Message() << common << " of " << text.size());
      if (from == From::kDisk) restart();
      std::vector<TokenId> prompt(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(common));
      prompt = joined(prompt, ids(next_seed_++, 33));
      const MemoryUse use = read(prompt);
      EXPECT_EQ(use.hit_tokens, common / 2 * 2);
      EXPECT_EQ(use.disk_tokens, from == From::kDisk ? use.hit_tokens : 0);
    }
  }

  std::uint32_t next_seed_ = 7'000;
};

TEST_F(MemoryLengthsTest, B03_ReusesAtEveryLengthInMemoryAndFromDisk) {
  for (const std::size_t stored : {301, 90}) {
    const std::vector<TokenId> text = ids(static_cast<std::uint32_t>(stored), stored);
    read(text);
    read_lengths(text, From::kMemory);
    read_lengths(text, From::kDisk);
  }
}

TEST_F(MemoryCasesTest, B07_ARestoredRunThatFailsIsForgottenAndDoneColdOnce) {
  const std::vector<TokenId> prompt = ids(2, 500);
  read(prompt);
  restart();
  int failures = 0;
  {
    Session chat = session({.after_restored_run = [&]() -> Status {
      failures += 1;
      return fail(ErrorCode::kInternal, "no finite logit");
    }});
    ASSERT_TRUE(chat.prefill(prompt)) << "the request succeeds all the same";
    EXPECT_EQ(failures, 1);
    EXPECT_EQ(chat.memory_use().retries, 1U);
    EXPECT_EQ(chat.memory_use().hit_tokens, 0U);
    EXPECT_EQ(logits_of(chat), cold_logits(prompt));
    chat.end_turn();
  }
  memory_->flush();
  EXPECT_EQ(disk_->counts().pages_written, 4U) << "what led it astray is dropped and stored anew";
  restart();
  EXPECT_EQ(read(prompt).disk_tokens, 500U);
}

TEST_F(MemoryCasesTest, B27_AfterARestartThePrefixIsThere) {
  const std::vector<TokenId> prompt = ids(3, 1'000);
  std::vector<TokenId> spoken;
  {
    Session chat = session();
    ASSERT_TRUE(chat.prefill(prompt));
    spoken = answer(chat, 30);
    chat.end_turn();
  }
  restart();
  const std::vector<TokenId> next = joined(joined(prompt, spoken), ids(4, 40));
  const MemoryUse use = read(next);
  EXPECT_EQ(use.hit_tokens, 1'030U);
  EXPECT_EQ(use.disk_tokens, 1'030U);
  EXPECT_LE(use.replayed_tokens, 256U) << "a snapshot lies at the last boundary before";
}

TEST_F(MemoryCasesTest, B31_ReuseReachesToWhereTheTextsPart) {
  const std::vector<TokenId> preamble = ids(5, 900);
  {
    Session chat = session();
    ASSERT_TRUE(chat.prefill(joined(preamble, ids(6, 20))));
    answer(chat, 50);  // reasoning that the client drops
    chat.end_turn();
  }
  const MemoryUse use = read(joined(joined(preamble, ids(6, 20)), ids(7, 60)));
  EXPECT_EQ(use.hit_tokens, 920U);
}

// What was generated before an interruption is read again with the decoder's segment of its prompt.
TEST_F(MemoryCasesTest, AnInterruptedAnswerGoesOnAsIfNothingHadHappened) {
  const std::vector<TokenId> prompt = ids(8, 400);
  const std::vector<TokenId> spoken = ids(9, 75);
  {
    Session chat = session();
    ASSERT_TRUE(chat.prefill(prompt));
    for (const TokenId token : spoken) ASSERT_TRUE(chat.append(token));
    chat.end_turn();
  }
  for (const bool from_disk : {false, true}) {
    if (from_disk) restart();
    Session chat = session({.slice_tokens = 60});
    ASSERT_TRUE(chat.prefill(joined(prompt, spoken), {}, {}, {.prompt_tokens = prompt.size()}));
    EXPECT_EQ(chat.memory_use().hit_tokens, 474U);
    EXPECT_EQ(chat.segment_start(), 400 - model().config().sliding_window);
    EXPECT_EQ(logits_of(chat), cold_logits(prompt, spoken));
    ASSERT_TRUE(chat.append(11));
    EXPECT_EQ(logits_of(chat), cold_logits(prompt, joined(spoken, {11})));
  }
}

TEST_F(MemoryCasesTest, ACancelledPromptLeavesWhatWasReadBehind) {
  const std::vector<TokenId> prompt = ids(10, 900);
  std::stop_source stop;
  {
    Session chat = session({.slice_tokens = 100});
    const Status status = chat.prefill(prompt, stop.get_token(), [&](std::size_t done) {
      if (done >= 500) stop.request_stop();
    });
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kCancelled);
    chat.end_turn();
  }
  EXPECT_EQ(read(prompt).hit_tokens, 500U);
}

// Snapshots only save work: without any the encoder starts its whole reach before.
TEST_F(MemoryCasesTest, WithoutSnapshotsAStartFarBackIsExact) {
  const std::vector<TokenId> text = ids(11, 1'000);
  read(text);
  memory_->flush();
  close();
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("snap")) std::filesystem::resize_file(entry.path(), 64);
  }
  open();
  const MemoryUse use = read(joined(text, ids(12, 30)));
  EXPECT_EQ(use.disk_tokens, 1'000U);
  EXPECT_GE(use.replayed_tokens, static_cast<std::size_t>(model().config().boundary *
                                                          (model().config().sliding_window - 1)));
}

TEST_F(MemoryCasesTest, EveryReplayModeSharesOneMemory) {
  const std::vector<TokenId> text = ids(13, 600);
  const std::vector<TokenId> more = ids(14, 9);
  for (const ReplayMode replay : {ReplayMode::kFull, ReplayMode::kBounded, ReplayMode::kExact}) {
    SCOPED_TRACE(replay_mode_name(replay));
    Session chat = session({.replay = replay});
    ASSERT_TRUE(chat.prefill(text));
    EXPECT_EQ(chat.memory_use().hit_tokens, replay == ReplayMode::kFull ? 0U : 600U);
    for (const TokenId token : more) ASSERT_TRUE(chat.append(token));
    EXPECT_EQ(logits_of(chat), cold_logits(text, more, replay));
    chat.end_turn();
  }
}

// The rows that a resumed run leaves behind are those of a cold one, byte for byte.
TEST_F(MemoryCasesTest, RestoredAndComputedRowsAreTheSameBytes) {
  const std::vector<TokenId> text = ids(15, 700);
  read(std::vector<TokenId>(text.begin(), text.begin() + 451));
  restart();
  Session warm = session({.slice_tokens = 77});
  ASSERT_TRUE(warm.prefill(text));
  ASSERT_EQ(warm.memory_use().disk_tokens, 450U);
  cache::PagePool pool(model().memory().layout.page_bytes(), std::uint64_t{1} << 30);
  Session cold(model(), pool, workers_, {});
  ASSERT_TRUE(cold.prefill(text));
  const cache::KvView a = warm.memory().view();
  const cache::KvView b = cold.memory().view();
  const cache::KvLayout& layout = model().memory().layout;
  for (std::size_t stream = 0; stream < layout.streams.size(); ++stream) {
    for (std::int64_t row = 0; row < 700 / layout.streams[stream].tokens_per_row; ++row) {
      ASSERT_TRUE(std::ranges::equal(a.row(stream, row), b.row(stream, row)))
          << "stream " << stream << " row " << row;
    }
  }
  for (std::size_t ring = 0; ring < layout.rings.size(); ++ring) {
    for (std::int64_t p = 700 - layout.rings[ring].slots; p < 700; ++p) {
      ASSERT_TRUE(std::ranges::equal(a.ring_slot(ring, p), b.ring_slot(ring, p)));
    }
  }
}

}  // namespace
}  // namespace locket::engine
