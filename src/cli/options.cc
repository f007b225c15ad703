#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <iostream>
#include <string>
#include <vector>

#include "cli/bench_options.h"
#include "cli/cache_options.h"
#include "cli/common_options.h"
#include "cli/doctor_options.h"
#include "cli/serve_options.h"
#include "cli/study_options.h"
#include "kernels/kernel_table.h"
#include "service/conversation.h"

namespace locket::cli {
namespace {

constexpr int kWrongUse = 2;

struct Commands {
  BenchOptions bench;
  CacheOptions cache;
  ChatOptions chat;
  ClaimsOptions claims;
  DemoOptions demo;
  DemoWorkerOptions demo_worker;
  DoctorOptions doctor;
  InspectOptions inspect;
  LensOptions lens;
  MemoryOptions memory;
  ParseOptions parse;
  RenderOptions render;
  RunOptions run;
  ServeOptions serve;
  TokensOptions tokens;
  TraceOptions trace;
};

void add_demo(CLI::App& app, DemoOptions& options) {
  CLI::App& command = add_command(
      app, "demo", "a hundred messages: does the model remember the first?", "locket demo");
  add_model_options(command, options.model);
  add_memory_options(command, options.model);
  command
      .add_option("--conversations", options.conversations,
                  "how many conversations are counted, at least 1 (default 50)")
      ->check(in_range<std::int64_t>(1, 100000))
      ->type_name("N");
}

std::string session_name_fault(const std::string& name) {
  const Status status = service::check_conversation_name(name);
  return status ? "" : status.error().message;
}

// Not listed: the demo starts it.
void add_demo_worker(CLI::App& app, DemoWorkerOptions& options) {
  CLI::App& command = add_command(app, "demo-worker", "one process of the demo", "locket demo");
  command.group("");
  add_model_options(command, options.model);
  add_memory_options(command, options.model);
  command.add_option("--task", options.task, "what it does: remember or answer (required)")
      ->required()
      ->check(one_of({"remember", "answer"}))
      ->option_text("NAME");
}

void add_chat(CLI::App& app, ChatOptions& options) {
  CLI::App& command = add_command(app, "chat", "talk with a model in the terminal",
                                  "locket chat ~/models/DeepSeek-V4.1-Flash --effort high");
  add_model_options(command, options.model);
  add_memory_options(command, options.model);
  add_sampling_options(command, options.sampling);
  command.add_option("--system", options.system, "instructions before the first message")
      ->type_name("TEXT");
  auto* session =
      command
          .add_option("--session", options.session,
                      "keep the conversation under this name, and go on with it if there\n"
                      "is one (in the memory's folder)")
          ->check(CLI::Validator(session_name_fault, ""))
          ->option_text("NAME");
  auto* list =
      command.add_flag("--sessions", options.lists_sessions, "list the kept conversations");
  command.callback([session, list] {
    if (session->count() > 0 && list->count() > 0) {
      throw CLI::ExcludesError("--sessions", "--session");
    }
  });
  add_effort(command, options.effort);
}

void add_run(CLI::App& app, RunOptions& options) {
  CLI::App& command = add_command(app, "run", "one answer to one prompt, to standard output",
                                  "locket run -p \"My cat is called Milo.\"");
  add_model_options(command, options.model);
  add_memory_options(command, options.model);
  add_sampling_options(command, options.sampling);
  auto* prompt =
      command.add_option("-p,--prompt", options.prompt, "one user message")->option_text("TEXT");
  auto* messages = command
                       .add_option("--messages", options.messages,
                                   "instead of -p: a chat request as JSON, {\"messages\": [...]}")
                       ->option_text("FILE");
  prompt->excludes(messages);
  command.add_flag("--json", options.json,
                   "print the answer with token counts and timings as JSON");
  add_effort(command, options.effort);
  command.callback([prompt, messages] {
    if (prompt->count() + messages->count() == 0) {
      throw CLI::RequiredError("a prompt, -p TEXT or --messages FILE,");
    }
  });
}

void add_inspect(CLI::App& app, InspectOptions& options) {
  CLI::App& command = add_command(
      app, "inspect", "what a model is made of: layers, who writes memory, bytes per token",
      "locket inspect --context 100000");
  add_model_choice(command, options.model);
  command.get_option("MODEL")->description(
      "a checkpoint folder or a config.json (default: the small model that ships)");
  command
      .add_option("--context", options.context,
                  "tokens of context at which work is counted, at least 1 (default 32768)")
      ->check(in_range<std::int64_t>(1, kMostTokens))
      ->type_name("N");
  auto* json = command.add_flag("--json", options.json, "print everything as JSON");
  add_room_options(command, options.model);
  command
      .add_flag("--plan", options.plan,
                "what loading would put where, and what speed the bytes allow")
      ->excludes(json);
}

void add_trace(CLI::App& app, TraceOptions& options) {
  CLI::App& command =
      add_command(app, "trace", "what the model computes for given token ids, as safetensors",
                  "locket trace --ids ids.json -o trace.safetensors --what logits,rows");
  add_model_options(command, options.model);
  command.add_option("--ids", options.ids, "token ids: a JSON list of whole numbers (required)")
      ->required()
      ->option_text("FILE");
  command.add_option("-o,--output", options.output, "the safetensors file to write (required)")
      ->required()
      ->option_text("FILE");
  command.add_option("--chunk", options.chunk, "prompt tokens per step (default 0: all at once)")
      ->check(in_range<std::int64_t>(0, kMostTokens))
      ->type_name("N");
  command
      .add_option("--decode-from", options.decode_from,
                  "feed ids from this position on one at a time, at least 1 (default: none)")
      ->check(in_range<std::int64_t>(1, kMostTokens))
      ->type_name("N");
  command
      .add_option("--index-scores", options.index_scores,
                  "precision of the scores that choose rows: f32 (default) or bf16")
      ->check(one_of({"f32", "bf16"}))
      ->type_name("NAME");
  command
      .add_option("--what", options.what,
                  "what to write, separated by commas: logits, streams, attention,\n"
                  "moe, rows, window, index, router (default logits)")
      ->check(
          one_of({"logits", "streams", "attention", "moe", "rows", "window", "index", "router"}))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST");
  auto* layer = command
                    .add_option("--layer", options.layer,
                                "compute only this layer, counted from 0, on the inputs in --from")
                    ->check(in_range<std::int64_t>(0, 100000))
                    ->option_text("L");
  auto* from =
      command
          .add_option("--from", options.from, "a trace with the inputs of --layer, as safetensors")
          ->option_text("FILE");
  layer->needs(from);
  from->needs(layer);
}

void add_tokens(CLI::App& app, TokensOptions& options) {
  CLI::App& command = add_command(
      app, "tokens", "text (JSON lines on standard input) to token ids and pieces, and back",
      "echo '{\"text\": \"Hello there\"}' | locket tokens");
  add_model(command, options.model);
  auto* tokenizer =
      command.add_option("--tokenizer", options.tokenizer, "a tokenizer.json instead of a MODEL")
          ->option_text("FILE");
  tokenizer->excludes(command.get_option("MODEL"));
  command.add_flag("--json", options.json,
                   "print {\"ids\", \"pieces\"} as JSON, one object a line");
  command.add_flag("--decode", options.decode,
                   "read {\"ids\": [...]} lines, print their text and bytes");
}

void add_tokenizer(CLI::App& command, std::filesystem::path& tokenizer) {
  command
      .add_option("--tokenizer", tokenizer,
                  "a tokenizer.json (default: that of the small model that ships)")
      ->type_name("FILE");
}

void add_render(CLI::App& app, RenderOptions& options) {
  CLI::App& command = add_command(
      app, "render", "a chat request (JSON on standard input) to segments and ids",
      "echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}' | locket render");
  add_tokenizer(command, options.tokenizer);
}

void add_parse(CLI::App& app, ParseOptions& options) {
  CLI::App& command = add_command(
      app, "parse", "model output on standard input to reasoning, content and calls (JSON)",
      "echo '{\"text\": \"Hm.</think>Hi\", \"start\": \"reasoning\"}' | locket parse");
  add_tokenizer(command, options.tokenizer);
  command
      .add_option("--chunks", options.chunks,
                  "hand the text on in pieces of N bytes, as a stream would (default: whole)")
      ->check(in_range<std::int64_t>(0, kMostTokens))
      ->type_name("N");
}

std::optional<Command> chosen_command(const CLI::App& app, const Commands& commands) {
  if (app.got_subcommand("bench")) return commands.bench;
  if (app.got_subcommand("cache")) return commands.cache;
  if (app.got_subcommand("chat")) return commands.chat;
  if (app.got_subcommand("claims")) return commands.claims;
  if (app.got_subcommand("demo")) return commands.demo;
  if (app.got_subcommand("demo-worker")) return commands.demo_worker;
  if (app.got_subcommand("doctor")) return commands.doctor;
  if (app.got_subcommand("inspect")) return commands.inspect;
  if (app.got_subcommand("lens")) return commands.lens;
  if (app.got_subcommand("memory")) return commands.memory;
  if (app.got_subcommand("parse")) return commands.parse;
  if (app.got_subcommand("render")) return commands.render;
  if (app.got_subcommand("run")) return commands.run;
  if (app.got_subcommand("serve")) return commands.serve;
  if (app.got_subcommand("tokens")) return commands.tokens;
  if (app.got_subcommand("trace")) return commands.trace;
  return std::nullopt;
}

std::string version_text() {
  return fmt::format("locket {}, kernels {}", LOCKET_VERSION, kernels::active_kernels().name);
}

void add_commands(CLI::App& app, Commands& commands) {
  app.set_version_flag("--version", version_text, "print the version and exit");
  app.set_help_flag("-h,--help", "print this help and exit");
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->column_width(26);
  app.footer(
      "Every command explains itself: locket COMMAND --help\n"
      "Example:\n"
      "  locket run -p \"My cat is called Milo.\"");
  add_demo(app, commands.demo);
  add_demo_worker(app, commands.demo_worker);
  add_chat(app, commands.chat);
  add_run(app, commands.run);
  add_serve(app, commands.serve);
  add_inspect(app, commands.inspect);
  add_doctor(app, commands.doctor);
  add_bench(app, commands.bench);
  add_memory(app, commands.memory);
  add_claims(app, commands.claims);
  add_lens(app, commands.lens);
  add_cache(app, commands.cache);
  add_trace(app, commands.trace);
  add_tokens(app, commands.tokens);
  add_render(app, commands.render);
  add_parse(app, commands.parse);
}

// The innermost command that was named, as the user wrote it.
const CLI::App* named_command(const CLI::App& app, std::string& words) {
  const CLI::App* command = &app;
  words = "locket";
  for (auto named = app.get_subcommands(); !named.empty(); named = command->get_subcommands()) {
    command = named.front();
    words += " " + command->get_name();
  }
  return command;
}

ParsedOptions wrong_use(const CLI::App& app, const CLI::Error& error) {
  std::string words;
  const CLI::App* const command = named_command(app, words);
  const auto unknown = command->remaining();
  const bool is_group = command == &app || command->get_require_subcommand_min() > 0;
  std::string message = error.what();
  if (is_group && !unknown.empty() && !unknown.front().starts_with('-')) {
    message = fmt::format("there is no command \"{}\"", unknown.front());
  } else if (is_group && error.get_name() == "RequiredError") {
    message = "one of its commands is required";
  }
  fmt::print(stderr, "{}: {}\n{} --help explains the options\n", words, message, words);
  return {std::nullopt, kWrongUse};
}

}  // namespace

ParsedOptions parse_options(int argc, char** argv) {
  CLI::App app{"locket: runs DeepSeek-V4.1-Flash and the generations before it, and remembers",
               "locket"};
  Commands commands;
  add_commands(app, commands);
  try {
    std::vector<std::string> words = known_words({argv + std::min(argc, 1), argv + argc});
    std::ranges::reverse(words);  // as the library takes them
    app.parse(std::move(words));
  } catch (const CLI::Success& answered) {
    return {std::nullopt, app.exit(answered, std::cout, std::cerr)};
  } catch (const CLI::Error& error) {
    return wrong_use(app, error);
  }
  std::optional<Command> command = chosen_command(app, commands);
  if (!command.has_value()) {
    fmt::print(stderr, "{}", app.help());
    return {std::nullopt, kWrongUse};
  }
  return {std::move(command), 0};
}

}  // namespace locket::cli
