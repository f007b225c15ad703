#include "server/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/http_cases.h"

namespace locket::server {
namespace {

using testing::HasSubstr;

class HttpServerTest : public testing::Test {
 protected:
  void start(const HttpServerOptions& options = free_port()) {
    handler_.routes["/echo"] = echo;
    server_ = start_server(options, handler_);
    ASSERT_NE(server_, nullptr);
  }
  HttpClient connect() { return HttpClient(server_->port()); }
  // Sends raw bytes on a connection of their own; the server closes it after its answer.
  HttpReply refused(std::string_view bytes) {
    HttpClient client = connect();
    client.send(bytes);
    HttpReply reply = client.read_reply();
    EXPECT_NE(error_message(reply), "") << reply.body;
    EXPECT_EQ(reply.header("Connection"), "close");
    EXPECT_TRUE(client.read_until_closed().is_closed);
    return reply;
  }

  ScriptedHandler handler_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersOneRequestAfterAnotherOnOneConnection) {
  start();
  HttpClient client = connect();
  for (int round = 0; round < 3; ++round) {
    const HttpReply reply =
        client.request({.method = "POST", .path = "/echo?a=b", .body = "hello"});
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.reason, "OK");
    EXPECT_EQ(reply.header("content-type"), "text/plain");
    EXPECT_EQ(reply.header("content-length"), std::to_string(reply.body.size()));
    EXPECT_FALSE(reply.has_header("connection"));
    EXPECT_EQ(reply.body, "POST /echo?a=b hello");
  }
  EXPECT_EQ(server_->load().connections, 1U);
}

TEST_F(HttpServerTest, HandsOutHeadersPeerAndDecodedPath) {
  start();
  HttpClient client = connect();
  client.send(HttpClient::request_bytes(
      {.path = "/v1/models/a%2Fb%20%C3%A9?x=%20y", .headers = {{"X-Request-Id", "  seven "}}}));
  const ExchangePtr exchange = handler_.next();
  ASSERT_NE(exchange, nullptr);
  EXPECT_EQ(exchange->request().path, "/v1/models/a/b \xC3\xA9");
  EXPECT_EQ(exchange->request().query, "x=%20y");
  EXPECT_EQ(exchange->request().header("x-request-id"), "seven");
  EXPECT_EQ(exchange->request().peer, "127.0.0.1");
  exchange->respond({.status = 404, .body = "{}", .headers = {{"X-Request-Id", "seven"}}});
  const HttpReply reply = client.read_reply();
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.header("x-request-id"), "seven");
}

TEST_F(HttpServerTest, AHeaderOfAnAnswerCannotEndItself) {
  handler_.routes["/"] = [](const ExchangePtr& exchange) {
    exchange->respond({.headers = {{"X-Request-Id", "a\r\nX-Injected: b"}}});
  };
  start();
  const HttpReply reply = connect().request({});
  EXPECT_EQ(reply.header("x-request-id"), "a  X-Injected: b");
  EXPECT_FALSE(reply.has_header("x-injected"));
}

TEST_F(HttpServerTest, ClosesWhenTheClientAsksForIt) {
  start();
  HttpClient client = connect();
  const HttpReply reply = client.request({.path = "/echo", .headers = {{"Connection", "close"}}});
  EXPECT_EQ(reply.header("connection"), "close");
  EXPECT_TRUE(client.read_until_closed().is_closed);
}

TEST_F(HttpServerTest, Http10ClosesUnlessItAsksToStay) {
  start();
  HttpClient leaving = connect();
  EXPECT_EQ(leaving.request({.path = "/echo", .version = 10}).body, "GET /echo? ");
  EXPECT_TRUE(leaving.read_until_closed().is_closed);
  HttpClient staying = connect();
  for (int round = 0; round < 2; ++round) {
    const HttpReply reply = staying.request(
        {.path = "/echo", .headers = {{"Connection", "keep-alive"}}, .version = 10});
    EXPECT_EQ(reply.header("connection"), "keep-alive");
    EXPECT_EQ(reply.body, "GET /echo? ");
  }
}

TEST_F(HttpServerTest, TheAnswerToHeadHasLengthAndNoBody) {
  start();
  HttpClient client = connect();
  const HttpReply reply = client.request({.method = "HEAD", .path = "/echo"});
  EXPECT_EQ(reply.header("content-length"), std::to_string(std::string("HEAD /echo? ").size()));
  EXPECT_EQ(client.request({.path = "/echo"}).body, "GET /echo? ");  // nothing stands between
}

TEST_F(HttpServerTest, AnAnswerWithoutContentHasNoBody) {
  handler_.routes["/nothing"] = [](const ExchangePtr& exchange) {
    exchange->respond({.status = 204, .body = "dropped"});
  };
  start();
  HttpClient client = connect();
  const HttpReply reply = client.request({.method = "OPTIONS", .path = "/nothing"});
  EXPECT_EQ(reply.status, 204);
  EXPECT_FALSE(reply.has_header("content-length"));
  EXPECT_EQ(client.request({.path = "/echo"}).body, "GET /echo? ");
}

TEST_F(HttpServerTest, TakesChunkedBodiesInAnySplit) {
  start();
  const std::string bytes =
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;note=1\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: dropped\r\n\r\n";
  HttpClient client = connect();
  ASSERT_TRUE(client.send(bytes));
  EXPECT_EQ(client.read_reply().body, "POST /echo? hello world");
  for (const char letter : bytes) ASSERT_TRUE(client.send({&letter, 1}));
  EXPECT_EQ(client.read_reply().body, "POST /echo? hello world");
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  start();
  HttpClient client = connect();
  std::string bytes = HttpClient::request_bytes({.method = "POST", .path = "/hold"});
  for (int index = 0; index < 100; ++index) {
    bytes += HttpClient::request_bytes(
        {.method = "POST", .path = "/echo", .body = "number " + std::to_string(index)});
  }
  ASSERT_TRUE(client.send(bytes));
  const ExchangePtr first = handler_.next();
  ASSERT_NE(first, nullptr);
  first->respond({.body = "first"});
  EXPECT_EQ(client.read_reply().body, "first");
  for (int index = 0; index < 100; ++index) {
    EXPECT_EQ(client.read_reply().body, "POST /echo? number " + std::to_string(index));
  }
}

TEST_F(HttpServerTest, MorePipelinedThanItKeepsIsReadLater) {
  HttpServerOptions options = free_port();
  options.max_header_bytes = 1024;
  start(options);
  HttpClient client = connect();
  const std::string large(3'000'000, 'x');
  ASSERT_TRUE(client.send(HttpClient::request_bytes({.path = "/hold"})));
  const ExchangePtr first = handler_.next();
  ASSERT_NE(first, nullptr);
  std::thread sender([&] {
    client.send(HttpClient::request_bytes({.method = "POST", .path = "/echo", .body = large}));
  });
  first->respond({.body = "first"});
  EXPECT_EQ(client.read_reply().body, "first");
  sender.join();
  EXPECT_EQ(client.read_reply().body, "POST /echo? " + large);
}

TEST_F(HttpServerTest, SkipsEmptyLinesBetweenRequests) {
  start();
  HttpClient client = connect();
  ASSERT_TRUE(client.send("\r\n\r\n" + HttpClient::request_bytes({.path = "/echo"}) + "\r\n" +
                          HttpClient::request_bytes({.path = "/echo?2"})));
  EXPECT_EQ(client.read_reply().body, "GET /echo? ");
  EXPECT_EQ(client.read_reply().body, "GET /echo?2 ");
}

TEST_F(HttpServerTest, ContinueIsSaidBeforeTheBodyAndOnlyIfTheHeadIsAllowed) {
  handler_.judge = [](const HttpRequest& head) -> HttpHandler::Refusal {
    if (head.header("Authorization") == "Bearer right") return {};
    return {.is_refused = true, .response = {.status = 401, .body = R"({"error":{}})"}};
  };
  start();
  const auto head = [](std::string_view key) {
    return "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n"
           "Authorization: Bearer " +
           std::string(key) + "\r\n\r\n";
  };
  HttpClient allowed = connect();
  ASSERT_TRUE(allowed.send(head("right")));
  EXPECT_EQ(allowed.read_head().status, 100);
  EXPECT_EQ(handler_.held_count(), 0U);
  ASSERT_TRUE(allowed.send("body"));
  EXPECT_EQ(allowed.read_reply().body, "POST /echo? body");
  HttpClient refused = connect();
  ASSERT_TRUE(refused.send(head("wrong")));
  EXPECT_EQ(refused.read_reply().status, 401);
  EXPECT_TRUE(refused.read_until_closed().is_closed);
}

TEST_F(HttpServerTest, ARefusedHeadWithoutBodyKeepsTheConnection) {
  handler_.judge = [](const HttpRequest& head) -> HttpHandler::Refusal {
    return {.is_refused = head.path != "/echo", .response = {.status = 401, .body = "{}"}};
  };
  start();
  HttpClient client = connect();
  EXPECT_EQ(client.request({.path = "/secret"}).status, 401);
  EXPECT_EQ(client.request({.path = "/echo"}).status, 200);
  EXPECT_EQ(client.request({.method = "POST", .path = "/secret", .body = "x"}).status, 401);
  EXPECT_TRUE(client.read_until_closed().is_closed);
}

TEST_F(HttpServerTest, TakesABodyOfExactlyTheLimitAndRefusesOneByteMore) {
  HttpServerOptions options = free_port();
  options.max_body_bytes = 1'000'000;
  handler_.routes["/count"] = [](const ExchangePtr& exchange) {
    exchange->respond({.body = std::to_string(exchange->request().body.size())});
  };
  start(options);
  EXPECT_EQ(connect()
                .request({.method = "POST", .path = "/count", .body = std::string(1'000'000, 'x')})
                .body,
            "1000000");
  EXPECT_EQ(refused(HttpClient::request_bytes(
                        {.method = "POST", .path = "/count", .body = std::string(1'000'001, 'x')}))
                .status,
            413);
  const std::string chunked =
      "POST /count HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nF4240\r\n" +
      std::string(1'000'000, 'x') + "\r\n";
  HttpClient client = connect();
  ASSERT_TRUE(client.send(chunked + "0\r\n\r\n"));
  EXPECT_EQ(client.read_reply().body, "1000000");
  EXPECT_EQ(refused(chunked + "1\r\nx\r\n0\r\n\r\n").status, 413);
}

TEST_F(HttpServerTest, TakesABodyOf48Mebibytes) {
  handler_.routes["/count"] = [](const ExchangePtr& exchange) {
    exchange->respond({.body = std::to_string(exchange->request().body.size())});
  };
  start();
  const std::string body(std::size_t{48} << 20, 'x');
  EXPECT_EQ(connect().request({.method = "POST", .path = "/count", .body = body}).body, "50331648");
}

TEST_F(HttpServerTest, AHeadThatIsTooLargeIs431) {
  HttpServerOptions options = free_port();
  options.max_header_bytes = 2048;
  start(options);
  EXPECT_EQ(refused("GET /" + std::string(4000, 'x')).status, 431);
  EXPECT_EQ(
      refused("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(2048, 'x') + "\r\n\r\n").status,
      431);
  const std::string start_line = "GET /echo HTTP/1.1\r\nHost: x\r\nX: ";
  HttpClient client = connect();
  client.send(start_line + std::string(2048 - start_line.size() - 4, 'x') + "\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST_F(HttpServerTest, WhatIsNotHttpIs400AtOnce) {
  start();
  EXPECT_EQ(refused("\x16\x03\x01\x02\x00 hello").status, 400);
  EXPECT_EQ(refused(std::string("\0\0\0", 3)).status, 400);
  EXPECT_EQ(refused("hello\n").status, 400);
  EXPECT_EQ(refused("GET /\r\n\r\n").status, 400);
  EXPECT_EQ(refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status, 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\nHost: x\n\n").status, 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost : x\r\n\r\n").status, 400);
  EXPECT_EQ(refused("GET echo HTTP/1.1\r\nHost: x\r\n\r\n").status, 400);
  EXPECT_EQ(refused("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n").status, 400);
  EXPECT_EQ(refused("GET /a%00b HTTP/1.1\r\nHost: x\r\n\r\n").status, 400);
}

TEST_F(HttpServerTest, WhatTwoReadersCouldReadInTwoWaysIsRefused) {
  start();
  const auto with = [this](std::string_view headers) {
    return refused("POST /echo HTTP/1.1\r\n" + std::string(headers) + "\r\n0\r\n\r\n").status;
  };
  EXPECT_EQ(with(""), 400);  // no Host
  EXPECT_EQ(with("Host: a\r\nHost: b\r\n"), 400);
  EXPECT_EQ(with("Host: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(with("Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400);
  EXPECT_EQ(with("Host: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n"), 400);
  EXPECT_EQ(with("Host: a\r\nContent-Length: -1\r\n"), 400);
  EXPECT_EQ(with("Host: a\r\nContent-Length: 99999999999999999999\r\n"), 400);
  EXPECT_EQ(with("Host: a\r\nTransfer-Encoding: gzip, chunked\r\n"), 501);
  EXPECT_EQ(with("Host: a\r\nTransfer-Encoding: identity\r\n"), 501);
  EXPECT_EQ(with("Host: a\r\nExpect: miracles\r\n"), 417);
  EXPECT_EQ(
      refused("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n").status,
      400);
}

TEST_F(HttpServerTest, InvalidUtf8InPathOrHeadersIs400WithValidJson) {
  start();
  for (const std::string bad : {"\xC3\x28", "\xFF"}) {
    EXPECT_EQ(refused("GET /" + bad + " HTTP/1.1\r\nHost: x\r\n\r\n").status, 400);
    EXPECT_EQ(refused("GET /?" + bad + " HTTP/1.1\r\nHost: x\r\n\r\n").status, 400);
    EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: x\r\nX: " + bad + "\r\n\r\n").status, 400);
    EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: x\r\n" + bad + ": x\r\n\r\n").status, 400);
    EXPECT_EQ(refused(bad + " / HTTP/1.1\r\nHost: x\r\n\r\n").status, 400);
  }
  EXPECT_EQ(refused("GET /%FF HTTP/1.1\r\nHost: x\r\n\r\n").status, 400);
  EXPECT_EQ(connect().request({.path = "/echo"}).status, 200);
}

TEST_F(HttpServerTest, AnExchangeThatIsDroppedIsA500) {
  handler_.routes["/drop"] = [](const ExchangePtr& /*exchange*/) {};
  start();
  HttpClient client = connect();
  const HttpReply reply = client.request({.path = "/drop"});
  EXPECT_EQ(reply.status, 500);
  EXPECT_THAT(error_message(reply), HasSubstr("failed to answer"));
  EXPECT_EQ(client.request({.path = "/echo"}).status, 200);
}

TEST_F(HttpServerTest, OneConnectionTooManyIs503UntilOneIsFree) {
  HttpServerOptions options = free_port();
  options.max_connections = 2;
  start(options);
  HttpClient first = connect();
  HttpClient second = connect();
  ASSERT_EQ(first.request({.path = "/echo"}).status, 200);
  ASSERT_EQ(second.request({.path = "/echo"}).status, 200);
  HttpClient third = connect();
  const HttpReply reply = third.request({.path = "/echo"});
  EXPECT_EQ(reply.status, 503);
  EXPECT_NE(error_message(reply), "");
  EXPECT_TRUE(reply.has_header("retry-after"));
  EXPECT_TRUE(third.read_until_closed().is_closed);
  first.close();
  ASSERT_TRUE(eventually([&] { return server_->load().connections == 1; }));
  EXPECT_EQ(connect().request({.path = "/echo"}).status, 200);
}

TEST(HttpServerStartTest, ListensOnIpv4Ipv6AndLocalhost) {
  ScriptedHandler handler;
  handler.routes["/echo"] = echo;
  for (const std::string host : {"127.0.0.1", "localhost", "0.0.0.0", "::1", "[::1]", "::"}) {
    HttpServerOptions options = free_port();
    options.host = host;
    const auto server = HttpServer::start(options, handler);
    const bool is_ipv6 = host.find(':') != std::string::npos;
    if (!server && is_ipv6) continue;  // a machine without IPv6
    ASSERT_TRUE(server) << server.error().message;
    HttpClient client((*server)->port(), {.host = is_ipv6 ? "::1" : "127.0.0.1"});
    EXPECT_EQ(client.request({.path = "/echo"}).status, 200) << host;
    EXPECT_NE((*server)->port(), 0);
  }
}

TEST(HttpServerStartTest, SaysWhyItCannotListen) {
  ScriptedHandler handler;
  const auto first = start_server(free_port(), handler);
  HttpServerOptions options;
  options.port = first->port();
  const auto second = HttpServer::start(options, handler);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kIo);
  EXPECT_THAT(second.error().message, HasSubstr("127.0.0.1 port " + std::to_string(first->port())));
  options.host = "not.an.address";
  const auto third = HttpServer::start(options, handler);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::kBadRequest);
  EXPECT_THAT(third.error().message, HasSubstr("not.an.address"));
}

}  // namespace
}  // namespace locket::server
