#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <fmt/format.h>
#include <iostream>
#include <limits>
#include <type_traits>

#include "cli/byte_size.h"
#include "cli/effort.h"

namespace locket::cli {
namespace {

constexpr int kWrongUse = 2;
constexpr int kMostStops = 16;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;

struct Commands {
  ChatOptions chat;
  DemoOptions demo;
  InspectOptions inspect;
  MemoryOptions memory;
  ParseOptions parse;
  RenderOptions render;
  RunOptions run;
  TokensOptions tokens;
  TraceOptions trace;
};

// Stricter than the library, which wraps negative numbers into an unsigned type, takes the largest
// for one that is too large, and reads 010 as octal.
template <class Number>
bool read_number(const std::string& text, Number& value) {
  const bool is_octal = std::is_integral_v<Number> && text.size() > 1 && text.front() == '0';
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !is_octal && error == std::errc{} && end == text.data() + text.size();
}

// Ranges and names are told in the help text, so the validators add nothing to it. No option takes
// a negative number.
template <class Number>
CLI::Validator in_range(Number low, Number high) {
  const auto check = [low, high](const std::string& text) -> std::string {
    Number value{};
    if (read_number(text, value) && value >= low && value <= high) return "";
    return fmt::format("\"{}\" is not a number from {} to {}", text, low, high);
  };
  return CLI::Validator(check, "");
}

CLI::Validator one_of(std::vector<std::string> names) {
  return CLI::IsMember(std::move(names)).description("");
}

void add_model(CLI::App& command, std::filesystem::path& model) {
  command
      .add_option("MODEL", model,
                  "folder of a checkpoint: config.json, tokenizer.json, *.safetensors\n"
                  "(default: the small model that ships)")
      ->type_name("");
}

// The model and what its numbers depend on.
void add_model_choice(CLI::App& command, ModelOptions& options) {
  add_model(command, options.model);
  command
      .add_option("--mode", options.mode,
                  "arithmetic: reference (as released, default), wide (float32),\n"
                  "plain (float32 and no rounding of the memory)")
      ->check(one_of({"reference", "wide", "plain"}))
      ->type_name("NAME")
      ->group("Model");
  command
      .add_option("--replay", options.replay,
                  "prompt tokens that the decoder layers see: bounded (the last window,\n"
                  "default), exact (all that can matter), full (every one)")
      ->check(one_of({"bounded", "exact", "full"}))
      ->type_name("NAME")
      ->group("Model");
}

void add_model_options(CLI::App& command, ModelOptions& options) {
  const char* group = "Model";
  add_model_choice(command, options);
  command
      .add_option("--threads", options.threads,
                  "threads to compute with, 0 to 1024 (default 0: one per core)")
      ->check(in_range(0, 1024))
      ->type_name("N")
      ->group(group);
  command
      .add_option("--memory-budget", options.memory_budget_bytes,
                  "bytes for the memory of texts, as in 512M or 4G\n"
                  "(default 0: a share of the free memory)")
      ->transform(CLI::Validator(read_size, ""))
      ->type_name("SIZE")
      ->group(group);
}

void add_sampling_options(CLI::App& command, SamplingOptions& options) {
  const char* group = "Sampling";
  command
      .add_option("--temperature", options.temperature,
                  "0 to 2: how freely tokens are drawn (default 0: always the likeliest)")
      ->check(in_range(0.0, 2.0))
      ->type_name("X")
      ->group(group);
  command.add_option("--top-k", options.top_k, "draw from the K likeliest tokens (default 0: off)")
      ->check(in_range<std::int64_t>(0, std::numeric_limits<std::int32_t>::max()))
      ->type_name("K")
      ->group(group);
  command
      .add_option("--top-p", options.top_p,
                  "0 to 1: draw from the fewest tokens that hold this share (default 1: off)")
      ->check(in_range(0.0, 1.0))
      ->type_name("P")
      ->group(group);
  command
      .add_option("--min-p", options.min_p,
                  "0 to 1: drop tokens below this share of the likeliest (default 0: off)")
      ->check(in_range(0.0, 1.0))
      ->type_name("P")
      ->group(group);
  command.add_option("--seed", options.seed, "same seed, same draws (default 0)")
      ->check(in_range<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max()))
      ->type_name("N")
      ->group(group);
  command
      .add_option("--max-tokens", options.max_tokens,
                  "longest answer in tokens (default 0: to the end of the context)")
      ->check(in_range<std::int64_t>(0, kMostTokens))
      ->type_name("N")
      ->group(group);
  command.add_option("--stop", options.stop, "end the answer before this text; at most 16 times")
      ->expected(1, kMostStops)
      ->allow_extra_args(false)
      ->type_name("TEXT")
      ->group(group);
}

void add_effort(CLI::App& command, std::string& effort) {
  command
      .add_option("--effort", effort,
                  "think before the answer, 1 to 100 or low, high, max\n"
                  "(default: answer at once)")
      ->check(CLI::Validator(check_effort, ""))
      ->type_name("EFFORT");
}

CLI::App& add_command(CLI::App& app, const char* name, const char* description,
                      const char* example) {
  CLI::App& command = *app.add_subcommand(name, description);
  command.group("Commands");
  command.footer(fmt::format("Example:\n  {}", example));
  return command;
}

void add_demo(CLI::App& app, DemoOptions& options) {
  CLI::App& command = add_command(
      app, "demo", "a hundred messages: does the model remember the first?", "locket demo");
  add_model_options(command, options.model);
  command
      .add_option("--conversations", options.conversations,
                  "how many conversations are counted, at least 1 (default 50)")
      ->check(in_range<std::int64_t>(1, 100000))
      ->type_name("N");
}

void add_chat(CLI::App& app, ChatOptions& options) {
  CLI::App& command = add_command(app, "chat", "talk with a model in the terminal",
                                  "locket chat ~/models/DeepSeek-V4.1-Flash --effort high");
  add_model_options(command, options.model);
  add_sampling_options(command, options.sampling);
  command.add_option("--system", options.system, "instructions before the first message")
      ->type_name("TEXT");
  add_effort(command, options.effort);
}

void add_run(CLI::App& app, RunOptions& options) {
  CLI::App& command = add_command(app, "run", "one answer to one prompt, to standard output",
                                  "locket run -p \"My cat is called Milo.\"");
  add_model_options(command, options.model);
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
  command.add_flag("--json", options.json, "print everything as JSON");
}

void add_memory(CLI::App& app, MemoryOptions& options) {
  CLI::App& command = add_command(
      app, "memory", "bytes per token of V1 to V4.1, computed and measured", "locket memory");
  command
      .add_option("MODEL", options.models,
                  "measured, too: a checkpoint folder, or a config.json without weights")
      ->type_name("");
  command
      .add_option("--tokens", options.tokens,
                  "length of the text that is measured, at least 1 (default 2048)")
      ->check(in_range<std::int64_t>(1, kMostTokens))
      ->type_name("N");
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
  if (app.got_subcommand("chat")) return commands.chat;
  if (app.got_subcommand("demo")) return commands.demo;
  if (app.got_subcommand("inspect")) return commands.inspect;
  if (app.got_subcommand("memory")) return commands.memory;
  if (app.got_subcommand("parse")) return commands.parse;
  if (app.got_subcommand("render")) return commands.render;
  if (app.got_subcommand("run")) return commands.run;
  if (app.got_subcommand("tokens")) return commands.tokens;
  if (app.got_subcommand("trace")) return commands.trace;
  return std::nullopt;
}

void add_commands(CLI::App& app, Commands& commands) {
  app.set_version_flag("--version", "locket " LOCKET_VERSION, "print the version and exit");
  app.set_help_flag("-h,--help", "print this help and exit");
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->column_width(26);
  app.footer(
      "Every command explains itself: locket COMMAND --help\n"
      "Example:\n"
      "  locket run -p \"My cat is called Milo.\"");
  add_demo(app, commands.demo);
  add_chat(app, commands.chat);
  add_run(app, commands.run);
  add_inspect(app, commands.inspect);
  add_memory(app, commands.memory);
  add_trace(app, commands.trace);
  add_tokens(app, commands.tokens);
  add_render(app, commands.render);
  add_parse(app, commands.parse);
}

ParsedOptions wrong_use(const CLI::App& app, const CLI::Error& error) {
  const auto parsed = app.get_subcommands();
  const auto unknown = app.remaining();
  const std::string command = parsed.empty() ? "locket" : "locket " + parsed.front()->get_name();
  const std::string message = parsed.empty() && !unknown.empty()
                                  ? fmt::format("there is no command \"{}\"", unknown.front())
                                  : error.what();
  fmt::print(stderr, "{}: {}\n{} --help explains the options\n", command, message, command);
  return {std::nullopt, kWrongUse};
}

}  // namespace

ParsedOptions parse_options(int argc, char** argv) {
  CLI::App app{"locket: runs DeepSeek-V4.1-Flash and the generations before it, and remembers",
               "locket"};
  Commands commands;
  add_commands(app, commands);
  try {
    app.parse(argc, argv);
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
