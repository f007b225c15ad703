#include "cli/study_options.h"

#include <CLI/CLI.hpp>
#include <cstdint>

#include "cli/byte_size.h"
#include "cli/common_options.h"

namespace locket::cli {
namespace {

constexpr std::int64_t kMostRows = 100000;

}  // namespace

void add_memory(CLI::App& app, MemoryOptions& options) {
  CLI::App& command = add_command(
      app, "memory", "bytes per token of V1 to V4.1, computed and measured", "locket memory");
  command
      .add_option("MODEL", options.models,
                  "measured, too: a checkpoint folder, or a config.json without weights")
      ->type_name("");
  command
      .add_option("--tokens", options.tokens,
                  "length of each text that is measured, at least 1 (default: as many as\n"
                  "--budget allows, at most 65,536; 2,048 for a MODEL)")
      ->check(in_range<std::int64_t>(1, kMostTokens))
      ->type_name("N");
  auto* budget = command
                     .add_option("--budget", options.budget_bytes,
                                 "most bytes that the memory of one text may take, as in 2G\n"
                                 "(default 0: a sixteenth of the free memory, at most 256M)")
                     ->transform(CLI::Validator(read_size, ""))
                     ->type_name("SIZE");
  auto* computed = command.add_flag("--computed", options.is_computed_only,
                                    "only what the layouts of the released models say: nothing is\n"
                                    "measured but MODEL");
  auto* scratch = add_scratch(command, options.scratch);
  command.add_flag("--json", options.json, "print everything as JSON, without MODEL")
      ->excludes(command.get_option("MODEL"));
  command.add_option("--svg", options.svg_folder, "write the plots into this folder, too")
      ->type_name("DIR");
  for (auto* other : {budget, scratch}) computed->excludes(other);
}

void add_claims(CLI::App& app, ClaimsOptions& options) {
  CLI::App& command = add_command(
      app, "claims", "every number published about these models, beside what this program finds",
      "locket claims");
  add_model(command, options.model.model);
  command.get_option("MODEL")->description(
      "the model that talks where a claim needs one (default: the small model\nthat ships)");
  command.add_flag("--quick", options.is_quick, "leave out what needs a model to run");
  command.add_flag("--json", options.json, "print everything as JSON");
}

void add_lens(CLI::App& app, LensOptions& options) {
  CLI::App& command = add_command(app, "lens", "what each layer of a model would say next",
                                  "locket lens -p \"My cat is called Milo.\" --html lens.html");
  add_model_options(command, options.model);
  auto* prompt = command
                     .add_option("-p,--prompt", options.prompt,
                                 "plain text (default: a conversation of the demo, if the model\n"
                                 "has some)")
                     ->option_text("TEXT");
  auto* messages = command
                       .add_option("--messages", options.messages,
                                   "instead: a chat request as JSON, {\"messages\": [...]}")
                       ->option_text("FILE");
  auto* ids = command.add_option("--ids", options.ids, "instead: a JSON list of token ids")
                  ->option_text("FILE");
  prompt->excludes(messages)->excludes(ids);
  messages->excludes(ids);
  command.add_option("--html", options.html, "write a heat map of all positions and layers here")
      ->option_text("FILE");
  command
      .add_option("--rows", options.rows,
                  "positions to print, the last ones, 0 to 100000 (default 40)")
      ->check(in_range<std::int64_t>(0, kMostRows))
      ->type_name("N");
  command.add_flag("--json", options.json, "print everything as JSON");
}

}  // namespace locket::cli
