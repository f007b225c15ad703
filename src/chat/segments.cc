#include "chat/segments.h"

#include <fmt/format.h>
#include <optional>

#include "chat/markup.h"

namespace locket::chat {
namespace {

std::optional<tokenizer::TokenId> find_control(const tokenizer::Tokenizer& tokenizer,
                                               std::string_view spelling) {
  std::optional<tokenizer::TokenId> id = tokenizer.find_added_token(spelling);
  if (!id && spelling == kImageToken) id = tokenizer.find_added_token(kImageTokenAlias);
  return id;
}

Status append_sampled(const Segment& segment, std::size_t vocabulary_size,
                      std::vector<tokenizer::TokenId>& ids) {
  for (const tokenizer::TokenId id : segment.ids) {
    if (id >= 0 && static_cast<std::size_t>(id) < vocabulary_size) continue;
    return fail(ErrorCode::kUnsupported,
                fmt::format("an old turn was sampled with the token {}; the tokenizer has ids from "
                            "0 to {}",
                            id, vocabulary_size - 1));
  }
  ids.insert(ids.end(), segment.ids.begin(), segment.ids.end());
  return {};
}

}  // namespace

void SegmentWriter::add_plain(std::string_view text) {
  if (text.empty()) return;
  if (segments_.empty() || segments_.back().kind != Segment::Kind::kPlain) {
    segments_.push_back({Segment::Kind::kPlain, {}});
  }
  segments_.back().text.append(text);
}

void SegmentWriter::add_control(std::string_view token) {
  segments_.push_back({Segment::Kind::kControl, std::string(token)});
}

void SegmentWriter::add_template(std::string_view text) { add_with_tokens(text, kTemplateTokens); }

void SegmentWriter::add_assistant_text(std::string_view text) {
  add_with_tokens(text, kGroundingTokens);
}

void SegmentWriter::add_sampled(std::span<const tokenizer::TokenId> ids) {
  segments_.push_back({Segment::Kind::kSampled, {}, {ids.begin(), ids.end()}});
}

void SegmentWriter::add_with_tokens(std::string_view text,
                                    std::span<const std::string_view> tokens) {
  std::size_t plain_start = 0;
  std::size_t position = 0;
  while (position < text.size()) {
    std::string_view found;
    for (const std::string_view token : tokens) {
      if (text.substr(position).starts_with(token)) found = token;
    }
    if (found.empty()) {
      ++position;
      continue;
    }
    add_plain(text.substr(plain_start, position - plain_start));
    add_control(found);
    position += found.size();
    plain_start = position;
  }
  add_plain(text.substr(plain_start));
}

Result<std::vector<tokenizer::TokenId>> encode_segments(std::span<const Segment> segments,
                                                        const tokenizer::Tokenizer& tokenizer) {
  std::vector<tokenizer::TokenId> ids;
  for (const Segment& segment : segments) {
    if (segment.kind == Segment::Kind::kPlain) {
      const std::vector<tokenizer::TokenId> run = tokenizer.encode_text(segment.text);
      ids.insert(ids.end(), run.begin(), run.end());
      continue;
    }
    if (segment.kind == Segment::Kind::kSampled) {
      LOCKET_TRY_STATUS(append_sampled(segment, tokenizer.vocabulary_size(), ids));
      continue;
    }
    const std::optional<tokenizer::TokenId> id = find_control(tokenizer, segment.text);
    if (!id) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("the tokenizer has no control token {}; the prompt needs one of "
                              "that name among its added tokens",
                              segment.text));
    }
    ids.push_back(*id);
  }
  return ids;
}

void show_sampled(std::span<Segment> segments, const tokenizer::Tokenizer& tokenizer) {
  for (Segment& segment : segments) {
    if (segment.kind != Segment::Kind::kSampled) continue;
    segment.text = tokenizer::repair_utf8(tokenizer.decode_bytes(segment.ids));
  }
}

std::string join_segments(std::span<const Segment> segments) {
  std::string text;
  for (const Segment& segment : segments) text += segment.text;
  return text;
}

}  // namespace locket::chat
