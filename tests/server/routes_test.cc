// Which address is answered by whom, and in whose words.
#include "server/routes.h"

#include <gtest/gtest.h>
#include <string>

namespace locket::server {
namespace {

Route route_of(const std::string& method, const std::string& path) {
  const RouteMatch match = match_route(method, path);
  return match.is_wrong_method ? Route::kNone : match.route;
}

TEST(RoutesTest, OpenAiPathsAreThereBareAndUnderTheirPrefixes) {
  for (const std::string prefix : {"", "/v1", "/beta", "/beta/v1"}) {
    SCOPED_TRACE(prefix);
    EXPECT_EQ(route_of("POST", prefix + "/chat/completions"), Route::kChat);
    EXPECT_EQ(route_of("POST", prefix + "/completions"), Route::kCompletions);
    EXPECT_EQ(route_of("POST", prefix + "/responses"), Route::kResponses);
    EXPECT_EQ(route_of("POST", prefix + "/chat/completions/render"), Route::kRenderChat);
    EXPECT_EQ(route_of("GET", prefix + "/models"), Route::kModels);
    EXPECT_EQ(route_of("GET", prefix + "/models/"), Route::kModels) << "no redirect";
    EXPECT_EQ(route_of("GET", prefix + "/models/mini"), Route::kModel);
    EXPECT_EQ(match_route("GET", prefix + "/models/a/b").name, "a/b");
    EXPECT_EQ(route_of("POST", prefix + "/files"), Route::kUnsupported);
    EXPECT_EQ(route_of("DELETE", prefix + "/files/file-1"), Route::kUnsupported);
  }
}

TEST(RoutesTest, MessagesPathsOfAllBases) {
  for (const std::string path : {"/v1/messages", "/anthropic/messages", "/anthropic/v1/messages"}) {
    SCOPED_TRACE(path);
    EXPECT_EQ(route_of("POST", path), Route::kMessages);
    EXPECT_EQ(route_of("POST", path + "/count_tokens"), Route::kCountTokens);
    EXPECT_EQ(dialect_of(match_route("POST", path), path), Dialect::kMessages);
  }
  EXPECT_EQ(route_of("GET", "/anthropic/v1/models"), Route::kModels);
  EXPECT_EQ(route_of("HEAD", "/anthropic/api/hello"), Route::kHello);
}

TEST(RoutesTest, WrongMethodsNameTheRightOnes) {
  const RouteMatch match = match_route("GET", "/v1/chat/completions");
  EXPECT_TRUE(match.is_wrong_method);
  EXPECT_EQ(match.allowed_methods, "POST");
  EXPECT_EQ(match_route("POST", "/health").allowed_methods, "GET, HEAD");
  EXPECT_FALSE(match_route("HEAD", "/health").is_wrong_method);
}

TEST(RoutesTest, WhatIsNotThereIsNotThere) {
  for (const std::string path : {"/v2/models", "/v1", "/v1/modelsx", "/admin", "/v1/messages/x"}) {
    EXPECT_EQ(match_route("POST", path).route, Route::kNone) << path;
  }
}

// Everything that shows data or costs work needs a key; metrics keep a row for each pattern.
TEST(RoutesTest, OnlyWhatHoldsNothingIsOpen) {
  for (int value = 0; value < static_cast<int>(Route::kCount); ++value) {
    const auto route = static_cast<Route>(value);
    const bool is_expected = route == Route::kHealth || route == Route::kLive ||
                             route == Route::kReady || route == Route::kHello ||
                             route == Route::kPage;
    EXPECT_EQ(facts_of(route).is_open, is_expected) << value;
  }
  EXPECT_EQ(match_route("GET", "/v1/models/anything").pattern, "/v1/models/{id}");
  EXPECT_EQ(match_route("GET", "/v1/files/anything").pattern, "/v1/files/{id}");
}

TEST(RoutesTest, ErrorsSpeakTheDialectOfTheirPath) {
  const auto dialect = [](const std::string& path) {
    return dialect_of(match_route("POST", path), path);
  };
  EXPECT_EQ(dialect("/anthropic/nothing"), Dialect::kMessages);
  EXPECT_EQ(dialect("/nothing"), Dialect::kChat);
  EXPECT_EQ(dialect("/v1/responses"), Dialect::kResponses);
  EXPECT_EQ(dialect("/anthropic/v1/chat/completions"), Dialect::kChat);
}

}  // namespace
}  // namespace locket::server
