// locket cache export and import.
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/cache_parts.h"
#include "cli/model_setup.h"
#include "cli/progress_line.h"
#include "cli/text_table.h"
#include "engine/prefix_file.h"
#include "service/model_text.h"

namespace locket::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string tokens_text(std::int64_t tokens) { return grouped(static_cast<std::uint64_t>(tokens)); }

// The longest stored prefix of a request.
Result<cache::PageName> find_prefix_of_request(const CacheOptions& options,
                                               cache::DiskStore& store) {
  LOCKET_TRY(const CacheModel model, open_cache_model(options));
  LOCKET_TRY(const service::ModelText text, service::read_model_text(model.folder));
  LOCKET_TRY(const chat::RenderedPrompt prompt,
             render_choice(options, {text.tokenizer, text.format}));
  const cache::PrefixPoint root = cache::root_point(model.memory.root_label(store, {}).root);
  const cache::DiskMatch match = store.find(root, prompt.ids, model.memory.page_sizes());
  const bool has_whole_tail =
      match.parting &&
      match.parting_tokens == static_cast<std::int64_t>(match.parting->tokens.size());
  if (has_whole_tail) return match.parting->end.name;
  if (!match.pages.empty()) return match.pages.back().end.name;
  return fail(ErrorCode::kNotFound,
              fmt::format("no whole page of this request's {} tokens is stored; read it first: "
                          "locket cache prewarm",
                          prompt.ids.size()));
}

Json facts_json(const engine::PrefixFileFacts& facts) {
  return {{"tokens", facts.tokens},
          {"pages", facts.pages},
          {"snapshots", facts.snapshots},
          {"bytes", facts.payload_bytes},
          {"model", facts.model},
          {"model_identity", to_hex(facts.identity.model)},
          {"numerics_mode", facts.identity.numerics_mode},
          {"numerics_revision", facts.identity.numerics_revision}};
}

Status send(const CacheOptions& options) {
  LOCKET_TRY(const auto store, open_store(options, StoreUse::kRead));
  LOCKET_TRY(const cache::PageName name, options.has_request
                                             ? find_prefix_of_request(options, *store)
                                             : cache::find_prefix(*store, options.name));
  ProgressLine progress(fmt::format("writing {}", options.file.string()));
  LOCKET_TRY(const engine::PrefixFileFacts facts,
             engine::export_prefix(*store, name, options.file,
                                   [&progress](std::uint64_t done, std::uint64_t total) {
                                     progress.show(done, total);
                                   }));
  if (options.json) {
    Json json = facts_json(facts);
    json["name"] = to_hex(name);
    json["file"] = options.file.string();
    fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
    return {};
  }
  fmt::print("{} tokens and {} snapshots of {}, {}, written to {}\n", tokens_text(facts.tokens),
             facts.snapshots, plain_text(facts.model), bytes_text(facts.payload_bytes),
             options.file.string());
  return {};
}

void print_import(const CacheOptions& options, const engine::ImportReport& report) {
  const bool is_stored = report.pages_left_out < report.facts.pages;
  if (options.json) {
    Json json = facts_json(report.facts);
    json["name"] = is_stored ? Json(to_hex(report.name)) : Json();
    json["pages_known"] = report.pages_known;
    json["pages_left_out"] = report.pages_left_out;
    fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  fmt::print("{} tokens and {} snapshots read from {}\n", tokens_text(report.facts.tokens),
             report.facts.snapshots, options.file.string());
  if (report.pages_known > 0) fmt::print("{} pages were known before\n", report.pages_known);
  if (report.pages_left_out > 0) {
    fmt::print("{} of {} pages had no room in the quota\n", report.pages_left_out,
               report.facts.pages);
  }
  if (is_stored) fmt::print("stored as {}\n", short_name(report.name));
}

Result<engine::ImportReport> receive(const CacheOptions& options) {
  LOCKET_TRY(const CacheModel model, open_cache_model(options));
  LOCKET_TRY(const auto store, open_store(options, StoreUse::kMakeAndWrite));
  ProgressLine progress(fmt::format("reading {}", options.file.string()));
  return engine::import_prefix(
      {.store = *store, .memory = model.memory, .tenant = {}}, options.file,
      [&progress](std::uint64_t done, std::uint64_t total) { progress.show(done, total); });
}

}  // namespace

int run_cache_export(const CacheOptions& options) {
  const Status status = send(options);
  return status ? 0 : report(status.error());
}

int run_cache_import(const CacheOptions& options) {
  const Result<engine::ImportReport> imported = receive(options);
  if (!imported) return report(imported.error());
  print_import(options, *imported);
  return imported->pages_left_out == 0 ? 0 : 1;
}

}  // namespace locket::cli
