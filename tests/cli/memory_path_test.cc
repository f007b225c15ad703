// Where the memory on disk is looked for, and what is done where it cannot be.
#include "cli/memory_path.h"

#include "tests/cli/program_cases.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;
using Source = MemoryChoice::Source;
using test_support::ProgramCall;
using test_support::ProgramResult;
using test_support::run_program;
using test_support::TempFolder;

TEST(MemoryPathTest, TheOptionCountsBeforeTheEnvironmentBeforeTheDefault) {
  MemorySearch search = {
      .option = "a", .environment = "b", .cache_home = "/cache", .home = "/home/me"};
  EXPECT_EQ(find_memory(search).directory, "a");
  EXPECT_EQ(find_memory(search).source, Source::kOption);
  search.option.clear();
  EXPECT_EQ(find_memory(search).directory, "b");
  EXPECT_EQ(find_memory(search).source, Source::kEnvironment);
  search.environment.clear();
  EXPECT_EQ(find_memory(search).directory, "/cache/locket/memory");
  EXPECT_EQ(find_memory(search).source, Source::kDefault);
  search.cache_home = "relative";
  EXPECT_EQ(find_memory(search).directory, "/home/me/.cache/locket/memory");
}

TEST(MemoryPathTest, OffIsOffAndSaysWhoSaidSo) {
  const MemoryChoice option = find_memory({.option = "off", .environment = "b"});
  EXPECT_TRUE(option.is_off);
  EXPECT_EQ(option.directory, "");
  EXPECT_EQ(option.why_off, "--memory is off");
  EXPECT_EQ(find_memory({.environment = "off", .home = "/home/me"}).why_off,
            "LOCKET_MEMORY is off");
  EXPECT_FALSE(find_memory({.option = "./off"}).is_off) << "a folder of that name";
}

TEST(MemoryPathTest, WithoutAHomeThereIsNone) {
  for (const char* home : {"", "relative"}) {
    const MemoryChoice choice = find_memory({.home = home});
    EXPECT_TRUE(choice.is_off);
    EXPECT_EQ(choice.source, Source::kDefault);
    EXPECT_NE(choice.why_off.find("HOME"), std::string::npos) << choice.why_off;
  }
}

// A slash at the end would follow a link.
TEST(MemoryPathTest, SlashesAtTheEndAreLeftOut) {
  EXPECT_EQ(find_memory({.option = "/a/b//"}).directory, "/a/b");
  EXPECT_EQ(find_memory({.option = "a/./b/"}).directory, "a/b");
  EXPECT_EQ(find_memory({.option = "/"}).directory, "/");
}

TEST(MemoryPathTest, PreparesAPrivateFolderAndRefusesOthers) {
  const TempFolder folder;
  const auto prepare = [](const fs::path& path) {
    return prepare_memory_folder(find_memory({.option = path.string()}));
  };
  ASSERT_TRUE(prepare(folder / "a/b/memory"));
  EXPECT_EQ(fs::status(folder / "a/b/memory").permissions(), fs::perms::owner_all);
  EXPECT_TRUE(prepare(folder / "a/b/memory/"));
  fs::create_directory_symlink(folder / "a/b/memory", folder / "link");
  fs::create_directory(folder / "open");
  fs::permissions(folder / "open", fs::perms::owner_all | fs::perms::group_read);
  folder.write("file", "mine");
  for (const char* name : {"link", "open", "file"}) {
    for (const char* end : {"", "/"}) {
      const Status status = prepare((folder / name).string() + end);
      ASSERT_FALSE(status.has_value()) << name;
      EXPECT_EQ(status.error().code, ErrorCode::kBadMemory) << status.error().message;
      EXPECT_NE(status.error().message.find("(--memory)"), std::string::npos);
    }
  }
}

TEST(MemoryPathTest, TheQuotaIsATenthOfWhatIsFreeAtMost64GiB) {
  const TempFolder folder;
  const std::uint64_t quota = default_memory_quota(folder.path());
  EXPECT_GT(quota, 0U);
  EXPECT_LE(quota, std::uint64_t{64} << 30);
  EXPECT_LE(quota, fs::space(folder.path()).capacity / 10);
  EXPECT_EQ(default_memory_quota("/nowhere/at/all"), std::uint64_t{1} << 30);
}

// A run of the program with the given environment in place of a memory that is off.
ProgramResult run_with(std::map<std::string, std::string> environment,
                       std::vector<std::string> more = {}) {
  environment.try_emplace("LOCKET_MEMORY", "");
  std::vector<std::string> arguments = {"run", mini_folder(), "-p", "Hello!"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program({.arguments = std::move(arguments), .environment = std::move(environment)});
}

TEST(MemoryPlaceTest, TheDefaultIsInTheUsersCache) {
  const TempFolder folder;
  EXPECT_EQ(run_with({{"XDG_CACHE_HOME", (folder / "cache").string()}}).errors, "");
  EXPECT_TRUE(fs::exists(folder / "cache/locket/memory/secret"));
  EXPECT_EQ(run_with({{"XDG_CACHE_HOME", ""}, {"HOME", (folder / "home").string()}}).errors, "");
  EXPECT_TRUE(fs::exists(folder / "home/.cache/locket/memory/secret"));
}

TEST(MemoryPlaceTest, TheEnvironmentAndTheOptionNameAFolder) {
  const TempFolder folder;
  const std::string named = (folder / "a").string();
  EXPECT_EQ(run_with({{"LOCKET_MEMORY", named}}).errors, "");
  EXPECT_TRUE(fs::exists(folder / "a/secret"));
  EXPECT_EQ(run_with({{"LOCKET_MEMORY", named}}, {"--memory", (folder / "b").string()}).errors, "");
  EXPECT_TRUE(fs::exists(folder / "b/secret"));
}

TEST(MemoryPlaceTest, OffWritesNothing) {
  const TempFolder folder;
  EXPECT_EQ(run_with({{"XDG_CACHE_HOME", folder.path().string()}}, {"--memory", "off"}).errors, "");
  EXPECT_TRUE(fs::is_empty(folder.path()));
  EXPECT_EQ(run_with({{"LOCKET_MEMORY", (folder / "a").string()}}, {"--mode", "plain"}).exit_code,
            0);
  EXPECT_FALSE(fs::exists(folder / "a/secret")) << "plain never touches the disk";
}

TEST(MemoryPlaceTest, WithoutAUsableDefaultItWarnsAndGoesOn) {
  const TempFolder folder;
  folder.write("file", "mine");
  const std::vector<std::map<std::string, std::string>> environments = {
      {{"XDG_CACHE_HOME", ""}, {"HOME", ""}},
      {{"XDG_CACHE_HOME", (folder / "file").string()}},
      {{"XDG_CACHE_HOME", "/proc"}}};
  for (const auto& environment : environments) {
    const ProgramResult result = run_with(environment);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(lines_of(result.output).size(), 1U);
    EXPECT_EQ(lines_of(result.errors).size(), 1U) << result.errors;
    expect_parts(result.errors, {"warning nothing is remembered after the program ends: "});
  }
}

TEST(MemoryPlaceTest, APlaceThatWasAskedForMustWork) {
  const TempFolder folder;
  folder.write("file", "mine");
  const std::string file = (folder / "file").string();
  expect_failure(run_with({}, {"--memory", file}), {"bad_memory", file, "not a folder"});
  expect_failure(run_with({{"LOCKET_MEMORY", file}}), {"bad_memory", file, "LOCKET_MEMORY"});
  expect_failure(run_with({}, {"--memory", "/proc/x"}), {"io", "/proc/x", "--memory"});
}

}  // namespace
}  // namespace locket::cli
