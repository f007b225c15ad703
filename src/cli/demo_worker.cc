// One process of locket demo. "remember": reads all messages but the last question, writes what it
// keeps to disk, and waits to be killed. "answer": answers the last question and changes nothing on
// disk. Each prints one line of JSON.
#include <cstdio>
#include <fmt/format.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>

#include "base/clock.h"
#include "base/hash.h"
#include "chat/render_prompt.h"
#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/model_setup.h"
#include "cli/recall_cases.h"

namespace locket::cli {
namespace {

void print_line(const nlohmann::json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

Status remember(const ModelSetup& setup, chat::ChatRequest request) {
  request.messages.pop_back();
  if (request.messages.empty()) return fail(ErrorCode::kBadRequest, "there is only a question");
  LOCKET_TRY(const chat::RenderedPrompt prompt,
             chat::render_prompt(request, setup.loaded.chat_format(), setup.loaded.tokenizer()));
  engine::Session session = setup.engine().make_session();
  LOCKET_TRY_STATUS(session.prefill(prompt.ids, {}, {}, {.system_tokens = prompt.system_ids}));
  session.end_turn();
  setup.engine().memory()->flush();
  print_line({{"tokens", prompt.ids.size()}});
  // Whoever started this kills it here; if that process dies first, the input ends.
  static_cast<void>(std::cin.get());
  return {};
}

Result<std::string> answer_greedily(const ModelSetup& setup, engine::Session& session,
                                    engine::TokenId token) {
  engine::Sampler sampler;
  tokenizer::StreamDecoder decoder(setup.loaded.tokenizer());
  std::string answer;
  while (token != setup.engine().eos_token()) {
    answer += decoder.push(token);
    LOCKET_TRY_STATUS(session.append(token));
    LOCKET_TRY(token, sampler.sample(session.logits(), {}, {}, {}));
  }
  return answer + decoder.finish();
}

Status answer(const ModelSetup& setup, const chat::ChatRequest& request) {
  engine::Session session = setup.engine().make_session();
  engine::Sampler sampler;
  const double start = monotonic_seconds();
  LOCKET_TRY(const chat::RenderedPrompt prompt,
             chat::render_prompt(request, setup.loaded.chat_format(), setup.loaded.tokenizer()));
  LOCKET_TRY_STATUS(session.prefill(prompt.ids, {}, {}, {.system_tokens = prompt.system_ids}));
  LOCKET_TRY(const engine::TokenId first, sampler.sample(session.logits(), {}, {}, {}));
  const double first_token_seconds = monotonic_seconds() - start;
  const std::string digest = to_hex(sha256(std::as_bytes(session.logits())));
  const engine::MemoryUse use = session.memory_use();
  LOCKET_TRY(const std::string text, answer_greedily(setup, session, first));
  print_line({{"load_seconds", setup.load_seconds},
              {"prompt_tokens", prompt.ids.size()},
              {"disk_tokens", use.disk_tokens},
              {"replayed_tokens", use.replayed_tokens},
              {"restore_seconds", use.restore_seconds},
              {"first_token_seconds", first_token_seconds},
              {"logits", digest},
              {"answer", text}});
  return {};
}

Status work(const DemoWorkerOptions& options) {
  LOCKET_TRY(const std::filesystem::path folder, resolve_model(options.model.model));
  LOCKET_TRY(const RecallCases cases, load_recall_cases(folder));
  LOCKET_TRY(const ModelSetup setup, set_up_remembering_model(options.model));
  const chat::ChatRequest& request = cases.recall.front().request;
  return options.task == "remember" ? remember(setup, request) : answer(setup, request);
}

}  // namespace

int run_demo_worker(const DemoWorkerOptions& options) {
  const Status status = work(options);
  return status ? 0 : report(status.error());
}

}  // namespace locket::cli
