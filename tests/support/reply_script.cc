#include "tests/support/reply_script.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <random>
#include <utility>

namespace locket::test_support {
namespace {

using service::SampledToken;

constexpr std::string_view kThinkClose = "</think>";
constexpr std::string_view kBlockOpen = "\n\n<｜DSML｜";

// One choice, played piece by piece.
class Player {
 public:
  Player(std::size_t number, ScriptedChoice choice, const ScriptOptions& options)
      : number_(number),
        choice_(std::move(choice)),
        options_(options),
        parser_({choice_.start, true, false}, choice_.stop) {
    if (choice_.start == chat::ReplyStart::kReasoning) {
      const std::size_t close = choice_.output.find(kThinkClose);
      reasoning_end_ = std::min(close, choice_.output.size());
      content_begin_ = std::min(reasoning_end_ + kThinkClose.size(), choice_.output.size());
    }
    content_end_ = std::min(choice_.output.find(kBlockOpen), choice_.output.size());
  }

  bool is_over() const { return is_over_; }

  service::ChoiceUpdate step(std::mt19937_64& random) {
    service::ChoiceUpdate update;
    update.choice = number_;
    const bool is_done = at_ == choice_.output.size() || parser_.is_finished();
    if (is_done) {
      is_over_ = true;
      update.events = label(parser_.finish(choice_.end));
      return update;
    }
    std::size_t bytes =
        std::min(1 + random() % options_.longest_piece, choice_.output.size() - at_);
    // No token stands for text of two parts.
    for (const std::size_t border : {reasoning_end_, content_begin_, content_end_}) {
      if (at_ < border) bytes = std::min(bytes, border - at_);
    }
    const std::string piece = choice_.output.substr(at_, bytes);
    update.events = label(parser_.push(piece));
    if (options_.has_logprobs) update.tokens.push_back(token(piece, random));
    at_ += bytes;
    ++tokens_.sampled;
    if (at_ <= reasoning_end_) ++tokens_.reasoning;
    all_.insert(all_.end(), update.tokens.begin(), update.tokens.end());
    return update;
  }

  service::ChoiceResult result() const {
    service::ChoiceResult out;
    out.reply = parser_.reply();
    out.tokens = all_;
    out.completion_tokens = tokens_.sampled;
    out.reasoning_tokens = tokens_.reasoning;
    // Calls that were begun and dropped have used up ids.
    std::size_t next = 0;
    for (chat::ReplyCall& call : out.reply.tool_calls) call.id = id_of(ended_[next++]);
    return out;
  }

 private:
  std::string id_of(std::size_t call) const {
    return fmt::format("call_{:02}_{}abcdefghijklmnopqrstuvw", call, number_);
  }

  std::vector<chat::ReplyEvent> label(std::vector<chat::ReplyEvent> events) {
    for (chat::ReplyEvent& event : events) {
      if (event.kind == chat::ReplyEvent::Kind::kCallName) event.call_id = id_of(event.call);
      if (event.kind == chat::ReplyEvent::Kind::kCallEnd) ended_.push_back(event.call);
    }
    return events;
  }

  SampledToken token(const std::string& piece, std::mt19937_64& random) const {
    SampledToken out;
    out.chosen = {.token = 7, .logprob = -0.25 * static_cast<double>(random() % 9), .bytes = piece};
    out.top = {out.chosen, {.token = 8, .logprob = -HUGE_VAL, .bytes = "\xE2\x80"}};
    if (at_ < reasoning_end_) {
      out.part = SampledToken::Part::kReasoning;
    } else if (at_ < content_begin_ || at_ >= content_end_) {
      out.part = SampledToken::Part::kOther;
    }
    return out;
  }

  struct Counts {
    std::size_t sampled = 0;
    std::size_t reasoning = 0;
  };

  std::size_t number_;
  ScriptedChoice choice_;
  ScriptOptions options_;
  chat::ReplyParser parser_;
  std::size_t at_ = 0;
  std::size_t reasoning_end_ = 0;
  std::size_t content_begin_ = 0;
  std::size_t content_end_ = 0;
  bool is_over_ = false;
  std::vector<std::size_t> ended_;  // calls
  std::vector<SampledToken> all_;
  Counts tokens_;
};

}  // namespace

ReplyScript play(const std::vector<ScriptedChoice>& choices, const ScriptOptions& options) {
  std::mt19937_64 random(options.seed);
  std::vector<std::unique_ptr<Player>> players;
  for (const ScriptedChoice& choice : choices) {
    players.push_back(std::make_unique<Player>(players.size(), choice, options));
  }
  ReplyScript script;
  std::vector<Player*> active;
  for (const auto& player : players) active.push_back(player.get());
  while (!active.empty()) {
    const auto turn = active.begin() + static_cast<std::ptrdiff_t>(random() % active.size());
    script.updates.push_back((*turn)->step(random));
    if ((*turn)->is_over()) active.erase(turn);
  }
  service::RequestUsage& usage = script.result.usage;
  usage.prompt_tokens = 40;
  usage.hit_tokens = 24;
  usage.disk_tokens = 8;
  usage.replayed_tokens = 4;
  for (const auto& player : players) {
    script.result.choices.push_back(player->result());
    usage.completion_tokens += script.result.choices.back().completion_tokens;
    usage.reasoning_tokens += script.result.choices.back().reasoning_tokens;
  }
  return script;
}

std::string call_markup(std::string_view name, const std::vector<ScriptedParameter>& parameters) {
  std::string out = fmt::format("<｜DSML｜ invoke name=\"{}\">\n", name);
  for (const ScriptedParameter& parameter : parameters) {
    out += fmt::format("<｜DSML｜ parameter name=\"{}\" string=\"{}\">{}</｜DSML｜ parameter>\n",
                       parameter.key, parameter.is_string, parameter.value);
  }
  return out + "</｜DSML｜ invoke>\n";
}

std::string block_markup(const std::vector<std::string>& calls) {
  std::string out = "\n\n<｜DSML｜ calls>\n";
  for (const std::string& call : calls) out += call;
  return out + "</｜DSML｜ calls>";
}

server::ReplyInfo reply_info(chat::ThinkingMode thinking) {
  server::ReplyInfo info;
  info.id = "0b1e7c52-6a51-4f0e-9d53-6a6f2d6f6f01";
  info.created = 1796000000;
  info.model = "deepseek-flash";
  info.fingerprint = "fp_locket";
  info.thinking = thinking;
  info.prompt_tokens = 40;
  return info;
}

std::string stream_of(server::Dialect dialect, const server::ReplyInfo& info,
                      const ReplyScript& script, const std::optional<server::Bill>& bill) {
  const std::unique_ptr<server::ReplyWriter> writer = server::make_reply_writer(dialect, info);
  std::string out = writer->begin();
  for (const service::ChoiceUpdate& update : script.updates) {
    out += writer->keep_alive();
    out += writer->update(update);
  }
  out += writer->end(script.result, bill);
  return out;
}

}  // namespace locket::test_support
