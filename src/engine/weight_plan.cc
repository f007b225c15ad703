#include "engine/weight_plan.h"

#include <algorithm>
#include <fmt/format.h>

#include "checkpoint/tensor_reads.h"
#include "model/expert_placement.h"

namespace locket::engine {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kLeastPoolBytes = 16 * kMiB;
constexpr std::uint64_t kUsualPoolBytes = 64 * kMiB;  // if there is room
constexpr std::uint64_t kProgramBytes = 48 * kMiB;
// Heads with smaller copies lie in the caches of the processor.
constexpr std::uint64_t kUsefulHeadCopy = 32 * kMiB;
// Prompt tokens of a slice. Experts from disk are read once a slice, so that it is as long as a
// sixth of the memory allows.
constexpr std::size_t kResidentSlice = 512;
constexpr std::size_t kStreamedSlice = 2048;
constexpr std::uint64_t kSliceShare = 6;

std::string bytes_text(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return fmt::format("{:.2f} GB", value / 1e9);
  if (bytes >= 1'000'000) return fmt::format("{:.1f} MB", value / 1e6);
  return fmt::format("{} B", bytes);
}

std::uint64_t minus(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

tl::unexpected<Error> refuse(std::string message) {
  return fail(ErrorCode::kOverBudget, std::move(message));
}

// What is needed beside experts and memory of texts.
std::uint64_t base_bytes(const WeightPlan& plan) {
  return plan.model.dense + plan.head_copy_bytes + plan.model.engram_resident + plan.read_buffers +
         plan.program_bytes + std::max(plan.work_bytes, plan.model.load_scratch);
}

std::size_t streamed_slice(const WeightPlan& plan) {
  if (plan.available_bytes == 0) return kStreamedSlice;
  const std::uint64_t rows = plan.available_bytes / kSliceShare / plan.model.work_per_row;
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(rows, kResidentSlice, kStreamedSlice));
}

void set_slice(WeightPlan& plan, std::size_t tokens) {
  plan.slice_tokens = tokens;
  plan.work_bytes = tokens * plan.model.work_per_row;
}

Status check_working_set(const WeightPlan& plan) {
  if (plan.expert_bytes >= plan.working_set_bytes()) return {};
  return refuse(fmt::format(
      "{} for experts hold {} of them; a token goes through {} ({} in each of {} layers), of {} "
      "each: at least {} are needed",
      bytes_text(plan.expert_bytes),
      plan.expert_bytes / std::max<std::uint64_t>(1, plan.model.expert), plan.model.token_experts,
      plan.model.token_experts / std::max<std::uint64_t>(1, plan.model.expert_layers),
      plan.model.expert_layers, bytes_text(plan.model.expert),
      bytes_text(plan.working_set_bytes())));
}

Status check_available(const WeightPlan& plan) {
  if (plan.available_bytes == 0 || plan.peak_bytes() <= plan.available_bytes) return {};
  const std::uint64_t others = plan.peak_bytes() - plan.expert_bytes;
  return refuse(fmt::format(
      "{} of memory are needed and {} are available: {} weights that every token reads, {} "
      "experts, "
      "{} working space, {} memory of texts; experts may take at most {}, one token needs {}",
      bytes_text(plan.peak_bytes()), bytes_text(plan.available_bytes), bytes_text(plan.model.dense),
      bytes_text(plan.expert_bytes), bytes_text(plan.work_bytes), bytes_text(plan.pool_bytes),
      bytes_text(minus(plan.available_bytes, others)), bytes_text(plan.working_set_bytes())));
}

// A share of what is left, or a little.
std::uint64_t pool_share(std::uint64_t left, std::uint64_t part) {
  return std::max({left / part, std::min(left, kUsualPoolBytes), kLeastPoolBytes});
}

bool wants_head_copy(const WeightPlan& plan, const WeightPlanWishes& wishes) {
  switch (wishes.head_copy) {
    case HeadCopy::kWherePays:
      return plan.model.head_copy >= kUsefulHeadCopy;
    case HeadCopy::kAlways:
      return plan.model.head_copy > 0;
    case HeadCopy::kNever:
    case HeadCopy::kCount:
      break;
  }
  return false;
}

// Everything in memory. The memory of texts gets a quarter of what is left.
WeightPlan resident_plan(WeightPlan plan, const WeightPlanWishes& wishes) {
  plan.expert_bytes = plan.all_expert_bytes();
  set_slice(plan, kResidentSlice);
  const std::uint64_t left = minus(plan.available_bytes, base_bytes(plan) + plan.expert_bytes);
  plan.pool_bytes = pool_share(plan.available_bytes == 0 ? kUsualPoolBytes : left, 4);
  if (wishes.pool_bytes > 0) plan.pool_bytes = wishes.pool_bytes;
  return plan;
}

// Whether that fits. A wish for the memory of texts is no reason against it: it grows with use.
bool fits(const WeightPlan& plan) {
  if (plan.available_bytes == 0) return true;
  const std::uint64_t needed = base_bytes(plan) + plan.expert_bytes;
  return needed + std::min(plan.pool_bytes, kLeastPoolBytes) <= plan.available_bytes;
}

// A cache of experts. Nothing else is as good a use of memory, so it gets all but an eighth of what
// is left, and a twentieth of everything stays free for what no plan knows of.
WeightPlan streamed_plan(WeightPlan plan, const WeightPlanWishes& wishes) {
  plan.streams = true;
  plan.read_buffers = checkpoint::TensorReads::buffer_bytes(model::ExpertPlacement().readers);
  set_slice(plan, streamed_slice(plan));
  const std::uint64_t safe = plan.available_bytes - plan.available_bytes / 20;
  const std::uint64_t left = minus(safe, base_bytes(plan));
  plan.pool_bytes = wishes.pool_bytes > 0 ? wishes.pool_bytes : pool_share(left, 8);
  // Less than one token needs is of no use: the refusal then says what is missing.
  plan.expert_bytes = wishes.expert_bytes > 0
                          ? wishes.expert_bytes
                          : std::max(minus(left, plan.pool_bytes), plan.working_set_bytes());
  plan.expert_bytes = std::min(plan.expert_bytes, plan.all_expert_bytes());
  return plan;
}

std::string bound_text(const WeightPlan& plan, const ReadRates& rates) {
  if (rates.memory <= 0) return "not known: nothing has been measured";
  if (!plan.streams) return fmt::format("{:.2f} tokens/s", plan.tokens_per_second(rates, 0));
  if (rates.disk <= 0) {
    return fmt::format("{:.2f} tokens/s if no expert is missing", plan.tokens_per_second(rates, 0));
  }
  return fmt::format("{:.2f} tokens/s if no expert is missing, {:.2f} if all are",
                     plan.tokens_per_second(rates, 0), plan.tokens_per_second(rates, 1));
}

}  // namespace

std::uint64_t WeightPlan::peak_bytes() const {
  return base_bytes(*this) + expert_bytes + pool_bytes;
}

double WeightPlan::tokens_per_second(const ReadRates& rates, double miss) const {
  if (rates.memory <= 0 || (miss > 0 && rates.disk <= 0)) return 0;
  const auto routed = static_cast<double>(routed_token_bytes());
  const double compute = (static_cast<double>(model.token_dense) + routed) / rates.memory;
  const double disk = miss > 0 ? routed * miss / rates.disk : 0;
  return 1.0 / std::max(compute, disk);
}

Result<WeightPlan> plan_weights(const model::WeightBytes& bytes, const cache::KvLayout& layout,
                                const WeightPlanWishes& wishes) {
  const WeightPlan empty = {.model = bytes,
                            .available_bytes = wishes.available_bytes,
                            .bytes_per_token = layout.bytes_per_token(),
                            .program_bytes = kProgramBytes};
  const WeightPlan resident = resident_plan(empty, wishes);
  const bool wants_all = wishes.expert_bytes == 0 || wishes.expert_bytes >= resident.expert_bytes;
  if (wants_all && wants_head_copy(empty, wishes)) {
    WeightPlan with_copy = empty;
    with_copy.head_copy_bytes = bytes.head_copy;
    with_copy = resident_plan(with_copy, wishes);
    if (fits(with_copy)) return with_copy;
  }
  if (wants_all && fits(resident)) return resident;
  if (!bytes.can_stream) {
    LOCKET_TRY_STATUS(check_available(resident));
    return refuse(
        "experts of this generation cannot stay on disk: no budget for them can be given");
  }
  WeightPlan plan = streamed_plan(empty, wishes);
  LOCKET_TRY_STATUS(check_working_set(plan));
  LOCKET_TRY_STATUS(check_available(plan));
  return plan;
}

std::vector<std::string> describe_plan(const WeightPlan& plan, const ReadRates& rates) {
  std::vector<std::string> lines;
  const auto add = [&](const char* name, std::string text) {
    lines.push_back(fmt::format("{:<22}{}", name, text));
  };
  const model::WeightBytes& model = plan.model;
  add("weights of every token", fmt::format(" {} in memory", bytes_text(model.dense)));
  add("routed experts",
      plan.streams ? fmt::format(" {} of {} in memory ({} of {}), the others read from disk",
                                 bytes_text(plan.expert_bytes), bytes_text(plan.all_expert_bytes()),
                                 plan.expert_bytes / model.expert, model.experts)
                   : fmt::format(" {} in memory, all {}", bytes_text(plan.all_expert_bytes()),
                                 model.experts));
  if (plan.head_copy_bytes > 0) {
    add("copy of the head",
        fmt::format(" {} in memory, for greedy decoding", bytes_text(plan.head_copy_bytes)));
  }
  if (model.engram_resident + model.engram_on_disk > 0) {
    add("Engram tables",
        fmt::format(" {} in memory, {} on disk, read by rows", bytes_text(model.engram_resident),
                    bytes_text(model.engram_on_disk)));
  }
  add("memory of texts",
      fmt::format(" {}, {:.0f} B a token", bytes_text(plan.pool_bytes), plan.bytes_per_token));
  add("working space",
      fmt::format(" {}, {} prompt tokens at once",
                  bytes_text(std::max(plan.work_bytes, model.load_scratch)), plan.slice_tokens));
  add("at most", fmt::format(" {} of {}", bytes_text(plan.peak_bytes()),
                             plan.available_bytes == 0
                                 ? "an unknown amount of memory"
                                 : bytes_text(plan.available_bytes) + " that are available"));
  add("read per token",
      fmt::format(" {}: {} dense, {} experts",
                  bytes_text(model.token_dense + plan.routed_token_bytes()),
                  bytes_text(model.token_dense), bytes_text(plan.routed_token_bytes())));
  add("bound", " " + bound_text(plan, rates));
  return lines;
}

}  // namespace locket::engine
