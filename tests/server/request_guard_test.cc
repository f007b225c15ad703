#include "server/request_guard.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace locket::server {
namespace {

using Kind = RequestGuard::Verdict::Kind;

HttpRequest head_with(HttpHeaders headers, std::string method = "POST") {
  HttpRequest head;
  head.method = std::move(method);
  head.path = "/v1/chat/completions";
  head.headers = std::move(headers);
  return head;
}

Kind kind_of(const RequestGuard& guard, HttpHeaders headers) {
  return guard.check(head_with(std::move(headers))).kind;
}

std::string header_of(const RequestGuard::Verdict& verdict, std::string_view name) {
  HttpRequest holder;
  holder.headers = verdict.headers;
  return std::string(holder.header(name));
}

TEST(RequestGuardTest, NamesOfThisMachineAreAllowed) {
  const RequestGuard guard({.bind_host = "127.0.0.1", .allowed_hosts = {"Locket.Example"}});
  for (const std::string host : {"localhost", "localhost:8000", "LOCALHOST:8000", "app.localhost",
                                 "localhost.", "127.0.0.1:8000", "[::1]:8000", "[::1]",
                                 "192.168.1.7:8000", "locket.example", "locket.example:443", ""}) {
    EXPECT_EQ(kind_of(guard, {{"Host", host}}), Kind::kPass) << host;
  }
}

TEST(RequestGuardTest, NamesThatPointHereAreRefused) {
  const RequestGuard guard({.bind_host = "localhost", .allowed_hosts = {"locket.example"}});
  for (const std::string host :
       {"evil.example", "evil.example:8000", "localhost.evil.example", "notlocalhost",
        "127.0.0.1.evil.example", "127.0.0", "127.0.0.256", "127.0.0.1x", "a.locket.example",
        "1.2.3.4.5", "[evil]:80", "0x7f.1"}) {
    const auto verdict = guard.check(head_with({{"Host", host}}));
    EXPECT_EQ(verdict.kind, Kind::kRefused) << host;
    EXPECT_NE(verdict.message.find("--allowed-host"), std::string::npos);
    EXPECT_TRUE(verdict.headers.empty());
  }
}

TEST(RequestGuardTest, AServerForOtherMachinesAnswersToAnyName) {
  const RequestGuard guard({.bind_host = "0.0.0.0"});
  EXPECT_EQ(kind_of(guard, {{"Host", "locket.internal:8000"}}), Kind::kPass);
}

TEST(RequestGuardTest, PagesOfOthersAreRefused) {
  const RequestGuard guard({.bind_host = "127.0.0.1"});
  for (const std::string origin :
       {"https://evil.example", "null", "http://localhost:3000", "http://localhost", "file://"}) {
    const auto verdict = guard.check(head_with({{"Host", "localhost:8000"}, {"Origin", origin}}));
    EXPECT_EQ(verdict.kind, Kind::kRefused) << origin;
    EXPECT_NE(verdict.message.find("--cors"), std::string::npos);
    EXPECT_EQ(header_of(verdict, "access-control-allow-origin"), "");
  }
}

TEST(RequestGuardTest, PagesOfTheServerItselfAreAllowed) {
  const RequestGuard guard({.bind_host = "127.0.0.1"});
  EXPECT_EQ(kind_of(guard, {{"Host", "localhost:8000"}, {"Origin", "http://LocalHost:8000"}}),
            Kind::kPass);
  EXPECT_EQ(kind_of(guard, {{"Host", "evil.example"}, {"Origin", "http://evil.example"}}),
            Kind::kRefused);
}

TEST(RequestGuardTest, AllowedPagesMayReadAnswers) {
  const RequestGuard guard({.cors_origins = {"https://app.example", "http://localhost:3000"}});
  const auto verdict =
      guard.check(head_with({{"Host", "localhost:8000"}, {"Origin", "https://APP.example"}}));
  EXPECT_EQ(verdict.kind, Kind::kPass);
  EXPECT_EQ(header_of(verdict, "access-control-allow-origin"), "https://APP.example");
  EXPECT_EQ(header_of(verdict, "vary"), "Origin");
  EXPECT_NE(header_of(verdict, "access-control-expose-headers").find("x-request-id"),
            std::string::npos);
  EXPECT_EQ(header_of(verdict, "access-control-allow-credentials"), "");
  const auto refused =
      guard.check(head_with({{"Host", "localhost:8000"}, {"Origin", "http://app.example"}}));
  EXPECT_EQ(refused.kind, Kind::kRefused);
  const auto no_page = guard.check(head_with({{"Host", "localhost:8000"}}));
  EXPECT_EQ(no_page.kind, Kind::kPass);
  EXPECT_EQ(header_of(no_page, "vary"), "Origin");
}

TEST(RequestGuardTest, TheStarAllowsEveryPageButNoName) {
  const RequestGuard guard({.cors_origins = {"*"}});
  EXPECT_EQ(kind_of(guard, {{"Host", "localhost"}, {"Origin", "null"}}), Kind::kPass);
  EXPECT_EQ(kind_of(guard, {{"Host", "evil.example"}, {"Origin", "https://a.example"}}),
            Kind::kRefused);
}

TEST(RequestGuardTest, APreflightIsAnsweredWithTheHeadersItAsksFor) {
  const RequestGuard guard({.cors_origins = {"*"}});
  HttpHeaders headers = {{"Host", "localhost:8000"},
                         {"Origin", "https://app.example"},
                         {"Access-Control-Request-Method", "POST"},
                         {"Access-Control-Request-Headers", "authorization,x-stainless-os"},
                         {"Access-Control-Request-Private-Network", "true"}};
  const auto verdict = guard.check(head_with(headers, "OPTIONS"));
  EXPECT_EQ(verdict.kind, Kind::kPreflight);
  EXPECT_EQ(header_of(verdict, "access-control-allow-headers"), "authorization,x-stainless-os");
  EXPECT_NE(header_of(verdict, "access-control-allow-methods").find("POST"), std::string::npos);
  EXPECT_EQ(header_of(verdict, "access-control-allow-private-network"), "true");
  headers[3].second = "authorization\r\nset-cookie: a";
  const auto broken = guard.check(head_with(headers, "OPTIONS"));
  EXPECT_EQ(header_of(broken, "access-control-allow-headers"), "");
  headers.erase(headers.begin() + 2);
  EXPECT_EQ(guard.check(head_with(headers, "OPTIONS")).kind, Kind::kPass);
}

TEST(RequestGuardTest, APreflightOfOthersIsRefused) {
  const RequestGuard guard({});
  const auto verdict = guard.check(head_with({{"Host", "localhost:8000"},
                                              {"Origin", "https://app.example"},
                                              {"Access-Control-Request-Method", "POST"}},
                                             "OPTIONS"));
  EXPECT_EQ(verdict.kind, Kind::kRefused);
}

TEST(RequestGuardTest, WhatARefusalShowsIsHarmless) {
  const RequestGuard guard({});
  const auto verdict = guard.check(head_with({{"Host", "evil\"\n\x01" + std::string(5000, 'x')}}));
  EXPECT_EQ(verdict.kind, Kind::kRefused);
  EXPECT_LT(verdict.message.size(), 400U);
  EXPECT_EQ(verdict.message.find('\n'), std::string::npos);
}

TEST(RequestGuardTest, KnowsLoopbackAddresses) {
  for (const std::string host :
       {"localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]", "::ffff:127.0.0.1", "LocalHost"}) {
    EXPECT_TRUE(is_loopback_host(host)) << host;
  }
  for (const std::string host : {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "127.evil.example",
                                 "locket.example", "", "::ffff:10.0.0.1", "127.0.0.1.1"}) {
    EXPECT_FALSE(is_loopback_host(host)) << host;
  }
}

TEST(RequestGuardTest, OthersAreServedWithAKeyOnly) {
  ApiKeys keys;
  EXPECT_TRUE(check_bind("127.0.0.1", keys));
  const Status refused = check_bind("0.0.0.0", keys);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("0.0.0.0"), std::string::npos);
  EXPECT_NE(refused.error().message.find("--api-key-file"), std::string::npos);
  ASSERT_TRUE(keys.add_list("sk-1", "--api-key"));
  EXPECT_TRUE(check_bind("0.0.0.0", keys));
}

TEST(RequestGuardTest, AnOriginIsSchemeHostAndPort) {
  for (const std::string text :
       {"*", "https://app.example", "http://localhost:3000", "vscode-webview://abc"}) {
    EXPECT_TRUE(check_origin(text)) << text;
  }
  for (const std::string text : {"", "app.example", "https://app.example/", "https://*.example",
                                 "https://", "://a", "https://a b", "null"}) {
    EXPECT_FALSE(check_origin(text)) << text;
  }
}

}  // namespace
}  // namespace locket::server
