// locket cache: hands on to its commands; and those that list and count.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/cache_parts.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/model_setup.h"
#include "cli/text_table.h"

namespace locket::cli {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

void print(const Json& json) {
  fmt::print("{}\n", escape_line_ends(json.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

Json to_json(const cache::RootLabel& root) {
  return {{"root", to_hex(root.root)},
          {"model", root.model},
          {"model_identity", to_hex(root.identity.model)},
          {"numerics_mode", root.identity.numerics_mode},
          {"numerics_revision", root.identity.numerics_revision},
          {"tenant", root.identity.tenant}};
}

Json to_json(const cache::StoredPrefix& prefix) {
  return {{"name", to_hex(prefix.name)},
          {"tokens", prefix.tokens},
          {"pages", prefix.pages},
          {"own_pages", prefix.own_pages},
          {"bytes", prefix.payload_bytes},
          {"own_bytes", prefix.own_bytes},
          {"snapshots", prefix.snapshots},
          {"created", prefix.created_seconds},
          {"last_use", prefix.last_use_seconds},
          {"hits", prefix.hits},
          {"pinned", prefix.is_pinned},
          {"model", prefix.root.model},
          {"tenant", prefix.root.identity.tenant},
          {"root", to_hex(prefix.root.root)}};
}

Json roots_json(const std::vector<cache::RootLabel>& roots) {
  Json list = Json::array();
  for (const cache::RootLabel& root : roots) list.push_back(to_json(root));
  return list;
}

std::string prefix_table(const std::vector<cache::StoredPrefix>& prefixes) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                   Align::kRight, Align::kRight, Align::kRight, Align::kLeft, Align::kLeft,
                   Align::kLeft});
  table.add_row({"name", "tokens", "own", "total", "snapshots", "age", "used", "hits", "pin",
                 "model", "tenant"});
  const double now = wall_seconds();
  for (const cache::StoredPrefix& prefix : prefixes) {
    table.add_row({short_name(prefix.name), grouped(static_cast<std::uint64_t>(prefix.tokens)),
                   bytes_text(prefix.own_bytes), bytes_text(prefix.payload_bytes),
                   std::to_string(prefix.snapshots), age_text(prefix.created_seconds, now),
                   age_text(prefix.last_use_seconds, now), std::to_string(prefix.hits),
                   prefix.is_pinned ? "pin" : "", plain_text(prefix.root.model),
                   plain_text(prefix.root.identity.tenant)});
  }
  return table.text(0);
}

std::string root_lines(const std::vector<cache::RootLabel>& roots) {
  std::string text;
  for (const cache::RootLabel& root : roots) {
    text += fmt::format("  {}  {}, model {}\n", short_name(root.root), root_text(root),
                        short_name(root.identity.model));
  }
  return text;
}

Status list(const CacheOptions& options) {
  LOCKET_TRY(const auto store, open_store(options, StoreUse::kRead));
  const std::vector<cache::StoredPrefix> prefixes = cache::list_prefixes(*store);
  const std::vector<cache::RootLabel> roots = cache::count_stored(*store).roots;
  if (options.json) {
    Json list = Json::array();
    for (const cache::StoredPrefix& prefix : prefixes) list.push_back(to_json(prefix));
    Json all = {{"memory", store->directory().string()}, {"prefixes", std::move(list)}};
    if (options.all) all["roots"] = roots_json(roots);
    print(all);
    return {};
  }
  if (prefixes.empty()) {
    fmt::print("nothing is remembered in {}\n", store->directory().string());
  } else {
    fmt::print("{}", prefix_table(prefixes));
  }
  if (options.all)
    fmt::print("\nroots, each a model, its numerics and a tenant\n{}", root_lines(roots));
  return {};
}

double per_token(std::uint64_t bytes, std::int64_t tokens) {
  return tokens > 0 ? static_cast<double>(bytes) / static_cast<double>(tokens) : 0;
}

void print_totals(const cache::DiskStore& store, const cache::CatalogTotals& totals) {
  const std::uint64_t page_bytes = totals.key_bytes + totals.row_bytes;
  const auto count = [](std::int64_t value) { return grouped(static_cast<std::uint64_t>(value)); };
  fmt::print("memory in {}\n", store.directory().string());
  TextTable table({Align::kLeft, Align::kRight, Align::kLeft});
  table.add_row({"tokens", count(totals.tokens), ""});
  table.add_row(
      {"pages", count(totals.pages), fmt::format("{} of them partly filled", count(totals.tails))});
  table.add_row({"rows", grouped(totals.row_bytes), "bytes"});
  table.add_row({"index keys", grouped(totals.key_bytes), "bytes"});
  table.add_row({"rows and keys", fmt::format("{:.2f}", per_token(page_bytes, totals.tokens)),
                 "bytes a token"});
  table.add_row({"snapshots", count(totals.snapshots),
                 fmt::format("{} bytes, {:.2f} a token", grouped(totals.snapshot_bytes),
                             per_token(totals.snapshot_bytes, totals.tokens))});
  table.add_row({"folder", grouped(totals.folder_bytes), "bytes on disk"});
  table.add_row({"quota", totals.quota_bytes == 0 ? "none" : grouped(totals.quota_bytes),
                 totals.quota_bytes == 0 ? "" : "bytes"});
  table.add_row({"unreachable", count(totals.unreachable_pages),
                 "pages whose beginning is gone; they go first when room is needed"});
  fmt::print("{}roots\n{}", table.text(2), root_lines(totals.roots));
}

Status count(const CacheOptions& options) {
  LOCKET_TRY(const auto store, open_store(options, StoreUse::kRead));
  const cache::CatalogTotals totals = cache::count_stored(*store);
  if (!options.json) {
    print_totals(*store, totals);
    return {};
  }
  print({{"memory", store->directory().string()},
         {"tokens", totals.tokens},
         {"pages", totals.pages},
         {"tails", totals.tails},
         {"row_bytes", totals.row_bytes},
         {"key_bytes", totals.key_bytes},
         {"bytes_per_token", per_token(totals.row_bytes + totals.key_bytes, totals.tokens)},
         {"snapshots", totals.snapshots},
         {"snapshot_bytes", totals.snapshot_bytes},
         {"folder_bytes", totals.folder_bytes},
         {"quota_bytes", totals.quota_bytes},
         {"unreachable_pages", totals.unreachable_pages},
         {"roots", roots_json(totals.roots)}});
  return {};
}

int exit_code_of(const Status& status) { return status ? 0 : report(status.error()); }

}  // namespace

int run_cache_ls(const CacheOptions& options) { return exit_code_of(list(options)); }
int run_cache_stat(const CacheOptions& options) { return exit_code_of(count(options)); }

int run_cache(const CacheOptions& options) {
  using Action = CacheOptions::Action;
  switch (options.action) {
    case Action::kLs:
      return run_cache_ls(options);
    case Action::kStat:
      return run_cache_stat(options);
    case Action::kVerify:
      return run_cache_verify(options);
    case Action::kExport:
      return run_cache_export(options);
    case Action::kImport:
      return run_cache_import(options);
    case Action::kPrewarm:
      return run_cache_prewarm(options);
    case Action::kPin:
      return run_cache_pin(options);
    case Action::kRm:
      return run_cache_rm(options);
    case Action::kWhy:
      return run_cache_why(options);
    case Action::kCount:
      break;
  }
  return 2;
}

}  // namespace locket::cli
