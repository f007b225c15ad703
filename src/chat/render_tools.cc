#include "chat/render_tools.h"

#include <string>
#include <string_view>

#include "chat/json_reader.h"
#include "chat/json_value.h"
#include "chat/markup.h"
#include "chat/python_json.h"

namespace locket::chat {
namespace {

constexpr std::string_view kToolsHead =
    "## Tools\n\n"
    "You have access to a set of tools to help answer the user's question. You can invoke "
    "tools by writing a \"<｜DSML｜ calls>\" block like the following:\n\n"
    "<｜DSML｜ calls>\n"
    "<｜DSML｜ invoke name=\"$TOOL_NAME\">\n"
    "<｜DSML｜ parameter name=\"$PARAMETER_NAME\" "
    "string=\"true|false\">$PARAMETER_VALUE</｜DSML｜ parameter>\n"
    "...\n"
    "</｜DSML｜ invoke>\n"
    "<｜DSML｜ invoke name=\"$TOOL_NAME2\">\n"
    "...\n"
    "</｜DSML｜ invoke>\n"
    "</｜DSML｜ calls>\n\n"
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

void render_parameter(std::string_view name, const JsonValue& value, SegmentWriter& out) {
  out.add_template("<｜DSML｜ parameter name=\"");
  out.add_plain(name);
  out.add_plain(value.is_string() ? "\" string=\"true\">" : "\" string=\"false\">");
  out.add_plain(value.is_string() ? value.text : python_json(value));
  out.add_template("</｜DSML｜ parameter>");
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

void render_call(const ToolCall& call, SegmentWriter& out) {
  out.add_template("<｜DSML｜ invoke name=\"");
  out.add_plain(call.name);
  out.add_plain("\">\n");
  std::string_view separator;
  for (const JsonMember& member : argument_object(call.arguments).members) {
    out.add_plain(separator);
    render_parameter(member.name, member.value, out);
    separator = "\n";
  }
  out.add_template("\n</｜DSML｜ invoke>");
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

void render_tools(std::span<const Tool* const> tools, SegmentWriter& out) {
  out.add_template(kToolsHead);
  for (const Tool* tool : tools) out.add_plain(tool_line(*tool));
  out.add_plain(kToolsTail);
}

void render_calls(std::span<const ToolCall> calls, SegmentWriter& out) {
  out.add_template(kCallsOpen);
  for (const ToolCall& call : calls) {
    render_call(call, out);
    out.add_plain("\n");
  }
  out.add_template("</｜DSML｜ calls>");
}

}  // namespace locket::chat
