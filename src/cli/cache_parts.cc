#include "cli/cache_parts.h"

#include <array>
#include <fmt/format.h>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/worker_pool.h"
#include "chat/render_prompt.h"
#include "chat/request_json.h"
#include "checkpoint/checkpoint.h"
#include "cli/effort.h"
#include "cli/memory_path.h"
#include "cli/mode_choice.h"
#include "cli/model_path.h"
#include "model/numerics_mode.h"

namespace locket::cli {
namespace {

constexpr std::size_t kShortNameDigits = 12;

Result<chat::RenderedPrompt> render(const chat::ChatRequest& request, const PromptText& text) {
  LOCKET_TRY(chat::RenderedPrompt prompt,
             chat::render_prompt(request, text.format, text.tokenizer));
  if (prompt.images.empty()) return prompt;
  return fail(ErrorCode::kUnsupported,
              fmt::format("the messages hold {} images; this program reads text only",
                          prompt.images.size()));
}

Result<chat::RenderedPrompt> render_request_file(const std::filesystem::path& file,
                                                 const std::string& effort,
                                                 const PromptText& text) {
  LOCKET_TRY(const std::string body, read_whole_file(file));
  const auto render_body = [&]() -> Result<chat::RenderedPrompt> {
    LOCKET_TRY(chat::ChatRequest request, chat::parse_chat_request(body));
    if (!effort.empty()) LOCKET_TRY_STATUS(apply_effort(effort, request));
    return render(request, text);
  };
  Result<chat::RenderedPrompt> prompt = render_body();
  if (!prompt) {
    prompt.error().message = fmt::format("{}: {}", file.string(), prompt.error().message);
  }
  return prompt;
}

}  // namespace

Result<std::filesystem::path> memory_folder(const CacheOptions& options) {
  LOCKET_TRY(const MemoryChoice choice, choose_memory(options.model.memory));
  if (!choice.is_off) return choice.directory;
  return fail(
      ErrorCode::kBadRequest,
      fmt::format("there is no memory on disk ({}); name a folder: --memory DIR", choice.why_off));
}

Result<std::unique_ptr<cache::DiskStore>> open_store(const CacheOptions& options, StoreUse use) {
  LOCKET_TRY(const MemoryChoice choice, choose_memory(options.model.memory));
  LOCKET_TRY(const std::filesystem::path folder, memory_folder(options));
  std::error_code ignored;
  if (use == StoreUse::kMakeAndWrite) {
    LOCKET_TRY_STATUS(prepare_memory_folder(choice));
  } else if (!std::filesystem::exists(folder, ignored)) {
    return fail(ErrorCode::kNotFound,
                fmt::format("nothing is remembered yet: there is no folder {}", folder.string()));
  }
  const std::uint64_t quota = options.model.memory_quota_bytes > 0
                                  ? options.model.memory_quota_bytes
                                  : default_memory_quota(folder);
  using Access = cache::DiskOptions::Access;
  return cache::DiskStore::open(
      {.directory = folder,
       .quota_bytes = quota,
       .access = use == StoreUse::kRead ? Access::kReadOnly : Access::kWriteIfPossible});
}

Result<CacheModel> open_cache_model(const CacheOptions& options) {
  LOCKET_TRY(std::filesystem::path folder, resolve_model(options.model.model));
  LOCKET_TRY(const checkpoint::Checkpoint checkpoint, checkpoint::Checkpoint::open(folder));
  LOCKET_TRY(const model::NumericsMode mode,
             choose_mode(options.model, checkpoint.config().root()));
  WorkerPool workers(WorkerPool::hardware_threads());
  LOCKET_TRY(engine::ModelMemory memory,
             engine::read_model_memory(checkpoint, {.mode = mode}, workers));
  return CacheModel{.folder = std::move(folder), .memory = std::move(memory)};
}

Result<chat::RenderedPrompt> render_choice(const CacheOptions& options, const PromptText& text) {
  if (!options.messages.empty()) {
    return render_request_file(options.messages, options.effort, text);
  }
  chat::ChatRequest request;
  request.messages.push_back(chat::text_message(chat::Role::kUser, options.prompt));
  LOCKET_TRY_STATUS(apply_effort(options.effort, request));
  return render(request, text);
}

Result<chat::RenderedPrompt> render_file(const std::filesystem::path& file,
                                         const PromptText& text) {
  return render_request_file(file, {}, text);
}

std::string short_name(const cache::PageName& name) {
  return to_hex(name).substr(0, kShortNameDigits);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  constexpr double kStep = 1024.0;
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= kStep && unit + 1 < kUnits.size()) {
    value /= kStep;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string age_text(double seconds, double now) {
  constexpr double kMinute = 60.0;
  constexpr double kHour = 3600.0;
  constexpr double kDay = 86400.0;
  const double age = now - seconds;
  if (seconds <= 0 || age < 0) return "-";
  if (age < 2 * kMinute) return fmt::format("{:.0f} s", age);
  if (age < 2 * kHour) return fmt::format("{:.0f} min", age / kMinute);
  if (age < 2 * kDay) return fmt::format("{:.0f} h", age / kHour);
  return fmt::format("{:.0f} d", age / kDay);
}

std::string plain_text(std::string_view text) {
  constexpr unsigned char kDelete = 0x7F;
  std::string plain;
  for (const char byte : tokenizer::repair_utf8(text)) {
    const auto value = static_cast<unsigned char>(byte);
    const bool is_control = value < 0x20 || value == kDelete;
    plain += is_control ? fmt::format("\\x{:02X}", value) : std::string(1, byte);
  }
  return plain;
}

std::string root_text(const cache::RootLabel& root) {
  const cache::MemoryIdentity& identity = root.identity;
  const std::string tenant =
      identity.tenant.empty() ? "" : fmt::format(", tenant {}", plain_text(identity.tenant));
  if (identity.numerics_mode.empty()) return "unknown";
  return fmt::format("{}, {}, revision {}{}", plain_text(root.model),
                     plain_text(identity.numerics_mode), identity.numerics_revision, tenant);
}

}  // namespace locket::cli
