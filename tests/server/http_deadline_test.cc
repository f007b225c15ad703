#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/http_server.h"
#include "tests/server/http_cases.h"

namespace locket::server {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShort{30};
constexpr milliseconds kLong{600'000};
constexpr std::string_view kBodyHead =
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n";

// All deadlines far away; a test makes one of them short.
HttpServerOptions patient() {
  HttpServerOptions options = free_port();
  options.head_timeout = kLong;
  options.body_timeout = kLong;
  options.request_timeout = kLong;
  options.idle_timeout = kLong;
  options.write_timeout = kLong;
  return options;
}

class HttpDeadlineTest : public testing::Test {
 protected:
  HttpClient connect(const HttpServerOptions& options) {
    handler_.routes["/echo"] = echo;
    server_ = start_server(options, handler_);
    return HttpClient(server_->port());
  }
  // Sends a byte at a time until the server answers; no byte comes too late by itself.
  static HttpReply drip(HttpClient& client, char letter) {
    while (client.send({&letter, 1})) {
      const std::string answer = client.read_some(1);
      if (answer.empty()) continue;
      HttpReply reply;
      reply.status = std::stoi(answer.substr(9, 3));
      return reply;
    }
    return {};
  }

  ScriptedHandler handler_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpDeadlineTest, AHeadThatStopsIs408) {
  HttpServerOptions options = patient();
  options.head_timeout = kShort;
  HttpClient client = connect(options);
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHo"));
  const HttpReply reply = client.read_reply();
  EXPECT_EQ(reply.status, 408);
  EXPECT_NE(error_message(reply), "");
  EXPECT_TRUE(client.read_until_closed().is_closed);
}

TEST_F(HttpDeadlineTest, AHeadThatDripsIs408) {
  HttpServerOptions options = patient();
  options.head_timeout = kShort;
  HttpClient client = connect(options);
  ASSERT_TRUE(client.send("GET /"));
  EXPECT_EQ(drip(client, 'x').status, 408);
}

TEST_F(HttpDeadlineTest, AConnectionWithoutAByteIsClosed) {
  HttpServerOptions options = patient();
  options.head_timeout = kShort;
  const auto rest = connect(options).read_until_closed();
  EXPECT_TRUE(rest.is_closed);
  EXPECT_EQ(rest.bytes, "");
}

TEST_F(HttpDeadlineTest, AnIdleConnectionIsClosedWithoutAWord) {
  HttpServerOptions options = patient();
  options.idle_timeout = kShort;
  HttpClient client = connect(options);
  EXPECT_EQ(client.request({.path = "/echo"}).status, 200);
  const auto rest = client.read_until_closed();
  EXPECT_TRUE(rest.is_closed);
  EXPECT_EQ(rest.bytes, "");
}

TEST_F(HttpDeadlineTest, ABodyThatStopsIs408) {
  HttpServerOptions options = patient();
  options.body_timeout = kShort;
  HttpClient client = connect(options);
  ASSERT_TRUE(client.send(kBodyHead));
  ASSERT_TRUE(client.send("some"));
  EXPECT_EQ(client.read_reply().status, 408);
  EXPECT_TRUE(client.read_until_closed().is_closed);
}

TEST_F(HttpDeadlineTest, ABodyThatDripsIs408WhenTheWholeTimeIsOver) {
  HttpServerOptions options = patient();
  options.request_timeout = kShort;
  HttpClient client = connect(options);
  ASSERT_TRUE(client.send(kBodyHead));
  EXPECT_EQ(drip(client, 'x').status, 408);
}

TEST_F(HttpDeadlineTest, NoReadDeadlineEndsAnAnswer) {
  HttpServerOptions options = patient();
  options.head_timeout = options.body_timeout = options.idle_timeout = kShort;
  options.request_timeout = options.write_timeout = kShort;
  HttpClient client = connect(options);
  client.send(HttpClient::request_bytes({.path = "/hold"}));
  const ExchangePtr exchange = handler_.next();
  ASSERT_NE(exchange, nullptr);
  EXPECT_EQ(client.read_some(static_cast<int>(4 * kShort.count())), "");
  exchange->respond({.body = "late"});
  EXPECT_EQ(client.read_reply().body, "late");
}

TEST_F(HttpDeadlineTest, AReaderThatTakesNothingHasLeftAfterTheWriteDeadline) {
  HttpServerOptions options = patient();
  options.write_timeout = milliseconds(200);
  connect(options);
  HttpClient client(server_->port(), {.receive_buffer_bytes = 4096});
  client.send(HttpClient::request_bytes({.path = "/hold"}));
  const ExchangePtr exchange = handler_.next();
  ASSERT_NE(exchange, nullptr);
  Signal gone;
  exchange->on_disconnect([&] { gone.set(); });
  exchange->start_stream({});
  exchange->write(std::string(20'000'000, 'x'));
  EXPECT_TRUE(gone.wait());
  EXPECT_TRUE(eventually([&] { return server_->load().connections == 0; }));
}

TEST_F(HttpDeadlineTest, AReaderThatTakesALittleAtATimeStays) {
  HttpServerOptions options = patient();
  options.write_timeout = milliseconds(1500);
  connect(options);
  HttpClient client(server_->port(), {.receive_buffer_bytes = 64 * 1024});
  client.send(HttpClient::request_bytes({.path = "/hold"}));
  const ExchangePtr exchange = handler_.next();
  ASSERT_NE(exchange, nullptr);
  exchange->start_stream({});
  exchange->write(std::string(5'000'000, 'x'));
  exchange->finish();
  client.read_head();
  std::size_t read = 0;
  for (std::size_t round = 1; round <= 5; ++round) {  // longer than the deadline in all
    std::this_thread::sleep_for(milliseconds(400));
    while (read < round * 600'000) {
      const auto piece = client.read_piece();
      ASSERT_TRUE(piece.has_value());
      read += piece->size();
    }
  }
  EXPECT_EQ(read + client.read_body().size(), 5'000'000U);
  EXPECT_TRUE(client.is_body_complete());
}

class HttpStopTest : public HttpDeadlineTest {};

TEST_F(HttpStopTest, AnswersInFlightGoOnAndTheirConnectionsCloseAfterwards) {
  HttpClient waiting = connect(patient());
  waiting.send(HttpClient::request_bytes({.path = "/hold"}));
  const ExchangePtr answer = handler_.next();
  HttpClient streaming(server_->port());
  streaming.send(HttpClient::request_bytes({.path = "/hold"}));
  const ExchangePtr stream = handler_.next();
  ASSERT_TRUE(answer && stream);
  stream->start_stream({});
  streaming.read_head();
  server_->stop_listening();
  answer->respond({.body = "late"});
  const HttpReply reply = waiting.read_reply();
  EXPECT_EQ(reply.body, "late");
  EXPECT_EQ(reply.header("connection"), "close");
  EXPECT_TRUE(waiting.read_until_closed().is_closed);
  stream->write("more");
  EXPECT_EQ(streaming.read_piece(), "more");
  stream->finish();
  EXPECT_EQ(streaming.read_body(), "");
  EXPECT_TRUE(streaming.is_body_complete());
  EXPECT_TRUE(streaming.read_until_closed().is_closed);
  waiting.close();
  streaming.close();
  EXPECT_TRUE(eventually([&] { return server_->load().connections == 0; }));
}

TEST_F(HttpStopTest, IdleConnectionsCloseAndUnfinishedRequestsAre503) {
  HttpClient idle = connect(patient());
  EXPECT_EQ(idle.request({.path = "/echo"}).status, 200);
  HttpClient in_head(server_->port());
  ASSERT_TRUE(in_head.send("GET / HT"));
  HttpClient in_body(server_->port());
  ASSERT_TRUE(
      in_body.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                   "Content-Length: 5\r\n\r\n"));
  EXPECT_EQ(in_body.read_head().status, 100);
  // Its bytes came before those of in_body, on the one thread that reads.
  server_->stop_listening();
  EXPECT_TRUE(idle.read_until_closed().is_closed);
  EXPECT_EQ(in_head.read_reply().status, 503);
  EXPECT_EQ(in_body.read_reply().status, 503);
}

TEST_F(HttpStopTest, NobodyCanConnectAfterwards) {
  HttpClient client = connect(patient());
  EXPECT_EQ(client.request({.path = "/echo"}).status, 200);
  server_->stop_listening();
  EXPECT_TRUE(eventually([&] { return !HttpClient(server_->port()).is_connected(); }));
  server_->stop_listening();
}

TEST_F(HttpStopTest, TheEndOfTheServerClosesConnectionsInEveryState) {
  HttpClient idle = connect(patient());
  EXPECT_EQ(idle.request({.path = "/echo"}).status, 200);
  HttpClient fresh(server_->port());
  HttpClient in_head(server_->port());
  in_head.send("GET / HT");
  HttpClient in_body(server_->port());
  in_body.send(kBodyHead);
  HttpClient lingering(server_->port());
  lingering.send("nonsense\n");
  EXPECT_EQ(lingering.read_reply().status, 400);
  server_.reset();
  for (HttpClient* client : {&idle, &fresh, &in_head, &in_body, &lingering}) {
    EXPECT_TRUE(client->read_until_closed().is_closed);
  }
}

double processor_seconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST(HttpDescriptorsTest, AcceptsAgainWhenTheSystemHasDescriptorsAgain) {
  if (::dlsym(RTLD_DEFAULT, "__ubsan_handle_type_mismatch_v1") != nullptr) {
    GTEST_SKIP() << "the sanitizer opens descriptors for its own checks";
  }
  ScriptedHandler handler;
  handler.routes["/echo"] = echo;
  const auto server = start_server(free_port(), handler);
  HttpClient first(server->port());
  ASSERT_EQ(first.request({.path = "/echo"}).status, 200);
  rlimit before = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const int lowest_free = ::dup(0);
  ::close(lowest_free);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(lowest_free) + 1;  // room for the client's socket alone
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  HttpClient second(server->port());
  const bool is_connected = second.is_connected();
  second.send(HttpClient::request_bytes({.path = "/echo"}));
  const double used = processor_seconds();
  const std::string early = second.read_some(200);
  const double spent = processor_seconds() - used;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(is_connected);
  EXPECT_EQ(early, "");
  EXPECT_LT(spent, 0.1);
  EXPECT_EQ(second.read_reply().status, 200);
}

}  // namespace
}  // namespace locket::server
