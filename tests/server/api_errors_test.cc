// What is refused, in which words, and that nothing of it hurts the server.
#include "tests/server/api_fixture.h"

namespace locket::server {
namespace {

int health() { return mini_server().get("/health").status; }

TEST(ApiErrorsTest, HaveTheShapeThatClientsParse) {
  const HttpReply reply = mini_server().post(kChatPath, chat_body("x", {{"temperature", 3}}));
  EXPECT_EQ(reply.status, 400);
  const Json error = Json::parse(reply.body)["error"];
  EXPECT_EQ(error["type"], "invalid_request_error");
  EXPECT_EQ(error["code"], "invalid_request_error");
  EXPECT_TRUE(error["param"].is_null());
  EXPECT_EQ(error["message"], "temperature is 3; it must be a number from 0 to 2");
  EXPECT_THAT(reply.header("content-type"), HasSubstr("application/json"));
}

TEST(ApiErrorsTest, EveryAnswerRepeatsTheClientsRequestId) {
  const Headers id = {{"x-request-id", "mine-17"}};
  EXPECT_EQ(mini_server().get("/health", id).header("x-request-id"), "mine-17");
  EXPECT_EQ(mini_server().post(kChatPath, chat_body("Hello!"), id).header("x-request-id"),
            "mine-17");
  const Json stream = chat_body("Hello!", {{"stream", true}});
  EXPECT_EQ(mini_server().post(kChatPath, stream, id).header("x-request-id"), "mine-17");
  EXPECT_EQ(mini_server().post(kChatPath, {{"n", 0}}, id).header("x-request-id"), "mine-17");
  EXPECT_EQ(mini_server().get("/nothing", id).header("x-request-id"), "mine-17");
  EXPECT_NE(mini_server().get("/health").header("x-request-id"), "");
  const Headers bad = {{"x-request-id", std::string(500, 'x')}};
  EXPECT_NE(mini_server().get("/health", bad).header("x-request-id"), bad[0].second);
}

TEST(ApiErrorsTest, AddressesAndMethodsAreNamed) {
  expect_refused(mini_server().get("/v1/nothing"), 404, "There is no GET /v1/nothing here");
  const HttpReply get = mini_server().get(kChatPath);
  expect_refused(get, 405, "POST");
  EXPECT_EQ(get.header("allow"), "POST");
  expect_refused(mini_server().post("/v1/models", Json::object()), 405, "GET");
  const HttpReply messages = mini_server().get("/anthropic/v1/nothing");
  EXPECT_EQ(Json::parse(messages.body)["type"], "error");
}

TEST(ApiErrorsTest, FilesAreNotOffered) {
  for (const char* path : {"/files", "/v1/files", "/v1/files/file-api-1"}) {
    expect_refused(mini_server().get(path), 400, "files are not offered");
  }
}

// Case C09, on every endpoint.
TEST(ApiErrorsTest, C09HalfOfASurrogatePairIsRefusedByName) {
  for (const DialectCase& dialect : all_dialects()) {
    for (const char* half : {R"(x \ud83d)", R"(\ude00 y)"}) {
      std::string body = dialect.body("TEXT", Json::object()).dump();
      body.replace(body.find("TEXT"), 4, half);
      const HttpReply reply = mini_server().post_text(dialect.path, body);
      EXPECT_EQ(reply.status, 400) << dialect.name;
      EXPECT_THAT(error_text(reply), HasSubstr("half of a surrogate pair"));
      body = dialect.body("TEXT", {{dialect.limit, 1}}).dump();
      body.replace(body.find("TEXT"), 4, R"(\ud83d\ude00)");
      EXPECT_EQ(mini_server().post_text(dialect.path, body).status, 200) << dialect.name;
    }
  }
}

// Case C11.
TEST(ApiErrorsTest, C11AnInvalidEscapeIsRefusedWithItsPlace) {
  for (const DialectCase& dialect : all_dialects()) {
    std::string body = dialect.body("TEXT", {{dialect.limit, 1}}).dump();
    const std::size_t at = body.find("TEXT");
    body.replace(at, 4, R"(a\s)");
    const HttpReply reply = mini_server().post_text(dialect.path, body);
    EXPECT_EQ(reply.status, 400) << dialect.name;
    EXPECT_THAT(error_text(reply), HasSubstr("byte offset " + std::to_string(at + 1)));
    body.replace(at, 3, R"(a\\s)");
    EXPECT_EQ(mini_server().post_text(dialect.path, body).status, 200) << dialect.name;
  }
}

// Case C23.
TEST(ApiErrorsTest, C23NullContentIsEmptyAndNeverAWord) {
  const auto rendered = [](const char* role, const Json& content) {
    const Json messages = {{{"role", "user"}, {"content", "Hello!"}},
                           {{"role", role}, {"content", content}},
                           {{"role", "user"}, {"content", "Hello!"}}};
    return mini_server().post("/v1/chat/completions/render",
                              chat_body("", {{"messages", messages}}));
  };
  for (const char* role : {"user", "assistant", "system"}) {
    const HttpReply null = rendered(role, nullptr);
    EXPECT_EQ(null.status, 200) << role << null.body;
    EXPECT_EQ(null.body, rendered(role, "").body) << role;
  }
  expect_refused(rendered("developer", nullptr), 400, "messages[1].content is empty");
}

// Case D12: errors come before the stream, or end it.
TEST(ApiErrorsTest, D12WhatIsWrongIsSaidBeforeTheStreamBegins) {
  for (const DialectCase& dialect : all_dialects()) {
    const Json body = dialect.body("x", {{"stream", true}, {dialect.limit, 0}});
    const HttpReply reply = mini_server().post(dialect.path, body);
    EXPECT_EQ(reply.status, 400) << dialect.name;
    EXPECT_THAT(reply.header("content-type"), HasSubstr("application/json"));
    EXPECT_TRUE(reply.is_complete);
    error_text(reply);
  }
  expect_refused(mini_server().post(kChatPath, chat_body("x", {{"stream", true}, {"n", 0}})), 400,
                 "n is 0");
}

// Case D18: nothing is cut in silence.
TEST(ApiErrorsTest, D18APromptThatIsTooLongIsRefusedWithBothNumbers) {
  ApiSetup setup = {.options = quiet_options()};
  setup.options.max_context_tokens = 200;
  ApiServer server(setup);
  server.ready();
  for (const std::size_t words : {201U, 400U}) {
    const std::string text = "The secret is 482. " + repeated("x ", words);
    for (const DialectCase& dialect : all_dialects()) {
      const HttpReply reply = server.post(dialect.path, dialect.body(text, Json::object()));
      EXPECT_EQ(reply.status, 400) << dialect.name;
      EXPECT_THAT(error_text(reply), HasSubstr("200"));
      EXPECT_THAT(error_text(reply), HasSubstr("maximum context length"));
      EXPECT_THAT(error_text(reply), ::testing::ContainsRegex("[2-9][0-9][0-9]"));
    }
  }
  const HttpReply chat = server.post(kChatPath, chat_body(repeated("x ", 300)));
  EXPECT_EQ(Json::parse(chat.body)["error"]["code"], "context_length_exceeded");
  const HttpReply messages = server.post(kMessagesPath, messages_body(repeated("x ", 300)));
  EXPECT_THAT(error_text(messages), HasSubstr("prompt is too long"));
  // Prompt and limit together may be too long: the answer then ends with the context.
  const Json body = chat_body("Hello!", {{"max_tokens", 100'000}, {"ignore_eos", true}});
  const Json answer = server.ask(kChatPath, body);
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["total_tokens"], 200);
  EXPECT_EQ(Json::parse(server.get("/v1/models").body)["data"][0]["max_model_len"], 200);
}

// Case D21, and pictures in general: whole ones are understood and refused clearly.
TEST(ApiErrorsTest, D21PicturesAreRefusedAndTheServerLives) {
  const auto reply = [](const std::string& url) {
    const Json parts = Json::array({{{"type", "text"}, {"text", "What is this?"}},
                                    {{"type", "image_url"}, {"image_url", {{"url", url}}}}});
    const Json messages = Json::array({{{"role", "user"}, {"content", parts}}});
    return mini_server().post(kChatPath, chat_body("", {{"messages", messages}}));
  };
  const std::string png =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5Er"
      "kJggg==";
  for (const char* url :
       {"data:image/png;base64,iVBORw0KGgo=", "data:image/png;base64,SGVsbG8gdGhlcmU=",
        "data:;base64,", "", "data:image/jpeg;base64,/9j/4AAQSkZJRgABAQEASABI",
        "file:///etc/passwd"}) {
    EXPECT_EQ(reply(url).status, 400) << url;
    error_text(reply(url));
  }
  EXPECT_EQ(reply("data:image/png;base64," + png.substr(0, png.size() - 1)).status, 400);
  expect_refused(reply("data:image/png;base64," + png), 400, "reads text only");
  EXPECT_EQ(reply("https://example.com/a.png").status, 400);
  EXPECT_EQ(health(), 200);
}

// Case D29.
TEST(ApiErrorsTest, D29EmptyMessagesAreAnswered) {
  const auto status = [](const Json& middle) {
    const Json messages = {{{"role", "user"}, {"content", "Hello!"}},
                           middle,
                           {{"role", "user"}, {"content", "Hello!"}}};
    return mini_server().post(kChatPath, chat_body("", {{"messages", messages}})).status;
  };
  EXPECT_EQ(status({{"role", "assistant"}, {"content", ""}}), 200);
  EXPECT_EQ(status({{"role", "assistant"}}), 200);
  EXPECT_EQ(status({{"role", "assistant"}, {"content", Json::array()}}), 200);
  EXPECT_EQ(status({{"role", "user"}, {"content", "  \n "}}), 200);
  EXPECT_EQ(status({{"role", "user"}, {"content", Json::array()}}), 200);
}

// Case D32.
TEST(ApiErrorsTest, D32InvalidUtf8Is400WithValidJsonEverywhere) {
  for (const std::string& bytes : {std::string("\xC3\x28"), std::string("\xFF")}) {
    for (const DialectCase& dialect : all_dialects()) {
      for (const char* place : {"TEXT", "deepseek-flash"}) {
        std::string body = dialect.body("TEXT", Json::object()).dump();
        body.replace(body.find(place), std::string_view(place).size(), bytes);
        const HttpReply reply = mini_server().post_text(dialect.path, body);
        EXPECT_EQ(reply.status, 400) << dialect.name;
        error_text(reply);
      }
    }
    HttpClient raw(mini_server().port());
    ASSERT_TRUE(raw.send("GET /v1/" + bytes + " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    const HttpReply path = raw.read_reply();
    EXPECT_EQ(path.status, 400);
    error_text(path);
    EXPECT_EQ(mini_server().get("/health", {{"x-thing", bytes}}).status, 400);
  }
  EXPECT_EQ(health(), 200);
}

TEST(ApiErrorsTest, HostileBodiesAreRefusedAndTheServerLives) {
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"),
        repeated("[", 100'000), R"({"messages":)" + repeated("[", 5'000),
        std::string("{\"a\":1,\"a\":2,}")}) {
    for (const DialectCase& dialect : all_dialects()) {
      const HttpReply reply = mini_server().post_text(dialect.path, body);
      EXPECT_EQ(reply.status, 400) << dialect.name << body.substr(0, 40);
      error_text(reply);
    }
  }
  EXPECT_EQ(health(), 200);
}

TEST(ApiErrorsTest, ABodyBeyondTheLimitIs413) {
  ApiSetup setup = {.options = quiet_options()};
  setup.options.http.max_body_bytes = 10'000;
  ApiServer server(setup);
  server.ready();
  expect_refused(server.post(kChatPath, chat_body(std::string(20'000, 'a'))), 413, "10000");
  EXPECT_EQ(server.post(kChatPath, chat_body("Hello!")).status, 200);
  // Refused before it is sent: curl asks first for what is large.
  HttpClient curl(server.port());
  ASSERT_TRUE(
      curl.send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                "Content-Length: 20000\r\nExpect: 100-continue\r\n\r\n"));
  EXPECT_EQ(curl.read_reply().status, 413);
}

TEST(ApiErrorsTest, ABodyThatIsAskedForIsContinued) {
  const std::string body = chat_body("Hello!").dump();
  HttpClient curl(mini_server().port());
  ASSERT_TRUE(
      curl.send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                "Content-Length: " +
                std::to_string(body.size()) + "\r\nExpect: 100-continue\r\n\r\n"));
  EXPECT_EQ(curl.read_reply().status, 100);
  ASSERT_TRUE(curl.send(body));
  EXPECT_EQ(curl.read_reply().status, 200);
}

}  // namespace
}  // namespace locket::server
