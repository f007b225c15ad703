#include <atomic>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include "server/http_server.h"
#include "tests/server/http_cases.h"

namespace locket::server {
namespace {

using std::chrono::milliseconds;
using Backlog = HttpExchange::Backlog;

constexpr int kNothingComesMs = 30;  // how long a test looks for what must not come

class HttpStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    handler_.routes["/echo"] = echo;
    server_ = start_server(free_port(), handler_);
    ASSERT_NE(server_, nullptr);
  }
  // A client that has sent a request, and the exchange of it.
  ExchangePtr open(HttpClient& client, const HttpCall& call = {}) {
    client.send(HttpClient::request_bytes(call));
    ExchangePtr exchange = handler_.next();
    EXPECT_NE(exchange, nullptr);
    return exchange;
  }

  ScriptedHandler handler_;
  std::unique_ptr<HttpServer> server_;
};

const HttpResponse kStream = {.content_type = "text/event-stream"};

TEST_F(HttpStreamTest, HeadAndEveryPieceGoOutAtOnce) {
  HttpClient client(server_->port());
  const ExchangePtr exchange = open(client);
  exchange->start_stream(kStream);
  const HttpReply head = client.read_head();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("content-type"), "text/event-stream");
  EXPECT_EQ(head.header("transfer-encoding"), "chunked");
  EXPECT_FALSE(head.has_header("content-length"));
  for (int index = 0; index < 20; ++index) {
    const std::string piece = "data: " + std::to_string(index) + "\n\n";
    exchange->write(piece);
    EXPECT_EQ(client.read_piece(), piece);
  }
  EXPECT_FALSE(client.is_body_complete());
  exchange->finish();
  EXPECT_EQ(client.read_piece(), std::nullopt);
  EXPECT_TRUE(client.is_body_complete());
  EXPECT_EQ(client.request({.path = "/echo"}).status, 200);
}

TEST_F(HttpStreamTest, TheBodyOfTheHeadIsTheFirstPiece) {
  HttpClient client(server_->port());
  const ExchangePtr exchange = open(client);
  exchange->start_stream({.content_type = "text/event-stream", .body = "first\n"});
  client.read_head();
  EXPECT_EQ(client.read_piece(), "first\n");
}

TEST_F(HttpStreamTest, WhatIsWrittenWhileTheConnectionIsBusyGoesOutAsOneChunk) {
  ScriptedHandler handler;
  handler.routes["/burst"] = [](const ExchangePtr& exchange) {
    exchange->start_stream(kStream);
    for (int index = 0; index < 1000; ++index) exchange->write("x");
    exchange->finish();
  };
  const auto server = start_server(free_port(), handler);
  HttpClient client(server->port());
  client.send(HttpClient::request_bytes({.path = "/burst"}));
  client.read_head();
  EXPECT_EQ(client.read_piece(), std::string(1000, 'x'));
  EXPECT_EQ(client.read_piece(), std::nullopt);
  EXPECT_TRUE(client.is_body_complete());
}

TEST_F(HttpStreamTest, KeepAliveIsSentWhileThereIsNothingToSay) {
  HttpClient client(server_->port());
  const ExchangePtr exchange = open(client);
  exchange->set_keep_alive(": keep-alive\n", milliseconds(5));
  EXPECT_EQ(client.read_some(kNothingComesMs), "");  // not before the head
  exchange->start_stream(kStream);
  client.read_head();
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(client.read_body_until("\n"), ": keep-alive\n");
  }
  exchange->write("data: one\n\n");
  EXPECT_NE(client.read_body_until("data: one\n\n").find("data: one"), std::string::npos);
  EXPECT_EQ(client.read_body_until("\n"), ": keep-alive\n");
  exchange->set_keep_alive("", milliseconds(0));
  exchange->write("end");
  client.read_body_until("end");
  EXPECT_EQ(client.read_piece(kNothingComesMs), std::nullopt);
  EXPECT_FALSE(client.is_body_complete());
}

TEST_F(HttpStreamTest, Http10StreamsEndWithTheConnection) {
  HttpClient client(server_->port());
  const ExchangePtr exchange =
      open(client, {.headers = {{"Connection", "keep-alive"}}, .version = 10});
  exchange->start_stream(kStream);
  const HttpReply head = client.read_head();
  EXPECT_FALSE(head.has_header("transfer-encoding"));
  EXPECT_EQ(head.header("connection"), "close");
  exchange->write("plain");
  EXPECT_EQ(client.read_piece(), "plain");
  exchange->finish();
  EXPECT_EQ(client.read_body(), "");
  EXPECT_TRUE(client.is_body_complete());
}

TEST_F(HttpStreamTest, TheStreamOfHeadIsItsHead) {
  HttpClient client(server_->port());
  const ExchangePtr exchange = open(client, {.method = "HEAD"});
  exchange->start_stream(kStream);
  exchange->write("not sent");
  exchange->finish();
  EXPECT_EQ(client.read_head("HEAD").status, 200);
  EXPECT_EQ(client.request({.path = "/echo"}).body, "GET /echo? ");
}

TEST_F(HttpStreamTest, AStreamThatIsDroppedEndsTheConnectionWithoutAnEnd) {
  HttpClient client(server_->port());
  ExchangePtr exchange = open(client);
  exchange->start_stream(kStream);
  exchange->write("half");
  exchange.reset();
  client.read_head();
  EXPECT_EQ(client.read_body(), "half");
  EXPECT_FALSE(client.is_body_complete());
  EXPECT_TRUE(client.read_until_closed().is_closed);
}

// How a client can leave.
enum class Leaving { kClose, kReset, kCloseSending, kCount };

void leave(HttpClient& client, Leaving leaving) {
  switch (leaving) {
    case Leaving::kClose:
      client.close();
      return;
    case Leaving::kReset:
      client.reset();
      return;
    case Leaving::kCloseSending:
      client.close_sending();
      return;
    case Leaving::kCount:
      return;
  }
}

TEST_F(HttpStreamTest, AClientThatLeavesIsNoticedInEveryState) {
  for (const Leaving leaving : {Leaving::kClose, Leaving::kReset, Leaving::kCloseSending}) {
    for (int state = 0; state < 4; ++state) {
      HttpClient client(server_->port());
      const ExchangePtr exchange = open(client);
      Signal gone;
      exchange->on_disconnect([&] { gone.set(); });
      if (state >= 1) exchange->start_stream(kStream);
      if (state >= 1) client.read_head();
      if (state >= 2) exchange->write("piece");
      if (state >= 2) client.read_piece();
      if (state >= 3) exchange->write(std::string(20'000'000, 'x'));  // more than all buffers hold
      EXPECT_EQ(gone.count(), 0U);
      leave(client, leaving);
      EXPECT_TRUE(gone.wait()) << "state " << state;
      Signal late;
      exchange->on_disconnect([&] { late.set(); });
      EXPECT_EQ(late.count(), 1U);  // at once
      if (state == 0) exchange->respond({});
      if (state >= 1) exchange->write("nobody reads this");
      if (state >= 1) exchange->finish();
      EXPECT_EQ(gone.count(), 1U);
    }
  }
  EXPECT_TRUE(eventually([&] { return server_->load().open_exchanges == 0; }));
  EXPECT_TRUE(eventually([&] { return server_->load().connections == 0; }));
}

TEST_F(HttpStreamTest, LeavingAfterTheEndOfTheAnswerIsNotADisconnect) {
  HttpClient client(server_->port());
  const ExchangePtr exchange = open(client);
  Signal gone;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  exchange->on_disconnect([&gone, held = std::move(held)] { gone.set(); });
  exchange->start_stream(kStream);
  exchange->finish();
  EXPECT_TRUE(watched.expired());  // what the callback holds is let go
  client.read_head();
  EXPECT_EQ(client.read_body(), "");
  client.close();
  EXPECT_TRUE(eventually([&] { return server_->load().connections == 0; }));
  exchange->on_disconnect([&] { gone.set(); });
  EXPECT_EQ(gone.count(), 0U);
}

TEST_F(HttpStreamTest, AFullBacklogIsReportedAndItsEndToo) {
  HttpClient client(server_->port(), {.receive_buffer_bytes = 16 * 1024});
  const ExchangePtr exchange = open(client);
  Signal full;
  Signal drained;
  constexpr std::size_t kHigh = 1'000'000;
  exchange->on_backlog(kHigh,
                       [&](Backlog news) { (news == Backlog::kFull ? full : drained).set(); });
  exchange->start_stream(kStream);
  client.read_head();
  exchange->write("small");
  EXPECT_EQ(client.read_piece(), "small");
  EXPECT_EQ(full.count(), 0U);
  constexpr std::size_t kSent = 4'000'000;  // more than the limit and what the system keeps
  for (std::size_t sent = 0; sent < kSent; sent += 100'000) {
    exchange->write(std::string(100'000, 'x'));
  }
  ASSERT_TRUE(full.wait());
  EXPECT_EQ(drained.count(), 0U);
  std::size_t read = 0;
  while (read < kSent) {
    const auto piece = client.read_piece();
    ASSERT_TRUE(piece.has_value());
    read += piece->size();
  }
  EXPECT_TRUE(drained.wait());
  EXPECT_EQ(read, kSent);
  EXPECT_EQ(full.count(), drained.count());
}

TEST_F(HttpStreamTest, ASlowReaderHoldsBackOnlyItself) {
  HttpClient slow(server_->port(), {.receive_buffer_bytes = 16 * 1024});
  const ExchangePtr stuck = open(slow);
  Signal full;
  stuck->on_backlog(1, [&](Backlog /*news*/) { full.set(); });
  stuck->start_stream(kStream);
  stuck->write(std::string(4'000'000, 'x'));
  ASSERT_TRUE(full.wait());
  HttpClient quick(server_->port());
  const ExchangePtr exchange = open(quick);
  exchange->start_stream(kStream);
  quick.read_head();
  for (int index = 0; index < 1000; ++index) {
    exchange->write("piece");
    ASSERT_EQ(quick.read_piece(), "piece");
  }
  stuck->finish();
  slow.read_head();
  EXPECT_EQ(slow.read_body().size(), 4'000'000U);
  EXPECT_TRUE(slow.is_body_complete());
}

TEST_F(HttpStreamTest, PiecesOfManyThreadsAllArrive) {
  HttpClient client(server_->port());
  const ExchangePtr exchange = open(client);
  exchange->start_stream(kStream);
  std::vector<std::jthread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&exchange, writer] {
      for (int index = 0; index < 2000; ++index) exchange->write(std::string(3, "abcd"[writer]));
    });
  }
  writers.clear();
  exchange->finish();
  client.read_head();
  const std::string body = client.read_body();
  EXPECT_EQ(body.size(), 24'000U);
  for (const char letter : std::string("abcd")) {
    EXPECT_EQ(std::count(body.begin(), body.end(), letter), 6000);
  }
  EXPECT_TRUE(client.is_body_complete());
}

// Lets this process open `count` files, if the system does.
bool can_open(std::size_t count) {
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, count));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur >= count;
}

TEST(HttpManyStreamsTest, AThousandOpenStreamsAllGetTheirPieces) {
  constexpr std::size_t kStreams = 1000;
  if (!can_open(2 * kStreams + 100)) GTEST_SKIP() << "the system does not allow 2,100 open files";
  ScriptedHandler handler;
  HttpServerOptions options = free_port();
  options.io_threads = 2;
  const auto server = start_server(options, handler);
  Signal gone;
  std::vector<HttpClient> clients(kStreams);
  std::vector<ExchangePtr> exchanges;
  for (HttpClient& client : clients) {
    client = HttpClient(server->port());
    ASSERT_TRUE(client.send(HttpClient::request_bytes({})));
  }
  while (exchanges.size() < kStreams) {
    ExchangePtr exchange = handler.next();
    ASSERT_NE(exchange, nullptr);
    exchange->on_disconnect([&] { gone.set(); });
    exchange->start_stream(kStream);
    exchanges.push_back(std::move(exchange));
  }
  EXPECT_EQ(server->load().connections, kStreams);
  EXPECT_EQ(server->load().open_exchanges, kStreams);
  for (int round = 0; round < 3; ++round) {
    for (const ExchangePtr& exchange : exchanges) exchange->write("piece");
  }
  for (HttpClient& client : clients) {
    ASSERT_EQ(client.read_head().status, 200);
    ASSERT_EQ(client.read_body_until("piecepiecepiece"), "piecepiecepiece");
  }
  EXPECT_EQ(gone.count(), 0U);
  clients.clear();
  EXPECT_TRUE(gone.wait(kStreams));
  EXPECT_TRUE(eventually([&] { return server->load().connections == 0; }));
}

TEST(HttpManyStreamsTest, ClientsThatLeaveAtAnyPointLeaveNothingBehind) {
  ScriptedHandler handler;
  const auto stream = [](const ExchangePtr& exchange) {
    exchange->start_stream(kStream);
    for (int index = 0; index < 50; ++index) exchange->write(std::string(2000, 'x'));
    exchange->finish();
  };
  handler.routes["/stream"] = stream;
  HttpServerOptions options = free_port();
  options.io_threads = 2;
  const auto server = start_server(options, handler);
  const std::string bytes =
      HttpClient::request_bytes({.method = "POST", .path = "/stream", .body = "body"});
  for (std::size_t sent = 0; sent <= bytes.size(); ++sent) {
    HttpClient client(server->port());
    client.send(std::string_view(bytes).substr(0, sent));
    if (sent == bytes.size()) client.read_some();
    if (sent % 2 == 0) client.reset();
  }
  EXPECT_TRUE(eventually([&] { return server->load().connections == 0; }));
  EXPECT_EQ(server->load().open_exchanges, 0U);
}

TEST(HttpServerEndTest, ExchangesMayOutliveTheServer) {
  ScriptedHandler handler;
  std::vector<ExchangePtr> exchanges;
  std::vector<HttpClient> clients(4);
  Signal gone;
  {
    const auto server = start_server(free_port(), handler);
    for (HttpClient& client : clients) {
      client = HttpClient(server->port());
      client.send(HttpClient::request_bytes({}));
      exchanges.push_back(handler.next());
      ASSERT_NE(exchanges.back(), nullptr);
      exchanges.back()->on_disconnect([&] { gone.set(); });
    }
    exchanges[1]->start_stream(kStream);
    exchanges[2]->start_stream(kStream);
    exchanges[2]->write(std::string(20'000'000, 'x'));
    exchanges[3]->start_stream(kStream);
    exchanges[3]->set_keep_alive(".", milliseconds(1));
  }
  EXPECT_EQ(gone.count(), 4U);
  for (HttpClient& client : clients) EXPECT_TRUE(client.read_until_closed().is_closed);
  exchanges[0]->respond({});
  exchanges[1]->write("late");
  exchanges[1]->finish();
  exchanges[2]->set_keep_alive("late", milliseconds(1));
  exchanges[2]->on_backlog(1, [](Backlog /*news*/) {});
  exchanges[3]->on_disconnect([&] { gone.set(); });
  EXPECT_EQ(gone.count(), 5U);
}

TEST(HttpServerEndTest, ThreadsMayWriteWhileTheServerEnds) {
  for (int round = 0; round < 20; ++round) {
    ScriptedHandler handler;
    auto server = start_server(free_port(), handler);
    HttpClient client(server->port());
    client.send(HttpClient::request_bytes({}));
    const ExchangePtr exchange = handler.next();
    ASSERT_NE(exchange, nullptr);
    exchange->start_stream(kStream);
    std::atomic<bool> is_gone = false;
    exchange->on_disconnect([&] { is_gone = true; });
    std::jthread writer([&] {
      while (!is_gone) exchange->write("piece");
    });
    client.read_head();
    client.read_piece();
    server.reset();
  }
}

}  // namespace
}  // namespace locket::server
