// Runs many completions on one model, a step at a time. A step takes one token of every completion
// that generates and slices of the prompts that are being read, all in one pass, so that every
// weight is read once for all. Completions join and leave between steps. What one gives does not
// depend on the others: the bits are those of a session alone.
//
// When the page pool is full the completion that came last gives its pages up and goes on later
// with the same prompt and segment, which again changes nothing.
//
// Not thread-safe: one thread calls everything but counts(). The engine must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "engine/generation.h"
#include "engine/step_pacer.h"

namespace locket::engine {

struct SchedulerOptions {
  std::size_t max_running = 256;  // completions that hold memory at once; at least 1
  StepPacerOptions pacer = {};
};

struct SchedulerCounts {
  std::uint64_t steps = 0;
  std::uint64_t prompt_tokens = 0;  // computed
  std::uint64_t hit_tokens = 0;     // remembered
  std::uint64_t generated_tokens = 0;
  std::uint64_t preemptions = 0;
};

class Scheduler {
 public:
  using Id = std::uint64_t;

  Scheduler(Engine& engine, const SchedulerOptions& options);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  // What is left ends with kCancelled.
  ~Scheduler();

  // It begins at a later step; everything about it, errors too, goes to the client.
  Id add(GenerationRequest request, std::shared_ptr<GenerationClient> client);
  // Ends it at the next step, with kCancelled; what was read and said is remembered. Unknown ids
  // are ignored.
  void cancel(Id id);
  // Leaves it out of steps, or takes it in again; it keeps its memory. Unknown ids are ignored.
  enum class Pace { kRun, kPause, kCount };
  void set_pace(Id id, Pace pace);

  // One step. False if nothing could be done: nothing is there, or all that is there is paused.
  bool step();

  std::size_t waiting() const { return waiting_.size(); }
  std::size_t running() const { return running_.size(); }
  std::size_t paused() const;
  // Of any thread. A step's tokens are counted before a client hears of them.
  SchedulerCounts counts() const;

 private:
  struct Completion;
  using CompletionPtr = std::unique_ptr<Completion>;
  using Completions = std::list<CompletionPtr>;

  void drop_cancelled();
  void admit();
  bool begin(Completion& completion);
  // Both return what they have staged: completions, prompt tokens.
  std::size_t stage_tokens();
  std::size_t stage_slices(std::size_t generating);
  bool stage_token(Completion& completion);
  void preempt(Completion& completion);
  void run(std::size_t generating, std::size_t prompt_tokens);
  void sample();
  Result<GeneratedToken> draw(Completion& completion, Sampler& sampler);
  Result<GeneratedToken> take_largest(const Completion& completion) const;
  void deliver(Completion& completion);
  static void end(Completion& completion, GenerationEnd end);
  void sweep();
  void count(const SchedulerCounts& more);

  Engine& engine_;
  SchedulerOptions options_;
  StepPacer pacer_;
  model::ForwardContext context_;
  mutable std::mutex counts_mutex_;
  SchedulerCounts counts_;  // under counts_mutex_
  Id next_id_ = 1;
  Completions waiting_;
  Completions running_;                        // in the order of admission
  Completions ended_;                          // for a moment: those that ended before they ran
  std::unordered_map<Id, Completion*> index_;  // of waiting_ and running_
  std::vector<Completion*> staged_;  // of running_: this step's; those that generate come first
  bool waits_for_room_ = false;      // nobody is admitted until somebody has ended
};

}  // namespace locket::engine
