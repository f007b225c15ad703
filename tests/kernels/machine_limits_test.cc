// The loops behind the limits do what they count, and leave nothing behind. How fast they are is
// nothing that a test could know.
#include "kernels/machine_limits.h"

#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <vector>

#include "tensor/aligned_buffer.h"
#include "tests/support/checkpoint_files.h"

namespace locket::kernels {
namespace {

constexpr auto kUnits = static_cast<std::size_t>(PeakUnit::kCount);

std::uint64_t word_sum(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof sum) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    sum += word;
  }
  return sum;
}

TEST(MachineLimitsTest, APlainReadReadsEveryByte) {
  for (const std::size_t lines : {0U, 1U, 15U, 16U, 17U, 127U, 1000U}) {
    tensor::AlignedBuffer buffer(lines * 64);
    std::uint64_t state = lines;
    for (std::byte& byte : buffer.bytes()) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      byte = static_cast<std::byte>(state >> 56);
    }
    for (const std::size_t threads : {1U, 2U, 3U}) {
      WorkerPool workers(threads);
      EXPECT_EQ(read_plainly(buffer.bytes(), workers), word_sum(buffer.bytes()))
          << lines << " lines, " << threads << " threads";
    }
  }
}

TEST(MachineLimitsTest, EveryThreadDoesEveryRound) {
  for (std::size_t i = 0; i < kUnits; ++i) {
    const auto unit = static_cast<PeakUnit>(i);
    if (!has_peak_unit(unit)) continue;
    WorkerPool one(1);
    WorkerPool three(3);
    const double once = run_peak(unit, 1, one);
    EXPECT_GT(once, 1000) << peak_unit_name(unit);
    EXPECT_EQ(run_peak(unit, 5, one), 5 * once) << peak_unit_name(unit);
    EXPECT_EQ(run_peak(unit, 5, three), 15 * once) << peak_unit_name(unit);
    EXPECT_GT(peak_rounds_per_millisecond(unit), 0U);
  }
}

TEST(MachineLimitsTest, MeasuresWhatTheMachineHasAndNothingElse) {
  const test_support::TempFolder folder;
  WorkerPool workers(2);
  const auto limits = measure_machine_limits({.runs = 1,
                                              .read_bytes = std::size_t{1} << 20,
                                              .disk_folder = folder.path(),
                                              .disk_bytes = std::size_t{3} << 20},
                                             workers);
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->threads, 2U);
  EXPECT_GT(limits->read.one.median, 0);
  EXPECT_GE(limits->read.all.best, limits->read.all.median);
  EXPECT_GT(limits->disk_read.median, 0);
  EXPECT_GT(limits->fork_join.median, 0);
  EXPECT_LE(limits->fork_join.best, limits->fork_join.median);
  for (std::size_t i = 0; i < kUnits; ++i) {
    const auto unit = static_cast<PeakUnit>(i);
    EXPECT_EQ(limits->peak(unit).one.best > 0, has_peak_unit(unit)) << peak_unit_name(unit);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(MachineLimitsTest, WithoutAFolderTheDiskIsNotMeasured) {
  WorkerPool workers(1);
  const auto limits =
      measure_machine_limits({.runs = 1, .read_bytes = std::size_t{1} << 20}, workers);
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->disk_read.best, 0);
}

TEST(MachineLimitsTest, NamesAFolderThatCannotBeUsed) {
  WorkerPool workers(1);
  const auto limits = measure_machine_limits(
      {.runs = 1, .read_bytes = std::size_t{1} << 20, .disk_folder = "/nowhere/at/all"}, workers);
  ASSERT_FALSE(limits);
  EXPECT_EQ(limits.error().code, ErrorCode::kIo);
  EXPECT_NE(limits.error().message.find("/nowhere/at/all"), std::string::npos);
}

TEST(MachineLimitsTest, RefusesToReadMoreMemoryThanThereIs) {
  WorkerPool workers(1);
  const auto limits =
      measure_machine_limits({.runs = 1, .read_bytes = std::size_t{1} << 50}, workers);
  ASSERT_FALSE(limits);
  EXPECT_EQ(limits.error().code, ErrorCode::kOverBudget);
}

TEST(MachineLimitsTest, DirectReadsNeedAFile) {
  const test_support::TempFolder folder;
  EXPECT_TRUE(read_directly(folder.write("some", "bytes"), 1 << 20));
  EXPECT_FALSE(read_directly(folder / "none", 1 << 20));
}

TEST(MachineLimitsTest, TheProcessorHasANameWithoutBlanks) {
  const std::string name = cpu_class();
  EXPECT_FALSE(name.empty());
  EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos);
  EXPECT_EQ(cpu_class(), name);
}

}  // namespace
}  // namespace locket::kernels
