#include "chat/render_tools.h"

#include <fmt/format.h>
#include <string>
#include <string_view>

#include "chat/json_reader.h"
#include "chat/json_value.h"
#include "chat/markup.h"
#include "chat/python_json.h"

namespace locket::chat {
namespace {

// {0} stands for what a tag begins with, {1} for the word of the block. The generations before V4
// spell the whole text otherwise.
constexpr std::string_view kToolsHead =
    "## Tools\n\n"
    "You have access to a set of tools to help answer the user's question. You can invoke "
    "tools by writing a \"<{0}{1}>\" block like the following:\n\n"
    "<{0}{1}>\n"
    "<{0}invoke name=\"$TOOL_NAME\">\n"
    "<{0}parameter name=\"$PARAMETER_NAME\" "
    "string=\"true|false\">$PARAMETER_VALUE</{0}parameter>\n"
    "...\n"
    "</{0}invoke>\n"
    "<{0}invoke name=\"$TOOL_NAME2\">\n"
    "...\n"
    "</{0}invoke>\n"
    "</{0}{1}>\n\n"
    "String parameters should be specified as is and set `string=\"true\"`. For all other "
    "types (numbers, booleans, arrays, objects), pass the value in JSON format and set "
    "`string=\"false\"`.\n\n"
    "If thinking_mode is enabled (triggered by <think>), you MUST output your complete "
    "reasoning inside <think>...</think> BEFORE any tool calls or final response.\n\n"
    "Otherwise, output directly after </think> with tool calls or final response.\n\n"
    "### Available Tool Schemas\n\n";

constexpr std::string_view kToolsTail =
    "\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool "
    "calls.\n";

constexpr std::string_view kFunctionsHead =
    "## Tools\n\n"
    "You have access to a set of tools you can use to answer the user's question.\n"
    "You can invoke functions by writing a \"<{0}{1}>\" block like the following as part of your "
    "reply to the user:\n"
    "<{0}{1}>\n"
    "<{0}invoke name=\"$FUNCTION_NAME\">\n"
    "<{0}parameter name=\"$PARAMETER_NAME\" "
    "string=\"true|false\">$PARAMETER_VALUE</{0}parameter>\n"
    "...\n"
    "</{0}invoke>\n"
    "<{0}invoke name=\"$FUNCTION_NAME2\">\n"
    "...\n"
    "</{0}invoke>\n"
    "</{0}{1}>\n\n"
    "String and scalar parameters should be specified as is without any escaping or quotes, while "
    "lists and objects should use JSON format. The \"string\" attribute should be set to \"true\" "
    "for string type parameters and \"false\" for other types (numbers, booleans, arrays, "
    "objects).\n\n"
    "If the thinking_mode is enabled, then after function results you should strongly consider "
    "outputting a thinking block. Here is an example:\n\n"
    "<{0}{1}>\n"
    "...\n"
    "</{0}{1}>\n\n"
    "<function_results>\n"
    "...\n"
    "</function_results>\n\n"
    "<think>...thinking about results</think>\n\n"
    "Here are the functions available in JSONSchema format:\n"
    "<functions>\n";

constexpr std::string_view kFunctionsTail = "</functions>\n";

std::string tag_start(const MarkupSpelling& spelling) {
  return fmt::format("{}{}", kDsml, spelling.gap);
}

void render_parameter(const JsonMember& parameter, std::string_view tag, SegmentWriter& out) {
  const JsonValue& value = parameter.value;
  out.add_template(fmt::format("<{}parameter name=\"", tag));
  out.add_plain(parameter.name);
  out.add_plain(value.is_string() ? "\" string=\"true\">" : "\" string=\"false\">");
  out.add_plain(value.is_string() ? value.text : python_json(value));
  out.add_template(fmt::format("</{}parameter>", tag));
}

// Arguments that are no JSON object become one parameter that holds the client's text.
JsonValue argument_object(const std::string& arguments) {
  Result<JsonValue> parsed = read_json(arguments, "arguments", kRequestLimits);
  if (parsed && parsed->is_object()) return *std::move(parsed);
  JsonValue object;
  object.kind = JsonValue::Kind::kObject;
  object.members.push_back({"arguments", json_string(arguments)});
  return object;
}

void render_call(const ToolCall& call, std::string_view tag, SegmentWriter& out) {
  out.add_template(fmt::format("<{}invoke name=\"", tag));
  out.add_plain(call.name);
  out.add_plain("\">\n");
  std::string_view separator;
  for (const JsonMember& member : argument_object(call.arguments).members) {
    out.add_plain(separator);
    render_parameter(member, tag, out);
    separator = "\n";
  }
  out.add_template(fmt::format("\n</{}invoke>", tag));
}

}  // namespace

std::string tool_line(const Tool& tool) {
  std::string line = "{\"name\": \"";
  append_escaped(tool.name, line);
  line += "\", \"description\": \"";
  append_escaped(tool.description, line);
  line += "\", \"parameters\": " + tool.parameters + "}\n";
  return line;
}

void render_tools(std::span<const Tool* const> tools, Markup markup, SegmentWriter& out) {
  const MarkupSpelling& spelling = spelling_of(markup);
  const bool is_v32 = markup == Markup::kV32;
  out.add_template(fmt::format(fmt::runtime(is_v32 ? kFunctionsHead : kToolsHead),
                               tag_start(spelling), spelling.block));
  for (const Tool* tool : tools) out.add_plain(tool_line(*tool));
  out.add_plain(is_v32 ? kFunctionsTail : kToolsTail);
}

void render_calls(std::span<const ToolCall> calls, Markup markup, SegmentWriter& out) {
  const MarkupSpelling& spelling = spelling_of(markup);
  const std::string tag = tag_start(spelling);
  out.add_template(spelling.calls_open);
  for (const ToolCall& call : calls) {
    render_call(call, tag, out);
    out.add_plain("\n");
  }
  out.add_template(fmt::format("</{}{}>", tag, spelling.block));
}

}  // namespace locket::chat
