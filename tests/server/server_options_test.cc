#include "server/server_options.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

#include "base/file.h"

namespace locket::server {
namespace {

HttpRequest bearer(const std::string& key) {
  HttpRequest request;
  request.headers = {{"Authorization", "Bearer " + key}};
  return request;
}

std::filesystem::path write_keys(const std::string& text, unsigned mode) {
  auto path = std::filesystem::temp_directory_path() /
              ("locket_options_" + std::to_string(::getpid()) + "_" + std::to_string(mode));
  EXPECT_TRUE(write_whole_file(path, std::as_bytes(std::span(text))));
  std::filesystem::permissions(path, static_cast<std::filesystem::perms>(mode));
  return path;
}

TEST(ServerOptionsTest, KeysComeFromAllPlaces) {
  ServerOptions options;
  options.http.host = "0.0.0.0";
  options.api_keys = {"ann:sk-1,bob:sk-2", "sk-3"};
  options.api_key_file = write_keys("carl:sk-4\n", 0644);
  options.admin_key_file = write_keys("sk-admin\n", 0600);
  testing::internal::CaptureStderr();
  const Result<ApiKeys> keys = make_api_keys(options);
  const std::string warnings = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(keys) << keys.error().message;
  EXPECT_EQ(keys->size(), 4U);
  EXPECT_EQ(keys->check_client(bearer("sk-4")).name, "carl");
  EXPECT_EQ(keys->check_admin(bearer("sk-admin")).outcome, KeyCheck::Outcome::kAllowed);
  EXPECT_NE(warnings.find("0644"), std::string::npos) << warnings;
  EXPECT_EQ(warnings.find("0600"), std::string::npos) << warnings;
  std::filesystem::remove(options.api_key_file);
  std::filesystem::remove(options.admin_key_file);
}

TEST(ServerOptionsTest, OtherMachinesNeedAKeyOfRequests) {
  ServerOptions options;
  EXPECT_TRUE(make_api_keys(options));
  options.http.host = "0.0.0.0";
  options.admin_key = "sk-admin";
  EXPECT_FALSE(make_api_keys(options));
  options.api_keys = {"sk-1"};
  EXPECT_TRUE(make_api_keys(options));
}

TEST(ServerOptionsTest, ThereIsOneAdminKey) {
  ServerOptions options;
  options.admin_key = "sk-1";
  options.admin_key_file = "/nowhere";
  const Result<ApiKeys> keys = make_api_keys(options);
  ASSERT_FALSE(keys);
  EXPECT_NE(keys.error().message.find("two admin keys"), std::string::npos);
}

TEST(ServerOptionsTest, TheGuardKnowsHostsAndPages) {
  ServerOptions options;
  options.http.host = "localhost";
  options.allowed_hosts = {"locket.example"};
  options.cors_origins = {"*"};
  const GuardOptions guard = guard_options(options);
  EXPECT_EQ(guard.bind_host, "localhost");
  EXPECT_EQ(guard.allowed_hosts, options.allowed_hosts);
  EXPECT_EQ(guard.cors_origins, options.cors_origins);
}

}  // namespace
}  // namespace locket::server
