// locket run, several times over the same memory.
#include <nlohmann/json.hpp>

#include "cli/text_table.h"
#include "tests/cli/program_cases.h"

namespace locket::cli {
namespace {

using test_support::ProgramResult;
using test_support::run_program;
using test_support::TempFolder;
using test_support::TerminalProgram;

std::string long_prompt() {
  std::string text = "My cat is called Milo.";
  for (int i = 0; i < 150; ++i) text += " The farmer painted the old house.";
  return text;
}

class RememberTest : public testing::Test {
 protected:
  std::vector<std::string> arguments(std::vector<std::string> more) const {
    std::vector<std::string> all = {"run",         mini_folder(), "-p",
                                    long_prompt(), "--memory",    (folder_ / "memory").string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  nlohmann::json run(std::vector<std::string> more = {}) const {
    more.push_back("--json");
    const ProgramResult result = run_program(arguments(std::move(more)));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_EQ(result.errors, "");
    return nlohmann::json::parse(result.output);
  }

  TempFolder folder_;
};

TEST_F(RememberTest, TheSecondRunReadsFromDiskAndSaysTheSame) {
  const nlohmann::json first = run();
  const nlohmann::json& cold = first.at("memory");
  const std::int64_t prompt = first.at("prompt_tokens");
  EXPECT_EQ(cold.size(), 8U);
  EXPECT_EQ(cold.at("prompt_tokens"), prompt);
  EXPECT_EQ(cold.at("hit_tokens"), 0);
  EXPECT_EQ(cold.at("computed_tokens"), prompt);
  EXPECT_EQ(cold.at("replayed_tokens"), 0);
  for (int time = 0; time < 2; ++time) {
    const nlohmann::json again = run();
    const nlohmann::json& memory = again.at("memory");
    EXPECT_EQ(again.at("token_ids"), first.at("token_ids"));
    EXPECT_EQ(again.at("content"), first.at("content"));
    EXPECT_GE(memory.at("hit_tokens"), prompt - 256);
    EXPECT_EQ(memory.at("hit_tokens_disk"), memory.at("hit_tokens"));
    EXPECT_EQ(memory.at("hit_tokens_ram"), 0);
    EXPECT_EQ(memory.at("computed_tokens").get<std::int64_t>() +
                  memory.at("hit_tokens").get<std::int64_t>(),
              prompt);
    EXPECT_GT(memory.at("replayed_tokens"), 0);
    EXPECT_LT(memory.at("replayed_tokens"), 256);
    EXPECT_GT(memory.at("restore_ms"), 0.0);
    EXPECT_EQ(memory.at("retries"), 0);
  }
}

TEST_F(RememberTest, AnotherModeIsAnotherMemory) {
  run();
  EXPECT_EQ(run({"--mode", "wide"}).at("memory").at("hit_tokens"), 0);
  EXPECT_GT(run({"--replay", "full"}).at("memory").at("hit_tokens"), 0)
      << "what the decoder replays changes no row";
}

TEST_F(RememberTest, ATerminalIsToldHowMuchWasRemembered) {
  const std::uint64_t prompt = run().at("prompt_tokens");
  TerminalProgram program(arguments({}));
  ASSERT_TRUE(program.wait_for(" prompt tokens remembered")) << program.screen();
  EXPECT_EQ(program.wait_for_end(), 0);
  const std::string& screen = program.screen();
  const std::size_t begin = screen.rfind('[');
  ASSERT_NE(begin, std::string::npos);
  expect_parts(screen.substr(begin), {" of " + grouped(prompt) + " prompt tokens remembered"});
  EXPECT_FALSE(screen.substr(begin).starts_with("[0 of")) << screen;
}

TEST_F(RememberTest, ASmallQuotaIsKept) {
  const nlohmann::json first = run({"--memory-quota", "64K"});
  EXPECT_EQ(run({"--memory-quota", "64K"}).at("token_ids"), first.at("token_ids"));
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "memory")) {
    if (entry.path().extension() == ".seg") bytes += entry.file_size();
  }
  EXPECT_LE(bytes, std::uint64_t{64} << 10);
}

TEST_F(RememberTest, ADamagedMemoryIsComputedAgain) {
  const nlohmann::json first = run();
  std::size_t damaged = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "memory")) {
    if (entry.path().extension() != ".seg") continue;
    std::string bytes = read_whole_file(entry.path()).value();
    if (bytes.size() < 100) continue;
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    ASSERT_TRUE(write_whole_file(entry.path(), std::as_bytes(std::span(bytes))));
    std::filesystem::permissions(
        entry.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    ++damaged;
  }
  ASSERT_GE(damaged, 2U);
  const ProgramResult result = run_program(arguments({"--json"}));
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  const auto again = nlohmann::json::parse(result.output);
  EXPECT_EQ(again.at("token_ids"), first.at("token_ids"));
  EXPECT_LT(again.at("memory").at("hit_tokens"), first.at("prompt_tokens"));
  EXPECT_EQ(run().at("token_ids"), first.at("token_ids"));
}

}  // namespace
}  // namespace locket::cli
