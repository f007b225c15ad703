#include "cli/reply_printer.h"

#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace locket::cli {
namespace {

using Kind = chat::ReplyEvent::Kind;

// What is printed to a file, which is no terminal.
std::string printed(const std::vector<chat::ReplyEvent>& events) {
  std::FILE* file = std::tmpfile();
  ReplyPrinter printer(file);
  for (const chat::ReplyEvent& event : events) printer.on_event(event);
  printer.finish();
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  return text;
}

chat::ReplyEvent event(Kind kind, std::string text, std::size_t call = 0) {
  return {.kind = kind, .call = call, .text = std::move(text)};
}

TEST(ReplyPrinterTest, JoinsPiecesAndEndsTheLine) {
  EXPECT_EQ(printed({event(Kind::kContent, "a "), event(Kind::kContent, "cat"),
                     event(Kind::kFinish, "")}),
            "a cat\n");
}

TEST(ReplyPrinterTest, PrintsNothingForNothing) {
  EXPECT_EQ(printed({}), "");
  EXPECT_EQ(printed({event(Kind::kFinish, "")}), "");
}

TEST(ReplyPrinterTest, PutsReasoningBetweenLinesOfItsOwn) {
  EXPECT_EQ(printed({event(Kind::kReasoning, "hm"), event(Kind::kReasoning, "m"),
                     event(Kind::kContent, "yes")}),
            "<reasoning>\nhmm\n</reasoning>\nyes\n");
  EXPECT_EQ(printed({event(Kind::kReasoning, "hm")}), "<reasoning>\nhm\n</reasoning>\n");
}

TEST(ReplyPrinterTest, PrintsEachCallOnALine) {
  EXPECT_EQ(printed({event(Kind::kContent, "I look."), event(Kind::kCallName, "look"),
                     event(Kind::kCallArguments, "{\"a\": "), event(Kind::kCallArguments, "1}"),
                     event(Kind::kCallEnd, ""), event(Kind::kCallName, "wait", 1),
                     event(Kind::kCallArguments, "{}", 1), event(Kind::kCallEnd, "", 1)}),
            "I look.\ncall look {\"a\": 1}\ncall wait {}\n");
}

}  // namespace
}  // namespace locket::cli
