// The work of attention by generation, against published ratios and the counts of the program.
#include "cli/lineage_work.h"

#include <gtest/gtest.h>

#include "checkpoint/config_json.h"
#include "cli/released_configs.h"
#include "model/generations/lineage_bytes.h"
#include "model/generations/v41_config.h"
#include "model/generations/v41_work.h"

namespace locket::cli {
namespace {

double total(std::string_view id, std::int64_t context) {
  const auto work = attention_work(id, context);
  EXPECT_TRUE(work) << id;
  return work ? work->total() : 0;
}

// Per layer 2 x 128 x (576 + 512) operations a key, and 2 x 64 x 128 a key searched.
TEST(LineageWorkTest, SparseAttentionGainsWhatItsReportLeadsToExpect) {
  EXPECT_DOUBLE_EQ(total("v3", 1000), 61 * 278528.0 / 2 * 1000);
  EXPECT_DOUBLE_EQ(attention_work("v3.2", 100000)->search, 61 * 16384.0 / 2 * 100000);
  EXPECT_NEAR(total("v3", 4096) / total("v3.2", 4096), 1.8, 0.05);
  EXPECT_NEAR(total("v3", 32768) / total("v3.2", 32768), 8.2, 0.05);
  EXPECT_NEAR(total("v3", 131072) / total("v3.2", 131072), 13.4, 0.05);
}

TEST(LineageWorkTest, AttentionIsFlatWhereRowsAreChosen) {
  for (const char* id : {"v3.2", "v4.1-flash"}) {
    EXPECT_EQ(attention_work(id, 1 << 16)->attention, attention_work(id, 1 << 20)->attention) << id;
  }
  EXPECT_EQ(total("v1-67b", 8192), 2 * total("v1-67b", 4096));
}

TEST(LineageWorkTest, V41IsWhatTheProgramCounts) {
  const auto file =
      checkpoint::ConfigFile::parse(std::string(released_configs().back().text), "config.json");
  ASSERT_TRUE(file);
  const auto config = model::read_v41_config(file->root());
  ASSERT_TRUE(config) << config.error().message;
  const auto counted = model::sum_work(model::generated_token_work(*config, 65535, 65536 - 128));
  EXPECT_EQ(attention_work("v4.1-flash", 65536)->attention, static_cast<double>(counted.attention));
  EXPECT_EQ(attention_work("v4.1-flash", 65536)->search, static_cast<double>(counted.index_scores));
}

TEST(LineageWorkTest, KnowsEveryReleasedModel) {
  for (const model::LineageModel& model : model::lineage_models()) {
    EXPECT_GT(total(model.id, 4096), 0) << model.id;
  }
  EXPECT_FALSE(attention_work("v5", 4096));
}

}  // namespace
}  // namespace locket::cli
