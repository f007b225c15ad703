#include "chat/chat_format.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <span>

#include "base/check.h"
#include "chat/markup.h"

namespace locket::chat {
namespace {

struct FormatFacts {
  std::string_view name;
  bool has_tools = false;
  bool has_turn_kinds = false;  // reminders and tasks
  bool has_images = false;
};

// Of ChatFormat.
constexpr std::array<FormatFacts, static_cast<std::size_t>(ChatFormat::kCount)> kFacts = {{
    {.name = "V1"},
    {.name = "V3"},
    {.name = "R1"},
    {.name = "V3.1"},
    {.name = "V3.2", .has_tools = true},
    {.name = "V4", .has_tools = true, .has_turn_kinds = true},
    {.name = "V4.1", .has_tools = true, .has_turn_kinds = true, .has_images = true},
    {.name = "ChatML"},
    {.name = "SmolLM2"},
}};

const FormatFacts& facts_of(ChatFormat format) { return kFacts[static_cast<std::size_t>(format)]; }

constexpr std::string_view kSmolLm2Mark = "named SmolLM, trained by Hugging Face";

class Chooser {
 public:
  Chooser(const ChatModel& model, const tokenizer::Tokenizer& tokenizer)
      : model_(model), tokenizer_(tokenizer) {}

  Result<ChatFormat> choose() const {
    if (model_.generation == "V1") return choose_llama();
    if (model_.generation == "V2") {
      return has(kUserToken) ? with(ChatFormat::kV3, kTurns) : with(ChatFormat::kV1, kFrame);
    }
    if (model_.generation == "V3") return choose_v3();
    if (model_.generation == "V3.2") {
      return has(kDsml) ? with(ChatFormat::kV32, kThoughts) : with(ChatFormat::kV31, kThoughts);
    }
    if (model_.generation == "V4") return with(ChatFormat::kV4, kTools);
    if (model_.generation == "V4.1") return with(ChatFormat::kV41, kAll);
    return fail(
        ErrorCode::kUnsupported,
        fmt::format("no prompt format is known for models of generation {}", model_.generation));
  }

 private:
  // What a prompt cannot do without; each list begins with the one before.
  static constexpr std::array kNeeded = {
      kBeginOfSentence, kEndOfSentence, kUserToken, kAssistantToken,
      kThinkOpen,       kThinkClose,    kDsml,      kSystemToken};
  static constexpr std::size_t kFrame = 2;
  static constexpr std::size_t kTurns = 4;
  static constexpr std::size_t kThoughts = 6;
  static constexpr std::size_t kTools = 7;
  static constexpr std::size_t kAll = 8;

  bool has(std::string_view token) const { return tokenizer_.find_added_token(token).has_value(); }

  bool mentions(std::string_view text) const {
    return model_.template_text.find(text) != std::string_view::npos;
  }

  Result<ChatFormat> with(ChatFormat format, std::size_t needed) const {
    for (const std::string_view token : std::span(kNeeded).first(needed)) {
      if (has(token)) continue;
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("the tokenizer has no control token {}, which prompts of a model of "
                              "generation {} need; is it the tokenizer of another model?",
                              token, model_.generation));
    }
    return format;
  }

  Result<ChatFormat> choose_llama() const {
    if (has(kTurnBegin) && has(kTurnEnd)) {
      return mentions(kSmolLm2Mark) ? ChatFormat::kSmolLm2 : ChatFormat::kChatMl;
    }
    if (has(kBeginOfSentence)) return with(ChatFormat::kV1, kFrame);
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("the tokenizer has neither {} nor {}; prompt formats are known for "
                            "DeepSeek's models and for ChatML",
                            kBeginOfSentence, kTurnBegin));
  }

  // V3 of March 2025 may have R1's tokens and not its habit: the template says so.
  Result<ChatFormat> choose_v3() const {
    if (!has(kThinkOpen)) return with(ChatFormat::kV3, kTurns);
    if (has(kSearchBegin)) return with(ChatFormat::kV31, kThoughts);
    const bool thinks = model_.template_text.empty() || mentions(kThinkOpen);
    return with(thinks ? ChatFormat::kR1 : ChatFormat::kV3, kThoughts);
  }

  const ChatModel& model_;
  const tokenizer::Tokenizer& tokenizer_;
};

tl::unexpected<Error> not_there(std::string_view what, ChatFormat format) {
  return fail(ErrorCode::kUnsupported,
              fmt::format("{}, which the prompt format of this model ({}) does not have; leave it "
                          "out",
                          what, facts_of(format).name));
}

bool has_image(const Message& message) {
  return std::ranges::any_of(message.content, [](const ContentPart& part) {
    return part.kind == ContentPart::Kind::kImage;
  });
}

Status check_message(const Message& message, std::size_t index, ChatFormat format) {
  const FormatFacts& facts = facts_of(format);
  const auto not_known = [&](std::string_view what) {
    return not_there(fmt::format("messages[{}] {}", index, what), format);
  };
  if (!facts.has_images && has_image(message)) return not_known("holds an image");
  if (!facts.has_tools && !message.tool_calls.empty()) return not_known("has tool_calls");
  if (!facts.has_tools && message.role == Role::kTool) return not_known("is a result of a tool");
  if (facts.has_turn_kinds) return {};
  if (message.role == Role::kLatestReminder) return not_known("has the role latest_reminder");
  if (message.task != Task::kNone) return not_known("has a task");
  return {};
}

}  // namespace

std::string_view chat_format_name(ChatFormat format) { return facts_of(format).name; }

Result<ChatFormat> choose_chat_format(const ChatModel& model,
                                      const tokenizer::Tokenizer& tokenizer) {
  return Chooser(model, tokenizer).choose();
}

Status check_format(const ChatRequest& request, ChatFormat format) {
  if (!facts_of(format).has_tools && has_visible_tools(request)) {
    return not_there("the request offers tools", format);
  }
  for (std::size_t index = 0; index < request.messages.size(); ++index) {
    LOCKET_TRY_STATUS(check_message(request.messages[index], index, format));
  }
  return {};
}

}  // namespace locket::chat
