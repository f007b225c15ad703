// How near the search for rows comes to the machine: keys where a memory holds them, scored for one
// position and for many, alone and with the selection of the best 512, beside the peak of vpdpbusd
// (and of tiles) and a plain read of as many bytes. All sides of a table run in turn, several
// times; a ratio is the median over the rounds of one side's rate by the first one's of the same
// round.
//
//   build/release/bench/index_scan_bench [--keys N] [--rounds N] [--table NAME]
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/memory_region.h"
#include "cache/page_pool.h"
#include "cache/sequence_memory.h"
#include "kernels/kernel_table.h"
#include "kernels/machine_limits.h"
#include "measure.h"
#include "model/index_search.h"
#include "numerics/fp4_e2m1.h"

namespace locket::bench {
namespace {

using kernels::PeakUnit;

constexpr std::size_t kDim = 128;
constexpr std::size_t kRowBytes = 288;
constexpr std::size_t kKeyBytes = 68;
constexpr std::size_t kBest = 512;
constexpr std::size_t kPoolBlocks = 2048;
constexpr std::size_t kPoolBlockSize = 8;
constexpr std::size_t kPrompt = 128;
constexpr std::size_t kKeysAtOnce = 2048;

struct Options {
  std::int64_t keys = std::int64_t{1} << 20;
  std::size_t rounds = 7;
  std::string table;  // empty: the fastest
};

// A memory of random keys: codes of all kinds, scales that differ by up to 2^3 within a key.
class Keys {
 public:
  explicit Keys(std::int64_t count)
      : layout_{.streams = {{.name = "rows", .row_bytes = kRowBytes},
                            {.name = "index keys",
                             .row_bytes = kKeyBytes,
                             .part = cache::PagePart::kKeys}},
                .rings = {}},
        pool_(layout_.page_bytes(), std::uint64_t{1} << 40),
        sequence_(layout_, pool_) {
    LOCKET_CHECK(sequence_.reserve_tokens(count).has_value());
    std::mt19937 random(1);
    const cache::KvView memory = sequence_.view();
    for (std::int64_t key = 0; key < count; ++key) {
      const std::span<std::byte> row = memory.row(1, key);
      for (std::size_t i = 0; i < kDim / 2; ++i) row[i] = static_cast<std::byte>(random());
      for (std::size_t i = kDim / 2; i < kKeyBytes; ++i) {
        row[i] = static_cast<std::byte>(121 + random() % 4);
      }
    }
  }

  cache::KvView view() { return sequence_.view(); }

 private:
  cache::KvLayout layout_;
  cache::PagePool pool_;
  cache::SequenceMemory sequence_;
};

model::IndexQueries random_queries(std::size_t rows, std::size_t heads) {
  std::mt19937 random(2);
  model::IndexQueries queries{.heads = tensor::FloatMatrix(rows, heads * kDim),
                              .weights = tensor::FloatMatrix(rows, heads)};
  for (float& value : queries.heads.values()) {
    value = numerics::to_float(numerics::Fp4E2m1{static_cast<std::uint8_t>(random() % 16)});
  }
  for (float& value : queries.weights.values()) {
    value = (static_cast<float>(random() % 1024) - 300.0f) * 0x1p-12f;
  }
  return queries;
}

// One thing that is measured.
struct Side {
  std::string name;
  double operations;  // two for a multiply-add of a key and a query
  double keys;        // times positions; 0: none
  std::function<void()> run;
  std::vector<double> seconds = {};
};

void measure(std::string_view title, std::size_t rounds, std::vector<Side>& sides) {
  for (Side& side : sides) side.run();
  for (std::size_t round = 0; round < rounds; ++round) {
    for (Side& side : sides) {
      const double start = monotonic_seconds();
      side.run();
      side.seconds.push_back(monotonic_seconds() - start);
    }
  }
  fmt::print("\n{}\n{:<34} {:>9} {:>9} {:>10} {:>10} {:>9}\n", title, "", "best ms", "median",
             "Mkeys/s", "Gop/s", "of first");
  for (const Side& side : sides) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < rounds; ++i) {
      ratios.push_back(side.operations / side.seconds[i] /
                       (sides[0].operations / sides[0].seconds[i]));
    }
    const double middle = median(side.seconds);
    fmt::print("{:<34} {:>9.3f} {:>9.3f} {:>10.1f} {:>10.1f} {:>9.3f}\n", side.name,
               *std::min_element(side.seconds.begin(), side.seconds.end()) * 1e3, middle * 1e3,
               side.keys / middle / 1e6, side.operations / middle / 1e9, median(ratios));
  }
  std::fflush(stdout);
}

class Bench {
 public:
  Bench(const Options& options, std::size_t threads)
      : options_(options),
        workers_(threads),
        context_{.workers = workers_, .numerics = {}},
        keys_(options.keys),
        memory_(keys_.view()),
        plain_(read_bytes(), MemoryRegion::Pages::kLarge) {
    std::fill_n(plain_.data(), read_bytes(), std::byte{1});
  }

  void one_position(std::size_t heads);
  void prompt(std::size_t heads);

 private:
  std::size_t read_bytes() const {
    return static_cast<std::size_t>(options_.keys) * kKeyBytes / 64 * 64;
  }
  Side peak(PeakUnit unit);
  Side plain_read(double operations);
  void score_all(const kernels::IndexQuery& query);
  void search(const model::IndexerConfig& config, const model::IndexQueries& queries,
              model::Step& step);
  model::Step last_positions(std::size_t count, std::int64_t keys) {
    return model::Step({{.memory = &memory_,
                         .first_position = keys - static_cast<std::int64_t>(count),
                         .count = count}},
                       {});
  }

  Options options_;
  WorkerPool workers_;
  model::ForwardContext context_;
  Keys keys_;
  cache::KvView memory_;
  MemoryRegion plain_;
};

Side Bench::peak(PeakUnit unit) {
  const std::size_t rounds = 5 * kernels::peak_rounds_per_millisecond(unit);
  const double operations = kernels::run_peak(unit, rounds, workers_);
  return {.name = std::string(kernels::peak_unit_name(unit)) + " peak",
          .operations = operations,
          .keys = 0,
          .run = [this, unit, rounds] { kernels::run_peak(unit, rounds, workers_); }};
}

// Counted as if it scored what it reads.
Side Bench::plain_read(double operations) {
  return {.name = "plain read of as many bytes",
          .operations = operations,
          .keys = static_cast<double>(options_.keys),
          .run = [this] {
            kernels::read_plainly({plain_.data(), read_bytes()}, workers_);
          }};
}

// Scores alone, each thread a part of the keys.
void Bench::score_all(const kernels::IndexQuery& query) {
  const auto count = static_cast<std::size_t>(options_.keys);
  workers_.parallel_for(count, kKeysAtOnce, [&](std::size_t begin, std::size_t end) {
    std::vector<float> scores(kKeysAtOnce);
    std::vector<kernels::KeyRun> runs;
    constexpr auto kPage = static_cast<std::size_t>(cache::kTokensPerPage);
    for (std::size_t at = begin; at < end; at += kKeysAtOnce) {
      runs.clear();
      for (std::size_t key = at; key < std::min(end, at + kKeysAtOnce); key += kPage) {
        runs.push_back({.rows = memory_.row(1, static_cast<std::int64_t>(key)).data(),
                        .count = std::min(kPage, end - key)});
      }
      kernels::index_scan(
          {.runs = runs, .queries = {&query, 1}, .scores = scores.data(), .stride = scores.size()});
    }
  });
}

void Bench::search(const model::IndexerConfig& config, const model::IndexQueries& queries,
                   model::Step& step) {
  using Pool = model::IndexerConfig::Pool;
  if (config.pool == Pool::kBuild) step.pool.positions.assign(step.rows(), {});
  step.selection.rows.assign(step.rows(), {});
  model::IndexSearch(context_, config, queries, 1, step).run();
}

void Bench::one_position(std::size_t heads) {
  using Pool = model::IndexerConfig::Pool;
  const model::IndexQueries queries = random_queries(1, heads);
  const kernels::IndexQuery query = kernels::prepare_index_query({.heads = heads,
                                                                  .dim = kDim,
                                                                  .values = queries.heads.row(0),
                                                                  .weights = queries.weights.row(0),
                                                                  .integers = {}});
  const auto config = [&](Pool pool) {
    return model::IndexerConfig{.heads = heads,
                                .dim = kDim,
                                .rope_dim = 64,
                                .topk = kBest,
                                .pool_blocks = kPoolBlocks,
                                .pool_block_size = kPoolBlockSize,
                                .pool = pool};
  };
  model::Step step = last_positions(1, options_.keys);
  const auto keys = static_cast<double>(options_.keys);
  const double pool_keys = std::min<double>(keys, kPoolBlocks * kPoolBlockSize);
  const double operations = 2.0 * static_cast<double>(heads * kDim);
  std::vector<Side> sides = {peak(PeakUnit::kInt8)};
  if (kernels::has_peak_unit(PeakUnit::kAmxInt8)) sides.push_back(peak(PeakUnit::kAmxInt8));
  sides.push_back(plain_read(keys * operations));
  sides.push_back({"scores", keys * operations, keys, [&] { score_all(query); }});
  sides.push_back({"scores and the best 512", keys * operations, keys,
                   [&] { search(config(Pool::kNone), queries, step); }});
  sides.push_back({"and the best 2048 blocks", keys * operations, keys,
                   [&] { search(config(Pool::kBuild), queries, step); }});
  sides.push_back({"the best 512 of those blocks", pool_keys * operations, pool_keys,
                   [&] { search(config(Pool::kUse), queries, step); }});
  measure(fmt::format("{} keys, {} heads, one position, {} threads", options_.keys, heads,
                      workers_.thread_count()),
          options_.rounds, sides);
}

void Bench::prompt(std::size_t heads) {
  const std::int64_t count = std::min<std::int64_t>(options_.keys, 65'536);
  const model::IndexQueries queries = random_queries(kPrompt, heads);
  const model::IndexerConfig config = {.heads = heads, .dim = kDim, .rope_dim = 64, .topk = kBest};
  model::Step step = last_positions(kPrompt, count);
  const double keys = static_cast<double>(count) * kPrompt;
  std::vector<Side> sides = {peak(PeakUnit::kInt8)};
  sides.push_back({"scores and the best 512", keys * 2.0 * static_cast<double>(heads * kDim), keys,
                   [&] { search(config, queries, step); }});
  measure(fmt::format("{} keys, {} heads, {} positions, {} threads", count, heads, kPrompt,
                      workers_.thread_count()),
          options_.rounds, sides);
}

bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name.starts_with("--benchmark_min_time")) {
      options.rounds = 1;
      options.keys = 40'000;
      continue;
    }
    if (i + 1 == argc) return false;
    const std::string_view value = argv[++i];
    if (name == "--table") {
      options.table = value;
    } else if (!(name == "--keys" && read_count(value, options.keys)) &&
               !(name == "--rounds" && read_count(value, options.rounds))) {
      return false;
    }
  }
  return true;
}

int run(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) {
    fmt::print(stderr, "usage: index_scan_bench [--keys N] [--rounds N] [--table NAME]\n");
    return 2;
  }
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    if (table->name == options.table) kernels::set_active_kernels(table);
  }
  fmt::print("kernels: {}\n", kernels::active_kernels().name);
  for (std::size_t threads = 1; threads <= WorkerPool::hardware_threads(); threads *= 2) {
    Bench bench(options, threads);
    for (const std::size_t heads : {32, 64}) {
      bench.one_position(heads);
      bench.prompt(heads);
    }
  }
  return 0;
}

}  // namespace
}  // namespace locket::bench

int main(int argc, char** argv) { return locket::bench::run(argc, argv); }
