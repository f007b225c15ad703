#include "engine/scheduler.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

namespace locket::engine {
namespace {

// A step that admits many would keep the others waiting: every one looks its prompt up.
constexpr std::size_t kMostAdmitted = 16;
// Slices below cost more than they bring, unless the step has no room for more.
constexpr std::size_t kUsefulSlice = 64;

// Experts that come from disk are read once a slice, whoever sets how long it is at most.
StepPacerOptions pacer_options(const Engine& engine, StepPacerOptions options) {
  if (!engine.plan().streams) return options;
  options.most_prompt_tokens = std::max(options.most_prompt_tokens, engine.plan().slice_tokens);
  return options;
}

}  // namespace

struct Scheduler::Completion {
  Id id = 0;
  GenerationRequest request;
  std::shared_ptr<GenerationClient> client;
  std::unique_ptr<Session> session = {};  // null while it waits
  std::vector<TokenId> output = {};       // the last one is fed in the next step
  Pace pace = Pace::kRun;
  bool is_cancelled = false;
  bool was_admitted = false;
  bool has_ended = false;
  Result<GeneratedToken> sampled = GeneratedToken{};

  bool is_generating() const { return session != nullptr && !session->is_reading(); }
  bool can_run() const { return pace == Pace::kRun && !has_ended; }
  // End tokens may not come yet.
  bool is_too_short() const { return output.size() < request.min_tokens; }
  HeadWish head_wish() const {
    const bool is_plain = takes_largest(request.sampling) && !request.wants_logprobs &&
                          !is_too_short() && !client->constrains();
    return is_plain ? HeadWish::kLargest : HeadWish::kLogits;
  }
};

Scheduler::Scheduler(Engine& engine, const SchedulerOptions& options)
    : engine_(engine),
      options_(options),
      pacer_(pacer_options(engine, options.pacer)),
      context_(engine.model().make_context(engine.workers())) {
  LOCKET_CHECK(options.max_running >= 1 && options.pacer.most_prompt_tokens >= 1);
}

Scheduler::~Scheduler() {
  for (auto& [id, completion] : index_) completion->is_cancelled = true;
  drop_cancelled();
}

Scheduler::Id Scheduler::add(GenerationRequest request, std::shared_ptr<GenerationClient> client) {
  LOCKET_CHECK(request.max_tokens >= 1);
  auto completion = std::make_unique<Completion>(
      Completion{.id = next_id_++, .request = std::move(request), .client = std::move(client)});
  index_.emplace(completion->id, completion.get());
  waiting_.push_back(std::move(completion));
  return waiting_.back()->id;
}

void Scheduler::cancel(Id id) {
  const auto found = index_.find(id);
  if (found != index_.end()) found->second->is_cancelled = true;
}

void Scheduler::set_pace(Id id, Pace pace) {
  const auto found = index_.find(id);
  if (found != index_.end()) found->second->pace = pace;
}

std::size_t Scheduler::paused() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      running_, [](const CompletionPtr& completion) { return completion->pace == Pace::kPause; }));
}

SchedulerCounts Scheduler::counts() const {
  const std::lock_guard lock(counts_mutex_);
  return counts_;
}

void Scheduler::count(const SchedulerCounts& more) {
  const std::lock_guard lock(counts_mutex_);
  counts_.steps += more.steps;
  counts_.prompt_tokens += more.prompt_tokens;
  counts_.hit_tokens += more.hit_tokens;
  counts_.generated_tokens += more.generated_tokens;
  counts_.preemptions += more.preemptions;
}

bool Scheduler::step() {
  const std::size_t before = index_.size();
  drop_cancelled();
  admit();
  staged_.clear();
  const std::size_t generating = stage_tokens();
  const std::size_t prompt_tokens = stage_slices(generating);
  if (!staged_.empty()) {
    run(generating, prompt_tokens);
    sample();
  }
  sweep();
  return !staged_.empty() || index_.size() != before;
}

void Scheduler::drop_cancelled() {
  for (auto* list : {&waiting_, &running_}) {
    for (CompletionPtr& completion : *list) {
      if (completion->is_cancelled) end(*completion, {.reason = EndReason::kCancelled});
    }
  }
  sweep();
}

// Those that have ended leave.
void Scheduler::sweep() {
  for (auto* list : {&waiting_, &running_}) {
    for (auto at = list->begin(); at != list->end();) {
      if (!(*at)->has_ended) {
        ++at;
        continue;
      }
      if (list == &running_) waits_for_room_ = false;
      index_.erase((*at)->id);
      at = list->erase(at);
    }
  }
  if (running_.empty()) waits_for_room_ = false;
}

void Scheduler::end(Completion& completion, GenerationEnd end) {
  if (completion.session != nullptr) {
    completion.session->end_turn();
    end.memory = completion.session->memory_use();
    completion.session.reset();
  }
  completion.has_ended = true;
  completion.client->on_end(end);
}

void Scheduler::admit() {
  for (std::size_t count = 0; count < kMostAdmitted; ++count) {
    if (waiting_.empty() || waits_for_room_ || running_.size() >= options_.max_running) return;
    Completion& completion = *waiting_.front();
    if (!begin(completion)) {
      waits_for_room_ = true;
      return;
    }
    auto& target = completion.has_ended ? ended_ : running_;
    target.splice(target.end(), waiting_, waiting_.begin());
    if (completion.has_ended) {
      index_.erase(completion.id);
      ended_.clear();
    }
  }
}

// False: it has to wait until others give memory back.
bool Scheduler::begin(Completion& completion) {
  const GenerationRequest& request = completion.request;
  std::vector<TokenId> tokens = request.prompt;
  tokens.insert(tokens.end(), completion.output.begin(), completion.output.end());
  PromptLengths lengths = {.prompt_tokens = request.prompt.size(),
                           .system_tokens = request.system_tokens};
  // The last token is never fed to the model.
  if (request.answer_room > 0)
    lengths.room_tokens = request.prompt.size() + request.answer_room - 1;
  auto session = std::make_unique<Session>(engine_.model(), engine_.pool(), engine_.workers(),
                                           engine_.session_options(request.tenant));
  const auto room = static_cast<std::int64_t>(std::max(tokens.size(), lengths.room_tokens));
  Status status = session->memory().check_budget(room);
  const bool can_fit = status.has_value();
  if (can_fit) status = session->begin(tokens, lengths);
  if (!status) {
    const bool waits = can_fit && status.error().code == ErrorCode::kOverBudget;
    if (waits && !running_.empty()) return false;
    end(completion, {.reason = EndReason::kFailed, .error = status.error()});
    return true;
  }
  const MemoryUse use = session->memory_use();
  completion.session = std::move(session);
  if (!completion.was_admitted) count({.hit_tokens = use.hit_tokens});
  completion.was_admitted = true;
  completion.client->on_admitted(use);
  return true;
}

std::size_t Scheduler::stage_tokens() {
  std::vector<Completion*> generating;
  for (const CompletionPtr& completion : running_) {
    if (completion->can_run() && completion->is_generating())
      generating.push_back(completion.get());
  }
  for (Completion* completion : generating) {
    if (completion->session == nullptr || completion->has_ended) continue;  // preempted meanwhile
    if (stage_token(*completion)) staged_.push_back(completion);
  }
  return staged_.size();
}

// False: it has ended, or gave its memory to others.
bool Scheduler::stage_token(Completion& completion) {
  while (true) {
    const Status status = completion.session->stage_token(completion.output.back());
    if (status) return true;
    const bool is_full = status.error().code == ErrorCode::kOverBudget;
    if (is_full && running_.size() > 1) {
      Completion& youngest = *running_.back();
      preempt(youngest);
      if (&youngest == &completion) return false;
      continue;
    }
    const bool ends = is_full || status.error().code == ErrorCode::kContextTooLong;
    if (ends) log_warning(fmt::format("an answer ends early: {}", status.error().message));
    end(completion,
        {.reason = ends ? EndReason::kLength : EndReason::kFailed, .error = status.error()});
    return false;
  }
}

// It goes on later from what it has said: the same tokens with the same segment.
void Scheduler::preempt(Completion& completion) {
  const auto at = std::ranges::find_if(
      running_, [&](const CompletionPtr& one) { return one.get() == &completion; });
  completion.session->end_turn();
  completion.session.reset();
  waiting_.splice(waiting_.begin(), running_, at);
  waits_for_room_ = true;
  count({.preemptions = 1});
}

// A quarter of the room goes to the prompt that has waited longest, so that nobody waits for ever;
// the rest to those that have least to read, which lets most begin to speak soonest.
std::size_t Scheduler::stage_slices(std::size_t generating) {
  std::vector<Completion*> readers;
  Completion* blocked = nullptr;  // its rows are still on their way from disk
  for (const CompletionPtr& completion : running_) {
    if (!completion->can_run() || !completion->session->is_reading()) continue;
    if (completion->session->is_ready()) {
      readers.push_back(completion.get());
    } else if (blocked == nullptr) {
      blocked = completion.get();
    }
  }
  if (readers.empty() && generating == 0 && blocked != nullptr) readers.push_back(blocked);
  if (readers.empty()) return 0;
  const std::size_t budget = pacer_.prompt_tokens(generating);
  std::size_t left = budget;
  const auto stage = [&](Completion* reader, std::size_t most) {
    reader->session->stage_slice(std::min(left, most));
    left -= reader->session->staged_tokens();
    staged_.push_back(reader);
  };
  stage(readers.front(), readers.size() == 1 ? budget : std::max(kUsefulSlice, budget / 4));
  std::sort(readers.begin() + 1, readers.end(), [](const Completion* a, const Completion* b) {
    const std::size_t a_left = a->session->tokens_left();
    const std::size_t b_left = b->session->tokens_left();
    return a_left != b_left ? a_left < b_left : a->id < b->id;
  });
  for (std::size_t i = 1; i < readers.size() && left > 0; ++i) stage(readers[i], left);
  return budget - left;
}

void Scheduler::run(std::size_t generating, std::size_t prompt_tokens) {
  std::vector<Session*> sessions;
  for (const Completion* completion : staged_) {
    sessions.push_back(completion->session.get());
    sessions.back()->set_head_wish(completion->head_wish());
  }
  const double start = monotonic_seconds();
  std::vector<Status> statuses = run_staged(engine_.model(), context_, sessions);
  pacer_.record(generating, prompt_tokens, monotonic_seconds() - start);
  count({.steps = 1, .prompt_tokens = prompt_tokens, .generated_tokens = generating});
  for (std::size_t i = 0; i < staged_.size(); ++i) {
    Completion& completion = *staged_[i];
    if (!statuses[i]) {
      end(completion, {.reason = EndReason::kFailed, .error = std::move(statuses[i].error())});
    } else if (i >= generating && completion.output.empty()) {
      completion.client->on_prompt(completion.session->tokens().size(),
                                   completion.request.prompt.size());
    }
  }
}

void Scheduler::sample() {
  std::vector<Completion*> wanting;
  for (Completion* completion : staged_) {
    if (!completion->has_ended && completion->is_generating()) wanting.push_back(completion);
  }
  const std::size_t grain = WorkerPool::grain_for(engine_.vocabulary_size() * 8);
  engine_.workers().parallel_for(wanting.size(), grain, [&](std::size_t begin, std::size_t end) {
    Sampler sampler;
    for (std::size_t i = begin; i < end; ++i) wanting[i]->sampled = draw(*wanting[i], sampler);
  });
  for (Completion* completion : wanting) deliver(*completion);
}

Result<GeneratedToken> Scheduler::draw(Completion& completion, Sampler& sampler) {
  const GenerationRequest& request = completion.request;
  const Session& session = *completion.session;
  if (session.largest_logit()) return take_largest(completion);
  TokenFilter filter = {.allowed = completion.client->allowed_tokens()};
  if (completion.is_too_short()) filter.banned = request.end_tokens;
  LOCKET_TRY(
      const TokenId token,
      sampler.sample(
          session.logits(), request.sampling,
          {.seed = request.seed, .choice = request.choice, .position = session.tokens().size()},
          {.prompt = request.prompt, .output = completion.output}, filter));
  GeneratedToken generated = {.token = token};
  if (request.wants_logprobs) {
    generated = with_logprobs(session.logits(), token, request.top_logprobs);
  }
  generated.broken_logits = sampler.broken_logit_count();
  return generated;
}

Result<GeneratedToken> Scheduler::take_largest(const Completion& completion) const {
  const std::size_t vocabulary = engine_.vocabulary_size();
  LOCKET_TRY_STATUS(check_sampling_config(completion.request.sampling, vocabulary));
  const model::LargestLogit& largest = *completion.session->largest_logit();
  if (largest.token < 0) {
    return tl::make_unexpected(no_finite_logit(vocabulary, largest.broken_count));
  }
  return GeneratedToken{.token = largest.token, .broken_logits = largest.broken_count};
}

void Scheduler::deliver(Completion& completion) {
  const GenerationRequest& request = completion.request;
  if (!completion.sampled) {
    return end(completion, {.reason = EndReason::kFailed, .error = completion.sampled.error()});
  }
  const GeneratedToken& token = *completion.sampled;
  if (std::ranges::find(request.end_tokens, token.token) != request.end_tokens.end()) {
    return end(completion, {.reason = EndReason::kEndToken, .end_token = token.token});
  }
  completion.output.push_back(token.token);
  if (completion.client->on_token(token) == GenerationClient::Verdict::kEnough) {
    return end(completion, {.reason = EndReason::kEnough});
  }
  if (completion.output.size() >= request.max_tokens) {
    end(completion, {.reason = EndReason::kLength});
  }
}

}  // namespace locket::engine
