// locket cache why: why a prompt, or the last ones, were not in the memory.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "cli/cache_parts.h"
#include "cli/json_lines.h"
#include "cli/model_path.h"
#include "cli/model_setup.h"
#include "cli/text_table.h"
#include "service/load_tokenizer.h"
#include "service/model_text.h"

namespace locket::cli {
namespace {

using cache::MissExplanation;
using cache::MissReason;
using Json = nlohmann::ordered_json;
using tokenizer::Tokenizer;

constexpr std::size_t kTokensBefore = 16;
constexpr std::size_t kTokensAfter = 12;

std::string counted(std::int64_t count) { return grouped(static_cast<std::uint64_t>(count)); }

void print(const Json& json) {
  fmt::print("{}\n", escape_line_ends(json.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

// What a reason means, as a sentence.
std::string reason_text(const MissExplanation& explanation, double now) {
  const std::string age = age_text(explanation.seconds, now);
  const std::string ago = age == "-" ? "" : fmt::format(" {} ago", age);
  switch (explanation.reason) {
    case MissReason::kNone:
      return "everything is there that can be";
    case MissReason::kNothing:
      return "nothing is stored for this model, its numerics and this tenant";
    case MissReason::kParting:
      return "from there on other tokens are stored";
    case MissReason::kEnd:
      return "nothing longer was ever stored";
    case MissReason::kEvicted:
      return fmt::format("what follows was evicted{} to make room", ago);
    case MissReason::kDamaged:
      return fmt::format("what follows was damaged and dropped{}", ago);
    case MissReason::kRemoved:
      return fmt::format("what follows was removed{} with locket cache rm", ago);
    case MissReason::kOtherModel:
    case MissReason::kOtherTenant:
      return fmt::format("it is stored for {}: {}",
                         explanation.reason == MissReason::kOtherModel
                             ? "another model or other numerics"
                             : "another tenant",
                         root_text(explanation.other_root.value_or(cache::RootLabel{})));
    case MissReason::kCount:
      break;
  }
  return "";
}

// Token ids as text in quotes, or as numbers where no tokenizer fits.
std::string tokens_text(std::span<const std::int32_t> tokens, const Tokenizer* tokenizer) {
  if (tokens.empty()) return "(the end)";
  if (tokenizer == nullptr) return fmt::format("ids {}", fmt::join(tokens, " "));
  const std::string text = tokenizer::repair_utf8(tokenizer->decode_bytes(tokens));
  return escape_line_ends(Json(text).dump());
}

std::string token_lines(const MissExplanation& explanation, const Tokenizer* tokenizer) {
  const auto first = [](const std::vector<std::int32_t>& tokens) {
    return std::span(tokens).first(std::min(tokens.size(), kTokensAfter));
  };
  const std::vector<std::int32_t>& shared = explanation.shared_tokens;
  std::string text;
  if (!shared.empty()) {
    const auto last = std::span(shared).last(std::min(shared.size(), kTokensBefore));
    text += fmt::format("  after   {}\n", tokens_text(last, tokenizer));
  }
  text += fmt::format("  wanted  {}\n", tokens_text(first(explanation.wanted_tokens), tokenizer));
  if (explanation.reason == MissReason::kParting) {
    text += fmt::format("  stored  {}\n", tokens_text(first(explanation.stored_tokens), tokenizer));
  }
  return text;
}

Json tokens_json(const std::vector<std::int32_t>& tokens, const Tokenizer* tokenizer) {
  Json json = {{"ids", tokens}};
  if (tokenizer != nullptr) {
    json["text"] = tokenizer::repair_utf8(tokenizer->decode_bytes(tokens));
  }
  return json;
}

Json to_json(const MissExplanation& explanation, const Tokenizer* tokenizer) {
  Json json = {{"reason", cache::miss_reason_name(explanation.reason)},
               {"stored_tokens", explanation.hit_tokens},
               {"nearest_snapshot", explanation.nearest_snapshot},
               {"after", tokens_json(explanation.shared_tokens, tokenizer)},
               {"wanted", tokens_json(explanation.wanted_tokens, tokenizer)}};
  if (explanation.reason == MissReason::kParting) {
    json["stored"] = tokens_json(explanation.stored_tokens, tokenizer);
  }
  if (explanation.other_root) {
    json["other_model"] = explanation.other_root->model;
    json["other_numerics_mode"] = explanation.other_root->identity.numerics_mode;
    json["other_tenant"] = explanation.other_root->identity.tenant;
  }
  if (explanation.seconds > 0) json["gone_at"] = explanation.seconds;
  return json;
}

// The tokenizer for the texts of one model's misses, if it is the one at hand.
class MissTexts {
 public:
  explicit MissTexts(const CacheOptions& options) {
    const Result<std::filesystem::path> folder = resolve_model(options.model.model);
    if (!folder) return;
    label_ = engine::model_label(*folder);
    Result<Tokenizer> tokenizer = service::load_tokenizer(*folder);
    if (tokenizer) tokenizer_.emplace(std::move(*tokenizer));
  }

  const Tokenizer* find(const cache::RootLabel& root) const {
    return tokenizer_ && root.model == label_ ? &*tokenizer_ : nullptr;
  }

 private:
  std::string label_;
  std::optional<Tokenizer> tokenizer_;
};

// Names of all pages of a prefix.
Result<std::set<cache::PageName>> names_of(cache::DiskStore& store, const std::string& digits) {
  LOCKET_TRY(const cache::PageName name, cache::find_prefix(store, digits));
  LOCKET_TRY(const std::vector<cache::StoredPage> pages, cache::pages_of(store, name));
  std::set<cache::PageName> names;
  for (const cache::StoredPage& page : pages) names.insert(page.end.name);
  return names;
}

Status explain_recorded(const CacheOptions& options) {
  LOCKET_TRY(const auto store, open_store(options, StoreUse::kRead));
  std::vector<cache::RecordedMiss> misses = cache::recorded_misses(*store);
  if (!options.name.empty()) {
    LOCKET_TRY(const std::set<cache::PageName> names, names_of(*store, options.name));
    std::erase_if(misses, [&names](const cache::RecordedMiss& miss) {
      return !names.contains(miss.explanation.ended_in);
    });
  }
  const MissTexts texts(options);
  const double now = wall_seconds();
  Json list = Json::array();
  for (const cache::RecordedMiss& miss : misses) {
    const Tokenizer* const tokenizer = texts.find(miss.root);
    if (options.json) {
      Json json = to_json(miss.explanation, tokenizer);
      json["prompt_tokens"] = miss.prompt_tokens;
      json["time"] = miss.seconds;
      json["model"] = miss.root.model;
      json["tenant"] = miss.root.identity.tenant;
      list.push_back(std::move(json));
      continue;
    }
    fmt::print("{} ago, {}: {} of {} tokens were stored; {}\n{}", age_text(miss.seconds, now),
               root_text(miss.root), counted(miss.explanation.hit_tokens),
               counted(miss.prompt_tokens), reason_text(miss.explanation, now),
               token_lines(miss.explanation, tokenizer));
  }
  if (options.json) {
    print({{"misses", std::move(list)}});
  } else if (misses.empty()) {
    fmt::print("no miss is recorded\n");
  }
  return {};
}

void print_forecast(const engine::MemoryForecast& forecast, std::int64_t prompt_tokens,
                    const Tokenizer& tokenizer) {
  const MissExplanation& explanation = forecast.explanation;
  fmt::print("{} of {} tokens are stored; {}\n", counted(explanation.hit_tokens),
             counted(prompt_tokens), reason_text(explanation, wall_seconds()));
  if (explanation.reason != MissReason::kNone) {
    fmt::print("{}", token_lines(explanation, &tokenizer));
  }
  if (explanation.nearest_snapshot > 0) {
    fmt::print("the nearest snapshot is at token {}\n", counted(explanation.nearest_snapshot));
  } else if (explanation.hit_tokens > 0) {
    fmt::print("no snapshot of it is stored\n");
  }
  const std::int64_t computed = prompt_tokens - forecast.plan.start;
  fmt::print("the next request computes {} tokens, {} of them again\n", counted(computed),
             counted(forecast.plan.replayed_tokens()));
}

Status explain_request(const CacheOptions& options) {
  LOCKET_TRY(const auto store, open_store(options, StoreUse::kRead));
  LOCKET_TRY(const CacheModel model, open_cache_model(options));
  LOCKET_TRY(const service::ModelText text, service::read_model_text(model.folder));
  const Tokenizer& tokenizer = text.tokenizer;
  LOCKET_TRY(const chat::RenderedPrompt prompt, render_choice(options, {tokenizer, text.format}));
  const engine::MemoryForecast forecast =
      engine::forecast_request(*store, model.memory, prompt.ids, engine::ReplayMode::kBounded);
  const auto prompt_tokens = static_cast<std::int64_t>(prompt.ids.size());
  if (!options.json) {
    print_forecast(forecast, prompt_tokens, tokenizer);
    return {};
  }
  Json json = to_json(forecast.explanation, &tokenizer);
  json["prompt_tokens"] = prompt_tokens;
  json["hit_tokens"] = forecast.hit_tokens;
  json["computed_tokens"] = prompt_tokens - forecast.plan.start;
  json["replayed_tokens"] = forecast.plan.replayed_tokens();
  print(json);
  return {};
}

}  // namespace

int run_cache_why(const CacheOptions& options) {
  const Status status = options.has_request ? explain_request(options) : explain_recorded(options);
  return status ? 0 : report(status.error());
}

}  // namespace locket::cli
