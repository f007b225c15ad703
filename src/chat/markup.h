// Spellings of the control tokens and the fixed text of the V4.1 prompt format. The bar in them is
// U+FF5C and the low line is U+2581, neither is ASCII.
#pragma once

#include <array>
#include <string_view>

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

// Control tokens inside the format's own fixed text.
inline constexpr std::array<std::string_view, 3> kTemplateTokens = {kThinkOpen, kThinkClose, kDsml};

// Control tokens that assistant text may hold: places in a picture.
inline constexpr std::array<std::string_view, 8> kGroundingTokens = {
    "<｜ref｜>",   "<｜/ref｜>",   "<｜box｜>",     "<｜/box｜>",
    "<｜point｜>", "<｜/point｜>", "<｜polygon｜>", "<｜/polygon｜>"};

// What stands between an answer and its call block, and what a forced call begins with.
inline constexpr std::string_view kCallsOpen = "\n\n<｜DSML｜ calls>\n";

// Any tag of tool markup begins with one of these.
inline constexpr std::string_view kTagOpen = "<｜DSML｜";
inline constexpr std::string_view kTagClose = "</｜DSML｜";

// Closing tags of tool markup, of this generation and the one before.
inline constexpr std::array<std::string_view, 8> kClosingTags = {
    "</｜DSML｜ calls>", "</｜DSML｜ invoke>",   "</｜DSML｜ parameter>",  "</｜DSML｜tool_calls>",
    "</｜DSML｜invoke>", "</｜DSML｜parameter>", "</｜DSML｜ tool_calls>", "</｜DSML｜calls>"};

}  // namespace locket::chat
