// Holds the output bits of the program: digests of logits and memory of the tiny checkpoints,
// stored together with the numerics revision. Bits may change only with the revision, since stored
// memory carries it in its names. LOCKET_WRITE_GOLDEN=1 writes the digests of a new revision.
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "kernels/kernel_table.h"
#include "tests/support/tiny_models.h"

namespace locket::model {
namespace {

using test_support::RunBits;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Digests by case, for example "micro, mode reference, logits".
using Digests = std::map<std::string, std::string>;

struct GoldenBits {
  int revision = 0;
  Digests digests;
};

std::filesystem::path golden_path() {
  return std::filesystem::path(LOCKET_TEST_DATA) / "golden" / "bits.json";
}

GoldenBits read_golden() {
  const auto text = read_whole_file(golden_path());
  if (!text) return {};
  const nlohmann::json content = nlohmann::json::parse(*text);
  return {.revision = content.at("numerics_revision"), .digests = content.at("digests")};
}

Status write_golden(const GoldenBits& golden) {
  const nlohmann::ordered_json content = {{"numerics_revision", golden.revision},
                                          {"digests", golden.digests}};
  const std::string text = content.dump(2) + "\n";
  return write_whole_file(golden_path(), std::as_bytes(std::span(text)));
}

// What is wrong between stored and computed digests; empty if nothing is.
std::vector<std::string> find_problems(const GoldenBits& stored, const GoldenBits& computed) {
  if (stored.revision != computed.revision) {
    return {
        fmt::format("the stored digests are of numerics revision {}, the program has {}: run "
                    "this test with LOCKET_WRITE_GOLDEN=1",
                    stored.revision, computed.revision)};
  }
  std::vector<std::string> problems;
  for (const auto& [name, digest] : computed.digests) {
    const auto found = stored.digests.find(name);
    if (found == stored.digests.end()) {
      problems.push_back(
          fmt::format("{}: no digest is stored; run this test with LOCKET_WRITE_GOLDEN=1", name));
    } else if (found->second != digest) {
      problems.push_back(fmt::format(
          "{}: the bits changed while kNumericsRevision is still {}. Stored memory would give "
          "answers of the old bits: raise kNumericsRevision in model/numerics_mode.h and run this "
          "test with LOCKET_WRITE_GOLDEN=1",
          name, computed.revision));
    }
  }
  for (const auto& [name, digest] : stored.digests) {
    if (!computed.digests.contains(name)) {
      problems.push_back(fmt::format("{}: stored, but nothing computes it", name));
    }
  }
  return problems;
}

// Bits that changed without a new revision must not be written either.
bool may_write(const GoldenBits& stored, const GoldenBits& computed) {
  if (stored.revision != computed.revision) return true;
  for (const auto& [name, digest] : computed.digests) {
    const auto found = stored.digests.find(name);
    if (found != stored.digests.end() && found->second != digest) return false;
  }
  return true;
}

// A prompt through all layers, a longer one with the usual replay and appended tokens, and one id.
std::vector<RunBits> golden_runs(const V41Model& model, const kernels::KernelTable& table) {
  const std::int64_t vocabulary = model.config().vocabulary_size;
  const auto window = static_cast<std::size_t>(model.config().sliding_window);
  std::vector<RunBits> runs;
  runs.push_back(test_support::run_sequence(
      model, test_support::random_ids(41, window + 70, vocabulary), {.kernels = &table}));
  runs.push_back(
      test_support::run_sequence(model, test_support::random_ids(42, 2 * window + 40, vocabulary),
                                 {.replay = engine::ReplayMode::kBounded,
                                  .prompt_tokens = 2 * window + 32,
                                  .kernels = &table}));
  runs.push_back(test_support::run_sequence(model, test_support::random_ids(43, 1, vocabulary),
                                            {.kernels = &table}));
  return runs;
}

void add_digests(const std::string& name, NumericsMode mode, const kernels::KernelTable& table,
                 Digests& digests) {
  Sha256 logits;
  Sha256 memory;
  for (const RunBits& run : golden_runs(test_support::tiny_model(name, mode), table)) {
    for (const auto& row : run.logits) logits.update(std::as_bytes(std::span(row)));
    for (const auto& stream : run.streams) memory.update(stream);
    memory.update(run.rings);
  }
  const std::string place = fmt::format("{}, mode {}", name, numerics_mode_name(mode));
  digests[place + ", logits"] = to_hex(logits.finish());
  digests[place + ", memory"] = to_hex(memory.finish());
}

GoldenBits compute_golden(const kernels::KernelTable& table) {
  GoldenBits golden = {.revision = kNumericsRevision, .digests = {}};
  for (const std::string& name : test_support::tiny_names()) {
    for (int i = 0; i < static_cast<int>(NumericsMode::kCount); ++i) {
      add_digests(name, static_cast<NumericsMode>(i), table, golden.digests);
    }
  }
  return golden;
}

TEST(GoldenBitsTest, OutputBitsAreThoseOfTheNumericsRevision) {
  const GoldenBits stored = read_golden();
  const GoldenBits computed = compute_golden(kernels::active_kernels());
  const char* wish = std::getenv("LOCKET_WRITE_GOLDEN");
  if (wish != nullptr && std::string(wish) == "1" && may_write(stored, computed)) {
    const Status written = write_golden(computed);
    ASSERT_TRUE(written) << written.error().message;
    GTEST_SKIP() << "wrote " << golden_path();
  }
  EXPECT_EQ(computed.digests.size(), 24U);
  EXPECT_THAT(find_problems(stored, computed), IsEmpty());
}

// Other instruction sets have the same bits. The reference is left to shorter runs, it is slow.
TEST(GoldenBitsTest, TheOtherKernelTablesHaveTheStoredBits) {
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    if (table == &kernels::reference_kernels() || table == &kernels::active_kernels()) continue;
    EXPECT_THAT(find_problems(read_golden(), compute_golden(*table)), IsEmpty()) << table->name;
  }
}

TEST(GoldenBitsTest, ChangedBitsNeedANewRevision) {
  const GoldenBits stored = {.revision = 3, .digests = {{"a", "12"}, {"b", "34"}}};
  const GoldenBits changed = {.revision = 3, .digests = {{"a", "12"}, {"b", "35"}}};
  EXPECT_THAT(find_problems(stored, stored), IsEmpty());
  EXPECT_THAT(find_problems(stored, changed), ElementsAre(HasSubstr("raise kNumericsRevision")));
  EXPECT_FALSE(may_write(stored, changed));
}

TEST(GoldenBitsTest, ANewRevisionNeedsNewDigests) {
  const GoldenBits stored = {.revision = 3, .digests = {{"a", "12"}}};
  const GoldenBits raised = {.revision = 4, .digests = {{"a", "13"}}};
  EXPECT_THAT(find_problems(stored, raised),
              ElementsAre(HasSubstr("are of numerics revision 3, the program has 4")));
  EXPECT_TRUE(may_write(stored, raised));
}

TEST(GoldenBitsTest, CasesMayNotBeMissing) {
  const GoldenBits stored = {.revision = 3, .digests = {{"a", "12"}, {"b", "34"}}};
  const GoldenBits more = {.revision = 3, .digests = {{"a", "12"}, {"c", "56"}}};
  EXPECT_THAT(find_problems(stored, more),
              ElementsAre(HasSubstr("c: no digest"), HasSubstr("b: stored")));
  EXPECT_TRUE(may_write(stored, more));
}

}  // namespace
}  // namespace locket::model
