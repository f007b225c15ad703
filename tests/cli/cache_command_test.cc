// locket cache, as a user calls it.
#include <nlohmann/json.hpp>

#include "tests/cli/program_cases.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test_support::ProgramResult;
using test_support::run_program;
using test_support::TempFolder;

class CacheCommandTest : public testing::Test {
 protected:
  CacheCommandTest() {
    write_request("cat.json", "My cat is called Milo. What is a cat?");
    write_request("dog.json", "My dog is called Rex. What is a dog?");
  }

  void write_request(const std::string& file, const std::string& question) const {
    std::string system = "You are a careful helper.";
    for (int i = 0; i < 40; ++i) system += " The farmer painted the old house.";
    folder_.write(file, json{{"messages",
                              {{{"role", "system"}, {"content", system}},
                               {{"role", "user"}, {"content", question}}}}}
                            .dump());
  }

  std::string memory() const { return (folder_ / "memory").string(); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

  ProgramResult call(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "cache");
    return run_program(
        {.arguments = std::move(arguments),
         .environment = {{"LOCKET_MODEL", mini_folder()}, {"LOCKET_MEMORY", memory()}}});
  }
  std::string text_of(std::vector<std::string> arguments) const {
    const ProgramResult result = call(std::move(arguments));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_EQ(result.errors, "");
    return result.output;
  }
  json json_of(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const std::string text = text_of(std::move(arguments));
    EXPECT_EQ(lines_of(text).size(), 1U) << text;
    return json::parse(text);
  }

  void prewarm() const { text_of({"prewarm", file("cat.json"), file("dog.json")}); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    const json list = json_of({"ls"});
    for (const json& prefix : list.at("prefixes")) names.push_back(prefix.at("name"));
    return names;
  }

  TempFolder folder_;
};

// What is pinned for everybody is there a second time, for a tenant that every other one reads.
TEST_F(CacheCommandTest, PinsAPrefixForEveryTenant) {
  text_of({"prewarm", file("cat.json")});
  const std::string name = names().front();
  const json pinned = json_of({"pin", "--public", name});
  EXPECT_EQ(pinned.at("public"), true);
  EXPECT_NE(pinned.at("name"), name);
  const json list = json_of({"ls", "--all"});
  bool is_there = false;
  for (const json& prefix : list.at("prefixes")) {
    if (prefix.at("name") != pinned.at("name")) continue;
    is_there = true;
    EXPECT_EQ(prefix.at("tenant"), "public");
    EXPECT_EQ(prefix.at("pinned"), true);
  }
  EXPECT_TRUE(is_there) << list.dump();
  EXPECT_EQ(call({"pin", "--public", "--off", name}).exit_code, 2);
  for (const auto& entry : fs::directory_iterator(memory())) {
    EXPECT_FALSE(entry.path().string().ends_with(".tmp")) << "a copy was left behind";
  }
}

TEST_F(CacheCommandTest, WrongUseIsToldWithWhatWouldBeRight) {
  struct WrongUse {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<WrongUse> cases = {
      {{}, "locket cache: one of its commands is required"},
      {{"forget"}, "locket cache: there is no command \"forget\""},
      {{"export", "-o", "x"}, "locket cache export: one of NAME, -p TEXT or --messages FILE"},
      {{"export", "ab", "-p", "Hi", "-o", "x"}, "locket cache export: one of NAME, -p TEXT"},
      {{"export", "ab"}, "locket cache export: --output is required"},
      {{"import"}, "locket cache import: FILE is required"},
      {{"prewarm"}, "locket cache prewarm: FILE is required"},
      {{"pin"}, "locket cache pin: NAME is required"},
      {{"rm"}, "locket cache rm: one of NAME and --all --yes is required"},
      {{"rm", "ab", "--all", "--yes"}, "locket cache rm: one of NAME and --all --yes"},
      {{"rm", "--all"}, "locket cache rm: --yes, since --all removes everything"},
      {{"why", "ab", "-p", "Hi"}, "locket cache why: more than one of NAME, -p TEXT"},
      {{"ls", "--mode", "wide"}, "locket cache ls: "},
      {{"why", "--mode", "plain"}, "locket cache why: --mode"},
  };
  for (const WrongUse& wrong : cases) {
    const ProgramResult result = call(wrong.arguments);
    EXPECT_EQ(result.exit_code, 2) << wrong.message;
    EXPECT_EQ(result.output, "");
    expect_parts(result.errors, {wrong.message, " --help explains the options"});
  }
  EXPECT_FALSE(fs::exists(memory()));
}

TEST_F(CacheCommandTest, EveryCommandExplainsItself) {
  expect_parts(text_of({"--help"}), {"ls ", "stat ", "verify ", "export ", "import ", "prewarm ",
                                     "pin ", "rm ", "why "});
  for (const char* command :
       {"ls", "stat", "verify", "export", "import", "prewarm", "pin", "rm", "why"}) {
    const std::string help = text_of({command, "--help"});
    expect_parts(help, {std::string("Usage: locket cache ") + command, "--memory DIR", "--json",
                        std::string("Example:\n  locket cache ") + command});
    for (const std::string& line : lines_of(help)) EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST_F(CacheCommandTest, WithoutAMemoryNothingIsMade) {
  for (const char* command : {"ls", "stat", "verify", "why"}) {
    expect_failure(call({command}), {"not_found", "nothing is remembered yet", memory()});
  }
  expect_failure(call({"rm", "--all", "--yes"}), {"not_found"});
  expect_failure(call({"ls", "--memory", "off"}), {"bad_request", "--memory DIR"});
  EXPECT_FALSE(fs::exists(memory()));
}

TEST_F(CacheCommandTest, PrewarmReadsPromptsThatListAndStatShow) {
  const std::vector<std::string> lines =
      lines_of(text_of({"prewarm", file("cat.json"), file("dog.json"), "--json"}));
  ASSERT_EQ(lines.size(), 2U);
  const json cat = json::parse(lines[0]);
  const json dog = json::parse(lines[1]);
  EXPECT_EQ(cat.at("hit_tokens"), 0);
  EXPECT_EQ(cat.at("computed_tokens"), cat.at("tokens"));
  EXPECT_GT(dog.at("hit_tokens"), 256) << "the same instructions";
  const json again = json_of({"prewarm", file("cat.json")});
  EXPECT_GE(again.at("hit_tokens").get<int>() + 1, cat.at("tokens").get<int>());

  const json list = json_of({"ls", "--all"});
  EXPECT_EQ(list.at("memory"), memory());
  ASSERT_EQ(list.at("prefixes").size(), 2U);
  const json& newest = list.at("prefixes")[0];
  EXPECT_GE(newest.at("last_use"), list.at("prefixes")[1].at("last_use"));
  EXPECT_EQ(newest.at("model"), "mini");
  EXPECT_EQ(newest.at("hits"), 1);
  EXPECT_LT(newest.at("own_bytes"), newest.at("bytes"));
  EXPECT_EQ(list.at("roots").size(), 1U);
  expect_parts(text_of({"ls"}),
               {"name", "tokens", newest.at("name").get<std::string>().substr(0, 12), "mini"});

  const json stat = json_of({"stat"});
  EXPECT_EQ(stat.at("bytes_per_token"), 106.0);
  EXPECT_GT(stat.at("snapshots"), 0);
  EXPECT_EQ(stat.at("unreachable_pages"), 0);
  EXPECT_GT(stat.at("quota_bytes"), 0);
  expect_parts(text_of({"stat"}), {"106.00  bytes a token", "mini, reference, revision 1"});
  EXPECT_EQ(json_of({"stat", "--memory-quota", "5M"}).at("quota_bytes"), 5 << 20);
}

TEST_F(CacheCommandTest, PrewarmNamesTheFileThatIsWrong) {
  folder_.write("wrong.json", "{\"messages\": 5}");
  expect_failure(call({"prewarm", file("wrong.json")}), {"wrong.json", "messages"});
  expect_failure(call({"prewarm", file("missing.json")}), {"not_found", "missing.json"});
}

TEST_F(CacheCommandTest, VerifyFindsDamageAndRepairsIt) {
  prewarm();
  EXPECT_EQ(json_of({"verify"}).at("damaged"), 0);
  for (const auto& entry : fs::directory_iterator(memory())) {
    if (!entry.path().filename().string().starts_with("rows")) continue;
    std::string bytes = read_whole_file(entry.path()).value();
    bytes[700] = static_cast<char>(bytes[700] ^ 4);
    ASSERT_TRUE(write_whole_file(entry.path(), std::as_bytes(std::span(bytes))));
    fs::permissions(entry.path(), fs::perms::owner_read | fs::perms::owner_write);
  }
  const ProgramResult found = call({"verify"});
  EXPECT_EQ(found.exit_code, 1);
  expect_parts(found.output, {"its rows are damaged", "1 damaged", "--repair"});
  EXPECT_EQ(call({"verify", "--repair"}).exit_code, 1);
  EXPECT_EQ(json_of({"verify"}).at("damaged"), 0);
  const json why = json_of({"why", "--messages", file("cat.json")});
  EXPECT_EQ(why.at("reason"), "damaged");
}

TEST_F(CacheCommandTest, PinsKeepAndRmFrees) {
  prewarm();
  const std::string first = names()[0].substr(0, 10);
  const std::string second = names()[1];
  EXPECT_EQ(json_of({"pin", first}).at("pinned"), true);
  expect_failure(call({"rm", first}), {"bad_request", "is pinned"});
  EXPECT_GT(json_of({"rm", second}).at("freed_bytes"), 0);
  EXPECT_EQ(names().size(), 1U);
  EXPECT_EQ(json_of({"pin", "--off", first}).at("pinned"), false);
  expect_failure(call({"pin", second}), {"not_found", second});
  expect_failure(call({"pin", "../secret"}), {"bad_request", "hexadecimal"});
  EXPECT_GT(json_of({"rm", "--all", "--yes"}).at("freed_bytes"), 0);
  EXPECT_TRUE(names().empty());
  EXPECT_EQ(json_of({"stat"}).at("pages"), 0);
  EXPECT_EQ(json_of({"why"}).at("misses").size(), 0U);
}

TEST_F(CacheCommandTest, WhyShowsTheTextWhereTokensPart) {
  prewarm();
  const json misses = json_of({"why"}).at("misses");
  ASSERT_EQ(misses.size(), 2U) << "the dog, and before it the empty memory";
  EXPECT_EQ(misses[0].at("reason"), "other_tokens");
  EXPECT_EQ(misses[1].at("reason"), "nothing_stored");
  expect_parts(misses[0].at("wanted").at("text"), {"dog is called Rex"});
  expect_parts(misses[0].at("stored").at("text"), {"cat is called Milo"});
  const std::string text = text_of({"why"});
  expect_parts(text, {"from there on other tokens are stored", "wanted  \" dog", "stored  \" cat"});
  const json of_one = json_of({"why", names()[0]}).at("misses");
  const json of_other = json_of({"why", names()[1]}).at("misses");
  EXPECT_EQ(of_one.size() + of_other.size(), 1U) << "the miss ended in one of both";

  write_request("cow.json", "My cow is called Bella.");
  const json cow = json_of({"why", "--messages", file("cow.json")});
  EXPECT_EQ(cow.at("reason"), "other_tokens");
  const json warmed = json_of({"prewarm", file("cow.json")});
  EXPECT_EQ(cow.at("computed_tokens"), warmed.at("computed_tokens"));
  EXPECT_EQ(cow.at("hit_tokens"), warmed.at("hit_tokens"));
  const json wide = json_of({"why", "--messages", file("cow.json"), "--mode", "wide"});
  EXPECT_EQ(wide.at("reason"), "other_model");
  EXPECT_EQ(wide.at("other_numerics_mode"), "reference");
  expect_parts(text_of({"why", "-p", "Hello"}), {"are stored", "the next request computes"});
  expect_parts(text_of({"why", "--messages", file("cow.json")}),
               {"everything is there that can be"});
}

TEST_F(CacheCommandTest, WhyWithoutTheModelShowsIds) {
  prewarm();
  const json miss = json_of({"why", "--model", tiny_folder("micro")}).at("misses")[0];
  EXPECT_FALSE(miss.at("wanted").contains("text"));
  EXPECT_GT(miss.at("wanted").at("ids").size(), 0U);
}

TEST_F(CacheCommandTest, AnExportedPrefixIsImportedElsewhere) {
  prewarm();
  const json sent = json_of({"export", "--messages", file("cat.json"), "-o", file("cat.st")});
  EXPECT_EQ(sent.at("file"), file("cat.st"));
  EXPECT_EQ(
      json_of({"export", sent.at("name").get<std::string>().substr(0, 12), "-o", file("same.st")})
          .at("bytes"),
      sent.at("bytes"));
  EXPECT_EQ(read_whole_file(file("same.st")).value(), read_whole_file(file("cat.st")).value());

  const std::string elsewhere = file("elsewhere");
  const json received = json_of({"import", file("cat.st"), "--memory", elsewhere});
  EXPECT_EQ(received.at("tokens"), sent.at("tokens"));
  EXPECT_EQ(received.at("pages_left_out"), 0);
  EXPECT_NE(received.at("name"), sent.at("name"));
  const json warmed = json_of({"prewarm", file("cat.json"), "--memory", elsewhere});
  EXPECT_EQ(warmed.at("hit_tokens"), sent.at("tokens"));

  expect_failure(call({"import", file("cat.st"), "--mode", "wide", "--memory", elsewhere}),
                 {"bad_memory", "cat.st", "numerics_mode is reference, here it is wide"});
  expect_failure(
      call({"import", file("cat.st"), "--model", tiny_folder("micro"), "--memory", elsewhere}),
      {"bad_memory", "model_identity", "another model's"});
  expect_failure(call({"export", "-p", "Never seen", "-o", file("x.st")}),
                 {"not_found", "locket cache prewarm"});
  expect_failure(call({"export", names()[0], "-o", file("no/x.st")}), {"io", "no/x.st"});
  EXPECT_FALSE(fs::exists(file("x.st")));
}

// Whatever clients and people call things, names of files come from the program.
TEST_F(CacheCommandTest, NoNameOfAFileComesFromText) {
  write_request("strange.json", "../../escape\n\x1b[31m%2e%2e/\u0000");
  text_of({"prewarm", file("strange.json")});
  for (const auto& entry : fs::recursive_directory_iterator(memory())) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(name.find("escape"), std::string::npos);
  }
  EXPECT_FALSE(fs::exists(folder_ / "escape"));
  EXPECT_EQ(call({"why"}).output.find('\x1b'), std::string::npos);
  EXPECT_EQ(call({"ls"}).output.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace locket::cli
