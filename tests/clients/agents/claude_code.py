"""Claude Code: Messages."""

import json

from agent import TOOLS_SERVER, AgentSession, fresh_folder, run_agent, run_program, work_folder
from checks import KEY, MODEL, expect

OPTIONS = ["--output-format", "json", "--strict-mcp-config", "--allowedTools",
           "mcp__weather__get_weather"]


def make_session(base_url):
    work, config = work_folder(), fresh_folder("config")
    servers = config / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {
        "weather": {"command": TOOLS_SERVER[0], "args": TOOLS_SERVER[1:]}}}))
    environment = {
        "ANTHROPIC_BASE_URL": base_url, "ANTHROPIC_AUTH_TOKEN": KEY, "ANTHROPIC_MODEL": MODEL,
        "ANTHROPIC_SMALL_FAST_MODEL": MODEL, "CLAUDE_CONFIG_DIR": str(config),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "ENABLE_TOOL_SEARCH": "false",
    }

    def turn(text, *more):
        out = run_program(["-p", text, *more, *OPTIONS, "--mcp-config", str(servers)], work,
                          environment)
        report = json.loads(out)
        expect(report["is_error"] is False, "the turn should end well", report)
        return report["usage"]

    return AgentSession(turn, lambda text: turn(text, "--continue"), "get_weather")


run_agent(make_session)
