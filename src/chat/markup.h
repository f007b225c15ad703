// Spellings of control tokens and of the fixed text of tool markup. The bar in them is U+FF5C and
// the low line is U+2581, neither is ASCII.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "chat/reply.h"

namespace locket::chat {

inline constexpr std::string_view kBeginOfSentence = "<｜begin▁of▁sentence｜>";
inline constexpr std::string_view kEndOfSentence = "<｜end▁of▁sentence｜>";
inline constexpr std::string_view kSystemToken = "<｜System｜>";
inline constexpr std::string_view kUserToken = "<｜User｜>";
inline constexpr std::string_view kAssistantToken = "<｜Assistant｜>";
inline constexpr std::string_view kReminderToken = "<｜latest_reminder｜>";
inline constexpr std::string_view kThinkOpen = "<think>";
inline constexpr std::string_view kThinkClose = "</think>";
inline constexpr std::string_view kDsml = "｜DSML｜";
inline constexpr std::string_view kImageToken = "<｜deepseek_image｜>";
// The same token in a tokenizer file of the vendor's own library.
inline constexpr std::string_view kImageTokenAlias = "<｜image｜>";

// Around a turn of ChatML.
inline constexpr std::string_view kTurnBegin = "<|im_start|>";
inline constexpr std::string_view kTurnEnd = "<|im_end|>";
// Only tokenizers of V3.1 and later have it.
inline constexpr std::string_view kSearchBegin = "<｜search▁begin｜>";

// Control tokens inside the format's own fixed text.
inline constexpr std::array<std::string_view, 3> kTemplateTokens = {kThinkOpen, kThinkClose, kDsml};

// Control tokens that assistant text may hold: places in a picture.
inline constexpr std::array<std::string_view, 8> kGroundingTokens = {
    "<｜ref｜>",   "<｜/ref｜>",   "<｜box｜>",     "<｜/box｜>",
    "<｜point｜>", "<｜/point｜>", "<｜polygon｜>", "<｜/polygon｜>"};

// How a generation spells its call blocks: `<｜DSML｜` gap block `>` around `<｜DSML｜` gap
// `invoke`.
struct MarkupSpelling {
  std::string_view gap;
  std::string_view block;
  // What stands between an answer and its call block, and what a forced call begins with.
  std::string_view calls_open;
};

// Of Markup.
inline constexpr std::array<MarkupSpelling, static_cast<std::size_t>(Markup::kCount)>
    kMarkupSpellings = {{{"", "function_calls", "\n\n<｜DSML｜function_calls>\n"},
                         {"", "tool_calls", "\n\n<｜DSML｜tool_calls>\n"},
                         {" ", "calls", "\n\n<｜DSML｜ calls>\n"}}};

inline constexpr const MarkupSpelling& spelling_of(Markup markup) {
  return kMarkupSpellings[static_cast<std::size_t>(markup)];
}

// Any tag of tool markup begins with one of these.
inline constexpr std::string_view kTagOpen = "<｜DSML｜";
inline constexpr std::string_view kTagClose = "</｜DSML｜";

// Closing tags of tool markup, of every generation.
inline constexpr std::array<std::string_view, 9> kClosingTags = {
    "</｜DSML｜ calls>",      "</｜DSML｜ invoke>", "</｜DSML｜ parameter>",
    "</｜DSML｜tool_calls>",  "</｜DSML｜invoke>",  "</｜DSML｜parameter>",
    "</｜DSML｜ tool_calls>", "</｜DSML｜calls>",   "</｜DSML｜function_calls>"};

}  // namespace locket::chat
