"""Codex: Responses."""

import json

from agent import AgentSession, fresh_folder, run_agent, run_program, work_folder
from checks import MODEL, expect

CONFIG = """
model = "{model}"
model_provider = "locket"
approval_policy = "never"
sandbox_mode = "read-only"
check_for_update_on_startup = false

[model_providers.locket]
name = "Locket"
base_url = "{url}/v1"
env_key = "LOCKET_KEY"
wire_api = "responses"

[analytics]
enabled = false
"""
OPTIONS = ["--json", "--skip-git-repo-check"]


def make_session(base_url):
    work, home = work_folder(), fresh_folder("codex")
    (home / "config.toml").write_text(CONFIG.format(model=MODEL, url=base_url))

    def turn(*arguments):
        out = run_program(["exec", *arguments], work, {"CODEX_HOME": str(home)})
        events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        done = [event for event in events if event["type"] == "turn.completed"]
        expect(done, "the turn should be completed", events[-2:])
        return done[-1]["usage"]

    return AgentSession(lambda text: turn(*OPTIONS, text),
                        lambda text: turn("resume", "--last", *OPTIONS, text), "get_goal")


run_agent(make_session)
