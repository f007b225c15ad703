// Many requests through one model: the same words as alone, fair turns, every way to leave, and
// nothing left behind.
#include "service/dispatcher.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/service/completion_cases.h"

namespace locket::service {
namespace {

// Keeps what it is told; the test's thread waits for it.
class Listener : public RequestSink {
 public:
  void on_started() override {
    const std::lock_guard lock(mutex_);
    is_started_ = true;
    changed_.notify_all();
  }
  void on_update(const ChoiceUpdate& update) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(result_) << "an update after the end";
    tokens_ += update.new_tokens;
    if (texts_.size() <= update.choice) texts_.resize(update.choice + 1);
    for (const chat::ReplyEvent& event : update.events) {
      if (event.kind == chat::ReplyEvent::Kind::kContent) texts_[update.choice] += event.text;
      if (event.kind == chat::ReplyEvent::Kind::kFinish) ++finished_;
    }
    changed_.notify_all();
  }
  void on_end(const RequestResult& result) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(result_) << "told twice";
    result_ = result;
    changed_.notify_all();
  }

  RequestResult wait() {
    wait_until([this] { return result_.has_value(); });
    const std::lock_guard lock(mutex_);
    return result_.value_or(RequestResult{});
  }
  void wait_for_tokens(std::size_t count) {
    wait_until([&] { return tokens_ >= count || result_.has_value(); });
  }
  void wait_for_start() {
    wait_until([this] { return is_started_ || result_.has_value(); });
  }
  std::string text(std::size_t choice = 0) {
    const std::lock_guard lock(mutex_);
    return choice < texts_.size() ? texts_[choice] : std::string();
  }
  std::size_t tokens() {
    const std::lock_guard lock(mutex_);
    return tokens_;
  }
  std::size_t finished() {
    const std::lock_guard lock(mutex_);
    return finished_;
  }

 private:
  void wait_until(const std::function<bool()>& is_so) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::minutes(2), is_so)) << "it never came";
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_started_ = false;
  std::size_t tokens_ = 0;
  std::size_t finished_ = 0;
  std::vector<std::string> texts_;
  std::optional<RequestResult> result_;
};

constexpr const char* kQuestions[] = {"Hello!", "My cat is called Milo.", "I feel tired.",
                                      "My name is Clara.", "What is my cat called?"};

PreparedRequest prepared(const LoadedModel& model, const chat::ChatRequest& request) {
  Result<PreparedRequest> result = prepare(model, request, {});
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

// It goes on until it is stopped: random words of a model without sense.
chat::ChatRequest endless(std::int64_t tokens = 100'000) {
  chat::ChatRequest request = ask("Count.");
  request.ignore_eos = true;
  request.max_tokens = tokens;
  return request;
}

void wait_until_idle(const Dispatcher& dispatcher) {
  for (int i = 0; i < 100'000 && !dispatcher.is_idle(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(dispatcher.is_idle());
}

TEST(DispatcherTest, EverybodyGetsTheWordsOfALoneRun) {
  Dispatcher dispatcher(mini(), {.max_running = 16});
  std::vector<std::pair<chat::ChatRequest, std::shared_ptr<Listener>>> asked;
  for (std::uint64_t i = 0; i < 30; ++i) {
    chat::ChatRequest request = ask(kQuestions[i % std::size(kQuestions)]);
    request.sampling.temperature = i % 2 == 0 ? 0.0 : 1.0;
    request.sampling.seed = i;
    request.max_tokens = 30;
    asked.emplace_back(request, std::make_shared<Listener>());
    ASSERT_TRUE(dispatcher.submit(prepared(mini(), request), asked.back().second));
  }
  for (auto& [request, listener] : asked) listener->wait();
  wait_until_idle(dispatcher);  // a model has one caller at a time
  for (auto& [request, listener] : asked) {
    const RequestResult result = listener->wait();
    ASSERT_FALSE(result.error) << result.error->message;
    const Completion lone = completed(mini(), request);
    EXPECT_EQ(result.choices[0].reply.content, lone.reply.content);
    EXPECT_EQ(listener->text(), lone.reply.content);
    EXPECT_EQ(result.choices[0].token_ids, lone.token_ids);
    EXPECT_EQ(result.usage.completion_tokens, lone.token_ids.size());
    EXPECT_EQ(result.usage.prompt_tokens, lone.prompt_tokens);
    EXPECT_EQ(listener->tokens(), lone.token_ids.size());
    EXPECT_EQ(listener->finished(), 1U);
  }
  EXPECT_EQ(mini().engine().pool().used_bytes(), 0U);
}

// Case D16: every choice has its own end, and usage is the sum.
TEST(DispatcherTest, ChoicesShareThePromptAndEndByThemselves) {
  const LoadedModel model = load_remembering(mini_folder(), {});
  Dispatcher dispatcher(model, {});
  chat::ChatRequest request = ask("Tell me about the old house near the river.");
  request.n = 3;
  request.sampling.temperature = 1.5;
  request.sampling.seed = 4;
  request.max_tokens = 40;
  const auto listener = std::make_shared<Listener>();
  ASSERT_TRUE(dispatcher.submit(prepared(model, request), listener));
  const RequestResult result = listener->wait();
  ASSERT_FALSE(result.error);
  ASSERT_EQ(result.choices.size(), 3U);
  std::size_t tokens = 0;
  for (std::size_t choice = 0; choice < 3; ++choice) {
    EXPECT_EQ(listener->text(choice), result.choices[choice].reply.content);
    tokens += result.choices[choice].completion_tokens;
  }
  EXPECT_NE(listener->text(0), listener->text(1));
  EXPECT_EQ(result.usage.completion_tokens, tokens);
  EXPECT_EQ(listener->finished(), 3U);
  EXPECT_EQ(listener->text(0), completed(mini(), request).reply.content);
}

// Case D01: nothing is left of those who go, whatever they were doing.
TEST(DispatcherTest, CancelledRequestsLeaveNothingBehind) {
  Dispatcher dispatcher(mini(), {.max_running = 4});
  std::mt19937 random(1);
  std::vector<std::pair<Dispatcher::RequestId, std::shared_ptr<Listener>>> asked;
  for (int i = 0; i < 40; ++i) {
    const auto listener = std::make_shared<Listener>();
    const auto id = dispatcher.submit(prepared(mini(), endless()), listener);
    ASSERT_TRUE(id);
    asked.emplace_back(*id, listener);
  }
  for (auto& [id, listener] : asked) {
    if (random() % 2 == 0) listener->wait_for_tokens(random() % 4);
    dispatcher.cancel(id);
    dispatcher.cancel(id);
  }
  for (auto& [id, listener] : asked) {
    const RequestResult result = listener->wait();
    ASSERT_TRUE(result.error);
    EXPECT_EQ(result.error->code, ErrorCode::kCancelled);
  }
  wait_until_idle(dispatcher);
  const DispatcherLoad load = dispatcher.load();
  EXPECT_EQ(load.running + load.queued, 0U);
  EXPECT_EQ(load.seconds_since_step, 0.0);
  EXPECT_TRUE(dispatcher.progress().empty());
  EXPECT_EQ(mini().engine().pool().used_bytes(), 0U);
  const auto next = std::make_shared<Listener>();
  ASSERT_TRUE(dispatcher.submit(prepared(mini(), ask("Hello!")), next));
  const std::string said = next->wait().choices[0].reply.content;
  wait_until_idle(dispatcher);
  EXPECT_EQ(said, completed(mini(), ask("Hello!")).reply.content);
}

TEST(DispatcherTest, AFullQueueRefusesAndSaysWhy) {
  Dispatcher dispatcher(mini(), {.max_running = 1, .max_queued = 2});
  const auto first = std::make_shared<Listener>();
  ASSERT_TRUE(dispatcher.submit(prepared(mini(), endless()), first));
  first->wait_for_start();
  std::vector<std::shared_ptr<Listener>> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.push_back(std::make_shared<Listener>());
    ASSERT_TRUE(dispatcher.submit(prepared(mini(), ask("Hello!")), waiting.back()));
  }
  const auto refused = dispatcher.submit(prepared(mini(), ask("Hello!")), first);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_NE(refused.error().message.find("2 requests wait"), std::string::npos);
  EXPECT_EQ(dispatcher.load().queued, 2U);
  dispatcher.cancel_all();
  EXPECT_EQ(first->wait().error->code, ErrorCode::kCancelled);
  for (const auto& listener : waiting) {
    EXPECT_EQ(listener->wait().error->code, ErrorCode::kCancelled);
  }
}

TEST(DispatcherTest, OneOwnerHasALimitAndDoesNotShutOthersOut) {
  Dispatcher dispatcher(mini(), {.max_running = 2, .max_per_owner = 3});
  const auto of = [](const char* owner, const chat::ChatRequest& request) {
    PreparedRequest result = prepared(mini(), request);
    result.owner = owner;
    return result;
  };
  std::vector<std::shared_ptr<Listener>> busy;
  for (int i = 0; i < 3; ++i) {
    busy.push_back(std::make_shared<Listener>());
    ASSERT_TRUE(dispatcher.submit(of("busy", endless()), busy.back()));
  }
  busy[1]->wait_for_start();
  EXPECT_EQ(dispatcher.submit(of("busy", endless()), busy[0]).error().code, ErrorCode::kOverloaded);
  // The other owner came last, and is next.
  const auto other = std::make_shared<Listener>();
  ASSERT_TRUE(dispatcher.submit(of("other", ask("Hello!")), other));
  EXPECT_EQ(busy[2]->tokens(), 0U);
  dispatcher.cancel(1);
  EXPECT_FALSE(other->wait().error);
  dispatcher.cancel_all();
  for (const auto& listener : busy) listener->wait();
}

TEST(DispatcherTest, APausedRequestStopsAndGoesOn) {
  Dispatcher dispatcher(mini(), {});
  const auto slow = std::make_shared<Listener>();
  const auto id = dispatcher.submit(prepared(mini(), endless(300)), slow);
  ASSERT_TRUE(id);
  slow->wait_for_tokens(3);
  dispatcher.pause(*id);
  while (dispatcher.load().paused == 0) std::this_thread::yield();
  const std::size_t tokens = slow->tokens();
  const auto other = std::make_shared<Listener>();
  ASSERT_TRUE(dispatcher.submit(prepared(mini(), ask("Hello!")), other));
  EXPECT_FALSE(other->wait().error);
  EXPECT_EQ(slow->tokens(), tokens);
  EXPECT_EQ(dispatcher.progress().at(0).stage, RequestProgress::Stage::kPaused);
  dispatcher.resume(*id);
  const RequestResult result = slow->wait();
  EXPECT_FALSE(result.error);
  wait_until_idle(dispatcher);
  EXPECT_EQ(result.choices[0].token_ids, completed(mini(), endless(300)).token_ids);
}

TEST(DispatcherTest, ADrainingDispatcherFinishesWhatItHas) {
  Dispatcher dispatcher(mini(), {});
  const auto last = std::make_shared<Listener>();
  ASSERT_TRUE(dispatcher.submit(prepared(mini(), endless(50)), last));
  dispatcher.stop_admitting();
  const auto refused = dispatcher.submit(prepared(mini(), ask("Hello!")), last);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(last->wait().usage.completion_tokens, 50U);
}

TEST(DispatcherTest, ADestroyedDispatcherTellsEverybody) {
  std::vector<std::shared_ptr<Listener>> asked;
  {
    Dispatcher dispatcher(mini(), {.max_running = 2});
    for (int i = 0; i < 5; ++i) {
      asked.push_back(std::make_shared<Listener>());
      ASSERT_TRUE(dispatcher.submit(prepared(mini(), endless()), asked.back()));
    }
    asked[0]->wait_for_tokens(1);
  }
  for (const auto& listener : asked) {
    EXPECT_EQ(listener->wait().error->code, ErrorCode::kCancelled);
  }
}

// A second request with the same beginning finds what the first one read, and says so.
TEST(DispatcherTest, UsageTellsWhatWasRemembered) {
  const LoadedModel model = load_remembering(mini_folder(), {});
  Dispatcher dispatcher(model, {});
  chat::ChatRequest request = ask(std::string(1'500, 'a'));
  request.max_tokens = 3;
  const auto first = std::make_shared<Listener>();
  ASSERT_TRUE(dispatcher.submit(prepared(model, request), first));
  EXPECT_EQ(first->wait().usage.hit_tokens, 0U);
  const auto second = std::make_shared<Listener>();
  ASSERT_TRUE(dispatcher.submit(prepared(model, request), second));
  const RequestResult result = second->wait();
  EXPECT_GT(result.usage.hit_tokens, result.usage.prompt_tokens * 9 / 10);
  EXPECT_EQ(result.choices[0].token_ids, first->wait().choices[0].token_ids);
  // Another tenant finds nothing.
  PreparedRequest foreign = prepared(model, request);
  foreign.generation.tenant = "somebody else";
  const auto third = std::make_shared<Listener>();
  ASSERT_TRUE(dispatcher.submit(std::move(foreign), third));
  EXPECT_EQ(third->wait().usage.hit_tokens, 0U);
}

}  // namespace
}  // namespace locket::service
