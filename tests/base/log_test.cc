#include "base/log.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>

#include "base/file.h"

namespace locket {
namespace {

// Lines are caught at stderr, in one style; text again afterwards.
class LogTest : public testing::Test {
 protected:
  void SetUp() override { testing::internal::CaptureStderr(); }
  void TearDown() override {
    set_log_style(LogStyle::kText);
    set_log_level(LogLevel::kInfo);
  }
  static std::string printed() { return testing::internal::GetCapturedStderr(); }
};

TEST_F(LogTest, TextLinesHaveALevel) {
  log_warning("the disk is {full}");
  EXPECT_NE(printed().find("warning the disk is {full}\n"), std::string::npos);
}

TEST_F(LogTest, JsonLinesAreObjectsWhateverTheTextHolds) {
  set_log_style(LogStyle::kJson);
  const std::string text =
      "a \"quote\", a \\, a\nline, a \x01, 中文 and \xFF\xC0\x80\xED\xA0\x80 {}";
  log_error(text);
  const std::string line = printed();
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto json = nlohmann::json::parse(line, nullptr, false);
  ASSERT_TRUE(json.is_object()) << line;
  EXPECT_EQ(json["level"], "error");
  const std::string replaced = "\xEF\xBF\xBD";
  std::string expected = text.substr(0, text.find('\xFF'));
  for (int i = 0; i < 6; ++i) expected += replaced;
  EXPECT_EQ(json["message"], expected + " {}");
  const std::string time = json["time"];
  EXPECT_EQ(time.size(), std::string("2026-11-30T00:00:00.000Z").size()) << time;
  EXPECT_EQ(time.back(), 'Z');
}

TEST_F(LogTest, LevelsThatAreOffPrintNothing) {
  set_log_style(LogStyle::kJson);
  set_log_level(LogLevel::kWarning);
  log_info("quiet");
  log_record("quiet", R"({"a":1})");
  EXPECT_EQ(printed(), "");
}

TEST_F(LogTest, ARecordIsALineOfTextOrTheMembersOfAnObject) {
  log_record("three apples", R"({"apples":3})");
  set_log_style(LogStyle::kJson);
  log_record("three apples", R"({"apples":3,"name":"x"})");
  const std::string lines = printed();
  const std::size_t end = lines.find('\n');
  EXPECT_NE(lines.substr(0, end).find("info three apples"), std::string::npos);
  const auto json = nlohmann::json::parse(lines.substr(end + 1), nullptr, false);
  ASSERT_TRUE(json.is_object()) << lines;
  EXPECT_EQ(json["apples"], 3);
  EXPECT_EQ(json["level"], "info");
  EXPECT_FALSE(json.contains("message"));
}

// Last, since lines go to the file from then on.
TEST_F(LogTest, WritesToTheEndOfAFile) {
  const auto path =
      std::filesystem::temp_directory_path() / ("locket_log_" + std::to_string(::getpid()));
  const std::string earlier = "earlier\n";
  ASSERT_TRUE(write_whole_file(path, std::as_bytes(std::span(earlier))));
  const Status refused = log_to_file(path / "below_a_file");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  EXPECT_NE(refused.error().message.find("below_a_file"), std::string::npos);
  ASSERT_TRUE(log_to_file(path));
  log_info("later");
  EXPECT_EQ(printed(), "");
  const Result<std::string> content = read_whole_file(path);
  ASSERT_TRUE(content);
  EXPECT_TRUE(content->starts_with("earlier\n"));
  EXPECT_NE(content->find("info later\n"), std::string::npos) << *content;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace locket
