#include "cli/common_options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <fmt/format.h>
#include <limits>
#include <type_traits>

#include "cli/byte_size.h"
#include "cli/effort.h"

namespace locket::cli {
namespace {

constexpr int kMostStops = 16;

// Stricter than the library, which wraps negative numbers into an unsigned type, takes the largest
// for one that is too large, and reads 010 as octal.
template <class Number>
bool read_number(const std::string& text, Number& value) {
  const bool is_octal = std::is_integral_v<Number> && text.size() > 1 && text.front() == '0';
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !is_octal && error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

template <class Number>
CLI::Validator in_range(Number low, Number high) {
  const auto check = [low, high](const std::string& text) -> std::string {
    Number value{};
    if (read_number(text, value) && value >= low && value <= high) return "";
    return fmt::format("\"{}\" is not a number from {} to {}", text, low, high);
  };
  return CLI::Validator(check, "");
}

template CLI::Validator in_range(int low, int high);
template CLI::Validator in_range(std::int64_t low, std::int64_t high);
template CLI::Validator in_range(std::uint64_t low, std::uint64_t high);
template CLI::Validator in_range(double low, double high);

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

void add_model_choice(CLI::App& command, ModelOptions& options) {
  add_model(command, options.model);
  command
      .add_option("--mode", options.mode,
                  "arithmetic: reference (as released; default for V4.1), fast (as\n"
                  "reference, but int8 into routed experts), wide (float32; default for\n"
                  "older generations), plain (float32 and no rounding of the memory)")
      ->check(one_of({"reference", "fast", "wide", "plain"}))
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
  add_room_options(command, options);
}

void add_room_options(CLI::App& command, ModelOptions& options) {
  const char* group = "Model";
  command
      .add_option("--expert-memory", options.expert_memory_bytes,
                  "most bytes of RAM for routed experts, as in 40G; the others are read\n"
                  "from disk when a token needs them (default 0: as many as fit)")
      ->transform(CLI::Validator(read_size, ""))
      ->type_name("SIZE")
      ->group(group);
  command
      .add_option("--memory-budget", options.memory_budget_bytes,
                  "most bytes of RAM for the memory of texts, as in 512M or 4G\n"
                  "(default 0: a share of the free memory)")
      ->transform(CLI::Validator(read_size, ""))
      ->type_name("SIZE")
      ->group(group);
}

void add_memory_options(CLI::App& command, ModelOptions& options) {
  const char* group = "Model";
  command
      .add_option("--memory", options.memory,
                  "folder that keeps the memory of texts for later runs, or off\n"
                  "(default: LOCKET_MEMORY, else locket/memory in the user's cache)")
      ->check(CLI::Validator(
          [](const std::string& text) { return text.empty() ? "a folder or off is needed" : ""; },
          ""))
      ->type_name("DIR")
      ->group(group);
  command
      .add_option("--memory-quota", options.memory_quota_bytes,
                  "most bytes that the folder may take, as in 512M or 4G (default 0:\n"
                  "a tenth of what is free on its disk, at most 64G)")
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

CLI::Option* add_scratch(CLI::App& command, std::filesystem::path& scratch) {
  return command
      .add_option("--scratch", scratch,
                  "folder on the disk to measure; files are made there and removed\n"
                  "(default: the one for temporary files)")
      ->type_name("DIR");
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

}  // namespace locket::cli
