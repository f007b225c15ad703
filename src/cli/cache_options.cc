#include "cli/cache_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <string_view>

#include "cli/common_options.h"

namespace locket::cli {
namespace {

using Action = CacheOptions::Action;

constexpr const char* kNameHelp = "a prefix by the first digits of its name, as ls shows it";

// A command of the group: where the memory is, how to print, and which it is.
CLI::App& add_action(CLI::App& group, CacheOptions& options, Action action, const char* description,
                     const char* example) {
  const std::string name(cache_action_name(action));
  CLI::App& command = *group.add_subcommand(name, description);
  command.footer(fmt::format("Example:\n  locket cache {}", example));
  add_memory_options(command, options.model);
  command.add_flag("--json", options.json, "print JSON");
  command.callback([&options, action] { options.action = action; });
  return command;
}

void add_model_of(CLI::App& command, CacheOptions& options) {
  command
      .add_option("--model", options.model.model,
                  "the checkpoint folder (default: the small model that ships)")
      ->type_name("FOLDER");
  command
      .add_option("--mode", options.model.mode,
                  "arithmetic that the memory was made with: reference (default), fast, wide")
      ->check(one_of({"reference", "fast", "wide"}))
      ->type_name("NAME");
}

// A prefix by its name, or by a request that it belongs to.
struct PrefixChoice {
  const CLI::Option* name = nullptr;
  const CLI::Option* prompt = nullptr;
  const CLI::Option* messages = nullptr;

  std::size_t count() const { return name->count() + prompt->count() + messages->count(); }
  bool has_request() const { return prompt->count() + messages->count() > 0; }
};

PrefixChoice add_prefix_choice(CLI::App& command, CacheOptions& options) {
  PrefixChoice choice;
  choice.name = command.add_option("NAME", options.name, kNameHelp)->type_name("");
  choice.prompt = command
                      .add_option("-p,--prompt", options.prompt,
                                  "instead of NAME: the prompt of one user message")
                      ->option_text("TEXT");
  choice.messages =
      command.add_option("--messages", options.messages, "instead of NAME: a chat request as JSON")
          ->option_text("FILE");
  add_effort(command, options.effort);
  add_model_of(command, options);
  return choice;
}

constexpr const char* kChoices = "NAME, -p TEXT or --messages FILE";

// A check of the options as a whole, before the action is noted.
void add_check(CLI::App& command, CacheOptions& options, Action action,
               const std::function<void()>& check) {
  command.callback([&options, action, check] {
    check();
    options.action = action;
  });
}

void add_lists(CLI::App& group, CacheOptions& options) {
  CLI::App& ls =
      add_action(group, options, Action::kLs, "the remembered prefixes, newest first", "ls --all");
  ls.add_flag("--all", options.all, "also the models and tenants whose memory it is");
  add_action(group, options, Action::kStat, "how much is stored, and of what", "stat");
}

void add_verify(CLI::App& group, CacheOptions& options) {
  CLI::App& command = add_action(group, options, Action::kVerify,
                                 "read everything and compare checksums", "verify --repair");
  command.add_flag("--repair", options.repair, "drop what is damaged");
}

void add_shipping(CLI::App& group, CacheOptions& options) {
  CLI::App& send =
      add_action(group, options, Action::kExport, "write a prefix to a file for another machine",
                 "export 3f9a -o prefix.safetensors");
  const PrefixChoice choice = add_prefix_choice(send, options);
  send.add_option("-o,--output", options.file, "the file to write (required)")
      ->required()
      ->option_text("FILE");
  add_check(send, options, Action::kExport, [choice, &options] {
    options.has_request = choice.has_request();
    if (choice.count() != 1) throw CLI::RequiredError(fmt::format("one of {}", kChoices));
  });
  CLI::App& receive =
      add_action(group, options, Action::kImport, "check an exported file and store it",
                 "import prefix.safetensors");
  receive.add_option("FILE", options.file, "written by locket cache export (required)")
      ->required()
      ->type_name("");
  add_model_of(receive, options);
}

void add_prewarm(CLI::App& group, CacheOptions& options) {
  CLI::App& command =
      add_action(group, options, Action::kPrewarm, "read prompts into the memory, answer nothing",
                 "prewarm request.json");
  command.add_option("FILE", options.files, "chat requests as JSON, one per file (required)")
      ->required()
      ->type_name("");
  add_model_of(command, options);
  command
      .add_option("--threads", options.model.threads,
                  "threads to compute with, 0 to 1024 (default 0: one per core)")
      ->check(in_range(0, 1024))
      ->type_name("N");
}

void add_changes(CLI::App& group, CacheOptions& options) {
  CLI::App& pin =
      add_action(group, options, Action::kPin, "keep a prefix whatever the quota says", "pin 3f9a");
  pin.add_option("NAME", options.name, kNameHelp)->required()->type_name("");
  auto* off = pin.add_flag("--off", options.off, "take the pin off");
  pin.add_flag("--public", options.is_public,
               "copy it for every tenant of a server to use: nothing in it may be secret")
      ->excludes(off);
  add_model_of(pin, options);
  CLI::App& rm =
      add_action(group, options, Action::kRm, "remove a prefix, or everything", "rm 3f9a");
  auto* name = rm.add_option("NAME", options.name, kNameHelp)->type_name("");
  auto* all = rm.add_flag("--all", options.all, "everything, pinned prefixes too; needs --yes");
  auto* yes = rm.add_flag("--yes", options.yes, "no further question");
  add_check(rm, options, Action::kRm, [name, all, yes] {
    if (name->count() + all->count() != 1) throw CLI::RequiredError("one of NAME and --all --yes");
    if (all->count() > 0 && yes->count() == 0) {
      throw CLI::RequiredError("--yes, since --all removes everything that is remembered,");
    }
  });
}

void add_why(CLI::App& group, CacheOptions& options) {
  CLI::App& command = add_action(group, options, Action::kWhy,
                                 "why a prompt was not in memory: the last misses, or a request's",
                                 "why -p \"My cat is called Milo.\"");
  const PrefixChoice choice = add_prefix_choice(command, options);
  add_check(command, options, Action::kWhy, [choice, &options] {
    options.has_request = choice.has_request();
    if (choice.count() > 1) {
      throw CLI::ValidationError(fmt::format("more than one of {}", kChoices));
    }
  });
}

}  // namespace

std::string_view cache_action_name(CacheOptions::Action action) {
  constexpr std::string_view kNames[] = {"ls",      "stat", "verify", "export", "import",
                                         "prewarm", "pin",  "rm",     "why"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Action::kCount));
  return kNames[static_cast<std::size_t>(action)];
}

void add_cache(CLI::App& app, CacheOptions& options) {
  CLI::App& command =
      add_command(app, "cache", "what is remembered on disk: list, check, ship", "locket cache ls");
  command.require_subcommand(1);
  add_lists(command, options);
  add_verify(command, options);
  add_shipping(command, options);
  add_prewarm(command, options);
  add_changes(command, options);
  add_why(command, options);
}

}  // namespace locket::cli
