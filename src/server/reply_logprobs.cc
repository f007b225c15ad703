#include "server/reply_logprobs.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace locket::server {
namespace {

using service::SampledToken;
using service::TokenLogprob;

constexpr double kImpossible = -9999.0;

double reported(double logprob) { return std::isfinite(logprob) ? logprob : kImpossible; }

JsonObject token_entry(const TokenLogprob& token) {
  JsonList bytes;
  for (const char byte : token.bytes) bytes.count(static_cast<unsigned char>(byte));
  JsonObject entry;
  entry.text("token", token.bytes)
      .real("logprob", reported(token.logprob))
      .json("bytes", bytes.str());
  return entry;
}

std::string entries_of(std::span<const SampledToken> tokens, SampledToken::Part part) {
  JsonList entries;
  for (const SampledToken& token : tokens) {
    if (token.part != part) continue;
    JsonList top;
    for (const TokenLogprob& other : token.top) top.json(token_entry(other).str());
    entries.json(token_entry(token.chosen).json("top_logprobs", top.str()).str());
  }
  return entries.is_empty() ? "null" : entries.str();
}

// Lists of plain strings cannot show half a character; its bytes are spelled out.
std::string spelled(const std::string& bytes) {
  if (tokenizer::is_valid_utf8(bytes)) return bytes;
  std::string out = "bytes:";
  for (const char byte : bytes) {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return out;
}

std::size_t begun_characters(std::string_view bytes) {
  return static_cast<std::size_t>(std::count_if(bytes.begin(), bytes.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string chat_logprobs(std::span<const SampledToken> tokens) {
  const std::string content = entries_of(tokens, SampledToken::Part::kContent);
  const std::string reasoning = entries_of(tokens, SampledToken::Part::kReasoning);
  if (content == "null" && reasoning == "null") return "null";
  return JsonObject().json("content", content).json("reasoning_content", reasoning).str();
}

CompletionLogprobs::CompletionLogprobs(std::string_view text_before, std::size_t top)
    : offset_(begun_characters(text_before)), top_(top) {}

std::string CompletionLogprobs::alternatives(const SampledToken& token) const {
  JsonObject out;
  std::vector<std::string> seen;
  const auto add = [&](const TokenLogprob& other) {
    std::string name = spelled(other.bytes);
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) return;
    out.real(name, reported(other.logprob));
    seen.push_back(std::move(name));
  };
  for (const TokenLogprob& other : token.top) add(other);
  add(token.chosen);
  return out.str();
}

std::string CompletionLogprobs::take(std::span<const SampledToken> tokens) {
  JsonList texts;
  JsonList logprobs;
  JsonList tops;
  JsonList offsets;
  for (const SampledToken& token : tokens) {
    if (token.part != SampledToken::Part::kContent) continue;
    texts.text(spelled(token.chosen.bytes));
    logprobs.json(json_real(reported(token.chosen.logprob)));
    if (top_ > 0) tops.json(alternatives(token));
    offsets.count(offset_);
    offset_ += begun_characters(token.chosen.bytes);
  }
  if (texts.is_empty()) return "null";
  return JsonObject()
      .json("tokens", texts.str())
      .json("token_logprobs", logprobs.str())
      .json("top_logprobs", top_ > 0 ? tops.str() : "null")
      .json("text_offset", offsets.str())
      .str();
}

}  // namespace locket::server
