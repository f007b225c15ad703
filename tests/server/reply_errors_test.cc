// Errors: what each is called, and by which words clients find out what to do.
#include "server/reply_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

namespace locket::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json body_of(Dialect dialect, ErrorCode code, const std::string& message) {
  return json::parse(error_body(dialect, Error{code, message}));
}

TEST(ReplyErrorsTest, EveryCodeHasItsStatus) {
  const auto status = [](ErrorCode code) { return http_status({code, "x"}); };
  EXPECT_EQ(status(ErrorCode::kBadRequest), 400);
  EXPECT_EQ(status(ErrorCode::kUnsupported), 400);
  EXPECT_EQ(status(ErrorCode::kContextTooLong), 400);
  EXPECT_EQ(status(ErrorCode::kNotFound), 404);
  EXPECT_EQ(status(ErrorCode::kOverloaded), 429);
  EXPECT_EQ(status(ErrorCode::kBadCheckpoint), 500);
  EXPECT_EQ(status(ErrorCode::kBadMemory), 500);
  EXPECT_EQ(status(ErrorCode::kIo), 500);
  EXPECT_EQ(status(ErrorCode::kInternal), 500);
  EXPECT_EQ(status(ErrorCode::kOverBudget), 503);
  EXPECT_EQ(status(ErrorCode::kCancelled), 503);
}

TEST(ReplyErrorsTest, HasTheBodyOfTheDialect) {
  EXPECT_EQ(error_body(Dialect::kChat, Error{ErrorCode::kBadRequest, "n is 0"}),
            R"({"error":{"message":"n is 0","type":"invalid_request_error","param":null,)"
            R"("code":"invalid_request_error"}})");
  EXPECT_EQ(error_body(Dialect::kMessages, Error{ErrorCode::kBadRequest, "n is 0"}),
            R"({"type":"error","error":{"type":"invalid_request_error","message":"n is 0"}})");
}

TEST(ReplyErrorsTest, HasTheCodesThatClientsSearchFor) {
  const auto code = [](ErrorCode error) {
    return body_of(Dialect::kResponses, error, "x")["error"]["code"];
  };
  EXPECT_EQ(code(ErrorCode::kContextTooLong), "context_length_exceeded");
  EXPECT_EQ(code(ErrorCode::kOverloaded), "rate_limit_exceeded");
  EXPECT_EQ(code(ErrorCode::kNotFound), "model_not_found");
  EXPECT_EQ(invalid_key_error().code, "invalid_api_key");
  EXPECT_EQ(invalid_key_error().status, 401);
}

// D18
TEST(ReplyErrorsTest, ALongPromptIsCalledSoWithBothNumbers) {
  const std::string facts = "a prompt of 70 tokens does not fit into 64";
  const std::string chat =
      body_of(Dialect::kChat, ErrorCode::kContextTooLong, facts)["error"]["message"];
  EXPECT_THAT(chat, HasSubstr("maximum context length"));
  EXPECT_THAT(chat, HasSubstr(facts));
  const std::string messages =
      body_of(Dialect::kMessages, ErrorCode::kContextTooLong, facts)["error"]["message"];
  EXPECT_THAT(messages, ::testing::StartsWith("prompt is too long"));
  EXPECT_THAT(messages, HasSubstr("maximum context length"));
  EXPECT_THAT(messages, HasSubstr(facts));
  const std::string known = "the maximum context length is 64, the prompt has 70 tokens";
  EXPECT_EQ(body_of(Dialect::kChat, ErrorCode::kContextTooLong, known)["error"]["message"], known);
}

TEST(ReplyErrorsTest, MessagesHasTypesOfItsOwn) {
  const auto type = [](const ApiError& error) {
    return json::parse(error_body(Dialect::kMessages, error))["error"]["type"];
  };
  EXPECT_EQ(type(invalid_key_error()), "authentication_error");
  EXPECT_EQ(type(unknown_route_error("GET", "/x")), "not_found_error");
  EXPECT_EQ(type(plain_error(403, "x")), "permission_error");
  EXPECT_EQ(type(plain_error(413, "x")), "request_too_large");
  EXPECT_EQ(type(plain_error(422, "x")), "invalid_request_error");
  EXPECT_EQ(type(plain_error(429, "x")), "rate_limit_error");
  EXPECT_EQ(type(plain_error(500, "x")), "api_error");
  EXPECT_EQ(type(plain_error(503, "x")), "overloaded_error");
}

// D32
TEST(ReplyErrorsTest, ATextOfAnyBytesStaysJson) {
  for (int first = 0; first < 256; ++first) {
    const std::string text = {'a', static_cast<char>(first), '\xC3', '(', '\xFF', '\0', '"'};
    for (const Dialect dialect : {Dialect::kChat, Dialect::kMessages}) {
      const json body = body_of(dialect, ErrorCode::kBadRequest, text);
      EXPECT_THAT(body["error"]["message"].get<std::string>(), HasSubstr("(\uFFFD"));
    }
  }
}

}  // namespace
}  // namespace locket::server
