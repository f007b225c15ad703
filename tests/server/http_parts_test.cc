// The parts of the HTTP layer that are plain functions of bytes.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/internal/answer_channel.h"
#include "server/internal/answer_framer.h"
#include "server/internal/chunk_decoder.h"
#include "server/internal/head_scanner.h"
#include "server/internal/http_text.h"
#include "server/internal/request_target.h"

namespace locket::server {
namespace {

struct Decoded {
  ChunkDecoder::State state = ChunkDecoder::State::kMore;
  std::string body;
  std::string rest;
};

// Decodes in pieces of `step` bytes, as they might come from a socket.
Decoded decode(std::string_view bytes, std::size_t step, std::size_t limit = 1000) {
  ChunkDecoder decoder(limit);
  Decoded decoded;
  while (!bytes.empty() && decoded.state == ChunkDecoder::State::kMore) {
    std::string_view piece = bytes.substr(0, step);
    const std::size_t size = piece.size();
    decoded.state = decoder.decode(piece, decoded.body);
    bytes.remove_prefix(size - piece.size());
  }
  decoded.rest = bytes;
  return decoded;
}

TEST(ChunkDecoderTest, DecodesTheSameInEverySplit) {
  const std::string bytes =
      "5\r\nhello\r\n00a;name=\"value\"\r\n, dear all\r\n1 \r\n!\r\n0\r\nTrailer: x\r\nB: "
      "y\r\n\r\nnext";
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    const Decoded decoded = decode(bytes, step);
    EXPECT_EQ(decoded.state, ChunkDecoder::State::kComplete) << step;
    EXPECT_EQ(decoded.body, "hello, dear all!") << step;
    EXPECT_EQ(decoded.rest, "next") << step;
  }
}

TEST(ChunkDecoderTest, RefusesWhatIsNotChunked) {
  for (const std::string bad :
       {"x", "\r\n", ";a\r\n", "-1\r\n", "0x5\r\n", "5\nhello", "5\r\r", "5\rx", "2\r\nabc",
        "2\r\nab\nx", "1000000000000000\r\n", "FFFFFFFFFFFFFFFFF\r\n", "0\r\nTrailer\n"}) {
    for (const std::size_t step : {std::size_t{1}, bad.size()}) {
      EXPECT_EQ(decode(bad, step).state, ChunkDecoder::State::kBad) << bad;
    }
  }
}

TEST(ChunkDecoderTest, LimitsBodyExtensionsAndTrailers) {
  EXPECT_EQ(decode("3E8\r\n", 5).state, ChunkDecoder::State::kMore);
  EXPECT_EQ(decode("3E9\r\n", 5).state, ChunkDecoder::State::kTooLarge);
  EXPECT_EQ(decode("FFFFFFFFFFFFFFF\r\n", 17).state, ChunkDecoder::State::kTooLarge);
  EXPECT_EQ(decode("2\r\nab\r\n2\r\n", 1, 3).state, ChunkDecoder::State::kTooLarge);
  EXPECT_EQ(decode("1;" + std::string(20'000, 'x'), 100).state, ChunkDecoder::State::kBad);
  std::string trailers = "0\r\n";
  for (int index = 0; index < 3000; ++index) trailers += "Name: x\r\n";
  EXPECT_EQ(decode(trailers, 100).state, ChunkDecoder::State::kBad);
}

TEST(HeadScannerTest, FindsTheEndInEverySplit) {
  const std::string head = "POST /a?b HTTP/1.1\r\nHost: x\r\nName:\tv\xC3\xA9\r\n\r\n";
  const std::string bytes = head + "body\r\n\r\n";
  for (std::size_t first = 0; first <= head.size(); ++first) {
    HeadScanner scanner;
    const auto early = scanner.scan(std::string_view(bytes).substr(0, first));
    EXPECT_EQ(early == HeadScanner::State::kComplete, first == head.size());
    if (first == head.size()) continue;
    EXPECT_EQ(scanner.scan(bytes), HeadScanner::State::kComplete);
    EXPECT_EQ(scanner.head_bytes(), head.size());
  }
}

TEST(HeadScannerTest, SaysAtOnceWhatCannotBecomeHttp) {
  for (const std::string_view bad :
       {"\x16\x03\x01", " /", "\r", "\n", "GE\xC3", "G\tT", "GET / HTTP/1.1\n", "GET / HTTP/1.1\rX",
        "GET /\x01", "GET / HTTP/1.1\r\nA: \x7f", "(/", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG"}) {
    HeadScanner scanner;
    EXPECT_EQ(scanner.scan(bad), HeadScanner::State::kNotHttp) << bad;
  }
}

TEST(RequestTargetTest, TakesPathsAndWholeAddresses) {
  RequestTarget target;
  ASSERT_TRUE(split_target("/v1/models?limit=5?x", target));
  EXPECT_EQ(target.path, "/v1/models");
  EXPECT_EQ(target.query, "limit=5?x");
  ASSERT_TRUE(split_target("http://host:80/a%20b", target));
  EXPECT_EQ(target.path, "/a b");
  ASSERT_TRUE(split_target("https://host", target));
  EXPECT_EQ(target.path, "/");
  for (const std::string_view bad :
       {"", "*", "host:443", "a/b", "http://host?x", "/%", "/%4", "/%4x", "/%FF", "/%C3%28", "/%00",
        "/%0D%0A", "/%7F", "/?\xFF"}) {
    EXPECT_FALSE(split_target(bad, target)) << bad;
  }
}

TEST(HttpTextTest, TheOwnErrorsAreJsonForEveryDialect) {
  for (const int status : {400, 408, 413, 431, 500, 501, 503}) {
    const auto json = nlohmann::json::parse(plain_error(status, "what is wrong").body);
    EXPECT_EQ(json["type"], "error");
    EXPECT_EQ(json["error"]["message"], "what is wrong");
    EXPECT_TRUE(json["error"]["param"].is_null());
    EXPECT_EQ(json["error"]["type"] == "invalid_request_error", status < 500);
  }
}

TEST(AnswerChannelTest, WakesOncePerTakeAndHandsOverAllAtOnce) {
  int wakes = 0;
  AnswerChannel channel([&] { wakes += 1; });
  channel.start_stream({.body = "a"});
  channel.write("b");
  channel.write("");
  channel.write("c");
  EXPECT_EQ(wakes, 1);
  AnswerChannel::Parcel parcel = channel.take();
  EXPECT_TRUE(parcel.head.has_value());
  EXPECT_EQ(parcel.bytes, "abc");
  EXPECT_EQ(parcel.ending, AnswerChannel::Ending::kOpen);
  channel.finish();
  channel.write("after the end");
  EXPECT_EQ(wakes, 2);
  parcel = channel.take();
  EXPECT_FALSE(parcel.head.has_value());
  EXPECT_EQ(parcel.bytes, "");
  EXPECT_EQ(parcel.ending, AnswerChannel::Ending::kDone);
  channel.close();
  channel.write("after the close");
  EXPECT_EQ(wakes, 2);
}

TEST(AnswerChannelTest, WhatComesWhileAReaderIsSlowWakesAgain) {
  int wakes = 0;
  AnswerChannel channel([&] { wakes += 1; });
  channel.start_stream({});
  channel.take();
  channel.report_unsent(100);
  channel.write("a");
  channel.write("b");
  EXPECT_EQ(wakes, 2);
  channel.report_unsent(50);  // nothing was taken
  channel.write("c");
  EXPECT_EQ(wakes, 3);
  EXPECT_EQ(channel.take().bytes, "abc");
}

TEST(AnswerChannelTest, ReportsTheBacklogOncePerTurn) {
  AnswerChannel channel([] {});
  std::vector<HttpExchange::Backlog> news;
  channel.on_backlog(100, [&](HttpExchange::Backlog turn) { news.push_back(turn); });
  channel.start_stream({});
  for (const std::size_t waiting : {100, 101, 500, 50, 49, 100, 101, 0, 0}) {
    channel.report_unsent(waiting);
  }
  using Backlog = HttpExchange::Backlog;
  EXPECT_EQ(news,
            (std::vector{Backlog::kFull, Backlog::kDrained, Backlog::kFull, Backlog::kDrained}));
  channel.write(std::string(101, 'x'));  // not yet taken counts too
  channel.report_unsent(0);
  EXPECT_EQ(news.size(), 5U);
}

TEST(AnswerChannelTest, ACallbackThatUsesTheExchangeDoesNotBlock) {
  AnswerChannel channel([] {});
  channel.start_stream({});
  channel.on_disconnect([&] {
    channel.write("x");
    channel.finish();
    channel.on_disconnect([] {});
  });
  channel.on_backlog(1, [&](HttpExchange::Backlog /*turn*/) { channel.write("x"); });
  channel.report_unsent(2);
  channel.close();
  EXPECT_EQ(channel.take().bytes, "");
}

}  // namespace
}  // namespace locket::server
