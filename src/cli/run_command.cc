// locket run: one answer to one prompt or one chat request.
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "chat/request_json.h"
#include "cli/commands.h"
#include "cli/effort.h"
#include "cli/model_setup.h"
#include "cli/reply_printer.h"
#include "cli/text_table.h"

namespace locket::cli {
namespace {

double per_second(std::size_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// What a chat request can ask for and one answer on a terminal cannot give.
Status check_request(const RunOptions& options, const chat::ChatRequest& request) {
  const std::string file = options.messages.string();
  if (request.n != 1) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{}: n is {}; locket run gives one answer", file, request.n));
  }
  if (request.wants_logprobs) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{}: logprobs is true; locket run does not give any", file));
  }
  if (!request.unknown_fields.empty()) {
    log_info(fmt::format("{}: unknown fields ignored: {}", file,
                         fmt::join(request.unknown_fields, ", ")));
  }
  return {};
}

Result<chat::ChatRequest> make_request(const RunOptions& options) {
  chat::ChatRequest request;
  if (!options.messages.empty()) {
    LOCKET_TRY(const std::string body, read_whole_file(options.messages));
    Result<chat::ChatRequest> parsed = chat::parse_chat_request(body);
    if (!parsed) {
      return fail(parsed.error().code,
                  fmt::format("{}: {}", options.messages.string(), parsed.error().message));
    }
    request = std::move(*parsed);
    LOCKET_TRY_STATUS(check_request(options, request));
    if (!options.effort.empty()) LOCKET_TRY_STATUS(apply_effort(options.effort, request));
  } else {
    request.messages.push_back(chat::text_message(chat::Role::kUser, options.prompt));
    LOCKET_TRY_STATUS(apply_effort(options.effort, request));
  }
  request.stop.insert(request.stop.end(), options.sampling.stop.begin(),
                      options.sampling.stop.end());
  return request;
}

// Tokens of the prompt by where their memory came from.
nlohmann::ordered_json memory_json(const service::Completion& completion) {
  const engine::MemoryUse& use = completion.memory;
  return {{"prompt_tokens", completion.prompt_tokens},
          {"hit_tokens", use.hit_tokens},
          {"hit_tokens_ram", use.hit_tokens - use.disk_tokens},
          {"hit_tokens_disk", use.disk_tokens},
          {"computed_tokens", completion.prompt_tokens - use.hit_tokens},
          {"replayed_tokens", use.replayed_tokens},
          {"restore_ms", use.restore_seconds * 1e3},
          {"retries", use.retries}};
}

nlohmann::ordered_json to_json(const service::Completion& completion, double load_seconds) {
  nlohmann::ordered_json calls = nlohmann::ordered_json::array();
  for (const chat::ReplyCall& call : completion.reply.tool_calls) {
    calls.push_back({{"name", call.name}, {"arguments", call.arguments}});
  }
  nlohmann::ordered_json reasoning = nullptr;
  if (completion.reply.reasoning) reasoning = *completion.reply.reasoning;
  return {{"content", completion.reply.content},
          {"reasoning", reasoning},
          {"tool_calls", calls},
          {"finish_reason", chat::finish_reason_name(completion.reply.finish_reason)},
          {"prompt_tokens", completion.prompt_tokens},
          {"completion_tokens", completion.token_ids.size()},
          {"token_ids", completion.token_ids},
          {"memory", memory_json(completion)},
          {"timings",
           {{"load_seconds", load_seconds},
            {"prompt_seconds", completion.prompt_seconds},
            {"generation_seconds", completion.generation_seconds},
            {"prompt_tokens_per_second",
             per_second(completion.prompt_tokens, completion.prompt_seconds)},
            {"tokens_per_second",
             per_second(completion.token_ids.size(), completion.generation_seconds)}}}};
}

Status run(const RunOptions& options) {
  LOCKET_TRY(const chat::ChatRequest request, make_request(options));
  LOCKET_TRY(const ModelSetup setup, set_up_remembering_model(options.model));
  ReplyPrinter printer(stdout);
  service::CompletionHooks hooks;
  if (!options.json) {
    hooks.on_event = [&](const chat::ReplyEvent& event) { printer.on_event(event); };
  }
  LOCKET_TRY(
      const service::Completion completion,
      service::complete(setup.loaded, request, completion_defaults(options.sampling), hooks));
  if (options.json) {
    fmt::print("{}\n", to_json(completion, setup.load_seconds)
                           .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return {};
  }
  printer.finish();
  if (::isatty(STDERR_FILENO) == 1) {
    fmt::print(stderr,
               "[{} of {} prompt tokens remembered, read at {:.0f}/s; {} tokens at {:.0f}/s, {}]\n",
               grouped(completion.memory.hit_tokens), grouped(completion.prompt_tokens),
               per_second(completion.prompt_tokens, completion.prompt_seconds),
               completion.token_ids.size(),
               per_second(completion.token_ids.size(), completion.generation_seconds),
               chat::finish_reason_name(completion.reply.finish_reason));
  }
  return {};
}

}  // namespace

int run_run(const RunOptions& options) {
  const Status status = run(options);
  return status ? 0 : report(status.error());
}

}  // namespace locket::cli
