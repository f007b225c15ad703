// Experts that do not fit: decode steps over a file of experts with the shapes of the release,
// routed by a Zipf law, through caches of several sizes. In turn for the same steps: streaming;
// only the reads that it needed, all queued at once; only the products, all experts in memory.
// Streaming should take hardly longer than the slower of the two.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/worker_pool.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_stream.h"
#include "measure.h"
#include "model/expert_load.h"
#include "model/expert_step.h"
#include "model/streamed_experts.h"

namespace locket {
namespace {

using model::ExpertKey;
using model::ExpertSource;
using model::StoredExpert;

struct Wishes {
  std::size_t layers = 4;
  std::size_t experts = 40;
  std::size_t chosen = 6;
  std::size_t hidden = 5120;
  std::size_t width = 2304;
  double skew = 1.0;
  std::vector<double> shares = {0.25, 0.5, 0.75, 0.9};  // of all experts, in the cache
  std::size_t tokens = 12;                              // of one run
  std::size_t runs = 7;
  std::size_t threads = 2;
  std::size_t readers = 4;
  std::string dir = "/tmp";
  double benchmark_min_time = 0;
};

template <class T>
T checked(Result<T> result) {
  if (!result) fmt::print(stderr, "{}\n", result.error().message);
  LOCKET_CHECK(result.has_value());
  return std::move(*result);
}

void checked(const Status& status) { LOCKET_CHECK(status.has_value()); }

std::string expert_name(std::size_t layer, std::size_t expert, const char* part) {
  return fmt::format("layers.{}.ffn.experts.{}.{}", layer, expert, part);
}

// The values of an expert side by side, its scales side by side, as a release has them.
std::vector<checkpoint::PlannedTensor> planned_tensors(const Wishes& wishes) {
  const auto hidden = static_cast<std::int64_t>(wishes.hidden);
  const auto width = static_cast<std::int64_t>(wishes.width);
  std::vector<checkpoint::PlannedTensor> tensors;
  for (std::size_t layer = 0; layer < wishes.layers; ++layer) {
    for (std::size_t expert = 0; expert < wishes.experts; ++expert) {
      const auto add = [&](const char* part, numerics::Dtype dtype, tensor::Shape shape) {
        tensors.push_back({expert_name(layer, expert, part), dtype, std::move(shape)});
      };
      add("w1.weight", numerics::Dtype::kI8, {width, hidden / 2});
      add("w2.weight", numerics::Dtype::kI8, {hidden, width / 2});
      add("w3.weight", numerics::Dtype::kI8, {width, hidden / 2});
      add("w1.scale", numerics::Dtype::kE8m0, {width, hidden / 32});
      add("w2.scale", numerics::Dtype::kE8m0, {hidden, width / 32});
      add("w3.scale", numerics::Dtype::kE8m0, {width, hidden / 32});
    }
  }
  return tensors;
}

// Scales of 2^-10 to 2^-7.
std::vector<std::byte> random_content(const checkpoint::PlannedTensor& tensor,
                                      std::mt19937_64& random) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.shape[0] * tensor.shape[1]));
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t draw = random();
    if (tensor.dtype == numerics::Dtype::kE8m0) {
      draw = (draw & 0x0303030303030303U) + 0x7575757575757575U;
    }
    std::memcpy(bytes.data() + at, &draw, sizeof draw);
  }
  return bytes;
}

// A folder with the experts; gone with the object.
class ExpertFile {
 public:
  explicit ExpertFile(const Wishes& wishes)
      : folder_(std::filesystem::path(wishes.dir) / "locket_expert_stream_bench") {
    std::filesystem::create_directories(folder_);
    const std::string config = "{}";
    checked(write_whole_file(folder_ / "config.json", std::as_bytes(std::span(config))));
    const auto planned = planned_tensors(wishes);
    auto stream =
        checked(checkpoint::SafetensorsStream::create(folder_ / "model.safetensors", planned, {}));
    std::mt19937_64 random(1);
    for (const auto& tensor : planned) checked(stream.append(random_content(tensor, random)));
    checked(stream.finish());
    checkpoint_ =
        std::make_unique<checkpoint::Checkpoint>(checked(checkpoint::Checkpoint::open(folder_)));
    find(wishes);
  }
  ExpertFile(const ExpertFile&) = delete;
  ExpertFile& operator=(const ExpertFile&) = delete;
  ~ExpertFile() {
    checkpoint_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  const std::vector<std::vector<StoredExpert>>& stored() const { return stored_; }
  std::size_t expert_bytes() const { return stored_.front().front().packed_bytes(); }

 private:
  void find(const Wishes& wishes) {
    const auto hidden = static_cast<std::int64_t>(wishes.hidden);
    const auto width = static_cast<std::int64_t>(wishes.width);
    for (std::size_t layer = 0; layer < wishes.layers; ++layer) {
      auto& experts = stored_.emplace_back();
      for (std::size_t expert = 0; expert < wishes.experts; ++expert) {
        const auto weight = [&](const char* part, std::int64_t rows, std::int64_t columns) {
          return checked(
              model::find_weight(*checkpoint_, expert_name(layer, expert, part), rows, columns));
        };
        experts.push_back({.gate = weight("w1", width, hidden),
                           .up = weight("w3", width, hidden),
                           .down = weight("w2", hidden, width)});
      }
    }
  }

  std::filesystem::path folder_;
  std::unique_ptr<checkpoint::Checkpoint> checkpoint_;
  std::vector<std::vector<StoredExpert>> stored_;
};

// The experts that tokens go through: each layer has its own order of popularity.
class ZipfRouting {
 public:
  explicit ZipfRouting(const Wishes& wishes) : chosen_(wishes.chosen), random_(2) {
    for (std::size_t layer = 0; layer < wishes.layers; ++layer) {
      std::vector<double>& weights = weights_.emplace_back(wishes.experts);
      for (std::size_t rank = 0; rank < weights.size(); ++rank) {
        weights[rank] = 1.0 / std::pow(static_cast<double>(rank + 1), wishes.skew);
      }
      std::shuffle(weights.begin(), weights.end(), random_);
    }
  }

  // [layers][chosen], ascending.
  std::vector<std::vector<std::int32_t>> next_token() {
    std::vector<std::vector<std::int32_t>> routing;
    for (std::vector<double> weights : weights_) {
      std::vector<std::int32_t>& ids = routing.emplace_back();
      for (std::size_t i = 0; i < chosen_; ++i) {
        std::discrete_distribution<std::int32_t> draw(weights.begin(), weights.end());
        ids.push_back(draw(random_));
        weights[static_cast<std::size_t>(ids.back())] = 0;
      }
      std::ranges::sort(ids);
    }
    return routing;
  }

 private:
  std::size_t chosen_;
  std::mt19937 random_;
  std::vector<std::vector<double>> weights_;
};

using Trace = std::vector<std::vector<std::vector<std::int32_t>>>;  // [tokens][layers][chosen]

// What a layer does with its experts, as the mixture of experts does it for one token.
class Products {
 public:
  Products(const Wishes& wishes, std::size_t threads)
      : workers_(threads),
        context_{.workers = workers_, .numerics = {}},
        input_(1, wishes.hidden),
        gated_(wishes.chosen, wishes.width),
        sum_(1, wishes.hidden) {
    std::ranges::fill(input_.values(), 0.5f);
  }

  void run(ExpertSource& source, std::int64_t layer, std::span<const std::int32_t> ids,
           std::vector<ExpertKey>* missing) {
    const auto lease = source.fetch(layer, ids);
    for (std::size_t i = 0; i < ids.size() && missing != nullptr; ++i) {
      if (!lease->is_ready(i)) missing->push_back({layer, ids[i]});
    }
    std::vector<model::ExpertRows> rows(ids.size());
    std::vector<std::size_t> left(ids.size());
    std::iota(left.begin(), left.end(), std::size_t{0});
    for (model::ExpertRows& one : rows) {
      one.tokens = {0};
      one.router_weights = {0.25f};
    }
    static_cast<void>(model::number_rows(rows));
    while (!left.empty()) {
      std::vector<std::size_t> taken;
      std::erase_if(left, [&](std::size_t index) {
        if (lease->is_ready(index)) taken.push_back(index);
        return !taken.empty() && taken.back() == index;
      });
      if (taken.empty()) {
        taken.push_back(left.front());
        left.erase(left.begin());
      }
      std::vector<const model::ExpertRows*> ready;
      for (const std::size_t index : taken) {
        rows[index].weights = checked(lease->wait(index));
        ready.push_back(&rows[index]);
      }
      model::gate_experts(context_, 10.0f, input_, ready, gated_);
    }
    model::add_expert_outputs(context_, rows, gated_, kernels::Rounding::kBf16, sum_);
  }

 private:
  WorkerPool workers_;
  model::ForwardContext context_;
  tensor::FloatMatrix input_;
  tensor::FloatMatrix gated_;
  tensor::FloatMatrix sum_;
};

double run_trace(Products& products, ExpertSource& source, const Trace& trace,
                 std::vector<ExpertKey>* missing) {
  const double start = monotonic_seconds();
  for (const auto& token : trace) {
    for (std::size_t layer = 0; layer < token.size(); ++layer) {
      products.run(source, static_cast<std::int64_t>(layer), token[layer], missing);
    }
  }
  return monotonic_seconds() - start;
}

std::vector<const checkpoint::StoredTensor*> tensors_of(const StoredExpert& expert) {
  return {&expert.gate.weight, &*expert.gate.scale, &expert.up.weight,
          &*expert.up.scale,   &expert.down.weight, &*expert.down.scale};
}

void add_pieces(const checkpoint::StoredTensor& tensor,
                std::vector<checkpoint::TensorPiece>& pieces) {
  constexpr std::uint64_t kBytes = checkpoint::TensorReads::kBlockBytes;
  for (std::uint64_t at = 0; at < tensor.byte_count(); at += kBytes) {
    const auto bytes = static_cast<std::size_t>(std::min(kBytes, tensor.byte_count() - at));
    pieces.push_back({.tensor = &tensor, .first_byte = at, .bytes = bytes});
  }
}

// The same bytes, nothing done with them.
double read_only(const ExpertFile& file, std::span<const ExpertKey> keys, std::size_t readers) {
  if (keys.empty()) return 0;
  std::vector<const checkpoint::StoredTensor*> tensors;
  std::vector<checkpoint::TensorPiece> pieces;
  for (const ExpertKey& key : keys) {
    const auto& experts = file.stored()[static_cast<std::size_t>(key.layer)];
    for (const auto* tensor : tensors_of(experts[static_cast<std::size_t>(key.expert)])) {
      tensors.push_back(tensor);
      add_pieces(*tensor, pieces);
    }
  }
  auto reads = checked(checkpoint::TensorReads::open(tensors, readers));
  const double start = monotonic_seconds();
  reads->read(pieces, [](std::size_t, const Result<std::span<const std::byte>>& bytes) {
    LOCKET_CHECK(bytes.has_value());
  });
  reads.reset();  // when all is read
  return monotonic_seconds() - start;
}

void measure(const Wishes& wishes, const ExpertFile& file, ExpertSource& resident, double share) {
  const auto all = static_cast<double>(wishes.layers * wishes.experts * file.expert_bytes());
  const auto source = checked(model::StreamedExperts::create(
      file.stored(),
      {.budget_bytes = static_cast<std::uint64_t>(all * share) + 1, .readers = wishes.readers}));
  Products products(wishes, wishes.threads);
  ZipfRouting routing(wishes);
  const auto next_trace = [&] {
    Trace trace(wishes.tokens);
    for (auto& token : trace) token = routing.next_token();
    return trace;
  };
  for (int warm = 0; warm < 3; ++warm) run_trace(products, *source, next_trace(), nullptr);
  std::vector<double> walls, reads, computes, ratios;
  const model::ExpertStreamCounts before = source->counts();
  for (std::size_t run = 0; run < wishes.runs; ++run) {
    const Trace trace = next_trace();
    std::vector<ExpertKey> missing;
    walls.push_back(run_trace(products, *source, trace, &missing));
    reads.push_back(read_only(file, missing, wishes.readers));
    computes.push_back(run_trace(products, resident, trace, nullptr));
    ratios.push_back(walls.back() / std::max(reads.back(), computes.back()));
  }
  const model::ExpertStreamCounts after = source->counts();
  const auto misses = static_cast<double>(after.misses - before.misses);
  const auto asked = misses + static_cast<double>(after.hits - before.hits);
  const double gb = static_cast<double>(after.bytes_read - before.bytes_read) / 1e9;
  const double per_token = 1e3 / static_cast<double>(wishes.tokens);
  fmt::print("{:>5.0f}% {:>8.1f}% {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>7.2f} {:>7.2f}\n",
             share * 100, 100 * misses / asked,
             gb / static_cast<double>(wishes.runs) * per_token / 1e3, median(walls) * per_token,
             median(reads) * per_token, median(computes) * per_token,
             gb / std::accumulate(reads.begin(), reads.end(), 0.0), median(ratios),
             *std::ranges::min_element(ratios));
}

void run(const Wishes& wishes) {
  const ExpertFile file(wishes);
  const std::size_t count = wishes.layers * wishes.experts;
  fmt::print(
      "{} experts of {:.1f} MB in {} layers, {} of a layer per token, Zipf {}; {} threads, {} "
      "readers; {} runs of {} tokens\n\n",
      count, static_cast<double>(file.expert_bytes()) / 1e6, wishes.layers, wishes.chosen,
      wishes.skew, wishes.threads, wishes.readers, wishes.runs, wishes.tokens);
  const auto resident = checked(model::StreamedExperts::create(
      file.stored(), {.budget_bytes = count * file.expert_bytes(), .readers = wishes.readers}));
  model::ExpertUses everything(wishes.layers, wishes.experts);
  std::vector<std::int32_t> ids(wishes.experts);
  std::iota(ids.begin(), ids.end(), 0);
  for (std::size_t layer = 0; layer < wishes.layers; ++layer) {
    everything.note(static_cast<std::int64_t>(layer), ids);
  }
  resident->warm_up(everything, {});
  fmt::print("{:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7}\n", "cache", "misses",
             "GB/token", "wall ms", "reads ms", "compute", "read GB/s", "ratio", "best");
  for (const double share : wishes.shares) measure(wishes, file, *resident, share);
}

}  // namespace
}  // namespace locket

int main(int argc, char** argv) {
  locket::Wishes wishes;
  CLI::App app("Streams experts from disk, beside the reads alone and the products alone.");
  app.add_option("--dir", wishes.dir, "where the file is made");
  app.add_option("--layers", wishes.layers, "layers");
  app.add_option("--experts", wishes.experts, "experts of a layer");
  app.add_option("--skew", wishes.skew, "exponent of the Zipf law");
  app.add_option("--shares", wishes.shares, "sizes of the cache, of all experts")->delimiter(',');
  app.add_option("--tokens", wishes.tokens, "tokens of a run");
  app.add_option("--runs", wishes.runs, "runs of each, in turn; medians are printed");
  app.add_option("--threads", wishes.threads, "threads that compute");
  app.add_option("--readers", wishes.readers, "threads that read");
  app.add_option("--benchmark_min_time", wishes.benchmark_min_time, "given: only a short trial");
  CLI11_PARSE(app, argc, argv);
  if (wishes.benchmark_min_time > 0) {
    wishes.experts = 8;
    wishes.layers = 2;
    wishes.shares = {0.75};
    wishes.tokens = 1;
    wishes.runs = 1;
  }
  locket::run(wishes);
  return 0;
}
