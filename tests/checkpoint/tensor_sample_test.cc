#include "checkpoint/tensor_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/checkpoint_files.h"

namespace locket::checkpoint {
namespace {

using test_support::FileTensor;
using test_support::TempFolder;
using ::testing::HasSubstr;

constexpr std::size_t kBytesPerTensor = 3 * 64;

class TensorSampleTest : public ::testing::Test {
 protected:
  TensorSample sample(const std::vector<FileTensor>& tensors) const {
    test_support::write_checkpoint(folder_, {.files = {{"model.safetensors", tensors}}});
    return sample_tensors(Checkpoint::open(folder_.path()).value(), kBytesPerTensor).value();
  }
  // A tensor of `dtype` with these bytes at element `at`, zeros elsewhere.
  static FileTensor with(const std::string& dtype, std::int64_t count, std::size_t at,
                         const std::string& element) {
    std::string bytes(static_cast<std::size_t>(count) * element.size(), '\0');
    bytes.replace(at * element.size(), element.size(), element);
    return {"t", dtype, {count}, bytes};
  }

  TempFolder folder_;
};

TEST_F(TensorSampleTest, IsContentWithNumbers) {
  const TensorSample found = sample(
      {with("F32", 4, 1, std::string("\x00\x00\x7F\x7F", 4)), {"i", "I8", {3}, "\xFF\xFF\xFF"}});
  EXPECT_EQ(found.tensors, 2U);
  EXPECT_EQ(found.bytes, 19U);
  EXPECT_EQ(found.broken, 0U);
  EXPECT_THAT(found.findings, ::testing::IsEmpty());
}

TEST_F(TensorSampleTest, FindsWhatIsNoNumberInEveryType) {
  struct Case {
    const char* dtype;
    std::string element;
    const char* fault;
  };
  const std::vector<Case> cases = {
      {"F32", std::string("\x01\x00\x80\x7F", 4), "NaN at element 2"},
      {"F32", std::string("\x00\x00\x80\xFF", 4), "an infinity at element 2"},
      {"BF16", std::string("\xC0\x7F", 2), "NaN at element 2"},
      {"F16", std::string("\x00\x7C", 2), "an infinity at element 2"},
      {"F8_E4M3", "\xFF", "NaN at element 2"},
      {"F8_E8M0", "\xFF", "NaN at element 2"},
  };
  for (const Case& one : cases) {
    const TensorSample found = sample({with(one.dtype, 5, 2, one.element)});
    EXPECT_EQ(found.broken, 1U) << one.dtype;
    ASSERT_EQ(found.findings.size(), 1U) << one.dtype;
    EXPECT_THAT(found.findings[0], HasSubstr(one.fault)) << one.dtype;
    EXPECT_THAT(found.findings[0], HasSubstr("tensor t in model.safetensors"));
  }
}

TEST_F(TensorSampleTest, LooksAtBeginningMiddleAndEndOfALargeTensor) {
  constexpr std::int64_t kCount = 10'000;
  for (const std::size_t at : {0U, 63U, 5'000U, 9'999U}) {
    const TensorSample found = sample({with("F8_E8M0", kCount, at, "\xFF")});
    EXPECT_EQ(found.broken, 1U) << at;
    EXPECT_THAT(found.findings[0], HasSubstr("element " + std::to_string(at)));
  }
  EXPECT_EQ(sample({with("F8_E8M0", kCount, 3'000, "\xFF")}).broken, 0U) << "not looked at";
  EXPECT_LE(sample({with("F8_E8M0", kCount, 0, "\x01")}).bytes, kBytesPerTensor);
}

}  // namespace
}  // namespace locket::checkpoint
