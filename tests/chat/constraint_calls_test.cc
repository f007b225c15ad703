// Calls that a constraint lets a model write: the markup, the names and the arguments, read back by
// the parser of replies.
#include "chat/reply_parser.h"
#include "tests/chat/constraint_rows.h"
#include "tests/chat/json_validator.h"
#include "tests/chat/random_schemas.h"

namespace locket::chat {
namespace {

using Json = SchemaMaker::Json;
using test_support::small_tokenizer;

constexpr std::string_view kWeather =
    R"({"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer",)"
    R"("minimum":1,"maximum":9},"unit":{"type":["string","null"],"enum":["c","f",null]}},)"
    R"("required":["city","days"],"additionalProperties":false})";

Reply parse(const ChatRequest& request, std::string_view text) {
  ReplyParser parser(start_of(request));
  parser.push(text);
  parser.finish(FinishReason::kStop);
  return parser.reply();
}

std::string city(std::string_view text) {
  return "<｜DSML｜ parameter name=\"city\" string=\"true\">" + std::string(text) +
         "</｜DSML｜ parameter>";
}

std::string days(std::string_view json) {
  return "<｜DSML｜ parameter name=\"days\" string=\"false\">" + std::string(json) +
         "</｜DSML｜ parameter>";
}

std::string invoke(const std::string& parameters, const std::string& name = "f") {
  return "<｜DSML｜ invoke name=\"" + name + "\">\n" + parameters + "\n</｜DSML｜ invoke>\n";
}

constexpr std::string_view kEnd = "</｜DSML｜ calls>";

TEST(ConstraintCallsTest, WritesTheMarkupOfTheFormat) {
  const ChatRequest request = call_request(std::string(kWeather), ToolChoice::Kind::kRequired);
  ASSERT_EQ(start_of(request).start, ReplyStart::kCalls);
  TextProbe probe(request);
  const std::string good = invoke(city("Bad <b> \"x\" </c>\n\n天") + "\n" + days("3"));
  EXPECT_EQ(probe.fit(good + std::string(kEnd)), Fit::kWhole);
  EXPECT_EQ(probe.fit(good + good + std::string(kEnd)), Fit::kWhole);
  EXPECT_EQ(probe.fit(good), Fit::kBeginning);
  const std::string unit = "\n<｜DSML｜ parameter name=\"unit\" string=";
  const std::string close = "</｜DSML｜ parameter>";
  const std::string both = city("") + "\n" + days("9");
  EXPECT_EQ(probe.fit(invoke(both + unit + "\"true\">c" + close) + std::string(kEnd)), Fit::kWhole);
  EXPECT_EQ(probe.fit(invoke(both + unit + "\"false\">null" + close) + std::string(kEnd)),
            Fit::kWhole);
  for (const std::string& wrong :
       {invoke(days("3")), invoke(city("x")), invoke(days("3") + "\n" + city("x")),
        invoke(city("x") + "\n" + days("10")), invoke(city("x") + "\n" + days("\"3\"")),
        invoke(city("x") + days("3")), invoke(both, "g"),
        invoke(both + unit + "\"true\">x" + close), invoke(both + unit + "\"true\">null" + close),
        std::string("x"), std::string(kEnd)}) {
    EXPECT_EQ(probe.fit(wrong + std::string(kEnd)), Fit::kNot) << wrong;
  }
  EXPECT_EQ(probe.fit(good + std::string(kEnd) + "\n"), Fit::kNot);
}

TEST(ConstraintCallsTest, ValuesCannotSpellTheirClosingTag) {
  TextProbe probe(call_request(std::string(kWeather), ToolChoice::Kind::kRequired));
  std::string text =
      "<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"city\" string=\"true\">";
  EXPECT_EQ(probe.fit(text + "a </ b"), Fit::kBeginning);
  EXPECT_EQ(probe.fit(text + "a < /｜"), Fit::kBeginning);
  // The mark of the tag in plain bytes, which the probe would take for the control token.
  const std::optional<AnswerGrammar> grammar =
      compile_answer(call_request(std::string(kWeather), ToolChoice::Kind::kRequired),
                     {ReplyStart::kCalls, true, false})
          .value();
  AutomatonWalk walk(grammar->automaton);
  SpotId spot = walk.start();
  for (std::size_t at = 0; at < text.size();) {
    const bool is_mark = std::string_view(text).substr(at).starts_with(kDsml);
    spot = walk.step(spot, is_mark ? kDsmlSymbol : static_cast<unsigned char>(text[at]));
    at += is_mark ? kDsml.size() : 1;
  }
  const std::string_view spelled = "</｜DSML｜";
  for (const char byte : spelled.substr(0, spelled.size() - 1)) {
    spot = walk.step(spot, static_cast<unsigned char>(byte));
    ASSERT_NE(spot, kNowhere);
  }
  EXPECT_EQ(walk.step(spot, static_cast<unsigned char>(spelled.back())), kNowhere);
}

TEST(ConstraintCallsTest, ANamedChoiceIsOneCallOfThatTool) {
  ChatRequest request = call_request(std::string(kWeather), ToolChoice::Kind::kNamed);
  Tool other;
  other.name = "g";
  request.tools.push_back(other);
  TextProbe probe(request);
  const std::string call = invoke(city("x") + "\n" + days("3"));
  EXPECT_EQ(probe.fit(call + std::string(kEnd)), Fit::kWhole);
  EXPECT_EQ(probe.fit(call + call + std::string(kEnd)), Fit::kNot);
  EXPECT_EQ(probe.fit(invoke("", "g") + std::string(kEnd)), Fit::kNot);
  request.tool_choice = {ToolChoice::Kind::kRequired, ""};
  TextProbe any(request);
  EXPECT_EQ(any.fit(call + invoke("", "g") + std::string(kEnd)), Fit::kWhole);
}

TEST(ConstraintCallsTest, StrictToolsBindFromTheirFirstMarkOn) {
  const ChatRequest request = call_request(std::string(kWeather), ToolChoice::Kind::kAuto);
  TextProbe probe(request);
  const std::string call = invoke(city("x") + "\n" + days("3"));
  EXPECT_EQ(probe.fit("Just an answer, [1 < 2]. é"), Fit::kWhole);
  EXPECT_EQ(probe.fit("I look.\n\n<｜DSML｜ calls>\n" + call + std::string(kEnd)), Fit::kWhole);
  EXPECT_EQ(probe.fit("I look.\n\n<｜DSML｜ calls>\n" + call), Fit::kBeginning);
  EXPECT_EQ(probe.fit("I look.\n\n<｜DSML｜ calls>\n" + invoke("")), Fit::kNot);
  EXPECT_EQ(probe.fit("｜DSML｜"), Fit::kNot);
  ChatRequest thinking = request;
  thinking.thinking = ThinkingMode::kThinking;
  TextProbe thought(thinking);
  EXPECT_EQ(thought.fit("hm</think>yes"), Fit::kWhole);
  EXPECT_EQ(thought.fit("hm"), Fit::kBeginning);
  EXPECT_EQ(thought.fit("hm\n\n<｜DSML｜ calls>\n" + call + std::string(kEnd)), Fit::kWhole);
}

TEST(ConstraintCallsTest, ABoundAnswerMayStillBeACall) {
  ChatRequest request = call_request(std::string(kWeather), ToolChoice::Kind::kAuto);
  request.response_format.kind = ResponseFormat::Kind::kJsonObject;
  TextProbe probe(request);
  const std::string call = invoke(city("x") + "\n" + days("3"));
  EXPECT_EQ(probe.fit("{\"a\":1}"), Fit::kWhole);
  EXPECT_EQ(probe.fit("\n\n<｜DSML｜ calls>\n" + call + std::string(kEnd)), Fit::kWhole);
  EXPECT_EQ(probe.fit("text"), Fit::kNot);
  // Of tools that bind nothing, everything is free behind the mark.
  request.tools[0].is_strict = false;
  TextProbe loose(request);
  EXPECT_EQ(loose.fit("\n\n<｜DSML｜ whatever"), Fit::kWhole);
  EXPECT_EQ(loose.fit("text"), Fit::kNot);
}

TEST(ConstraintCallsTest, LooseToolsAreBoundAsFarAsTheirSchemaIsUnderstood) {
  const std::string odd =
      R"({"type":"object","properties":{"city":{"type":"string","format":"uri","x-y":1},)"
      R"("days":{"type":"integer","not":{"const":3}}},"required":["city"],"oneOf":[{}]})";
  ChatRequest request = call_request(odd, ToolChoice::Kind::kRequired);
  const auto refused = compile(request);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("tools[0].function.parameters"), std::string::npos);
  request.tools[0].is_strict = false;
  TextProbe probe(request);
  EXPECT_EQ(probe.fit(invoke(city("x") + "\n" + days("3")) + std::string(kEnd)), Fit::kWhole);
  EXPECT_EQ(probe.fit(invoke(city("x") + "\n" + days("[]")) + std::string(kEnd)), Fit::kNot);
  EXPECT_EQ(probe.fit(invoke(days("3")) + std::string(kEnd)), Fit::kNot);
  // One that is too large is free.
  std::string large = R"({"type":"object","properties":{"a":{"enum":[")";
  request.tools[0].parameters = large + std::string(70'000, 'x') + "\"]}}}";
  TextProbe any(request);
  EXPECT_EQ(any.fit(invoke(city("x") + "\n" + days("[]")) + std::string(kEnd)), Fit::kWhole);
}

TEST(ConstraintCallsTest, NoParametersLeaveAnEmptyLine) {
  for (const char* schema : {"{}", R"({"type":"object","properties":{}})"}) {
    TextProbe probe(call_request(schema, ToolChoice::Kind::kRequired));
    EXPECT_EQ(probe.fit(invoke("") + std::string(kEnd)), Fit::kWhole) << schema;
    EXPECT_EQ(probe.fit(invoke(city("x")) + std::string(kEnd)), Fit::kNot) << schema;
  }
  TextProbe open(call_request(R"({"type":"object","additionalProperties":{"type":"integer"}})",
                              ToolChoice::Kind::kRequired));
  EXPECT_EQ(open.fit(invoke(days("3") + "\n" + days("4")) + std::string(kEnd)), Fit::kWhole);
  EXPECT_EQ(open.fit(invoke(city("x")) + std::string(kEnd)), Fit::kNot);
}

TEST(ConstraintCallsTest, RefusesNamesThatMarkupCannotHold) {
  const auto refused = compile(call_request(
      R"({"type":"object","properties":{"a\"b":{"type":"string"}}})", ToolChoice::Kind::kNamed));
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("a name without quotes"), std::string::npos);
  ChatRequest other = call_request("{}", ToolChoice::Kind::kNamed);
  other.tool_choice.name = "g";
  const auto unknown = ConstraintGrammar::compile(other, {ReplyStart::kCalls, true, false});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("\"g\""), std::string::npos);
}

// Members of objects whose names markup cannot hold are left out of these schemas.
Json parameters(SchemaMaker& maker) {
  while (true) {
    Json schema = maker.document();
    if (!schema.contains("properties")) continue;
    if (!schema["properties"].contains("é\"x")) return schema;
  }
}

TEST(ConstraintCallsTest, RandomCallsParseAndTheirArgumentsFit) {
  SchemaMaker maker(20261204);
  RandomWriter writer(small_tokenizer(), 20261204);
  std::vector<Row> rows;
  for (int round = 0; round < 150; ++round) {
    const std::string schema = parameters(maker).dump();
    const auto kind = round % 2 == 0 ? ToolChoice::Kind::kRequired : ToolChoice::Kind::kNamed;
    const ChatRequest request = call_request(schema, kind);
    const auto grammar = compile(request);
    if (!grammar) continue;  // contradicts itself
    const std::optional<std::string> text = writer.write(*grammar);
    ASSERT_TRUE(text.has_value()) << schema;
    const Reply reply = parse(request, *text);
    EXPECT_EQ(reply.broken_calls, 0U) << *text;
    EXPECT_EQ(reply.finish_reason, FinishReason::kToolCalls);
    ASSERT_FALSE(reply.tool_calls.empty()) << *text;
    if (kind == ToolChoice::Kind::kNamed) {
      EXPECT_EQ(reply.tool_calls.size(), 1U);
    }
    for (const ReplyCall& call : reply.tool_calls) {
      EXPECT_EQ(call.name, "f");
      rows.push_back({schema, call.arguments});
    }
  }
  EXPECT_GT(rows.size(), 100U);
  const std::optional<std::string> verdicts = validate(rows, "calls");
  SKIP_WITHOUT(verdicts);
  for (std::size_t at = 0; at < rows.size(); ++at) {
    EXPECT_EQ((*verdicts)[at], '1') << rows[at].schema << "\n" << rows[at].text;
  }
}

}  // namespace
}  // namespace locket::chat
