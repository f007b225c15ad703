#include "tests/support/memory_soak.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <utility>

#include "cache/disk_catalog.h"
#include "engine/session.h"

namespace locket::test_support {
namespace {

using engine::Session;
using engine::TokenId;
using Tokens = std::vector<TokenId>;

constexpr std::size_t kMostFailures = 10;
constexpr std::size_t kMostConversations = 24;

class Soak {
 public:
  Soak(const model::LanguageModel& model, const SoakOptions& options)
      : model_(model), options_(options), random_(options.seed) {
    for (std::size_t i = 0; i < 3; ++i) systems_.push_back(new_tokens(60 + 90 * i));
    open_memory();
  }

  SoakReport run() {
    for (std::int64_t i = 0; i < options_.operations; ++i) {
      report_.operations += 1;
      one_operation();
      if (report_.failures.size() >= kMostFailures) break;
    }
    close_memory();
    return report_;
  }

 private:
  std::size_t draw(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  bool chance(std::size_t one_in) { return draw(one_in) == 0; }
  std::size_t between(std::size_t low, std::size_t high) { return low + draw(high - low + 1); }

  Tokens new_tokens(std::size_t count) {
    const auto vocabulary = static_cast<std::size_t>(model_.shape().vocabulary_size);
    Tokens tokens(count);
    for (TokenId& token : tokens) token = static_cast<TokenId>(draw(vocabulary));
    return tokens;
  }

  void fail(std::string what) {
    report_.differences += 1;
    if (report_.failures.size() < kMostFailures) {
      report_.failures.push_back(
          fmt::format("operation {}, seed {}: {}", report_.operations, options_.seed, what));
    }
  }

  const cache::KvLayout& layout() const { return model_.layout(); }

  // Room for a few conversations at most, so that something always has to go.
  std::uint64_t random_budget() {
    const std::uint64_t one = layout().ring_bytes() + layout().page_bytes() * 6;
    return one * between(2, 6);
  }

  void open_memory() {
    pool_ = std::make_unique<cache::PagePool>(layout().page_bytes(), random_budget());
    cache::PrefixMemoryOptions memory;
    memory.identity = {.model = {},
                       .numerics_mode = model_.numerics().memory_name(),
                       .numerics_revision = model::kNumericsRevision,
                       .tenant = {}};
    memory.model_label = "soak";
    memory.restart_tokens = model_.shape().restart_tokens();
    if (!options_.directory.empty()) {
      const std::uint64_t quota = chance(3) ? 0 : random_budget() * 4 + (std::uint64_t{4} << 20);
      auto disk = cache::DiskStore::open(
          {.directory = options_.directory, .quota_bytes = quota, .read_threads = 2});
      if (!disk) return fail("the folder does not open: " + disk.error().message);
      disk_ = std::move(*disk);
      memory.disk = disk_.get();
    }
    memory_ = std::make_unique<cache::PrefixMemory>(layout(), *pool_, std::move(memory));
  }

  void close_memory() {
    if (memory_ == nullptr) return;
    memory_->flush();
    report_.evicted_pages += memory_->counts().pages_evicted;
    if (disk_ != nullptr) report_.values_dropped += disk_->counts().values_dropped;
    memory_.reset();
    disk_.reset();
    if (pool_->used_bytes() != 0) {
      fail(fmt::format("{} bytes of the pool are still in use", pool_->used_bytes()));
    }
    pool_.reset();
  }

  void restart() {
    close_memory();
    if (!options_.directory.empty() && chance(2)) damage_a_file();
    open_memory();
    report_.restarts += 1;
  }

  // Flips a bit or cuts the end of some file, the store being closed or not.
  void damage_a_file() {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(options_.directory)) {
      const std::string extension = entry.path().extension().string();
      if (entry.is_regular_file() && extension == ".seg") files.push_back(entry.path());
    }
    if (files.empty()) return;
    std::ranges::sort(files);
    const std::filesystem::path path = files[draw(files.size())];
    const auto size = static_cast<std::size_t>(std::filesystem::file_size(path));
    if (size == 0) return;
    report_.damaged_bytes += 1;
    if (chance(8)) return std::filesystem::resize_file(path, draw(size));
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    const auto at = static_cast<std::streamoff>(draw(size));
    file.seekg(at);
    const int old = file.get();
    file.seekp(at);
    file.put(static_cast<char>(old ^ (1 << draw(8))));
  }

  void remove_a_prefix() {
    if (disk_ == nullptr || !disk_->is_writable()) return;
    memory_->flush();
    const std::vector<cache::StoredPrefix> prefixes = cache::list_prefixes(*disk_);
    if (prefixes.empty()) return;
    const auto& prefix = prefixes[draw(prefixes.size())];
    if (cache::remove_prefix(*disk_, prefix.name)) report_.removed_prefixes += 1;
  }

  Session make_session(bool with_memory) {
    engine::SessionOptions options;
    options.replay = replay_;
    options.slice_tokens = with_memory ? between(1, 300) : std::size_t{1} << 20;
    if (with_memory) {
      options.memory = memory_.get();
      return {model_, *pool_, workers_[draw(2)], options};
    }
    return {model_, cold_pool_, workers_[0], options};
  }

  // Logits after the prompt and after every appended token, without any memory.
  std::vector<std::vector<float>> cold_run(const Tokens& prompt, const Tokens& more) {
    std::vector<std::vector<float>> logits;
    Session session = make_session(false);
    Status status = session.prefill(prompt);
    for (std::size_t i = 0; status && i <= more.size(); ++i) {
      logits.emplace_back(session.logits().begin(), session.logits().end());
      if (i < more.size()) status = session.append(more[i]);
    }
    if (!status) fail("a run without memory failed: " + status.error().message);
    return logits;
  }

  void compare(const Session& session, const std::vector<float>& expected, std::string_view what) {
    report_.compared_positions += 1;
    if (std::ranges::equal(std::as_bytes(session.logits()), std::as_bytes(std::span(expected)))) {
      return;
    }
    const engine::MemoryUse use = session.memory_use();
    fail(
        fmt::format("{}: logits differ at {} tokens (prompt {}, hit {}, from disk {}, replayed {})",
                    what, session.tokens().size(), session.prompt_tokens(), use.hit_tokens,
                    use.disk_tokens, use.replayed_tokens));
  }

  // A request on its way: a prompt, and the tokens that follow it.
  struct Request {
    Tokens prompt;
    Tokens more;
    std::vector<std::vector<float>> expected;
    std::optional<Session> session;
    std::size_t done = 0;
    bool has_ended = false;
  };

  void begin(Request& request) {
    request.expected = cold_run(request.prompt, request.more);
    report_.requests += 1;
    report_.prompt_tokens += static_cast<std::int64_t>(request.prompt.size());
    request.session.emplace(make_session(true));
    std::stop_source stop;
    const bool is_cancelled = chance(12);
    const std::size_t stop_after = between(1, request.prompt.size());
    const Status status =
        request.session->prefill(request.prompt, stop.get_token(),
                                 [&](std::size_t read) {
                                   if (is_cancelled && read >= stop_after) stop.request_stop();
                                 },
                                 {.prompt_tokens = 0, .system_tokens = request.prompt.size() / 3});
    if (!status) return end_failed(request, status.error());
    const engine::MemoryUse use = request.session->memory_use();
    report_.hit_tokens += static_cast<std::int64_t>(use.hit_tokens);
    report_.disk_tokens += static_cast<std::int64_t>(use.disk_tokens);
    report_.replayed_tokens += static_cast<std::int64_t>(use.replayed_tokens);
    report_.retries += static_cast<std::int64_t>(use.retries);
    compare(*request.session, request.expected[0], "prompt");
  }

  void end_failed(Request& request, const Error& error) {
    request.has_ended = true;
    if (error.code == ErrorCode::kOverBudget) {
      report_.over_budget += 1;
    } else if (error.code != ErrorCode::kCancelled) {
      fail(fmt::format("{}: {}", error_code_name(error.code), error.message));
    }
    request.session->end_turn();
    request.session.reset();
  }

  // One more token; the turn ends after the last one.
  void advance(Request& request) {
    if (request.has_ended) return;
    if (request.done == request.more.size()) {
      if (!chance(10)) request.session->end_turn();
      request.session.reset();
      request.has_ended = true;
      return;
    }
    const Status status = request.session->append(request.more[request.done]);
    if (!status) return end_failed(request, status.error());
    request.done += 1;
    compare(*request.session, request.expected[request.done], "token");
  }

  Tokens random_prompt() {
    const auto longest = static_cast<std::size_t>(options_.longest);
    Tokens prompt;
    if (conversations_.empty() || chance(5)) {
      prompt = systems_[draw(systems_.size())];
    } else {
      prompt = conversations_[draw(conversations_.size())];
      if (chance(4)) prompt.resize(between(1, prompt.size()));
      if (chance(5)) prompt[draw(prompt.size())] = new_tokens(1)[0];
      if (chance(6)) return prompt;  // the same again
    }
    const Tokens more = new_tokens(between(1, chance(3) ? 150 : 30));
    prompt.insert(prompt.end(), more.begin(), more.end());
    if (prompt.size() > longest) prompt.resize(longest);
    return prompt;
  }

  Request random_request() {
    Request request;
    request.prompt = random_prompt();
    request.more = new_tokens(chance(6) ? between(20, 140) : draw(6));
    return request;
  }

  void remember(const Request& request) {
    Tokens tokens = request.prompt;
    tokens.insert(tokens.end(), request.more.begin(), request.more.end());
    if (conversations_.size() < kMostConversations) {
      conversations_.push_back(std::move(tokens));
    } else {
      conversations_[draw(conversations_.size())] = std::move(tokens);
    }
  }

  void one_operation() {
    const std::size_t what = draw(40);
    if (what == 0) return restart();
    if (what == 1) return remove_a_prefix();
    if (what == 2 && !options_.directory.empty()) return damage_a_file();
    const std::array modes = {engine::ReplayMode::kBounded, engine::ReplayMode::kBounded,
                              engine::ReplayMode::kExact, engine::ReplayMode::kFull};
    replay_ = modes[draw(modes.size())];
    std::vector<Request> requests;
    requests.push_back(random_request());
    if (chance(4)) requests.push_back(random_request());
    for (Request& request : requests) begin(request);
    while (!std::ranges::all_of(requests, [](const Request& r) { return r.has_ended; })) {
      advance(requests[draw(requests.size())]);
    }
    if (chance(4)) memory_->flush();
    for (const Request& request : requests) remember(request);
  }

  const model::LanguageModel& model_;
  SoakOptions options_;
  std::mt19937_64 random_;
  std::array<WorkerPool, 2> workers_{WorkerPool(1), WorkerPool(2)};
  cache::PagePool cold_pool_{model_.layout().page_bytes(), std::uint64_t{1} << 32};
  std::unique_ptr<cache::PagePool> pool_;
  std::unique_ptr<cache::DiskStore> disk_;
  std::unique_ptr<cache::PrefixMemory> memory_;
  std::vector<Tokens> systems_;
  std::vector<Tokens> conversations_;
  engine::ReplayMode replay_ = engine::ReplayMode::kBounded;
  SoakReport report_;
};

}  // namespace

std::string SoakReport::text() const {
  return fmt::format(
      "{} operations: {} requests, {} prompt tokens, {} hit ({} from disk), {} replayed, {} "
      "positions compared, {} restarts, {} damaged bytes, {} removed prefixes, {} runs begun anew, "
      "{} over budget, {} pages evicted from memory, {} values dropped: {} differences",
      operations, requests, prompt_tokens, hit_tokens, disk_tokens, replayed_tokens,
      compared_positions, restarts, damaged_bytes, removed_prefixes, retries, over_budget,
      evicted_pages, values_dropped, differences);
}

SoakReport run_soak(const model::LanguageModel& model, const SoakOptions& options) {
  return Soak(model, options).run();
}

}  // namespace locket::test_support
