// What `locket claims` lists: figures that are known from elsewhere, and that no row is without a
// source or a reason.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "cli/claims_list.h"
#include "cli/claims_text.h"
#include "cli/recall_cases.h"
#include "tests/cli/program_cases.h"

namespace locket::cli {
namespace {

using nlohmann::json;
using test_support::run_program;

std::vector<ClaimGroup> quick_groups() {
  auto work = work_claims();
  EXPECT_TRUE(work) << work.error().message;
  return {memory_claims({}), *work, unmeasured_model_claims(), service_claims()};
}

// The only claim that holds these words.
Claim find_claim(const std::vector<ClaimGroup>& groups, const std::string& words) {
  std::vector<Claim> found;
  for (const ClaimGroup& group : groups) {
    for (const Claim& claim : group.claims) {
      if (claim.claim.find(words) != std::string::npos) found.push_back(claim);
    }
  }
  EXPECT_EQ(found.size(), 1U) << words;
  return found.empty() ? Claim{} : found.front();
}

TEST(ClaimsTest, ComputedFiguresAreThoseOfTheLineage) {
  struct Row {
    const char* claim;
    const char* found;
  };
  const auto groups = quick_groups();
  for (const Row& row :
       {Row{"890 bytes", "890 B"}, Row{"93.3 % less", "93.34 %"}, Row{"437 times", "437.2 x"},
        Row{"70.272 KB", "70,272 B"}, Row{"7 % of what V3.2", "7.311 %"},
        Row{"10 % of what V3.2", "10.47 %"}, Row{"1/4 of V4-Flash", "25.33 %"},
        Row{"34.6K values", "34,560 and 15,552"}, Row{"9.62 GiB", "9.617 GiB; 8.72 times"},
        Row{"2 % of a bf16", "Pro 2.01 %, Flash 2.00 %"},
        Row{"8 times the compressed", "Flash 7.95, Pro 7.88"},
        Row{"64 GiB", "v3 13.1, v3.2 10.9, v4-pro 100.7, v4-flash 144.4, v4.1-flash 575.7"},
        Row{"6 of 384", "6 of 384 and 1 in each of 40 layers"}, Row{"nearly half", "0.4"},
        Row{"O(L k)", "1.8 / 8.2 / 13.4 times"},
        Row{"O(L k)", "from 32k to 128k the search grows 4.0-fold, attention itself 1.0-fold"}}) {
    const Claim claim = find_claim(groups, row.claim);
    EXPECT_EQ(claim.kind, Claim::Kind::kComputed) << row.claim;
    EXPECT_NE(claim.found.find(row.found), std::string::npos) << row.claim << ": " << claim.found;
  }
}

TEST(ClaimsTest, ParametersAreNearThePublishedOnes) {
  const auto groups = quick_groups();
  const auto leading = [&](const char* words) {
    return std::stod(find_claim(groups, words).found);
  };
  EXPECT_NEAR(leading("552B parameters"), 552, 1);
  EXPECT_NEAR(leading("8B of them work"), 8, 0.5);
  EXPECT_NEAR(leading("16B of them work"), 16, 0.5);
}

TEST(ClaimsTest, TheSearchIsFlatPastThePoolAndNotWithoutIt) {
  const auto groups = quick_groups();
  const auto values = [&](const char* words) {
    std::string figures = find_claim(groups, words).found;
    std::erase(figures, ',');
    std::istringstream text(figures);
    std::vector<double> found(3);
    char slash = 0;
    text >> found[0] >> slash >> found[1] >> slash >> found[2];
    return found;
  };
  const auto pool = values("past the candidate pool");
  EXPECT_GT(pool[0], 0);
  EXPECT_EQ(pool[0], pool[2]);
  const auto all = values("whole search is not");
  EXPECT_GT(all[2], 10 * all[0]);
  const auto attention = values("attention itself is flat");
  EXPECT_EQ(attention[0], attention[2]);
}

TEST(ClaimsTest, EveryRowHasASourceAndAFindingOrAReason) {
  std::set<std::string> seen;
  for (const ClaimGroup& group : quick_groups()) {
    EXPECT_FALSE(group.topic.empty());
    for (const Claim& claim : group.claims) {
      EXPECT_TRUE(seen.insert(claim.claim).second) << claim.claim;
      EXPECT_FALSE(claim.source.empty()) << claim.claim;
      EXPECT_FALSE(claim.found.empty()) << claim.claim;
      if (claim.kind == Claim::Kind::kNotHere) {
        EXPECT_TRUE(claim.how.empty()) << claim.claim;
      } else {
        EXPECT_FALSE(claim.how.empty()) << claim.claim;
      }
      if (claim.kind == Claim::Kind::kElsewhere) {
        EXPECT_FALSE(claim.command.empty()) << claim.claim;
      }
    }
  }
  EXPECT_GE(seen.size(), 30U);
}

TEST(ClaimsTest, FitsAHundredColumns) {
  const std::string text = claims_text(quick_groups());
  for (const std::string& line : lines_of(text)) {
    EXPECT_LE(line.size(), 100U) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
  expect_parts(text, {"not here", "elsewhere", "computed"});
}

TEST(ClaimsTest, TheSmallModelShowsWhatItsMemorySaves) {
  ModelOptions options;
  options.model = mini_folder();
  options.memory = "off";
  const auto setup = set_up_remembering_model(options);
  ASSERT_TRUE(setup) << setup.error().message;
  const auto group = model_claims(*setup, mini_folder());
  ASSERT_TRUE(group) << group.error().message;
  const std::vector<ClaimGroup> groups = {*group};
  expect_parts(find_claim(groups, "last n_win tokens").found, {"32 of ", "n_win is 32"});
  expect_parts(find_claim(groups, "negligible").found, {"10 of 10 answers"});
  expect_parts(find_claim(groups, "does not change an answer").found, {"10 of 10"});
  const Claim bill = find_claim(groups, "fraction with a memory");
  EXPECT_EQ(bill.kind, Claim::Kind::kMeasured);
  expect_parts(bill.found, {"messages: $0.00", " times; ", " prompt tokens remembered"});
}

TEST(ClaimsTest, TheProgramPrintsThemAsJson) {
  const auto result = run_program({"claims", "--quick", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json rows = json::parse(result.output).at("claims");
  std::size_t count = 0;
  for (const ClaimGroup& group : quick_groups()) count += group.claims.size();
  EXPECT_EQ(rows.size(), count);
  for (const json& row : rows) {
    for (const char* name : {"topic", "claim", "source", "kind", "found", "command"}) {
      EXPECT_FALSE(row.at(name).get<std::string>().empty()) << row.dump();
    }
  }
}

}  // namespace
}  // namespace locket::cli
