"""opencode: Chat Completions through @ai-sdk/openai-compatible."""

import json

from agent import TOOLS_SERVER, AgentSession, fresh_folder, run_agent, run_program, work_folder
from checks import KEY, MODEL, expect


def config_of(base_url):
    model = {"name": MODEL, "reasoning": True, "tool_call": True,
             "interleaved": {"field": "reasoning_content"},
             "limit": {"context": 200000, "output": 512}}
    return {
        "autoupdate": False, "share": "disabled",
        "model": f"locket/{MODEL}", "small_model": f"locket/{MODEL}",
        "provider": {"locket": {"npm": "@ai-sdk/openai-compatible", "name": "Locket",
                                "options": {"baseURL": base_url + "/v1", "apiKey": KEY},
                                "models": {MODEL: model}}},
        "mcp": {"weather": {"type": "local", "command": TOOLS_SERVER, "enabled": True}},
    }


def make_session(base_url):
    work, config = work_folder(), fresh_folder("config") / "opencode.json"
    config.write_text(json.dumps(config_of(base_url)))
    environment = {
        "OPENCODE_CONFIG": str(config), "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }

    def turn(*arguments):
        out = run_program(["run", "--format", "json", *arguments], work, environment)
        events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        errors = [event for event in events if event["type"] == "error"]
        expect(not errors, "there should be no errors", errors)
        ends = [event for event in events if event["type"] == "step_finish"]
        expect(ends, "the turn should end", events[-2:])
        return ends[-1]["part"]["tokens"]

    return AgentSession(turn, lambda text: turn("--continue", text), "get_weather")


run_agent(make_session)
