// What people are shown of a store, and what they can do with it.
#include "cache/disk_catalog.h"

#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/support/stored_prefix.h"

namespace locket::cache {
namespace {

namespace fs = std::filesystem;
using test_support::make_turn;
using test_support::open_store;
using test_support::PayloadSizes;
using test_support::points_of;
using test_support::PrefixTurn;
using test_support::recall;
using test_support::root_of;
using test_support::some_tokens;
using test_support::StoreFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Tokens = std::vector<std::int32_t>;

constexpr std::uint64_t kBytesPerToken = 17 + 71;
constexpr std::uint64_t kSnapshotBytes = 5'003;

Tokens first_of(const Tokens& tokens, std::size_t count) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)};
}

Tokens joined(Tokens tokens, const Tokens& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

class DiskCatalogTest : public ::testing::Test {
 protected:
  DiskCatalogTest()
      : folder_(std::string("catalog_") +
                ::testing::UnitTest::GetInstance()->current_test_info()->name()),
        store_(open_store(folder_.path())),
        root_(root_of(*store_)) {}

  // Stores a prefix; the name of its last page.
  PageName write(const Tokens& tokens, const std::vector<std::int64_t>& snapshots = {},
                 const std::string& tenant = {}) {
    const RootLabel root = root_of(*store_, tenant);
    PrefixTurn turn = make_turn(root, tokens, {.snapshots = snapshots});
    EXPECT_TRUE(store_->write_turn(turn.write));
    return turn.write.newest;
  }

  const StoredPrefix* find(const std::vector<StoredPrefix>& prefixes, const PageName& name) {
    const auto found = std::ranges::find(prefixes, name, &StoredPrefix::name);
    return found == prefixes.end() ? nullptr : &*found;
  }

  MissExplanation explain(const Tokens& tokens, const std::string& tenant = {}) {
    return explain_miss(*store_, root_of(*store_, tenant), tokens, PayloadSizes{}.page_sizes());
  }

  // Changes one byte in the middle of the only segment file of that kind.
  void damage(const std::string& kind) {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (!entry.path().filename().string().starts_with(kind)) continue;
      std::string bytes = read_whole_file(entry.path()).value();
      bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
      ASSERT_TRUE(write_whole_file(entry.path(), std::as_bytes(std::span(bytes))));
      fs::permissions(entry.path(), fs::perms::owner_read | fs::perms::owner_write);
    }
  }

  const Tokens common_ = some_tokens(3 * 128, 1);
  StoreFolder folder_;
  std::unique_ptr<DiskStore> store_;
  RootLabel root_;
};

TEST_F(DiskCatalogTest, ListsLeavesWithWhatTheyShare) {
  const PageName first = write(joined(common_, some_tokens(128 + 40, 2)), {256, 384});
  const PageName second = write(joined(common_, some_tokens(2 * 128, 3)));
  const std::vector<StoredPrefix> prefixes = list_prefixes(*store_);
  ASSERT_EQ(prefixes.size(), 2U);
  const StoredPrefix* const one = find(prefixes, first);
  const StoredPrefix* const two = find(prefixes, second);
  ASSERT_TRUE(one != nullptr && two != nullptr);
  EXPECT_EQ(one->tokens, 3 * 128 + 168);
  EXPECT_EQ(one->pages, 5);
  EXPECT_EQ(one->own_pages, 2);
  EXPECT_EQ(one->own_bytes, 168 * kBytesPerToken);
  EXPECT_EQ(one->payload_bytes, (3 * 128 + 168) * kBytesPerToken + 2 * kSnapshotBytes);
  EXPECT_EQ(one->snapshots, 2);
  EXPECT_EQ(one->root.model, "test model");
  EXPECT_FALSE(one->is_pinned);
  EXPECT_GT(one->last_use_seconds, 0);
  EXPECT_EQ(two->own_pages, 2);
  EXPECT_EQ(two->snapshots, 2) << "those of the pages in common";
}

TEST_F(DiskCatalogTest, APrefixThatGrewIsListedOnce) {
  write(common_);
  const PageName grown = write(joined(common_, some_tokens(50, 4)));
  const std::vector<StoredPrefix> prefixes = list_prefixes(*store_);
  ASSERT_EQ(prefixes.size(), 1U);
  EXPECT_EQ(prefixes.front().name, grown);
}

TEST_F(DiskCatalogTest, CountsWhatIsStored) {
  write(joined(common_, some_tokens(40, 5)), {128});
  write(some_tokens(128, 6), {}, "somebody");
  const CatalogTotals totals = count_stored(*store_);
  EXPECT_EQ(totals.tokens, 4 * 128 + 40);
  EXPECT_EQ(totals.pages, 5);
  EXPECT_EQ(totals.tails, 1);
  EXPECT_EQ(totals.key_bytes, (4 * 128 + 40) * 17U);
  EXPECT_EQ(totals.row_bytes, (4 * 128 + 40) * 71U);
  EXPECT_EQ(totals.snapshots, 1);
  EXPECT_EQ(totals.snapshot_bytes, kSnapshotBytes);
  EXPECT_EQ(totals.unreachable_pages, 0);
  EXPECT_EQ(totals.roots.size(), 2U);
  EXPECT_GT(totals.folder_bytes, totals.key_bytes + totals.row_bytes);
}

TEST_F(DiskCatalogTest, FindsAPrefixByItsFirstDigits) {
  const PageName name = write(common_);
  const std::string hex = to_hex(name);
  EXPECT_EQ(find_prefix(*store_, hex.substr(0, 12)).value(), name);
  EXPECT_EQ(find_prefix(*store_, hex).value(), name);
  std::string upper = hex;
  std::ranges::transform(upper, upper.begin(), [](unsigned char digit) {
    return static_cast<char>(std::toupper(digit));
  });
  EXPECT_EQ(find_prefix(*store_, upper).value(), name);
}

TEST_F(DiskCatalogTest, RefusesWhatIsNoNameOrNotTheOnlyOne) {
  for (std::uint64_t seed = 0; seed < 17; ++seed) write(some_tokens(128, 100 + seed));
  const std::vector<StoredPrefix> prefixes = list_prefixes(*store_);
  std::vector<std::string> digits;
  for (const StoredPrefix& prefix : prefixes) digits.push_back(to_hex(prefix.name).substr(0, 1));
  std::ranges::sort(digits);
  const std::string twice = *std::ranges::adjacent_find(digits);
  EXPECT_EQ(find_prefix(*store_, twice).error().code, ErrorCode::kBadRequest);
  for (const char* wrong : {"", "xyz", "../../secret", "%00"}) {
    EXPECT_EQ(find_prefix(*store_, wrong).error().code, ErrorCode::kBadRequest) << wrong;
  }
  EXPECT_EQ(find_prefix(*store_, std::string(65, '0')).error().code, ErrorCode::kBadRequest);
  EXPECT_EQ(find_prefix(*store_, std::string(64, '0')).error().code, ErrorCode::kNotFound);
}

TEST_F(DiskCatalogTest, GivesThePagesAndSnapshotsOfAPrefix) {
  const Tokens tokens = joined(common_, some_tokens(40, 7));
  const PageName name = write(tokens, {128, 384});
  const std::vector<PrefixPoint> points = points_of(root_, tokens);
  const std::vector<StoredPage> pages = pages_of(*store_, name).value();
  ASSERT_EQ(pages.size(), 4U);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    EXPECT_EQ(pages[i].parent, points[i]);
    EXPECT_EQ(pages[i].end, points[i + 1]);
  }
  const std::vector<StoredSnapshot> snapshots = snapshots_of(*store_, pages);
  ASSERT_EQ(snapshots.size(), 2U);
  EXPECT_EQ(snapshots[0].point, points[1]);
  EXPECT_EQ(snapshots[1].point, points[3]);
  EXPECT_EQ(label_of(*store_, points[0].name).model, "test model");
  EXPECT_EQ(label_of(*store_, name).model, "");
  EXPECT_EQ(pages_of(*store_, PageName{}).error().code, ErrorCode::kNotFound);
}

TEST_F(DiskCatalogTest, RemovesWhatNoOtherPrefixShares) {
  const Tokens one = joined(common_, some_tokens(168, 8));
  const Tokens two = joined(common_, some_tokens(128, 9));
  const PageName first = write(one, {384, 512});
  write(two);
  EXPECT_EQ(remove_prefix(*store_, first).value(), 168 * kBytesPerToken + kSnapshotBytes);
  EXPECT_EQ(recall(*store_, root_, one).tokens, 384);
  EXPECT_EQ(recall(*store_, root_, two).tokens, 512);
  EXPECT_EQ(remove_prefix(*store_, first).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(remove_prefix(*store_, points_of(root_, one)[1].name).value(), 0U)
      << "pages below it belong to another prefix";
  EXPECT_EQ(recall(*store_, root_, two).tokens, 512);
}

TEST_F(DiskCatalogTest, APinnedPrefixIsListedAndStaysUntilThePinIsOff) {
  const PageName name = write(common_);
  ASSERT_TRUE(set_pin(*store_, name, Pin::kOn));
  const Tokens longer = joined(common_, some_tokens(128, 10));
  const PageName leaf = write(longer);
  std::vector<StoredPrefix> prefixes = list_prefixes(*store_);
  ASSERT_EQ(prefixes.size(), 2U);
  EXPECT_TRUE(find(prefixes, name)->is_pinned);
  EXPECT_EQ(find(prefixes, name)->own_pages, 0);
  EXPECT_EQ(remove_prefix(*store_, name).error().code, ErrorCode::kBadRequest);
  EXPECT_EQ(remove_prefix(*store_, leaf).value(), 128 * kBytesPerToken);
  EXPECT_EQ(recall(*store_, root_, longer).tokens, 384);
  ASSERT_TRUE(set_pin(*store_, name, Pin::kOff));
  EXPECT_TRUE(remove_prefix(*store_, name));
  EXPECT_THAT(list_prefixes(*store_), IsEmpty());
}

TEST_F(DiskCatalogTest, RemovingEverythingLeavesNothingNotEvenMisses) {
  const PageName name = write(joined(common_, some_tokens(40, 11)), {128});
  write(some_tokens(300, 12), {256}, "somebody");
  ASSERT_TRUE(set_pin(*store_, name, Pin::kOn));
  record_miss(*store_, {.root = root_, .prompt_tokens = 5, .seconds = 0, .explanation = {}});
  EXPECT_EQ(remove_all(*store_).value(), (3 * 128 + 340) * kBytesPerToken + 2 * kSnapshotBytes);
  const CatalogTotals totals = count_stored(*store_);
  EXPECT_EQ(totals.pages, 0);
  EXPECT_EQ(totals.snapshots, 0);
  EXPECT_THAT(recorded_misses(*store_), IsEmpty());
  EXPECT_EQ(remove_all(*store_).value(), 0U);
}

TEST_F(DiskCatalogTest, VerifyReadsEverythingAndTellsHowFar) {
  write(joined(common_, some_tokens(40, 13)), {128});
  std::uint64_t last_done = 0;
  std::uint64_t last_total = 0;
  const VerifyReport report =
      verify_stored(*store_, Repair::kReport, [&](std::uint64_t done, std::uint64_t total) {
        last_done = done;
        last_total = total;
      }).value();
  EXPECT_EQ(report.values, 9);
  EXPECT_EQ(report.bytes, (3 * 128 + 40) * kBytesPerToken + kSnapshotBytes);
  EXPECT_EQ(report.damaged, 0);
  EXPECT_EQ(last_done, report.bytes);
  EXPECT_EQ(last_total, report.bytes);
}

TEST_F(DiskCatalogTest, VerifyNamesDamageAndRepairDropsItForGood) {
  const Tokens tokens = joined(common_, some_tokens(40, 14));
  write(tokens, {128});
  store_.reset();
  damage("keys");
  damage("rows");
  damage("snap");
  store_ = open_store(folder_.path());
  VerifyReport report = verify_stored(*store_, Repair::kReport, {}).value();
  EXPECT_EQ(report.damaged, 3);
  EXPECT_THAT(report.findings,
              ::testing::UnorderedElementsAre(HasSubstr("its index keys are damaged"),
                                              HasSubstr("its rows are damaged"),
                                              HasSubstr("(at token 128): it is damaged")));
  EXPECT_EQ(verify_stored(*store_, Repair::kReport, {}).value().damaged, 3) << "only reported";
  EXPECT_EQ(verify_stored(*store_, Repair::kDropDamaged, {}).value().damaged, 3);
  EXPECT_EQ(verify_stored(*store_, Repair::kReport, {}).value().damaged, 0);
  store_ = nullptr;
  store_ = open_store(folder_.path());
  EXPECT_EQ(verify_stored(*store_, Repair::kReport, {}).value().damaged, 0) << "on disk, too";
  EXPECT_EQ(recall(*store_, root_of(*store_), tokens).damaged, 0);
}

TEST_F(DiskCatalogTest, ASampleReadsAPartAndLeavesEverythingAsItIs) {
  write(joined(common_, some_tokens(40, 18)), {128});
  const VerifyReport all = verify_sample(*store_, std::uint64_t{1} << 30).value();
  EXPECT_EQ(all.values, 9);
  EXPECT_EQ(all.left_out, 0);
  const VerifyReport some = verify_sample(*store_, all.bytes / 3).value();
  EXPECT_GT(some.values, 0);
  EXPECT_LT(some.bytes, all.bytes);
  EXPECT_EQ(some.values + some.left_out, 9);
  EXPECT_EQ(some.damaged, 0);
  EXPECT_EQ(verify_sample(*store_, 0).value().values, 1);
  store_.reset();
  damage("rows");
  store_ = open_store(folder_.path());
  EXPECT_EQ(verify_sample(*store_, std::uint64_t{1} << 30).value().damaged, 1);
  EXPECT_EQ(verify_stored(*store_, Repair::kReport, {}).value().damaged, 1) << "only reported";
}

TEST_F(DiskCatalogTest, AReaderSeesEverythingAndChangesNothing) {
  const PageName name = write(common_);
  auto reader =
      DiskStore::open({.directory = folder_.path(), .access = DiskOptions::Access::kReadOnly})
          .value();
  EXPECT_EQ(list_prefixes(*reader).size(), 1U);
  write(joined(common_, some_tokens(128, 15)));
  EXPECT_EQ(count_stored(*reader).pages, 4) << "what was written meanwhile, too";
  EXPECT_EQ(set_pin(*reader, name, Pin::kOn).error().code, ErrorCode::kBadRequest);
  EXPECT_EQ(remove_all(*reader).error().code, ErrorCode::kBadRequest);
  EXPECT_EQ(verify_stored(*reader, Repair::kDropDamaged, {}).error().code, ErrorCode::kBadRequest);
  EXPECT_EQ(verify_stored(*reader, Repair::kReport, {}).value().damaged, 0);
  record_miss(*reader, {.root = root_, .prompt_tokens = 5, .seconds = 0, .explanation = {}});
  EXPECT_THAT(recorded_misses(*store_), IsEmpty());
}

TEST_F(DiskCatalogTest, ExplainsAHitAndAnEmptyStore) {
  EXPECT_EQ(explain(common_).reason, MissReason::kNothing);
  write(common_, {128, 256});
  const MissExplanation all = explain(common_);
  EXPECT_EQ(all.reason, MissReason::kNone);
  EXPECT_EQ(all.hit_tokens, 384);
  EXPECT_EQ(all.nearest_snapshot, 256);
  EXPECT_THAT(all.snapshots, ElementsAre(256, 128));
  EXPECT_THAT(all.wanted_tokens, IsEmpty());
}

TEST_F(DiskCatalogTest, ExplainsAPromptThatGoesOn) {
  write(joined(common_, some_tokens(40, 16)));
  const Tokens longer = joined(joined(common_, some_tokens(40, 16)), some_tokens(500, 17));
  const MissExplanation end = explain(longer);
  EXPECT_EQ(end.reason, MissReason::kEnd);
  EXPECT_EQ(end.hit_tokens, 424);
  EXPECT_EQ(end.wanted_tokens.front(), longer[424]);
  EXPECT_EQ(end.shared_tokens.back(), longer[423]);
}

TEST_F(DiskCatalogTest, ExplainsWhereTokensPart) {
  const Tokens stored = some_tokens(640, 18);
  const PageName name = write(stored);
  for (const std::size_t at : {1U, 127U, 128U, 300U, 511U, 512U, 639U}) {
    Tokens wanted = stored;
    wanted[at] = wanted[at] + 1;
    const MissExplanation parting = explain(wanted);
    EXPECT_EQ(parting.reason, MissReason::kParting) << at;
    EXPECT_EQ(parting.hit_tokens, static_cast<std::int64_t>(at));
    ASSERT_FALSE(parting.wanted_tokens.empty());
    EXPECT_EQ(parting.wanted_tokens.front(), wanted[at]);
    EXPECT_EQ(parting.stored_tokens.front(), stored[at]);
    EXPECT_EQ(parting.shared_tokens.back(), stored[at - 1]);
    EXPECT_EQ(parting.ended_in == name, at > 512) << at;
  }
}

TEST_F(DiskCatalogTest, ExplainsTheSameFromAPointThatIsKnownToBeStored) {
  const Tokens stored = some_tokens(640, 24);
  write(stored);
  Tokens wanted = stored;
  wanted[600] = wanted[600] + 1;
  const MissExplanation whole = explain(wanted);
  for (const PrefixPoint& known : points_of(root_, first_of(stored, 512))) {
    const MissExplanation rest =
        explain_miss(*store_, root_, wanted, PayloadSizes{}.page_sizes(), known);
    EXPECT_EQ(rest.reason, MissReason::kParting);
    EXPECT_EQ(rest.hit_tokens, 600);
    EXPECT_EQ(rest.shared_tokens, whole.shared_tokens);
    EXPECT_EQ(rest.wanted_tokens, whole.wanted_tokens);
    EXPECT_EQ(rest.stored_tokens, whole.stored_tokens);
    EXPECT_EQ(rest.ended_in, whole.ended_in);
  }
}

TEST_F(DiskCatalogTest, ExplainsARequestThatIsTheBeginningOfAStoredOne) {
  write(common_);
  const MissExplanation whole = explain(first_of(common_, 200));
  EXPECT_EQ(whole.reason, MissReason::kNone);
  EXPECT_EQ(whole.hit_tokens, 200);
}

TEST_F(DiskCatalogTest, ExplainsWhatWasRemoved) {
  const Tokens tokens = joined(common_, some_tokens(40, 19));
  const PageName name = write(tokens);
  const PageName other = write(joined(first_of(common_, 256), some_tokens(200, 20)));
  ASSERT_TRUE(remove_prefix(*store_, name));
  const MissExplanation removed = explain(tokens);
  EXPECT_EQ(removed.reason, MissReason::kRemoved);
  EXPECT_EQ(removed.hit_tokens, 256);
  EXPECT_GT(removed.seconds, 0);
  ASSERT_TRUE(remove_prefix(*store_, other));
  const Tokens tail = some_tokens(60, 21);
  ASSERT_TRUE(remove_prefix(*store_, write(tail)));
  EXPECT_EQ(explain(joined(tail, some_tokens(90, 22))).reason, MissReason::kRemoved)
      << "a tail, of which the request does not say where it ended";
}

TEST_F(DiskCatalogTest, ExplainsWhatWasDamaged) {
  const Tokens tokens = some_tokens(128, 23);
  write(tokens);
  store_ = nullptr;
  damage("rows");
  store_ = open_store(folder_.path());
  ASSERT_EQ(verify_stored(*store_, Repair::kDropDamaged, {}).value().damaged, 1);
  EXPECT_EQ(explain(tokens).reason, MissReason::kDamaged);
}

TEST_F(DiskCatalogTest, ExplainsAnotherTenantAndAnotherModel) {
  write(common_, {}, "somebody");
  const MissExplanation tenant = explain(common_);
  EXPECT_EQ(tenant.reason, MissReason::kOtherTenant);
  EXPECT_EQ(tenant.hit_tokens, 0);
  ASSERT_TRUE(tenant.other_root);
  EXPECT_EQ(tenant.other_root->identity.tenant, "somebody");
  EXPECT_EQ(explain(first_of(common_, 60)).reason, MissReason::kOtherTenant);
  RootLabel wide = root_;
  wide.identity.numerics_mode = "wide";
  wide.root = root_name(store_->secret(), wide.identity);
  const MissExplanation model = explain_miss(*store_, wide, common_, PayloadSizes{}.page_sizes());
  EXPECT_EQ(model.reason, MissReason::kOtherModel);
  EXPECT_EQ(model.other_root->identity.numerics_mode, "reference");
}

TEST_F(DiskCatalogTest, KeepsTheLastMissesNewestFirst) {
  write(common_);
  Tokens wanted = common_;
  wanted[300] += 1;
  for (std::int64_t i = 1; i <= 70; ++i) {
    record_miss(*store_, {.root = root_,
                          .prompt_tokens = i,
                          .seconds = static_cast<double>(1'000 + i),
                          .explanation = explain(wanted)});
  }
  store_ = nullptr;
  store_ = open_store(folder_.path());
  const std::vector<RecordedMiss> misses = recorded_misses(*store_);
  ASSERT_EQ(misses.size(), 64U);
  EXPECT_EQ(misses.front().prompt_tokens, 70);
  EXPECT_EQ(misses.back().prompt_tokens, 7);
  EXPECT_EQ(misses.front().seconds, 1'070);
  EXPECT_EQ(misses.front().root.root, root_.root);
  EXPECT_EQ(misses.front().root.model, "test model");
  const MissExplanation& kept = misses.front().explanation;
  EXPECT_EQ(kept.reason, MissReason::kParting);
  EXPECT_EQ(kept.hit_tokens, 300);
  EXPECT_EQ(kept.wanted_tokens, explain(wanted).wanted_tokens);
  EXPECT_EQ(kept.stored_tokens, explain(wanted).stored_tokens);
  EXPECT_EQ(kept.shared_tokens, explain(wanted).shared_tokens);
  EXPECT_EQ(kept.ended_in, explain(wanted).ended_in);
}

}  // namespace
}  // namespace locket::cache
