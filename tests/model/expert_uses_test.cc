#include "model/expert_uses.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

namespace locket::model {
namespace {

constexpr std::size_t kLayers = 2;
constexpr std::size_t kExperts = 5;

Sha256Digest digest(int value) {
  Sha256Digest digest = {};
  digest.fill(static_cast<std::byte>(value));
  return digest;
}

void note(ExpertUses& uses, std::int64_t layer, std::vector<std::int32_t> experts, int times = 1) {
  for (int i = 0; i < times; ++i) uses.note(layer, experts);
}

TEST(ExpertUsesTest, MoreUsesRankHigherAndNoUseRanksLast) {
  ExpertUses uses(kLayers, kExperts);
  note(uses, 0, {1, 3});
  note(uses, 1, {2});
  note(uses, 0, {3});
  EXPECT_GT(uses.rank({0, 3}), uses.rank({0, 1}));
  EXPECT_EQ(uses.rank({1, 4}), -std::numeric_limits<double>::infinity());
  const std::vector<ExpertKey> best = uses.most_used(10);
  ASSERT_EQ(best.size(), 3U);
  EXPECT_EQ(best.front(), (ExpertKey{0, 3}));
  EXPECT_EQ(uses.most_used(1).size(), 1U);
}

// Half-life in visits of a layer: one visit here is half a visit of each of the two layers.
TEST(ExpertUsesTest, AUseCountsHalfAfterTheHalfLife) {
  ExpertUses uses(kLayers, kExperts);
  note(uses, 0, {0}, 2);
  note(uses, 0, {4}, static_cast<int>(ExpertUses::kHalfLife * kLayers) - 2);
  note(uses, 0, {1});
  // Two old uses count about as much as one new one.
  EXPECT_NEAR(uses.rank({0, 0}), uses.rank({0, 1}), 0.01);
}

TEST(ExpertUsesTest, ASweepOverAllExpertsDoesNotDisplaceThoseThatAreUsedAgainAndAgain) {
  ExpertUses uses(kLayers, kExperts);
  note(uses, 0, {2}, 20);
  note(uses, 0, {0, 1, 2, 3, 4});
  EXPECT_EQ(uses.most_used(1).front(), (ExpertKey{0, 2}));
  EXPECT_LT(uses.rank({0, 4}), uses.rank({0, 2}));
}

TEST(ExpertUsesTest, ANewSubjectDisplacesAnOldOne) {
  ExpertUses uses(kLayers, kExperts);
  note(uses, 0, {0}, 1'000);
  note(uses, 0, {1}, 3'000);
  EXPECT_EQ(uses.most_used(1).front(), (ExpertKey{0, 1}));
}

TEST(ExpertUsesTest, BytesBringTheSameOrderBack) {
  ExpertUses uses(kLayers, kExperts);
  note(uses, 0, {1, 3});
  note(uses, 1, {0, 1, 2}, 3);
  note(uses, 0, {3}, 700);
  const auto again = ExpertUses::from_bytes(uses.to_bytes(digest(1)), digest(1), kLayers, kExperts);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->most_used(100), uses.most_used(100));
  // Time goes on from zero: a use from now on counts more than the same use then.
  ExpertUses later = *again;
  note(later, 0, {0});
  EXPECT_GT(later.rank({0, 0}), later.rank({0, 1}));
}

TEST(ExpertUsesTest, AnythingElseIsRefusedInWords) {
  ExpertUses uses(kLayers, kExperts);
  note(uses, 0, {1});
  const std::string bytes = uses.to_bytes(digest(1));
  const auto refusal = [](const std::string& text, int model, std::size_t experts) {
    const auto read = ExpertUses::from_bytes(text, digest(model), kLayers, experts);
    EXPECT_FALSE(read);
    if (read) return std::string();
    EXPECT_EQ(read.error().code, ErrorCode::kBadMemory);
    return read.error().message;
  };
  EXPECT_NE(refusal(bytes, 2, kExperts).find("another model"), std::string::npos);
  EXPECT_NE(refusal(bytes, 1, kExperts + 1).find("size"), std::string::npos);
  EXPECT_NE(refusal("", 1, kExperts).find("size"), std::string::npos);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) refusal(bytes.substr(0, cut), 1, kExperts);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_NE(refusal(damaged, 1, kExperts).find("checksum"), std::string::npos) << "byte " << at;
  }
}

}  // namespace
}  // namespace locket::model
