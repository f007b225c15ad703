#include "checkpoint/tensor_reads.h"

#include <filesystem>
#include <future>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/checkpoint/expect_failure.h"
#include "tests/support/checkpoint_files.h"

namespace locket::checkpoint {
namespace {

using test_support::counting_bytes;
using test_support::FileTensor;
using test_support::TempFolder;

constexpr std::size_t kLarge = 3'000'001;

class TensorReadsTest : public ::testing::Test {
 protected:
  // Odd sizes, so that nothing but the first tensor begins at an alignment.
  TensorReadsTest() {
    test_support::CheckpointText content;
    content.files["a.safetensors"] = {tensor("first", 5'003), tensor("large", kLarge),
                                      tensor("small", 7)};
    content.files["b.safetensors"] = {tensor("other", 12'345)};
    test_support::write_checkpoint(folder_, content);
    checkpoint_.push_back(*Checkpoint::open(folder_.path()));
    for (const char* name : {"first", "large", "small", "other"}) {
      tensors_.push_back(*checkpoint_.front().find(name));
    }
  }

  static FileTensor tensor(const std::string& name, std::size_t bytes) {
    return {name, "U8", {static_cast<std::int64_t>(bytes)}, counting_bytes(bytes)};
  }

  std::unique_ptr<TensorReads> open(std::size_t threads) const {
    std::vector<const StoredTensor*> all;
    for (const StoredTensor& tensor : tensors_) all.push_back(&tensor);
    auto reads = TensorReads::open(all, threads);
    EXPECT_TRUE(reads);
    return std::move(*reads);
  }

  // What came for each piece; the pool has ended by then.
  static std::vector<Result<std::string>> read(std::unique_ptr<TensorReads> reads,
                                               std::span<const TensorPiece> pieces) {
    std::mutex mutex;
    std::vector<std::optional<Result<std::string>>> results(pieces.size());
    reads->read(pieces, [&](std::size_t piece, Result<std::span<const std::byte>> bytes) {
      const std::lock_guard lock(mutex);
      EXPECT_FALSE(results[piece].has_value()) << "piece " << piece << " came twice";
      if (bytes) {
        results[piece] = std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
      } else {
        results[piece] = tl::make_unexpected(bytes.error());
      }
    });
    reads.reset();
    std::vector<Result<std::string>> given;
    for (auto& result : results) {
      EXPECT_TRUE(result.has_value());
      given.push_back(result ? *result : fail(ErrorCode::kInternal, "did not come"));
    }
    return given;
  }

  TempFolder folder_;
  std::vector<Checkpoint> checkpoint_;
  std::vector<StoredTensor> tensors_;
};

TEST_F(TensorReadsTest, AnyPieceOfAnyTensorComesOnceWithItsBytes) {
  std::mt19937 random(3);
  for (const std::size_t threads : {1, 4}) {
    std::vector<TensorPiece> pieces;
    std::vector<std::string> expected;
    for (int i = 0; i < 60; ++i) {
      const StoredTensor& tensor = tensors_[random() % tensors_.size()];
      const std::uint64_t first = random() % tensor.byte_count();
      const auto bytes = static_cast<std::size_t>(1 + random() % (tensor.byte_count() - first));
      pieces.push_back({.tensor = &tensor, .first_byte = first, .bytes = bytes});
      expected.push_back(counting_bytes(static_cast<std::size_t>(first) + bytes)
                             .substr(static_cast<std::size_t>(first)));
    }
    const auto results = read(open(threads), pieces);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      ASSERT_TRUE(results[i]) << results[i].error().message;
      EXPECT_EQ(*results[i], expected[i]) << "piece " << i;
    }
  }
}

TEST_F(TensorReadsTest, NeighboursAreReadTogether) {
  auto reads = open(1);
  TensorReads* const watched = reads.get();
  std::uint64_t after = 0;
  const std::vector<TensorPiece> pieces = {{&tensors_[0], 0, 2'000}, {&tensors_[0], 2'000, 3'003}};
  watched->read(pieces, [&](std::size_t, Result<std::span<const std::byte>> bytes) {
    EXPECT_TRUE(bytes);
    after = watched->bytes_read();
  });
  reads.reset();
  // Both lie in the same few aligned blocks; apart they would take more.
  EXPECT_LE(after, 8'192U + 4'096U);
}

// One thread that reads, held up until everything is queued; what it then reads, in turn.
class QueuedReads {
 public:
  using Turn = TensorReads::Turn;
  QueuedReads(std::unique_ptr<TensorReads> reads, const StoredTensor& tensor)
      : reads_(std::move(reads)), tensor_(tensor) {
    std::promise<void> began;
    const std::vector<TensorPiece> one = {{&tensor_, 0, 1}};
    reads_->read(one, [&](std::size_t, const Result<std::span<const std::byte>>&) {
      began.set_value();
      may_go_on_.get_future().wait();
    });
    began.get_future().wait();
    before_ = reads_->bytes_read();
  }

  TensorReads* operator->() { return reads_.get(); }
  // A read of one block, or of two that lie apart.
  TensorReads::Ticket add(const std::string& name, Turn turn, std::size_t blocks = 1) {
    std::vector<TensorPiece> pieces = {{&tensor_, 0, 10}};
    if (blocks == 2) pieces.push_back({&tensor_, 2'000'000, 10});
    return reads_->read(
        pieces,
        [this, name](std::size_t, const Result<std::span<const std::byte>>& bytes) {
          const std::lock_guard lock(mutex_);
          came_.push_back(bytes ? name : with_code(name, bytes.error().code));
        },
        turn);
  }
  std::vector<std::string> came() {
    const std::lock_guard lock(mutex_);
    return came_;
  }
  // Lets everything be read.
  std::vector<std::string> finish() {
    may_go_on_.set_value();
    std::promise<void> done;
    reads_->read(
        std::vector<TensorPiece>{{&tensor_, 0, 1}},
        [&](std::size_t, const Result<std::span<const std::byte>>&) { done.set_value(); },
        Turn::kAhead);
    done.get_future().wait();
    after_ = reads_->bytes_read() - before_;
    reads_.reset();
    return came();
  }
  // That finish() saw, with one block of its own.
  std::uint64_t bytes() const { return after_; }

 private:
  static std::string with_code(const std::string& name, ErrorCode code) {
    return name + (code == ErrorCode::kCancelled ? " given up" : " failed");
  }

  std::unique_ptr<TensorReads> reads_;
  const StoredTensor& tensor_;
  std::promise<void> may_go_on_;
  std::uint64_t before_ = 0;
  std::uint64_t after_ = 0;
  std::mutex mutex_;
  std::vector<std::string> came_;
};

using Names = std::vector<std::string>;
using Turn = TensorReads::Turn;

TEST_F(TensorReadsTest, WhatSomebodyWaitsForOvertakesWhatIsReadAhead) {
  QueuedReads reads(open(1), tensors_[1]);
  reads.add("ahead", Turn::kAhead, 2);
  reads.add("now", Turn::kNow);
  reads.add("ahead, too", Turn::kAhead);
  reads.add("now, too", Turn::kNow);
  EXPECT_EQ(reads.finish(), (Names{"now", "now, too", "ahead", "ahead", "ahead, too"}));
}

TEST_F(TensorReadsTest, AReadAheadThatIsHurriedGoesBehindWhatIsWaitedFor) {
  QueuedReads reads(open(1), tensors_[1]);
  reads.add("ahead", Turn::kAhead);
  const auto ticket = reads.add("hurried", Turn::kAhead, 2);
  reads.add("now", Turn::kNow);
  reads->hurry(ticket);
  reads.add("later", Turn::kNow);
  reads->hurry(ticket);
  EXPECT_EQ(reads.finish(), (Names{"now", "hurried", "hurried", "later", "ahead"}));
}

TEST_F(TensorReadsTest, WhatIsGivenUpComesAtOnceAsCancelledAndIsNotRead) {
  QueuedReads reads(open(1), tensors_[1]);
  const auto ahead = reads.add("ahead", Turn::kAhead, 2);
  reads.add("other", Turn::kAhead);
  const auto now = reads.add("now", Turn::kNow);
  reads->cancel(ahead);
  EXPECT_EQ(reads.came(), (Names{"ahead given up", "ahead given up"}));
  reads->cancel(now);
  reads->cancel(now);
  EXPECT_EQ(reads.finish(), (Names{"ahead given up", "ahead given up", "now given up", "other"}));
  // Tensor bytes 0 to 9 do not cross a boundary of the alignment.
  EXPECT_EQ(reads.bytes(), 2 * 4'096U);
}

TEST_F(TensorReadsTest, AFileThatHasBecomeShorterIsNamedWithTensorAndBytes) {
  const std::filesystem::path path = folder_ / "a.safetensors";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100'000);
  const std::vector<TensorPiece> pieces = {{&tensors_[0], 0, 5'003},
                                           {&tensors_[1], kLarge - 1'000, 1'000},
                                           {&tensors_[1], 0, 4'000},
                                           {&tensors_[2], 0, 7},
                                           {&tensors_[3], 0, 12'345}};
  const auto results = read(open(2), pieces);
  EXPECT_TRUE(results[0]);
  EXPECT_TRUE(results[2]);
  EXPECT_TRUE(results[4]);
  expect_failure(results[1], ErrorCode::kIo, {"tensor large", path.string(), "ends at byte"});
  expect_failure(results[3], ErrorCode::kIo, {"tensor small", path.string(), "ends at byte"});
}

TEST_F(TensorReadsTest, AFileBehindALinkIsRead) {
  const std::filesystem::path path = folder_ / "b.safetensors";
  std::filesystem::rename(path, folder_ / "blob");
  std::filesystem::create_symlink(folder_ / "blob", path);
  const std::vector<TensorPiece> pieces = {{&tensors_[3], 0, 12'345}};
  const auto results = read(open(1), pieces);
  ASSERT_TRUE(results[0]) << results[0].error().message;
  EXPECT_EQ(*results[0], counting_bytes(12'345));
}

TEST_F(TensorReadsTest, AFileThatIsGoneIsAnError) {
  std::filesystem::remove(folder_ / "b.safetensors");
  const StoredTensor* tensor = &tensors_[3];
  const auto reads = TensorReads::open({&tensor, 1}, 1);
  expect_failure(reads, ErrorCode::kNotFound, {"b.safetensors"});
}

}  // namespace
}  // namespace locket::checkpoint
