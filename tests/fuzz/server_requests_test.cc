// Broken copies of real clients' requests against the whole server: every one gets an answer in
// sound JSON or a well-formed stream, nobody gets a 5xx, and the next good request is answered.
//
// LOCKET_FUZZ_ROUNDS says how many; most of them go to the handler without sockets.
#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/api_handler.h"
#include "tests/fuzz/broken_text.h"
#include "tests/server/api_fixture.h"
#include "tests/support/sanitizer.h"

namespace locket::server {
namespace {

constexpr std::size_t kAtOnce = 12;
constexpr std::size_t kLongestText = 16;
constexpr std::size_t kMostTools = 1;
// Room for the short copies, and a bound for answers whose own limit was broken.
constexpr std::size_t kContextTokens = 2048;

std::size_t rounds_wanted() {
  const char* text = std::getenv("LOCKET_FUZZ_ROUNDS");
  if (text != nullptr) return std::stoul(text);
  return test_support::runs_with_sanitizer() ? 120 : 600;
}

std::size_t socket_rounds() { return test_support::runs_with_sanitizer() ? 30 : 120; }

struct Recorded {
  std::string name;
  std::string path;
  Headers headers;
  Json body;
};

// Long texts only take time: the structure is what is broken.
void shorten(Json& value) {
  if (value.is_string()) {
    std::string text = value.get<std::string>();
    if (text.size() <= kLongestText) return;
    std::size_t end = kLongestText;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    value = text.substr(0, end);
    return;
  }
  if (!value.is_structured()) return;
  for (auto& [key, item] : value.items()) {
    static const std::vector<std::string> kTexts = {
        "text", "content", "description", "system", "instructions", "input", "output"};
    const bool is_text = std::ranges::find(kTexts, key) != kTexts.end();
    if (item.is_string() && !is_text) continue;
    if (key == "tools" && item.is_array() && item.size() > kMostTools) {
      item.erase(item.begin() + kMostTools, item.end());
    }
    shorten(item);
  }
}

Recorded read_recorded(const std::filesystem::path& path) {
  std::ifstream file(path);
  const Json json = Json::parse(file);
  Recorded recorded = {.name = path.stem().string(),
                       .path = json["path"].get<std::string>(),
                       .headers = {},
                       .body = json["body"]};
  for (const auto& [name, value] : json["headers"].items()) {
    if (value.is_string()) recorded.headers.emplace_back(name, value.get<std::string>());
  }
  std::erase_if(recorded.headers, [](const auto& header) {
    static const std::vector<std::string> kOfTheConnection = {
        "host", "content-length", "connection", "transfer-encoding", "accept-encoding"};
    std::string name = header.first;
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    return std::ranges::find(kOfTheConnection, name) != kOfTheConnection.end();
  });
  shorten(recorded.body);
  recorded.body["model"] = "deepseek-flash";
  for (const char* limit : {"max_tokens", "max_completion_tokens"}) recorded.body.erase(limit);
  const bool is_responses = recorded.path.find("/responses") != std::string::npos;
  recorded.body[is_responses ? "max_output_tokens" : "max_tokens"] = 3;
  return recorded;
}

const std::vector<Recorded>& recorded_requests() {
  static const std::vector<Recorded> requests = [] {
    std::vector<std::filesystem::path> paths;
    const auto folder = std::filesystem::path(LOCKET_TEST_DATA) / "clients";
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".json") paths.push_back(entry.path());
    }
    std::ranges::sort(paths);
    std::vector<Recorded> all;
    for (const auto& path : paths) all.push_back(read_recorded(path));
    return all;
  }();
  return requests;
}

// Members of objects and lists lose their place, are doubled, or become something else.
void shake(Json& value, std::mt19937& random, std::uint32_t odds) {
  if (!value.is_structured()) return;
  static const Json kOthers[] = {
      nullptr,           "x", "", 7, -1, true, 1e308, Json::array(), Json::object(), {{}},
      {{"type", "text"}}};
  for (auto& item : value) {
    shake(item, random, odds);
    if (random() % odds == 0) item = kOthers[random() % std::size(kOthers)];
  }
  if (value.is_array() && !value.empty() && random() % odds == 0) value.push_back(value.front());
  if (value.is_array() && !value.empty() && random() % odds == 0) value.erase(0);
  if (value.is_object() && !value.empty() && random() % odds == 0) value.erase(value.begin());
}

std::string broken_copy(const Recorded& recorded, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto kind = random() % 8;
  if (kind < 3) {
    Json body = recorded.body;
    shake(body, random, 20 + static_cast<std::uint32_t>(random() % 200));
    return body.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  fuzz::BrokenText text(recorded.body.dump(), seed);
  if (kind == 3) return text.cut();
  if (kind == 4) return text.flipped();
  if (kind == 5) return text.renumbered();
  return text.edited();
}

// The answer to one request; the handler's side of a connection, without one.
class HeldExchange final : public HttpExchange {
 public:
  explicit HeldExchange(HttpRequest request) : request_(std::move(request)) {}

  const HttpRequest& request() const override { return request_; }
  void respond(HttpResponse response) override {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    head_ = std::move(response);
    is_over_ = true;
    changed_.notify_all();
  }
  void start_stream(HttpResponse head) override {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    head_ = std::move(head);
  }
  void write(std::string bytes) override {
    const std::lock_guard lock(mutex_);
    if (!is_over_) head_.body += bytes;
  }
  void finish() override {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }
  void set_keep_alive(std::string /*bytes*/, std::chrono::milliseconds /*interval*/) override {}
  void on_disconnect(std::function<void()> call) override {
    {
      const std::lock_guard lock(mutex_);
      disconnect_ = call;
      if (!has_left_) return;
    }
    call();
  }
  void on_backlog(std::size_t /*high*/, std::function<void(Backlog)> /*call*/) override {}

  // The client leaves, wherever the answer is.
  void leave() {
    std::function<void()> call;
    {
      const std::lock_guard lock(mutex_);
      if (is_over_) return;
      is_over_ = has_left_ = true;
      call = disconnect_;
    }
    if (call) call();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(kHttpTimeoutMs),
                             [this] { return is_over_; });
  }
  HttpResponse take() {
    const std::lock_guard lock(mutex_);
    return head_;
  }

 private:
  HttpRequest request_;
  std::mutex mutex_;
  std::condition_variable changed_;
  HttpResponse head_;
  std::function<void()> disconnect_;
  bool is_over_ = false;
  bool has_left_ = false;
};

test_support::ChatExpectation expectation_of(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  test_support::ChatExpectation expectation;
  if (!json.is_object()) return expectation;
  if (json.contains("n") && json["n"].is_number()) expectation.choice_count = json["n"];
  if (json.contains("stream_options") && json["stream_options"].is_object()) {
    expectation.wants_usage = json["stream_options"].value("include_usage", Json()) == true;
  }
  return expectation;
}

void expect_sound(const HttpRequest& request, const HttpResponse& response) {
  const bool is_known = response.status == 200 || response.status == 400 || response.status == 404;
  EXPECT_TRUE(is_known) << response.status << ": " << response.body;
  if (response.content_type.find("event-stream") != std::string::npos) {
    EXPECT_EQ(response.status, 200);
    const StreamCheck check = checked(request.path, response.body, expectation_of(request.body));
    EXPECT_THAT(check.problems, IsEmpty()) << response.body;
    EXPECT_TRUE(check.error.is_null()) << response.body;
    return;
  }
  const Json json = Json::parse(response.body, nullptr, false);
  ASSERT_TRUE(json.is_object()) << response.body;
  if (response.status == 200) return;
  ASSERT_TRUE(json.contains("error") && json["error"].is_object()) << response.body;
  EXPECT_TRUE(json["error"]["message"].is_string()) << response.body;
  EXPECT_LT(response.body.size(), 100'000U);
}

// The handler with a small model, without sockets.
class FuzzedServer {
 public:
  FuzzedServer() : serving_(options(), ApiKeys()), handler_(serving_) {
    auto loaded = service::LoadedModel::open(
        odd_folder(), {.threads = 2, .pool_budget_bytes = std::uint64_t{256} << 20});
    auto turns = service::SampledTurns::open({});
    auto items = service::IssuedItemsStore::open({});
    if (!loaded || !turns || !items) throw std::runtime_error("no model");
    serving_.set_model(std::move(*loaded), std::move(*turns), std::move(*items), "odd", {});
  }

  std::shared_ptr<HeldExchange> ask(const Recorded& recorded, std::string body) {
    HttpRequest request = {.method = "POST",
                           .path = recorded.path.substr(0, recorded.path.find('?')),
                           .query = {},
                           .headers = recorded.headers,
                           .body = {},
                           .peer = "127.0.0.1"};
    request.headers.emplace_back("Host", "localhost");
    HttpHandler::Refusal refusal = handler_.check_head(request);
    request.body = std::move(body);
    auto exchange = std::make_shared<HeldExchange>(std::move(request));
    if (refusal.is_refused) {
      exchange->respond(std::move(refusal.response));
    } else {
      handler_.handle(exchange);
    }
    return exchange;
  }

  bool becomes_idle() {
    return ApiServer::eventually([this] { return serving_.model()->dispatcher.is_idle(); });
  }

 private:
  static ServerOptions options() {
    ServerOptions options = quiet_options();
    options.max_context_tokens = kContextTokens;
    options.dispatcher.max_running = kAtOnce;
    return options;
  }

  Serving serving_;
  ApiHandler handler_;
};

class ServerRequestsFuzzTest : public ::testing::Test {
 protected:
  FuzzedServer server;
  std::map<int, std::size_t> statuses;

  void expect_answer(const std::shared_ptr<HeldExchange>& exchange) {
    ASSERT_TRUE(exchange->wait()) << "no answer: " << exchange->request().body;
    const HttpResponse response = exchange->take();
    ++statuses[response.status];
    const bool has_failed = HasFailure();
    expect_sound(exchange->request(), response);
    if (HasFailure() && !has_failed)
      ADD_FAILURE() << exchange->request().path << " " << exchange->request().body;
  }
};

TEST_F(ServerRequestsFuzzTest, ShortCopiesOfAllRecordedRequestsAreAnswered) {
  ASSERT_GE(recorded_requests().size(), 10U);
  for (const Recorded& recorded : recorded_requests()) {
    const auto exchange = server.ask(recorded, recorded.body.dump());
    expect_answer(exchange);
    EXPECT_EQ(exchange->take().status, 200) << recorded.name << ": " << exchange->take().body;
  }
}

TEST_F(ServerRequestsFuzzTest, NoBrokenRequestGetsABrokenAnswer) {
  const std::vector<Recorded>& all = recorded_requests();
  const std::size_t rounds = rounds_wanted();
  for (std::size_t round = 0; round < rounds && !HasFailure(); round += kAtOnce) {
    std::vector<std::shared_ptr<HeldExchange>> asked;
    for (std::size_t i = round; i < round + kAtOnce; ++i) {
      const auto seed = static_cast<std::uint32_t>(i);
      asked.push_back(server.ask(all[i % all.size()], broken_copy(all[i % all.size()], seed)));
    }
    // Some leave without waiting for their answer.
    asked[round / kAtOnce % kAtOnce]->leave();
    asked.erase(asked.begin() + static_cast<std::ptrdiff_t>(round / kAtOnce % kAtOnce));
    for (const auto& exchange : asked) expect_answer(exchange);
  }
  EXPECT_GT(statuses[200], rounds / 10);
  EXPECT_GT(statuses[400], rounds / 10);
  EXPECT_TRUE(server.becomes_idle());
  const auto last = server.ask(all.front(), all.front().body.dump());
  expect_answer(last);
  EXPECT_EQ(last->take().status, 200);
  std::string counted;
  for (const auto& [status, count] : statuses) counted += fmt::format(" {}: {}", status, count);
  fmt::print("{} broken requests; answers by status:{}\n", rounds, counted);
}

TEST(ServerSocketsFuzzTest, NoBrokenRequestBreaksAConnectionOrTheServer) {
  ApiSetup setup = {.options = quiet_options(), .model = odd_folder()};
  setup.options.max_context_tokens = kContextTokens;
  ApiServer server(setup);
  server.ready();
  const std::vector<Recorded>& all = recorded_requests();
  for (std::size_t round = 0; round < socket_rounds(); ++round) {
    const Recorded& recorded = all[round % all.size()];
    const std::string body = broken_copy(recorded, static_cast<std::uint32_t>(round + 500'000));
    HttpClient client(server.port());
    const HttpCall call = {
        .method = "POST", .path = recorded.path, .body = body, .headers = recorded.headers};
    if (round % 10 == 9) {
      EXPECT_TRUE(client.send(HttpClient::request_bytes(call)));
      client.reset();
      continue;
    }
    const HttpReply reply = client.request(call);
    EXPECT_TRUE(reply.is_complete) << body;
    expect_sound(
        {.method = "POST",
         .path = recorded.path.substr(0, recorded.path.find('?')),
         .query = {},
         .headers = {},
         .body = body,
         .peer = {}},
        {.status = reply.status, .content_type = reply.header("content-type"), .body = reply.body});
    ASSERT_FALSE(::testing::Test::HasFailure()) << recorded.name << ": " << body;
  }
  EXPECT_TRUE(server.becomes_idle());
  EXPECT_EQ(server.post(kChatPath, chat_body("Hello!")).status, 200);
}

}  // namespace
}  // namespace locket::server
