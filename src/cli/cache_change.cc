// locket cache verify, pin and rm.
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/cache_parts.h"
#include "cli/model_setup.h"
#include "cli/progress_line.h"
#include "engine/prefix_file.h"

namespace locket::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFailed = 1;

Result<cache::VerifyReport> verify(const CacheOptions& options) {
  LOCKET_TRY(const auto store,
             open_store(options, options.repair ? StoreUse::kWrite : StoreUse::kRead));
  ProgressLine progress("reading the memory");
  return cache::verify_stored(
      *store, options.repair ? cache::Repair::kDropDamaged : cache::Repair::kReport,
      [&progress](std::uint64_t done, std::uint64_t total) { progress.show(done, total); });
}

void print_report(const CacheOptions& options, const cache::VerifyReport& found) {
  if (options.json) {
    const Json json = {{"values", found.values},
                       {"bytes", found.bytes},
                       {"damaged", found.damaged},
                       {"repaired", options.repair},
                       {"findings", found.findings}};
    fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  for (const std::string& finding : found.findings) fmt::print("{}\n", finding);
  const auto shown = static_cast<std::int64_t>(found.findings.size());
  if (found.damaged > shown && shown > 0) fmt::print("...\n");
  const char* const done = options.repair ? "; they are dropped, and computed again when needed"
                                          : "; locket cache verify --repair drops them";
  fmt::print("{} values, {}: {} damaged{}\n", found.values, bytes_text(found.bytes), found.damaged,
             found.damaged == 0 ? "" : done);
}

// The prefix again, under names that every tenant finds.
Result<cache::PageName> copy_for_everybody(const CacheOptions& options, cache::DiskStore& store,
                                           const cache::PageName& name) {
  LOCKET_TRY(const CacheModel model, open_cache_model(options));
  const std::filesystem::path file =
      store.directory() / fmt::format("public-{}.safetensors.tmp", short_name(name));
  ProgressLine progress("copying the prefix");
  const auto show = [&progress](std::uint64_t done, std::uint64_t total) {
    progress.show(done, total);
  };
  LOCKET_TRY(const engine::PrefixFileFacts facts, engine::export_prefix(store, name, file, show));
  const Result<engine::ImportReport> copied = engine::import_prefix(
      {.store = store, .memory = model.memory, .tenant = engine::kPublicTenant}, file, show);
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  if (!copied) return tl::make_unexpected(copied.error());
  if (copied->pages_left_out == 0) return copied->name;
  return fail(ErrorCode::kOverBudget, fmt::format("{} of {} pages had no room in the quota",
                                                  copied->pages_left_out, facts.pages));
}

Status pin(const CacheOptions& options) {
  LOCKET_TRY(const auto store, open_store(options, StoreUse::kWrite));
  LOCKET_TRY(cache::PageName name, cache::find_prefix(*store, options.name));
  if (options.is_public) {
    LOCKET_TRY(name, copy_for_everybody(options, *store, name));
  }
  LOCKET_TRY_STATUS(cache::set_pin(*store, name, options.off ? cache::Pin::kOff : cache::Pin::kOn));
  if (options.json) {
    fmt::print("{}\n",
               Json{{"name", to_hex(name)}, {"pinned", !options.off}, {"public", options.is_public}}
                   .dump());
  } else {
    fmt::print("{} {}\n", short_name(name),
               options.off         ? "is no longer pinned"
               : options.is_public ? "is pinned for everybody"
                                   : "is pinned");
  }
  return {};
}

Status remove(const CacheOptions& options) {
  LOCKET_TRY(const auto store, open_store(options, StoreUse::kWrite));
  std::uint64_t bytes = 0;
  if (options.all) {
    LOCKET_TRY(bytes, cache::remove_all(*store));
  } else {
    LOCKET_TRY(const cache::PageName name, cache::find_prefix(*store, options.name));
    LOCKET_TRY(bytes, cache::remove_prefix(*store, name));
  }
  if (options.json) {
    fmt::print("{}\n", Json{{"freed_bytes", bytes}}.dump());
  } else {
    fmt::print("{} freed\n", bytes_text(bytes));
  }
  return {};
}

int exit_code_of(const Status& status) { return status ? 0 : report(status.error()); }

}  // namespace

int run_cache_verify(const CacheOptions& options) {
  const Result<cache::VerifyReport> found = verify(options);
  if (!found) return report(found.error());
  print_report(options, *found);
  return found->damaged == 0 ? 0 : kFailed;
}

int run_cache_pin(const CacheOptions& options) { return exit_code_of(pin(options)); }
int run_cache_rm(const CacheOptions& options) { return exit_code_of(remove(options)); }

}  // namespace locket::cli
