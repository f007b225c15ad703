// Models and requests for tests of the service room, and what they look at in an answer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/completion.h"
#include "service/loaded_model.h"

namespace locket::service {

inline std::filesystem::path mini_folder() { return std::filesystem::path(LOCKET_MODELS) / "mini"; }
inline std::filesystem::path tiny_folder(std::string_view name) {
  return std::filesystem::path(LOCKET_TEST_DATA) / "checkpoints" / name;
}

// Fails the running test if the model does not load.
inline LoadedModel load_remembering(const std::filesystem::path& folder,
                                    const engine::EngineOptions& options) {
  Result<LoadedModel> loaded = LoadedModel::open(folder, options);
  if (!loaded) throw std::runtime_error(loaded.error().message);
  return std::move(*loaded);
}

// A model that forgets every request when it has been answered.
inline LoadedModel load(const std::filesystem::path& folder, engine::EngineOptions options = {}) {
  options.memory.keeps = engine::MemoryOptions::Keeps::kNothing;
  return load_remembering(folder, options);
}

// Loaded once. mini talks; the weights of odd are random numbers.
inline const LoadedModel& mini() {
  static const LoadedModel model = load(mini_folder());
  return model;
}
inline const LoadedModel& odd() {
  static const LoadedModel model = load(tiny_folder("odd"));
  return model;
}

// One user message in chat mode.
inline chat::ChatRequest ask(std::string text) {
  chat::ChatRequest request;
  request.thinking = chat::ThinkingMode::kChat;
  request.messages.push_back(chat::text_message(chat::Role::kUser, std::move(text)));
  return request;
}

inline Completion completed(const LoadedModel& model, const chat::ChatRequest& request,
                            const CompletionDefaults& defaults = {},
                            const CompletionHooks& hooks = {}) {
  const Result<Completion> completion = complete(model, request, defaults, hooks);
  if (!completion) throw std::runtime_error(completion.error().message);
  return *completion;
}

// The error of a request that must fail; on_prompt must not have been called: no work was done.
inline Error refused(const LoadedModel& model, const chat::ChatRequest& request,
                     const CompletionDefaults& defaults = {}) {
  const CompletionHooks hooks = {
      .on_prompt = [](std::size_t, std::size_t) { ADD_FAILURE() << "the model has run"; }};
  const Result<Completion> completion = complete(model, request, defaults, hooks);
  if (completion) {
    ADD_FAILURE() << "answered: " << completion->reply.content;
    return {};
  }
  EXPECT_EQ(model.engine().pool().used_bytes(), 0U);
  return completion.error();
}

inline std::string eos_text(const LoadedModel& model) {
  const engine::TokenId eos = model.engine().eos_token();
  return model.tokenizer().decode_bytes({&eos, 1});
}

// The token that stands for exactly these bytes, if there is one.
inline std::optional<engine::TokenId> token_of(const LoadedModel& model, std::string_view bytes) {
  for (std::size_t i = 0; i < model.tokenizer().vocabulary_size(); ++i) {
    const auto token = static_cast<engine::TokenId>(i);
    if (model.tokenizer().decode_bytes({&token, 1}) == bytes) return token;
  }
  return std::nullopt;
}

}  // namespace locket::service
