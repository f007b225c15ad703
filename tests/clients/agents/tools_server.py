"""A tool server for agents (MCP over standard input and output) with one harmless tool, whose
arguments a small model can fill in when the call is forced."""

import json
import sys

TOOL = {
    "name": "get_weather",
    "description": "Tells the weather.",
    "inputSchema": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome", "Berlin"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
RESULT_TEXT = "Sunny, 21 degrees."


def answer(request):
    method = request["method"]
    if method == "initialize":
        return {"protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "weather", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": RESULT_TEXT}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}
    print(json.dumps(reply), flush=True)
