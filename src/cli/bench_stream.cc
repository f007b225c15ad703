// The part that runs the slice with half of the experts on disk, beside the same steps with all of
// them in memory, and beside a plain read of the experts that the steps had to read: the same
// tokens in turn, so that what else the machine does meets all three.
//
// A text's routing is a Zipf law (routing_trace.h) over 64 experts a layer, which share the bytes
// of the slice's 16; what is popular is in memory, as after an earlier run. The law leaves nothing
// to foresee, so that foresight is measured twice: as others have published it of real models, and
// as the slice's own router gives it, which has no favourites.
#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <functional>
#include <latch>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/system_memory.h"
#include "cli/bench_parts.h"
#include "cli/bench_step.h"
#include "cli/routing_trace.h"
#include "cli/text_table.h"
#include "cli/v41_only.h"
#include "model/generations/released_parts.h"
#include "model/streamed_experts.h"

namespace locket::cli {
namespace {

constexpr std::int64_t kContext = 1'024;
constexpr std::size_t kSteps = 4;  // of a trial
constexpr std::size_t kExperts = 64;
constexpr double kExponent = 1.0;
constexpr std::size_t kEarlierTokens = 400;
// Of the experts that are missing in the next layer a look at its router names 46 %, and for each
// of those 0.4 that are read in vain (github.com/antirez/ds4, issue 840): a sixth of the experts is
// missing, and half of all others.
constexpr Foresight kPublished = {.right = 0.46, .wrong = 0.13};

using Stored = std::vector<std::vector<model::StoredExpert>>;  // [layers][experts]

// The slice's routed experts; `experts` of a layer, which go round.
Result<Stored> find_experts(checkpoint::Checkpoint& checkpoint, const model::V41Config& config,
                            std::size_t experts) {
  model::WeightReader reader(checkpoint, {});
  const model::ExpertShape shape = {.hidden = config.hidden_size, .size = config.expert_size};
  Stored stored;
  for (std::int64_t layer = 0; layer < config.layer_count; ++layer) {
    LOCKET_TRY(auto found, model::find_experts(reader, model::experts_prefix(layer),
                                               config.expert_count, shape));
    while (found.size() < experts) {
      found.push_back(found[found.size() - static_cast<std::size_t>(config.expert_count)]);
    }
    stored.push_back(std::move(found));
  }
  return stored;
}

// Reads experts and does nothing with them.
class PlainExpertReads {
 public:
  static Result<PlainExpertReads> open(const Stored& stored, std::size_t readers) {
    PlainExpertReads made;
    std::vector<const checkpoint::StoredTensor*> tensors;
    for (const auto& layer : stored) {
      for (const model::StoredExpert& expert : layer) {
        const auto& pieces = made.experts_.emplace_back(pieces_of(expert));
        for (const checkpoint::TensorPiece& piece : pieces) tensors.push_back(piece.tensor);
      }
    }
    LOCKET_TRY(made.reads_, checkpoint::TensorReads::open(tensors, readers));
    return made;
  }

  // So many of them, all queued at once.
  Status run(std::size_t count) {
    std::vector<checkpoint::TensorPiece> pieces;
    for (std::size_t i = 0; i < count; ++i, next_ += kStride) {
      const auto& expert = experts_[next_ % experts_.size()];
      pieces.insert(pieces.end(), expert.begin(), expert.end());
    }
    std::latch left(static_cast<std::ptrdiff_t>(pieces.size()));
    std::atomic<bool> has_failed = false;
    reads_->read(pieces, [&](std::size_t, const Result<std::span<const std::byte>>& bytes) {
      if (!bytes) has_failed = true;
      left.count_down();
    });
    left.wait();
    if (has_failed) return fail(ErrorCode::kIo, "cannot read the slice's experts");
    return {};
  }

 private:
  static constexpr std::size_t kStride = 37;  // neighbours of a text are none on disk

  static std::vector<checkpoint::TensorPiece> pieces_of(const model::StoredExpert& expert) {
    std::vector<checkpoint::TensorPiece> pieces;
    for (const model::StoredWeight* weight : {&expert.gate, &expert.up, &expert.down}) {
      add(weight->weight, pieces);
      if (weight->scale) add(*weight->scale, pieces);
    }
    return pieces;
  }

  static void add(const checkpoint::StoredTensor& tensor,
                  std::vector<checkpoint::TensorPiece>& pieces) {
    constexpr std::uint64_t kBytes = checkpoint::TensorReads::kBlockBytes;
    for (std::uint64_t at = 0; at < tensor.byte_count(); at += kBytes) {
      const auto bytes = static_cast<std::size_t>(std::min(kBytes, tensor.byte_count() - at));
      pieces.push_back({.tensor = &tensor, .first_byte = at, .bytes = bytes});
    }
  }

  std::vector<std::vector<checkpoint::TensorPiece>> experts_;
  std::unique_ptr<checkpoint::TensorReads> reads_;
  std::size_t next_ = 0;
};

// What is compared: a step of token `token` either way.
struct StreamSides {
  std::function<void(std::size_t token)> streaming;
  std::function<void(std::size_t token)> computing;
  const model::StreamedExperts& source;
  PlainExpertReads& reads;
};

struct StreamTimes {
  std::vector<double> walls, reads, computes;  // seconds of kSteps steps
  double asked = 0;                            // experts, of a step
  double read = 0;
  double in_vain = 0;

  BenchTrials ratio() const {
    std::vector<double> bounds;
    for (std::size_t i = 0; i < walls.size(); ++i) {
      bounds.push_back(std::max(reads[i], computes[i]));
    }
    return ratio_trials(walls, bounds, BenchSense::kLower);
  }
  std::string detail() const {
    const auto of_step = [](const std::vector<double>& seconds) {
      return median_of(seconds) / static_cast<double>(kSteps) * 1e3;
    };
    return fmt::format(
        "{:.0f} ms a token; reading alone {:.0f}, computing alone {:.0f}; {:.1f} of {:.0f} "
        "experts read, {:.1f} more in vain",
        of_step(walls), of_step(reads), of_step(computes), read, asked, in_vain);
  }
};

double seconds_of(const BenchSide& side) {
  const double begin = monotonic_seconds();
  side();
  return monotonic_seconds() - begin;
}

Result<StreamTimes> time_sides(const StreamSides& sides, std::size_t runs) {
  StreamTimes times;
  const auto steps = [](const auto& step, std::size_t first) {
    return seconds_of([&] {
      for (std::size_t i = 0; i < kSteps; ++i) step(first + i);
    });
  };
  steps(sides.streaming, 0);
  steps(sides.computing, 0);
  const model::ExpertStreamCounts start = sides.source.counts();
  for (std::size_t run = 1; run <= runs; ++run) {
    const model::ExpertStreamCounts before = sides.source.counts();
    times.walls.push_back(steps(sides.streaming, run * kSteps));
    const model::ExpertStreamCounts after = sides.source.counts();
    times.computes.push_back(steps(sides.computing, run * kSteps));
    const std::uint64_t needed = after.misses + after.foreseen - before.misses - before.foreseen;
    Status status;
    times.reads.push_back(seconds_of([&] { status = sides.reads.run(needed); }));
    LOCKET_TRY_STATUS(status);
  }
  const model::ExpertStreamCounts end = sides.source.counts();
  const auto all_steps = static_cast<double>(runs * kSteps);
  const auto of_step = [&](std::uint64_t count) { return static_cast<double>(count) / all_steps; };
  times.asked = of_step(end.hits + end.misses - start.hits - start.misses);
  times.read = of_step(end.misses + end.foreseen - start.misses - start.foreseen);
  times.in_vain = of_step(end.in_vain - start.in_vain);
  return times;
}

// The slice as streaming needs it, read anew.
struct StreamSubject {
  checkpoint::Checkpoint checkpoint;
  model::V41Config config;
  Stored stored;
  PlainExpertReads reads;
  std::size_t slots;  // half of them
};

Result<StreamSubject> open_subject(const BenchSetup& setup, std::size_t experts) {
  LOCKET_TRY(auto checkpoint,
             checkpoint::Checkpoint::open(setup.slice->engine().checkpoint().folder()));
  LOCKET_TRY(auto config, model::read_v41_config(checkpoint.config().root()));
  LOCKET_TRY(Stored stored, find_experts(checkpoint, config, experts));
  LOCKET_TRY(auto reads, PlainExpertReads::open(stored, model::StreamedExpertsOptions{}.readers));
  const std::size_t slots = stored.size() * stored.front().size() / 2;
  return StreamSubject{.checkpoint = std::move(checkpoint),
                       .config = std::move(config),
                       .stored = std::move(stored),
                       .reads = std::move(reads),
                       .slots = slots};
}

Result<std::unique_ptr<model::StreamedExperts>> open_source(const StreamSubject& subject) {
  const std::uint64_t bytes = subject.slots * subject.stored.front().front().packed_bytes();
  const std::uint64_t available = available_memory_bytes();
  if (available > 0 && bytes > available / 4 * 3) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("half of the experts take {} bytes, more than three quarters of the {} "
                            "bytes that are free",
                            grouped(bytes), grouped(available)));
  }
  return model::StreamedExperts::create(subject.stored, {.budget_bytes = bytes});
}

// What a text of the trace that ended before token `end` leaves in memory.
void warm_up(model::StreamedExperts& source, const RoutingTrace& trace, std::size_t end) {
  model::ExpertUses uses(trace.layers(), source.expert_count());
  for (std::size_t token = 0; token < end; ++token) {
    for (std::size_t layer = 0; layer < trace.layers(); ++layer) {
      uses.note(static_cast<std::int64_t>(layer), trace.ids(token, layer));
    }
  }
  source.warm_up(std::move(uses), {});
}

Result<StreamTimes> time_trace(const BenchSetup& setup, StreamSubject& subject,
                               model::StreamedExperts& source, const Foresight& foresight) {
  engine::Engine& engine = setup.slice->engine();
  LOCKET_TRY(const model::V41Model* model, v41_only(engine.model(), "--slice"));
  const auto experts = static_cast<std::size_t>(subject.config.expert_count);
  const RoutingTrace trace =
      RoutingTrace::zipf({.tokens = kEarlierTokens + (setup.runs + 1) * kSteps,
                          .layers = subject.stored.size(),
                          .experts = kExperts,
                          .chosen = static_cast<std::size_t>(subject.config.experts_per_token),
                          .stored = experts,
                          .exponent = kExponent});
  warm_up(source, trace, kEarlierTokens);
  TracedExperts on_disk(source, trace, experts, foresight);
  TracedExperts in_memory(model->experts(), trace, experts);
  LOCKET_TRY(const auto streaming,
             DecodeSteps::make(engine, {.context = kContext, .experts = &on_disk}));
  LOCKET_TRY(const auto computing,
             DecodeSteps::make(engine, {.context = kContext, .experts = &in_memory}));
  const auto step_of = [](TracedExperts& traced, DecodeSteps& steps) {
    return [&](std::size_t token) {
      traced.set_token(kEarlierTokens + token);
      steps.run();
    };
  };
  LOCKET_TRY(auto times, time_sides({.streaming = step_of(on_disk, *streaming),
                                     .computing = step_of(in_memory, *computing),
                                     .source = source,
                                     .reads = subject.reads},
                                    setup.runs));
  LOCKET_TRY_STATUS(streaming->status());
  LOCKET_TRY_STATUS(computing->status());
  return times;
}

// With the slice's own router, which also looks ahead.
Result<StreamTimes> time_own_routing(const BenchSetup& setup) {
  LOCKET_TRY(StreamSubject subject, open_subject(setup, 0));
  LOCKET_TRY(const auto source, open_source(subject));
  engine::Engine& engine = setup.slice->engine();
  LOCKET_TRY(const auto streaming,
             DecodeSteps::make(engine, {.context = kContext, .experts = source.get()}));
  LOCKET_TRY(const auto computing, DecodeSteps::make(engine, {.context = kContext}));
  LOCKET_TRY(auto times, time_sides({.streaming = [&](std::size_t) { streaming->run(); },
                                     .computing = [&](std::size_t) { computing->run(); },
                                     .source = *source,
                                     .reads = subject.reads},
                                    setup.runs));
  LOCKET_TRY_STATUS(streaming->status());
  LOCKET_TRY_STATUS(computing->status());
  return times;
}

BenchRow row_of(const char* key, std::string what, const StreamTimes& times) {
  return {.group = "H6",
          .key = key,
          .what = std::move(what),
          .bounds = {.sense = BenchSense::kLower},
          .trials = times.ratio(),
          .detail = times.detail()};
}

}  // namespace

Result<BenchRows> bench_stream(const BenchSetup& setup) {
  LOCKET_CHECK(setup.slice != nullptr);
  BenchRows rows;
  {
    LOCKET_TRY(StreamSubject subject, open_subject(setup, kExperts));
    LOCKET_TRY(const auto source, open_source(subject));
    LOCKET_TRY(const StreamTimes blind, time_trace(setup, subject, *source, {}));
    rows.push_back(row_of("streaming_over_bound",
                          "half of the experts on disk: over the longer of reading and computing",
                          blind));
    rows.back().bounds.floor = 1.25;
    rows.back().bounds.goal = 1.10;
    LOCKET_TRY(const StreamTimes seeing, time_trace(setup, subject, *source, kPublished));
    rows.push_back(row_of("streaming_foreseen_over_bound",
                          "the same, foreseeing 46 % of what is missing", seeing));
  }
  LOCKET_TRY(const StreamTimes own, time_own_routing(setup));
  rows.push_back(row_of("streaming_own_over_bound", "the same, as random weights choose", own));
  return rows;
}

}  // namespace locket::cli
