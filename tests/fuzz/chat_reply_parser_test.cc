// Random model output, made of pieces of markup: no cut may change the result, nothing may crash,
// and what the rules promise about any output must hold.
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/chat/chat_rows.h"

namespace locket::chat {
namespace {

constexpr std::string_view kPieces[] = {"<",
                                        ">",
                                        "/",
                                        "\n",
                                        " ",
                                        "a",
                                        "\"",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        "\\",
                                        "`",
                                        "```json\n",
                                        "\n```",
                                        "</think>",
                                        "<think>",
                                        "</thi",
                                        "｜",
                                        "\xEF\xBD",
                                        "\xFF",
                                        "😀",
                                        "STOP",
                                        "ST",
                                        "<｜DSML｜",
                                        "<｜DSML｜ calls>\n",
                                        "</｜DSML｜ calls>",
                                        "</｜DSML｜tool_calls>",
                                        "<｜DSML｜ invoke name=\"f\">\n",
                                        "<｜DSML｜invoke name=\"g\">",
                                        "</｜DSML｜ invoke>\n",
                                        "</｜DSML｜",
                                        " parameter>",
                                        "parameter name=\"",
                                        "<parameter name=\"x\">",
                                        "<｜DSML｜ parameter name=\"x\" string=\"true\">",
                                        "<｜DSML｜ parameter name=\"n\" string=\"false\">",
                                        "</｜DSML｜ parameter>\n",
                                        "invoke name=\""};

class RandomText {
 public:
  explicit RandomText(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }

  std::string text() {
    std::string out;
    for (std::size_t pieces = below(40); pieces > 0; --pieces) {
      out += kPieces[below(std::size(kPieces))];
    }
    return out;
  }

 private:
  std::mt19937 random_;
};

ParserStart random_start(RandomText& random) {
  return {static_cast<ReplyStart>(random.below(static_cast<std::size_t>(ReplyStart::kCount))),
          random.below(4) != 0, random.below(4) == 0};
}

struct Outcome {
  std::string described;
  std::string streamed;  // reasoning and content, joined from events
};

Outcome parse_randomly_cut(const ParserStart& start, const std::vector<std::string>& stop,
                           const std::string& text, RandomText* random) {
  ReplyParser parser(start, stop);
  Outcome outcome;
  const auto keep = [&outcome](const std::vector<ReplyEvent>& events) {
    for (const ReplyEvent& event : events) {
      EXPECT_EQ(tokenizer::repair_utf8(event.text), event.text);
      if (event.kind == ReplyEvent::Kind::kReasoning) outcome.streamed += event.text;
      if (event.kind == ReplyEvent::Kind::kContent) outcome.streamed += event.text;
    }
  };
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t bytes = random == nullptr ? text.size() : 1 + random->below(9);
    keep(parser.push(std::string_view(text).substr(begin, bytes)));
    begin += std::min(bytes, text.size() - begin);
  }
  keep(parser.finish(FinishReason::kStop));
  outcome.described = describe(parser.reply());
  EXPECT_EQ(outcome.streamed, parser.reply().reasoning.value_or("") + parser.reply().content);
  return outcome;
}

TEST(ChatReplyParserFuzzTest, NoCutChangesTheResult) {
  RandomText random(20260911);
  for (int round = 0; round < 20000; ++round) {
    const ParserStart start = random_start(random);
    std::vector<std::string> stop;
    if (random.below(3) == 0) stop = {"STOP", "a\n", "</think>a"};
    const std::string text = random.text();
    const Outcome whole = parse_randomly_cut(start, stop, text, nullptr);
    const Outcome cut = parse_randomly_cut(start, stop, text, &random);
    ASSERT_EQ(cut.described, whole.described) << reply_start_name(start.start) << ' ' << text;
    ASSERT_EQ(cut.streamed, whole.streamed);
  }
}

// Where a mark was taken out of the middle of a tag, the rest may spell a tag anew; such texts are
// left out.
TEST(ChatReplyParserFuzzTest, NoWholeTagEverReachesContent) {
  RandomText random(20260912);
  std::size_t checked = 0;
  for (int round = 0; round < 20000; ++round) {
    ParserStart start = random_start(random);
    start.json = false;
    const std::string text = random.text();
    if (text.find("</think>") != std::string::npos) continue;
    ++checked;
    const Reply reply = parse_whole(start, text);
    for (const std::string_view tag : {"<｜DSML｜", "</｜DSML｜ calls>", "</｜DSML｜ invoke>"}) {
      if (text.find(tag) == std::string::npos) continue;
      EXPECT_EQ(reply.content.find(tag), std::string::npos) << text;
    }
  }
  EXPECT_GT(checked, 5000U);
}

// A call of random parameters: its markup is appended to `output`, what it means is returned.
ReplyCall append_random_call(RandomText& random, std::string& output) {
  const std::string name = "f" + std::to_string(random.below(100));
  OrderedJson arguments = OrderedJson::object();
  output += "<｜DSML｜ invoke name=\"" + name + "\">\n";
  for (std::size_t parameters = random.below(4); parameters > 0; --parameters) {
    const std::string key = "k" + std::to_string(parameters);
    std::string value = tokenizer::repair_utf8(random.text());
    if (value.find("</｜DSML｜") != std::string::npos) value = "v";
    // A value that ends in a part of the closing mark cannot be told from it.
    value += ".";
    arguments[key] = value;
    output += "<｜DSML｜ parameter name=\"" + key + "\" string=\"true\">" + value +
              "</｜DSML｜ parameter>\n";
  }
  output += "</｜DSML｜ invoke>\n";
  return {name, arguments.dump()};
}

TEST(ChatReplyParserFuzzTest, WellFormedOutputComesBackAsItWasMeant) {
  RandomText random(20260913);
  for (int round = 0; round < 3000; ++round) {
    std::string output = "thought</think>answer\n\n<｜DSML｜ calls>\n";
    std::vector<ReplyCall> meant;
    for (std::size_t calls = 1 + random.below(3); calls > 0; --calls) {
      meant.push_back(append_random_call(random, output));
    }
    output += "</｜DSML｜ calls>";
    Reply reply = parse_whole({ReplyStart::kReasoning, true, false}, output);
    for (ReplyCall& call : reply.tool_calls) {
      call.arguments = OrderedJson::parse(call.arguments).dump();
    }
    ASSERT_EQ(reply.tool_calls, meant) << output;
    EXPECT_EQ(reply.content, "answer");
    EXPECT_EQ(reply.reasoning, "thought");
  }
}

}  // namespace
}  // namespace locket::chat
