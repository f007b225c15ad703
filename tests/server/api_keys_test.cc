#include "server/api_keys.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace locket::server {
namespace {

using Outcome = KeyCheck::Outcome;

HttpRequest request_with(HttpHeaders headers) {
  HttpRequest request;
  request.method = "POST";
  request.path = "/v1/chat/completions";
  request.headers = std::move(headers);
  return request;
}

HttpRequest bearer(const std::string& key) {
  return request_with({{"Authorization", "Bearer " + key}});
}

// A file with this mode, removed afterwards.
class KeyFile {
 public:
  KeyFile(const std::string& text, std::filesystem::perms mode)
      : path_(std::filesystem::temp_directory_path() /
              ("locket_keys_" + std::to_string(::getpid()))) {
    EXPECT_TRUE(write_whole_file(path_, std::as_bytes(std::span(text))));
    std::filesystem::permissions(path_, mode);
  }
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;
  ~KeyFile() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

constexpr auto kPrivate = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;

TEST(ApiKeysTest, EverybodyIsAllowedWithoutKeys) {
  const ApiKeys keys;
  EXPECT_EQ(keys.size(), 0U);
  const KeyCheck check = keys.check_client(bearer("whatever"));
  EXPECT_EQ(check.outcome, Outcome::kAllowed);
  EXPECT_EQ(check.name, "");
}

TEST(ApiKeysTest, TheNameOfTheKeyIsTheCaller) {
  ApiKeys keys;
  ASSERT_TRUE(keys.add_list("ann:sk-1, bob:sk-2", "--api-key"));
  EXPECT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys.check_client(bearer("sk-1")).name, "ann");
  EXPECT_EQ(keys.check_client(bearer("sk-2")).name, "bob");
  EXPECT_EQ(keys.check_client(request_with({{"X-Api-Key", "sk-2"}})).name, "bob");
}

TEST(ApiKeysTest, AuthorizationWinsOverTheOtherHeader) {
  ApiKeys keys;
  ASSERT_TRUE(keys.add_list("ann:sk-1,bob:sk-2", "--api-key"));
  const auto both = request_with({{"x-api-key", "sk-1"}, {"authorization", "bearer sk-2"}});
  EXPECT_EQ(keys.check_client(both).name, "bob");
  const auto wrong = request_with({{"x-api-key", "sk-1"}, {"authorization", "Bearer sk-3"}});
  EXPECT_EQ(keys.check_client(wrong).outcome, Outcome::kWrong);
  const auto other_scheme = request_with({{"x-api-key", "sk-1"}, {"authorization", "Basic abc"}});
  EXPECT_EQ(keys.check_client(other_scheme).name, "ann");
}

TEST(ApiKeysTest, SaysWhatIsMissingAndNeverShowsAKey) {
  ApiKeys keys;
  ASSERT_TRUE(keys.add_list("sk-right", "--api-key"));
  const KeyCheck missing = keys.check_client(request_with({{"Authorization", "Bearer"}}));
  EXPECT_EQ(missing.outcome, Outcome::kMissing);
  EXPECT_NE(missing.message.find("Authorization: Bearer"), std::string::npos);
  for (const std::string key : {"sk-righ", "sk-right2", "SK-RIGHT", "sk-wrong"}) {
    const KeyCheck wrong = keys.check_client(bearer(key));
    EXPECT_EQ(wrong.outcome, Outcome::kWrong) << key;
    EXPECT_EQ(wrong.name, "");
    EXPECT_NE(wrong.message.find("Incorrect API key"), std::string::npos);
    EXPECT_EQ(wrong.message.find(key), std::string::npos);
  }
}

TEST(ApiKeysTest, AKeyAloneIsNamedAfterItselfInAnyOrder) {
  ApiKeys first;
  ApiKeys second;
  ASSERT_TRUE(first.add_list("sk-1,sk-2", "--api-key"));
  ASSERT_TRUE(second.add_list("sk-2,sk-1", "--api-key"));
  const std::string name = first.check_client(bearer("sk-1")).name;
  EXPECT_EQ(name.size(), 16U) << name;
  EXPECT_EQ(second.check_client(bearer("sk-1")).name, name);
  EXPECT_NE(first.check_client(bearer("sk-2")).name, name);
}

TEST(ApiKeysTest, TakesDigestsInsteadOfKeys) {
  ApiKeys keys;
  // sha256("sk-1")
  ASSERT_TRUE(
      keys.add_lines("# people\n\nann:sha256:"
                     "0F2C10BF3D128C719C6BFA4ECBAE94B7FCEEBAEA6E4438FEF38A90E5ACC326F3\n"
                     "bob:sk-2\r\n",
                     "keys.txt"));
  EXPECT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys.check_client(bearer("sk-1")).name, "ann");
  EXPECT_EQ(keys.check_client(bearer("sk-2")).name, "bob");
  const std::string digest = to_hex(sha256(std::as_bytes(std::span(std::string_view("sk-9")))));
  ASSERT_TRUE(keys.add_lines("carl:sha256:" + digest, "keys.txt"));
  EXPECT_EQ(keys.check_client(bearer("sk-9")).name, "carl");
  EXPECT_EQ(keys.check_client(bearer(digest)).outcome, Outcome::kWrong);
}

TEST(ApiKeysTest, KeysOfOneNameShareIt) {
  ApiKeys keys;
  ASSERT_TRUE(keys.add_list("ann:sk-old,ann:sk-new,ann:sk-new", "--api-key"));
  EXPECT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys.check_client(bearer("sk-old")).name, "ann");
  EXPECT_EQ(keys.check_client(bearer("sk-new")).name, "ann");
}

TEST(ApiKeysTest, RefusesEntriesThatAreNone) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"a b:sk-secret", "name"},
      {"ann:", "\"ann\""},
      {"two words", "visible"},
      {"ann:sha256:12", "64 hexadecimal"},
      {":sk-secret", "name"},
      {"ann:sk secret", "\"ann\""},
      {std::string(65, 'n') + ":sk-secret", "64"}};
  for (const auto& [entry, part] : rows) {
    ApiKeys keys;
    const Status status = keys.add_lines("\n" + entry, "keys.txt");
    ASSERT_FALSE(status) << entry;
    EXPECT_EQ(status.error().code, ErrorCode::kBadRequest);
    EXPECT_NE(status.error().message.find("keys.txt, line 2"), std::string::npos);
    EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
    EXPECT_EQ(status.error().message.find("secret"), std::string::npos) << status.error().message;
  }
}

TEST(ApiKeysTest, RefusesOneKeyForTwoNames) {
  ApiKeys keys;
  const Status status = keys.add_list("ann:sk-1,bob:sk-1", "LOCKET_API_KEY");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("\"ann\" and \"bob\""), std::string::npos);
  EXPECT_EQ(status.error().message.find("sk-1"), std::string::npos);
}

TEST(ApiKeysTest, TheAdminKeyIsAnotherKey) {
  ApiKeys keys;
  EXPECT_EQ(keys.check_admin(bearer("sk-1")).outcome, Outcome::kOff);
  ASSERT_TRUE(keys.add_list("ann:sk-1", "--api-key"));
  EXPECT_FALSE(keys.set_admin("sk-1", "--admin-key"));
  ASSERT_TRUE(keys.set_admin("sk-admin", "--admin-key"));
  EXPECT_TRUE(keys.has_admin());
  EXPECT_EQ(keys.check_admin(bearer("sk-admin")).outcome, Outcome::kAllowed);
  EXPECT_EQ(keys.check_admin(bearer("sk-1")).outcome, Outcome::kWrong);
  EXPECT_EQ(keys.check_admin(request_with({})).outcome, Outcome::kMissing);
  EXPECT_EQ(keys.check_client(bearer("sk-admin")).outcome, Outcome::kWrong);
  EXPECT_FALSE(keys.add_list("bob:sk-admin", "--api-key"));
}

TEST(ApiKeysTest, ReadsAFileAndWarnsIfOthersCanReadIt) {
  {
    const KeyFile file("ann:sk-1\n", kPrivate);
    ApiKeys keys;
    const auto warning = keys.add_file(file.path());
    ASSERT_TRUE(warning) << warning.error().message;
    EXPECT_FALSE(warning->has_value());
    EXPECT_EQ(keys.check_client(bearer("sk-1")).name, "ann");
  }
  const KeyFile file("ann:sk-1\n", kPrivate | std::filesystem::perms::group_read);
  ApiKeys keys;
  const auto warning = keys.add_file(file.path());
  ASSERT_TRUE(warning && warning->has_value());
  EXPECT_NE((*warning)->find(file.path().string()), std::string::npos);
  EXPECT_NE((*warning)->find("0640"), std::string::npos) << **warning;
  EXPECT_EQ(keys.size(), 1U);
}

TEST(ApiKeysTest, RefusesAFileWithoutKeys) {
  const KeyFile file("# none yet\n", kPrivate);
  ApiKeys keys;
  const auto added = keys.add_file(file.path());
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().message.find("no keys"), std::string::npos);
  EXPECT_FALSE(keys.add_file("/nowhere/keys"));
}

TEST(ApiKeysTest, AnAdminFileHoldsOneKey) {
  {
    const KeyFile file("# the operator\nsk-admin\n", kPrivate);
    ApiKeys keys;
    ASSERT_TRUE(keys.set_admin_file(file.path()));
    EXPECT_EQ(keys.check_admin(bearer("sk-admin")).outcome, Outcome::kAllowed);
  }
  const KeyFile file("sk-1\nsk-2\n", kPrivate);
  ApiKeys keys;
  const auto set = keys.set_admin_file(file.path());
  ASSERT_FALSE(set);
  EXPECT_NE(set.error().message.find("2 keys"), std::string::npos);
}

}  // namespace
}  // namespace locket::server
