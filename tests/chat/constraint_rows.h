// What the tests of constrained output share: requests that bind the answer, texts tried byte by
// byte, and random walks through the tokens that a constraint allows.
#pragma once

#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "chat/internal/answer_grammar.h"
#include "chat/internal/automaton_walk.h"
#include "chat/markup.h"
#include "chat/output_constraint.h"
#include "chat/render_v41.h"
#include "tests/support/tokenizer_files.h"

namespace locket::chat {

inline ChatRequest chat_request() {
  ChatRequest request;
  request.thinking = ThinkingMode::kChat;
  request.messages.push_back(text_message(Role::kUser, "q"));
  return request;
}

inline ChatRequest schema_request(std::string schema) {
  ChatRequest request = chat_request();
  request.response_format = {ResponseFormat::Kind::kJsonSchema, std::move(schema)};
  return request;
}

inline ChatRequest call_request(std::string parameters, ToolChoice::Kind kind) {
  ChatRequest request = chat_request();
  Tool tool;
  tool.name = "f";
  tool.parameters = std::move(parameters);
  tool.is_strict = true;
  request.tools.push_back(std::move(tool));
  request.tool_choice = {kind, kind == ToolChoice::Kind::kNamed ? "f" : ""};
  return request;
}

inline ParserStart start_of(const ChatRequest& request) { return render_segments(request).parser; }

inline Result<std::shared_ptr<const ConstraintGrammar>> compile(const ChatRequest& request) {
  return ConstraintGrammar::compile(request, start_of(request));
}

// How far a text goes.
enum class Fit { kNot, kBeginning, kWhole };

// The automaton of a request, asked byte by byte. In texts the spellings of </think> and the DSML
// mark are control tokens.
class TextProbe {
 public:
  explicit TextProbe(const ChatRequest& request) {
    Result<std::optional<AnswerGrammar>> made = compile_answer(request, start_of(request));
    if (!made || !*made) {
      ADD_FAILURE() << (made ? "the request binds nothing" : made.error().message);
      return;
    }
    grammar_.emplace(std::move(**made));
    walk_.emplace(grammar_->automaton);
  }

  Fit fit(std::string_view text) {
    if (!walk_) return Fit::kNot;
    SpotId spot = walk_->start();
    while (!text.empty() && spot != kNowhere) {
      Symbol symbol = static_cast<unsigned char>(text[0]);
      std::size_t length = 1;
      if (text.starts_with(kDsml)) {
        symbol = kDsmlSymbol;
        length = kDsml.size();
      } else if (text.starts_with(kThinkClose)) {
        symbol = kThinkCloseSymbol;
        length = kThinkClose.size();
      }
      spot = walk_->step(spot, symbol);
      text.remove_prefix(length);
      if (walk_->is_crowded() && spot != kNowhere) spot = walk_->forget(spot);
    }
    if (spot == kNowhere) return Fit::kNot;
    return walk_->is_final(spot) ? Fit::kWhole : Fit::kBeginning;
  }

 private:
  std::optional<AnswerGrammar> grammar_;
  std::optional<AutomatonWalk> walk_;
};

inline bool has_token(std::span<const std::uint64_t> mask, tokenizer::TokenId token) {
  const auto index = static_cast<std::size_t>(token);
  return ((mask[index / 64] >> (index % 64)) & 1) != 0;
}

// Follows a constraint with random allowed tokens until only the end is left.
class RandomWriter {
 public:
  RandomWriter(const tokenizer::Tokenizer& tokenizer, std::uint64_t seed)
      : tokenizer_(tokenizer),
        end_token_(*tokenizer.find_added_token(kEndOfSentence)),
        tokens_(std::make_shared<const TokenBytes>(tokenizer, end_token_)),
        random_(seed) {}

  // The text of the tokens; nothing if it did not come to an end.
  std::optional<std::string> write(const std::shared_ptr<const ConstraintGrammar>& grammar) {
    OutputConstraint constraint(grammar, tokens_);
    std::vector<tokenizer::TokenId> ids;
    for (std::size_t count = 0; count < 20'000; ++count) {
      const std::span<const std::uint64_t> mask = constraint.allowed();
      EXPECT_EQ(mask.size(), tokens_->mask_words());
      if (mask.empty()) return std::nullopt;
      const std::string last = ids.empty() ? "" : tokenizer_.decode_bytes({&ids.back(), 1});
      const tokenizer::TokenId token = choose(mask, count, last);
      if (constraint.is_complete()) {
        EXPECT_EQ(token, end_token_);
      }
      constraint.advance(token);
      if (token == end_token_) {
        EXPECT_TRUE(constraint.is_complete());
        return tokenizer_.decode_bytes(ids);
      }
      ids.push_back(token);
    }
    return std::nullopt;
  }

  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }

 private:
  // Any token at first, then whatever closes most.
  tokenizer::TokenId choose(std::span<const std::uint64_t> mask, std::size_t count,
                            std::string_view last) {
    std::vector<tokenizer::TokenId> fitting;
    for (std::size_t id = 0; id < tokens_->vocabulary_size(); ++id) {
      const auto token = static_cast<tokenizer::TokenId>(id);
      if (has_token(mask, token)) fitting.push_back(token);
    }
    EXPECT_FALSE(fitting.empty());
    const bool hurries = count > 40 || below(4) == 0;
    if (hurries && has_token(mask, end_token_)) return end_token_;
    if (hurries) {
      // Behind `<` a closing tag ends more than an opening one.
      if (last == "<" && find(fitting, "/")) return *find(fitting, "/");
      for (const std::string_view mark : {kThinkClose, kDsml}) {
        if (find(fitting, mark)) return *find(fitting, mark);
      }
      std::vector<tokenizer::TokenId> closers;
      for (const std::string_view closer : {"\"", "}", "]", "\n", "<", ":"}) {
        if (find(fitting, closer)) closers.push_back(*find(fitting, closer));
      }
      if (!closers.empty() && below(4) != 0) return closers[below(closers.size())];
    }
    return fitting[below(fitting.size())];
  }

  std::optional<tokenizer::TokenId> find(std::span<const tokenizer::TokenId> tokens,
                                         std::string_view bytes) const {
    for (const tokenizer::TokenId token : tokens) {
      if (tokenizer_.decode_bytes({&token, 1}) == bytes) return token;
    }
    return std::nullopt;
  }

  const tokenizer::Tokenizer& tokenizer_;
  tokenizer::TokenId end_token_;
  std::shared_ptr<const TokenBytes> tokens_;
  std::mt19937_64 random_;
};

}  // namespace locket::chat
