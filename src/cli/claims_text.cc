#include "cli/claims_text.h"

#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "cli/text_table.h"

namespace locket::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kColumns = 98;

// "    measured   890 B ..." with what follows below it.
std::string field(std::string_view name, std::string_view text) {
  constexpr std::size_t kIndent = 15;
  const std::string indent(kIndent, ' ');
  return fmt::format("    {:<11}{}", name,
                     folded(text, kColumns - kIndent, indent).substr(kIndent));
}

std::string claim_text(const Claim& claim) {
  std::string text = folded(claim.claim, kColumns - 2, "  ");
  text += field("source", claim.source);
  text += field(claim_kind_name(claim.kind), claim.found);
  if (!claim.how.empty()) text += field("how", claim.how);
  if (!claim.command.empty()) text += field("command", claim.command);
  return text;
}

}  // namespace

std::string claims_text(const std::vector<ClaimGroup>& groups) {
  std::array<std::size_t, static_cast<std::size_t>(Claim::Kind::kCount)> counts = {};
  std::string text = "What was published, and what this program finds\n";
  for (const ClaimGroup& group : groups) {
    text += fmt::format("\n{}\n\n", group.topic);
    for (const Claim& claim : group.claims) {
      counts[static_cast<std::size_t>(claim.kind)] += 1;
      text += claim_text(claim);
    }
  }
  text += "\n";
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    text += fmt::format("{}{} {}", kind == 0 ? "" : ", ", counts[kind],
                        claim_kind_name(static_cast<Claim::Kind>(kind)));
  }
  return text +
         "\ncomputed: from the released shapes; elsewhere: another program here measures it\n";
}

std::string claims_json(const std::vector<ClaimGroup>& groups) {
  Json rows = Json::array();
  for (const ClaimGroup& group : groups) {
    for (const Claim& claim : group.claims) {
      rows.push_back({{"topic", group.topic},
                      {"claim", claim.claim},
                      {"source", claim.source},
                      {"kind", claim_kind_name(claim.kind)},
                      {"found", claim.found},
                      {"how", claim.how},
                      {"command", claim.command.empty() ? "locket claims" : claim.command}});
    }
  }
  return Json{{"claims", std::move(rows)}}.dump(2) + "\n";
}

}  // namespace locket::cli
