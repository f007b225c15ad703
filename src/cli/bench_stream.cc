// The part that runs the slice with experts on disk, beside the same steps with all of them in
// memory and beside a plain read of the bytes that were read.
#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "base/check.h"
#include "base/clock.h"
#include "cli/bench_parts.h"
#include "cli/bench_step.h"
#include "kernels/machine_limits.h"

namespace locket::cli {
namespace {

constexpr std::int64_t kContext = 1'024;
constexpr std::size_t kSteps = 4;  // of a trial

// Reads so many bytes of the slice's files, round and round.
Status read_files(const checkpoint::Checkpoint& checkpoint, std::uint64_t bytes) {
  while (true) {
    for (const checkpoint::SafetensorsFile& file : checkpoint.files()) {
      const std::uint64_t size = file.tensors().back().offset + file.tensors().back().byte_count;
      const std::uint64_t part = std::min(size, bytes);
      LOCKET_TRY_STATUS(kernels::read_directly(file.path(), part));
      bytes -= part;
      if (bytes == 0) return {};
    }
  }
}

Result<std::unique_ptr<engine::Engine>> open_streaming(const BenchSetup& setup) {
  const checkpoint::Checkpoint& checkpoint = setup.slice->engine().checkpoint();
  std::uint64_t expert_bytes = 0;
  for (const checkpoint::StoredTensor& tensor : checkpoint.tensors()) {
    if (tensor.name().find(".experts.") != std::string::npos) expert_bytes += tensor.byte_count();
  }
  engine::EngineOptions options;
  options.threads = setup.threads;
  options.memory.keeps = engine::MemoryOptions::Keeps::kNothing;
  options.expert_budget_bytes = expert_bytes / 2;
  return engine::Engine::open(checkpoint.folder(), {}, options);
}

double seconds_of(const BenchSide& side) {
  const double begin = monotonic_seconds();
  side();
  return monotonic_seconds() - begin;
}

void run_steps(DecodeSteps& steps) {
  for (std::size_t i = 0; i < kSteps; ++i) steps.run();
}

}  // namespace

Result<BenchRows> bench_stream(const BenchSetup& setup) {
  LOCKET_CHECK(setup.slice != nullptr);
  engine::Engine& resident = setup.slice->engine();
  LOCKET_TRY(const auto engine, open_streaming(setup));
  const model::StreamedExperts* source = engine->model().streamed_experts();
  LOCKET_CHECK(source != nullptr);
  LOCKET_TRY(const auto streaming, DecodeSteps::make(*engine, {.context = kContext}));
  LOCKET_TRY(const auto computing, DecodeSteps::make(resident, {.context = kContext}));
  run_steps(*streaming);
  run_steps(*computing);
  std::vector<double> walls, bounds, reads, computes;
  double bytes = 0;
  for (std::size_t run = 0; run < setup.runs; ++run) {
    const std::uint64_t before = source->counts().bytes_read;
    walls.push_back(seconds_of([&] { run_steps(*streaming); }));
    const std::uint64_t read = source->counts().bytes_read - before;
    bytes += static_cast<double>(read);
    computes.push_back(seconds_of([&] { run_steps(*computing); }));
    Status status;
    reads.push_back(seconds_of([&] { status = read_files(resident.checkpoint(), read); }));
    LOCKET_TRY_STATUS(status);
    bounds.push_back(std::max(reads.back(), computes.back()));
  }
  LOCKET_TRY_STATUS(streaming->status());
  LOCKET_TRY_STATUS(computing->status());
  const auto of_step = [](const std::vector<double>& seconds) {
    return median_of(seconds) / static_cast<double>(kSteps) * 1e3;
  };
  const double each = bytes / static_cast<double>(setup.runs * kSteps) / 1e6;
  return BenchRows{
      {.group = "H6",
       .key = "streaming_over_bound",
       .what = "half of the experts on disk: over the longer of reading and computing",
       .bounds = {.sense = BenchSense::kLower, .floor = 1.25, .goal = 1.10},
       .trials = ratio_trials(walls, bounds, BenchSense::kLower),
       .detail = fmt::format("{:.0f} ms a token; {:.0f} MB alone {:.0f}, computing alone {:.0f}",
                             of_step(walls), each, of_step(reads), of_step(computes))}};
}

}  // namespace locket::cli
