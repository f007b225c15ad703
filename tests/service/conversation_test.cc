// Conversations with names: what is kept, who may open it, and files that cannot be trusted.
#include "service/conversation.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "tests/support/checkpoint_files.h"

namespace locket::service {
namespace {

namespace fs = std::filesystem;
using test_support::TempFolder;

Conversation sample() {
  Conversation conversation = {.model = "mini",
                               .system = "Be kind.\n\"Always.\"",
                               .thinking = chat::ThinkingMode::kThinking,
                               .effort = 37};
  chat::Message answer = chat::text_message(chat::Role::kAssistant, "Hallo, Grüße! 😀");
  answer.reasoning = "They greet me.\n";
  conversation.messages = {chat::text_message(chat::Role::kUser, "Hello\t!"), answer};
  return conversation;
}

class ConversationTest : public testing::Test {
 protected:
  void SetUp() override { fs::permissions(folder_.path(), fs::perms::owner_all); }

  Result<ConversationFile> open(const std::string& name) const {
    return ConversationFile::open(folder_.path(), name);
  }
  fs::path file_of(const std::string& name) const {
    return folder_ / "conversations" / (to_hex(sha256(std::as_bytes(std::span(name)))) + ".json");
  }
  // "a" as it was just saved.
  void write_sample() const {
    fs::remove(file_of("a"));
    EXPECT_TRUE(open("a").value().save(sample()));
  }
  // The error of opening a conversation whose file has this content instead.
  std::string fault_of(const std::string& content) const {
    write_sample();
    EXPECT_TRUE(write_whole_file(file_of("a"), std::as_bytes(std::span(content))));
    fs::permissions(file_of("a"), fs::perms::owner_read | fs::perms::owner_write);
    const auto opened = open("a");
    if (opened) return "opened";
    EXPECT_EQ(opened.error().code, ErrorCode::kBadMemory);
    EXPECT_NE(opened.error().message.find(file_of("a").string()), std::string::npos);
    EXPECT_EQ(read_whole_file(file_of("a")).value(), content) << "nothing is lost";
    return opened.error().message;
  }
  // The file of sample() with one text replaced.
  std::string changed(const std::string& from, const std::string& to) const {
    write_sample();
    std::string text = read_whole_file(file_of("a")).value();
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " is not in " << text;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  }

  TempFolder folder_;
};

TEST_F(ConversationTest, ComesBackAsItWasSaved) {
  const Conversation saved = sample();
  {
    auto file = open("trip to Rome").value();
    EXPECT_TRUE(file.stored().messages.empty());
    EXPECT_EQ(file.stored().last_use, 0.0);
    ASSERT_TRUE(file.save(saved));
  }
  const auto file = open("trip to Rome").value();
  const Conversation& stored = file.stored();
  EXPECT_EQ(stored.name, "trip to Rome");
  EXPECT_EQ(stored.model, saved.model);
  EXPECT_EQ(stored.system, saved.system);
  EXPECT_EQ(stored.thinking, saved.thinking);
  EXPECT_EQ(stored.effort, saved.effort);
  EXPECT_GT(stored.last_use, 0.0);
  ASSERT_EQ(stored.turns(), 1U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(stored.messages[i].role, saved.messages[i].role);
    EXPECT_EQ(stored.messages[i].content[0].text, saved.messages[i].content[0].text);
    EXPECT_EQ(stored.messages[i].reasoning, saved.messages[i].reasoning);
  }
}

TEST_F(ConversationTest, TheFileIsPrivateAndDoesNotShowTheName) {
  const std::string name = "../../etc/passwd";
  auto file = open(name).value();
  ASSERT_TRUE(file.save(sample()));
  EXPECT_EQ(file.path(), file_of(name));
  EXPECT_EQ(fs::status(file_of(name)).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  for (const auto& entry : fs::directory_iterator(folder_ / "conversations")) {
    EXPECT_EQ(entry.path().filename().string().find("passwd"), std::string::npos);
    EXPECT_FALSE(entry.path().string().ends_with(".part")) << entry.path();
  }
}

TEST_F(ConversationTest, IsOpenInOneProcessAtATime) {
  const auto first = open("a").value();
  const auto second = open("a");
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kOverloaded);
  EXPECT_NE(second.error().message.find("process " + std::to_string(::getpid())), std::string::npos)
      << second.error().message;
  EXPECT_TRUE(open("b").has_value());
}

TEST_F(ConversationTest, ADamagedFileIsAnErrorAndStays) {
  EXPECT_NE(fault_of("").find("parse error"), std::string::npos);
  EXPECT_NE(fault_of("{\"format\": 1").find("parse error"), std::string::npos);
  EXPECT_NE(fault_of("[]").find("type"), std::string::npos);
  EXPECT_NE(fault_of("{}").find("format"), std::string::npos);
  const std::vector<std::array<std::string, 3>> rows = {
      {"\"format\": 1", "\"format\": 2", "this program knows 1"},
      {"\"format\": 1", "\"format\": \"1\"", "this program knows 1"},
      {"\"name\": \"a\"", "\"name\": \"b\"", "another name"},
      {"\"effort\": 37", "\"effort\": 0", "1 to 100"},
      {"\"effort\": 37", "\"effort\": 3.5", "1 to 100"},
      {"\"effort\": 37", "\"effort\": 18446744073709551615", "1 to 100"},
      {"\"thinking\": true", "\"thinking\": 1", "boolean"},
      {"\"role\": \"user\"", "\"role\": \"system\"", "messages[0].role"},
      {"\"role\": \"assistant\"", "\"role\": \"user\"", "messages[1].role"},
      {"\"content\": \"Hello", "\"contents\": \"Hello", "content"},
      {"Grüße",
       "Gr\xFC\xDF"
       "e",
       "UTF-8"},
      {"\"reasoning\": \"They", "\"reasoning\": [], \"x\": \"They", "string"}};
  for (const auto& [from, to, part] : rows) {
    const std::string message = fault_of(changed(from, to));
    EXPECT_NE(message.find(part), std::string::npos) << to << ": " << message;
  }
}

TEST_F(ConversationTest, AnAnswerThatIsMissingIsADamage) {
  std::string text =
      changed("\"messages\": [", "\"messages\": [{\"role\": \"user\", \"content\": \"x\"},");
  EXPECT_NE(fault_of(text).find("each with its answer"), std::string::npos);
}

TEST_F(ConversationTest, LinksAndOpenFilesAreNotRead) {
  fs::create_directory(folder_ / "conversations");
  fs::permissions(folder_ / "conversations", fs::perms::owner_all);
  fs::create_symlink("/etc/passwd", file_of("a"));
  EXPECT_NE(open("a").error().message.find("is a link"), std::string::npos);
  ASSERT_TRUE(open("b").value().save(sample()));
  fs::permissions(file_of("b"), fs::perms::group_read, fs::perm_options::add);
  EXPECT_NE(open("b").error().message.find("is open to others"), std::string::npos);
}

TEST_F(ConversationTest, WhatIsNotUtf8IsRefusedAndTheFileStays) {
  auto file = open("a").value();
  ASSERT_TRUE(file.save(sample()));
  const std::string before = read_whole_file(file_of("a")).value();
  Conversation broken = sample();
  broken.messages[0].content[0].text = "\xFF";
  const Status status = file.save(broken);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kBadRequest);
  EXPECT_EQ(read_whole_file(file_of("a")).value(), before);
}

TEST_F(ConversationTest, NamesAreShortTextsWithoutControlCharacters) {
  for (const std::string& name :
       {std::string("a"), std::string("Grüße 😀"), std::string(200, 'x'), std::string("a/b")}) {
    EXPECT_TRUE(check_conversation_name(name)) << name;
  }
  for (const std::string& name :
       {std::string(), std::string(201, 'x'), std::string("a\nb"), std::string("\x1b[31m"),
        std::string("\x7f"), std::string("\xFF"), std::string("a\0b", 3)}) {
    EXPECT_FALSE(check_conversation_name(name)) << testing::PrintToString(name);
    EXPECT_FALSE(open(name).has_value());
  }
}

TEST_F(ConversationTest, AreListedLastUsedFirst) {
  EXPECT_TRUE(list_conversations(folder_ / "nowhere").value().conversations.empty());
  for (const char* name : {"one", "two", "three"}) {
    ASSERT_TRUE(open(name).value().save(sample()));
  }
  ASSERT_TRUE(open("one").value().save(sample()));
  folder_.write("conversations/notes.txt", "mine");
  std::string damaged = "{";
  ASSERT_TRUE(write_whole_file(file_of("two"), std::as_bytes(std::span(damaged))));
  fs::permissions(file_of("two"), fs::perms::owner_read | fs::perms::owner_write);
  const ConversationList list = list_conversations(folder_.path()).value();
  ASSERT_EQ(list.conversations.size(), 2U);
  EXPECT_EQ(list.conversations[0].name, "one");
  EXPECT_EQ(list.conversations[1].name, "three");
  ASSERT_EQ(list.unreadable.size(), 1U);
  EXPECT_NE(list.unreadable[0].find(file_of("two").string()), std::string::npos);
}

}  // namespace
}  // namespace locket::service
