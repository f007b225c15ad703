#include "tests/support/tiny_models.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include "base/check.h"
#include "base/worker_pool.h"
#include "cache/page_pool.h"
#include "checkpoint/checkpoint.h"
#include "engine/session.h"
#include "tokenizer/engram_token_map.h"
#include "tokenizer/tokenizer.h"

namespace locket::test_support {
namespace {

struct LoadedTiny {
  checkpoint::Checkpoint checkpoint;
  model::V41Model model;
};

template <class T>
T value_or_stop(Result<T> result) {
  if (!result) ADD_FAILURE() << result.error().message;
  LOCKET_CHECK(result.has_value());
  return std::move(*result);
}

std::unique_ptr<LoadedTiny> load_tiny(const std::string& name, model::NumericsMode mode) {
  const std::filesystem::path folder = tiny_checkpoint(name);
  auto files = value_or_stop(checkpoint::Checkpoint::open(folder));
  const auto words = value_or_stop(tokenizer::Tokenizer::load(folder / "tokenizer.json"));
  auto model = value_or_stop(model::V41Model::load(
      files, value_or_stop(tokenizer::make_engram_token_map(words)), {.mode = mode}, {}));
  return std::make_unique<LoadedTiny>(LoadedTiny{std::move(files), std::move(model)});
}

// Collects the logits of every position that the decoder runs.
class LogitsCollector : public model::ForwardObserver {
 public:
  explicit LogitsCollector(RunBits& bits) : bits_(bits) {}

  void on_floats(const Place& place, std::span<const float> values) override {
    if (place.name != "logits") return;
    if (bits_.logits.empty()) bits_.first_position = place.first_position;
    const auto next = bits_.first_position + static_cast<std::int64_t>(bits_.logits.size());
    EXPECT_EQ(place.first_position, next);
    for (std::size_t at = 0; at < values.size(); at += place.width) {
      const auto row = values.subspan(at, place.width);
      bits_.logits.emplace_back(row.begin(), row.end());
    }
  }
  void on_integers(const Place&, std::span<const std::int32_t>) override {}

 private:
  RunBits& bits_;
};

// Pages full of old bytes, given back in an order that has nothing to do with their addresses.
void use_up_pages(cache::PagePool& pool, std::int64_t count, std::uint32_t seed) {
  std::vector<cache::PageId> pages;
  for (std::int64_t i = 0; i < count; ++i) {
    pages.push_back(value_or_stop(pool.acquire()));
    std::memset(pool.data(pages.back()), 0xA5, pool.page_bytes());
  }
  std::shuffle(pages.begin(), pages.end(), std::mt19937(seed));
  for (const cache::PageId page : pages) pool.release(page);
}

void copy_memory(cache::SequenceMemory& memory, const cache::KvLayout& layout,
                 std::int64_t token_count, RunBits& bits) {
  const cache::KvView view = memory.view();
  for (std::size_t stream = 0; stream < layout.streams.size(); ++stream) {
    std::vector<std::byte>& bytes = bits.streams.emplace_back();
    for (std::int64_t row = 0; row < token_count / layout.streams[stream].tokens_per_row; ++row) {
      const auto stored = view.row(stream, row);
      bytes.insert(bytes.end(), stored.begin(), stored.end());
    }
  }
  for (std::size_t ring = 0; ring < layout.rings.size(); ++ring) {
    for (std::int64_t slot = 0; slot < layout.rings[ring].slots; ++slot) {
      const auto stored = view.ring_slot(ring, slot);
      bits.rings.insert(bits.rings.end(), stored.begin(), stored.end());
    }
  }
}

::testing::AssertionResult same_bytes(std::span<const std::byte> actual,
                                      std::span<const std::byte> expected) {
  const auto difference = std::ranges::mismatch(actual, expected);
  if (difference.in1 == actual.end()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "byte " << difference.in1 - actual.begin() << " of " << actual.size() << " differs";
}

}  // namespace

const std::vector<std::string>& tiny_names() {
  static const std::vector<std::string> names = {"micro", "odd", "thin"};
  return names;
}

std::filesystem::path tiny_checkpoint(const std::string& name) {
  return std::filesystem::path(LOCKET_TEST_DATA) / "checkpoints" / name;
}

const model::V41Model& tiny_model(const std::string& name, model::NumericsMode mode) {
  static std::map<std::pair<std::string, model::NumericsMode>, std::unique_ptr<LoadedTiny>> loaded;
  auto& entry = loaded[{name, mode}];
  if (entry == nullptr) entry = load_tiny(name, mode);
  return entry->model;
}

std::vector<engine::TokenId> random_ids(std::uint32_t seed, std::size_t count, std::int64_t limit) {
  std::mt19937 engine(seed);
  std::vector<engine::TokenId> ids(count);
  for (engine::TokenId& id : ids) {
    id = static_cast<engine::TokenId>(engine() % static_cast<std::uint32_t>(limit));
  }
  return ids;
}

RunBits run_sequence(const model::V41Model& model, std::span<const engine::TokenId> ids,
                     const RunPlan& plan) {
  RunBits bits;
  const cache::KvLayout& layout = model.memory().layout;
  const auto token_count = static_cast<std::int64_t>(ids.size());
  cache::PagePool pool(layout.page_bytes(), std::uint64_t{1} << 32);
  if (plan.page_seed != 0) use_up_pages(pool, cache::page_count(token_count) + 3, plan.page_seed);
  WorkerPool workers(plan.threads);
  LogitsCollector collector(bits);
  engine::Session session(
      model, pool, workers,
      {.replay = plan.replay, .slice_tokens = plan.slice_tokens, .observer = &collector});
  kernels::set_active_kernels(plan.kernels);
  const std::size_t prompt = plan.prompt_tokens == 0 ? ids.size() : plan.prompt_tokens;
  Status status = session.prefill(ids.first(prompt));
  for (std::size_t i = prompt; i < ids.size() && status; ++i) status = session.append(ids[i]);
  kernels::set_active_kernels(nullptr);
  if (!status) {
    ADD_FAILURE() << status.error().message;
    return bits;
  }
  EXPECT_TRUE(std::ranges::equal(session.logits(), bits.logits.back()));
  copy_memory(session.memory(), layout, token_count, bits);
  return bits;
}

::testing::AssertionResult same_logits(const RunBits& actual, const RunBits& expected) {
  if (actual.logits.empty()) return ::testing::AssertionFailure() << "no logits";
  for (std::size_t i = 0; i < actual.logits.size(); ++i) {
    const std::int64_t position = actual.first_position + static_cast<std::int64_t>(i);
    const std::int64_t at = position - expected.first_position;
    if (at < 0 || at >= static_cast<std::int64_t>(expected.logits.size())) {
      return ::testing::AssertionFailure() << "nothing to compare position " << position << " with";
    }
    const auto& wanted = expected.logits[static_cast<std::size_t>(at)];
    const auto bytes =
        same_bytes(std::as_bytes(std::span(actual.logits[i])), std::as_bytes(std::span(wanted)));
    if (actual.logits[i].size() != wanted.size() || !bytes) {
      return ::testing::AssertionFailure()
             << "logits of position " << position << ": " << bytes.message();
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult same_rows(const RunBits& actual, const RunBits& expected) {
  if (actual.streams.empty() || actual.streams.size() != expected.streams.size()) {
    return ::testing::AssertionFailure() << actual.streams.size() << " streams";
  }
  for (std::size_t stream = 0; stream < actual.streams.size(); ++stream) {
    const auto bytes = same_bytes(actual.streams[stream], expected.streams[stream]);
    if (!bytes) {
      return ::testing::AssertionFailure() << "stream " << stream << ": " << bytes.message();
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult same_rings(const RunBits& actual, const RunBits& expected) {
  if (actual.rings.empty() || actual.rings.size() != expected.rings.size()) {
    return ::testing::AssertionFailure() << actual.rings.size() << " bytes of rings";
  }
  return same_bytes(actual.rings, expected.rings);
}

}  // namespace locket::test_support
