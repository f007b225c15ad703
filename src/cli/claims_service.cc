// Claims that this command cannot settle: what other programs of this repository measure, and what
// depends on a hosted service, on hardware or on weights that are not here.
#include "cli/claims_list.h"

namespace locket::cli {
namespace {

using Kind = Claim::Kind;

Claim elsewhere(std::string claim, std::string source, std::string found, std::string how,
                std::string command) {
  return {.claim = std::move(claim),
          .source = std::move(source),
          .kind = Kind::kElsewhere,
          .found = std::move(found),
          .how = std::move(how),
          .command = std::move(command)};
}

Claim not_here(std::string claim, std::string source, std::string why) {
  return {.claim = std::move(claim),
          .source = std::move(source),
          .kind = Kind::kNotHere,
          .found = std::move(why),
          .how = {},
          .command = {}};
}

std::vector<Claim> measured_elsewhere() {
  return {
      elsewhere("2,500 requests at a time on one account", "api-docs, rate limits",
                "docs/measurements.md, 2026-11-30: the server",
                "2,500 answers of the small model at a time for ten minutes on this kind of "
                "machine, every word compared; it shows that a server can, not what the hosted "
                "service's machines do",
                "stream_load_bench --streams 2500 --seconds 600 --disconnects 500"),
      elsewhere("a prefix that was read stays on disk and comes back", "V4.1 report, 3.2.1",
                "H5 of locket bench; docs/measurements.md, 2026-11-29: the memory",
                "restore of 131,072 and 1,048,576 tokens in the release's layout over a plain read "
                "of the same bytes",
                "memory_restore_bench"),
      elsewhere(
          "with smaller rows more of the traffic is found in the same memory", "V4.1 report, 3.2.1",
          "docs/measurements.md, 2026-11-29: agent traffic",
          "made-up traffic of coding agents replayed against the prefix tree at the row sizes "
          "of V1, V4-Flash and V4.1",
          "agent_trace_bench"),
      elsewhere("what each layer adds to the guess", "seen in many models",
                "printed by locket lens for any text", "every layer through the last norm and head",
                "locket lens")};
}

std::vector<Claim> hosted_service() {
  return {
      not_here("500 requests at a time for V4-Pro, 2,500 for Flash", "api-docs, rate limits",
               "limits of a hosted service. They stood side by side: Flash had 2,500 before V4.1, "
               "so this is no growth from one generation to the next"),
      not_here("prices: V4.1-Flash $0.003 hit, $0.15 miss, $0.60 output; V4-Pro $0.022, $0.66, "
               "$1.98",
               "api-docs, pricing, off-peak, November 2026",
               "published by the vendor; what a token costs him cannot be seen from outside"),
      not_here("a hit cost a tenth from April 2026 on", "api-docs, pricing",
               "a decision of the vendor"),
      not_here("prefixes are kept for at least 72 hours", "V4.1 report, 3.2.1",
               "a rule of the hosted service; here a folder keeps them until its quota is full"),
      not_here("V3.2 at 128k: reading $0.66 to $0.19, writing $2.15 to $0.25 a million",
               "V3.2 report, figure (H800 at $2 an hour)",
               "no H800, and no weights of V3.2, are here; the work behind it is counted above")};
}

std::vector<Claim> quality_and_speed() {
  return {
      not_here("scores on public benchmarks", "model cards and reports of every generation",
               "they need the released weights (510 GB for V4.1-Flash) and their graders"),
      not_here("the memory in FP4 costs no quality", "V4.1 report, ablations",
               "it needs the released weights trained with and without; this program keeps the "
               "very codes of the model's own quantizers, so that storing loses nothing"),
      not_here("drafts: up to 5 tokens are written at a time", "V4.1 report, DSpark",
               "draft layers are recognised in the files and not run by this program"),
      not_here("1,740 tokens a second on four GB300, 1M tokens read in 13.2 s",
               "basetenlabs/deepseek-ultrafast", "no such machine is here"),
      not_here("1 million tokens of context are understood", "model cards of V4 and V4.1",
               "it needs the released weights; that the arithmetic reaches 1M tokens is tested")};
}

}  // namespace

std::string_view claim_kind_name(Claim::Kind kind) {
  switch (kind) {
    case Kind::kMeasured:
      return "measured";
    case Kind::kComputed:
      return "computed";
    case Kind::kElsewhere:
      return "elsewhere";
    case Kind::kNotHere:
      return "not here";
    case Kind::kCount:
      break;
  }
  return {};
}

ClaimGroup service_claims() {
  ClaimGroup group = {.topic = "Service, speed and quality", .claims = measured_elsewhere()};
  for (auto& part : {hosted_service(), quality_and_speed()}) {
    group.claims.insert(group.claims.end(), part.begin(), part.end());
  }
  return group;
}

}  // namespace locket::cli
