#include "cli/bench_step.h"

#include <cstring>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/system_memory.h"
#include "cli/text_table.h"
#include "kernels/row_codec.h"

namespace locket::cli {
namespace {

using kernels::RowFormat;

constexpr std::uint64_t repeat_byte(std::uint64_t byte) { return byte * 0x0101010101010101ULL; }

// Bits that are random, and bits that are set.
struct Mask {
  std::uint64_t random = 0;
  std::uint64_t set = 0;
};

// How the codes and the scales of a format are drawn: no NaN, no zero scale, and scales of a row
// within a factor of eight.
struct RowNoise {
  std::size_t code_bytes = 0;
  Mask codes;
  Mask scales;
};

RowNoise noise_of(RowFormat format, std::size_t row_bytes) {
  constexpr Mask kAny = {.random = ~std::uint64_t{0}, .set = 0};
  constexpr Mask kE4m3 = {.random = repeat_byte(0x9F), .set = repeat_byte(0x20)};
  constexpr Mask kE4m3Scale = {.random = repeat_byte(0x0F), .set = repeat_byte(0x30)};
  constexpr Mask kE8m0Scale = {.random = repeat_byte(3), .set = repeat_byte(0x7C)};
  switch (format) {
    case RowFormat::kFp4Main:
      return {.code_bytes = row_bytes * 8 / 9, .codes = kAny, .scales = kE4m3Scale};
    case RowFormat::kFp4Index:
      return {.code_bytes = row_bytes * 16 / 17, .codes = kAny, .scales = kE8m0Scale};
    case RowFormat::kFp8:
      return {.code_bytes = row_bytes * 32 / 33, .codes = kE4m3, .scales = kE8m0Scale};
    case RowFormat::kF32:
    case RowFormat::kBf16:
    case RowFormat::kMlaFp8:
    case RowFormat::kFp8Index:
    case RowFormat::kV4Fp8:
    case RowFormat::kV4Fp8F32:
    case RowFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed) {}

  void fill(std::span<std::byte> bytes, const Mask& mask) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t word = (next() & mask.random) | mask.set;
      std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
    }
  }
  void fill_row(std::span<std::byte> row, const RowNoise& noise) {
    fill(row.first(noise.code_bytes), noise.codes);
    fill(row.subspan(noise.code_bytes), noise.scales);
  }

 private:
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    const std::uint64_t word = (state_ ^ (state_ >> 30)) * 0xBF58476D1CE4E5B9ULL;
    return word ^ (word >> 29);
  }
  std::uint64_t state_;
};

std::uint64_t bytes_for(const cache::KvLayout& layout, const DecodeSteps::Wish& wish) {
  const auto pages = static_cast<std::uint64_t>(cache::page_count(wish.context + 1));
  return wish.sequences * (pages * layout.page_bytes() + layout.ring_bytes());
}

}  // namespace

void fill_random_rows(const model::MemoryDescription& memory, std::int64_t tokens,
                      const cache::KvView& view, WorkerPool& workers) {
  const auto& streams = memory.layout.streams;
  for (std::size_t stream = 0; stream < streams.size(); ++stream) {
    const RowNoise noise = noise_of(memory.stream_rows[stream].format, streams[stream].row_bytes);
    const auto rows = static_cast<std::size_t>(tokens / streams[stream].tokens_per_row);
    workers.parallel_for(rows, 1024, [&](std::size_t begin, std::size_t end) {
      Noise random(stream << 40 | begin);
      for (std::size_t row = begin; row < end; ++row) {
        random.fill_row(view.row(stream, static_cast<std::int64_t>(row)), noise);
      }
    });
  }
  for (std::size_t ring = 0; ring < memory.layout.rings.size(); ++ring) {
    const cache::RingStream& info = memory.layout.rings[ring];
    const RowNoise noise = noise_of(memory.ring_rows[ring].format, info.row_bytes);
    Noise random(~ring);
    for (std::int64_t slot = 0; slot < info.slots; ++slot) {
      random.fill_row(view.ring_slot(ring, slot), noise);
    }
  }
}

DecodeSteps::DecodeSteps(engine::Engine& engine, const Wish& wish)
    : engine_(engine),
      wish_(wish),
      pool_(engine.model().layout().page_bytes(), bytes_for(engine.model().layout(), wish)),
      tokens_(static_cast<std::size_t>(wish.context) + 1) {}

Result<std::unique_ptr<DecodeSteps>> DecodeSteps::make(engine::Engine& engine, const Wish& wish) {
  LOCKET_CHECK(wish.context % cache::kTokensPerPage == 0 && wish.sequences >= 1);
  const std::uint64_t needed = bytes_for(engine.model().layout(), wish);
  const std::uint64_t available = available_memory_bytes();
  if (available > 0 && needed > available / 2) {
    return fail(ErrorCode::kOverBudget,
                fmt::format("a context of {} tokens takes {} bytes, more than half of the {} bytes "
                            "that are free",
                            wish.context, grouped(needed), grouped(available)));
  }
  auto steps = std::make_unique<DecodeSteps>(engine, wish);
  LOCKET_TRY_STATUS(steps->fill());
  return steps;
}

Status DecodeSteps::fill() {
  const model::MemoryDescription& memory = engine_.model().outline().memory;
  for (std::size_t i = 0; i < wish_.sequences; ++i) {
    sequences_.push_back(std::make_unique<cache::SequenceMemory>(memory.layout, pool_));
    LOCKET_TRY_STATUS(sequences_.back()->reserve_tokens(wish_.context + 1));
    views_.push_back(sequences_.back()->view());
    fill_random_rows(memory, wish_.context, views_.back(), engine_.workers());
  }
  return {};
}

void DecodeSteps::run() {
  const model::LanguageModel& model = engine_.model();
  tokens_.back() = next_token_;
  next_token_ = static_cast<std::int32_t>((next_token_ + 7919) % model.shape().vocabulary_size);
  std::vector<model::SequenceState> states(wish_.sequences, model.make_state());
  std::vector<model::SequenceState*> pointers;
  std::vector<model::StepPart> parts;
  for (std::size_t i = 0; i < wish_.sequences; ++i) {
    pointers.push_back(&states[i]);
    parts.push_back({.memory = &views_[i],
                     .tokens = tokens_,
                     .first_position = wish_.context,
                     .count = 1,
                     .segment_start = 0,
                     .write_from = wish_.context});
  }
  model::ForwardContext context = model.make_context(engine_.workers());
  context.experts = wish_.experts;
  model::Step step = model.make_step(parts);
  model::ResidualRows rows = model.encode(context, step, pointers);
  model::Step decoder = model.make_step(std::move(parts));
  model.decode(context, decoder, rows);
  static_cast<void>(model.logits(context, rows));
  for (const model::Step* part : {&step, &decoder}) {
    for (const model::StepPart& each : part->parts) {
      if (!each.status && status_) status_ = each.status;
    }
  }
}

std::uint64_t decode_weight_bytes(const checkpoint::Checkpoint& checkpoint,
                                  const model::V41Config& config) {
  std::uint64_t always = 0;
  std::uint64_t experts = 0;
  for (const checkpoint::StoredTensor& tensor : checkpoint.tensors()) {
    const std::string_view name = tensor.name();
    if (name == "embed.weight" || name.find(".engram.embed.") != std::string_view::npos) continue;
    const bool is_routed = name.find(".experts.") != std::string_view::npos;
    (is_routed ? experts : always) += tensor.byte_count();
  }
  return always + experts * static_cast<std::uint64_t>(config.experts_per_token) /
                      static_cast<std::uint64_t>(config.expert_count);
}

}  // namespace locket::cli
