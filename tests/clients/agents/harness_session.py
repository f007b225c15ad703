"""DeepSeek's harness, through its Python SDK: Messages, the profiles sdk and sdk-minimal."""

import sys
from urllib.parse import urlsplit

from deepseek_harness import DeepSeekHarness

from agent import AgentSession, fresh_folder, keep_exchanges, work_folder
from checks import KEY, MODEL, URL, Checks
from relay import Relay

TOOLS = {"sdk": "get_goal", "sdk-minimal": "working_directory"}


def run_profile(check, relay, profile):
    with DeepSeekHarness(base_url=relay.url, api_key=KEY, model=MODEL, max_tokens=512,
                         profile=profile, cwd=str(work_folder("work-" + profile)),
                         dsh_home=str(fresh_folder("home-" + profile))) as harness:
        sessions = []

        def go_on(text):
            result = sessions[-1].run(text)
            print(result.finish_reason, result.final_response, file=sys.stderr)
            return result.finish_reason

        def start(text):
            sessions.append(harness.start_session())
            return go_on(text)

        AgentSession(start, go_on, TOOLS[profile]).run(check, relay, profile + ": ")


def main():
    check = Checks()
    parts = urlsplit(URL)
    with Relay(parts.hostname, parts.port) as relay:
        for profile in TOOLS:
            run_profile(check, relay, profile)
        keep_exchanges(relay)
    check.finish()


main()
