"""What the scripts of agents share: a relay in front of the server, a folder of their own, and the
checks of a session: stream to the end, a second turn that hits, another session that hits, a tool
call and its result.

The small model never decides to call a tool. The relay forces one call (see relay.py); the agent
runs the tool and sends the result back by itself.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from checks import URL, Checks, expect, expect_equal, expect_hit
from relay import Relay

PROGRAM = os.environ.get("LOCKET_PROGRAM")
TURN_SECONDS = 300
NEW_SESSION_SHARE = 0.5  # an agent's rules hold dates, folders and ids
TOOLS_SERVER = [sys.executable, str(Path(__file__).resolve().parent / "tools_server.py")]


def fresh_folder(name):
    """An empty folder under the agent's home."""
    folder = Path(os.environ["HOME"]) / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def work_folder(name="work"):
    """An empty folder with a repository of its own: agents tell the model what git says, and must
    not find the repository around it."""
    folder = fresh_folder(name)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return folder


def run_program(arguments, folder, environment):
    """The standard output of one turn of an agent's program."""
    result = subprocess.run([PROGRAM, *arguments], cwd=folder, env=dict(os.environ) | environment,
                            stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=TURN_SECONDS, check=False)
    print(result.stdout[-4000:], result.stderr[-4000:], sep="\n", file=sys.stderr)
    expect_equal(result.returncode, 0,
                 f"the exit code ({(result.stderr or result.stdout).strip()[-300:]})")
    return result.stdout


class AgentSession:
    """`start(text)` and `go_on(text)` run a turn and return what the agent reports of it, or raise;
    `tool` is a tool of the agent that does no harm."""

    def __init__(self, start, go_on, tool):
        self._start = start
        self._go_on = go_on
        self._tool = tool

    def run(self, check, relay, prefix=""):
        @check(prefix + "first turn, streamed to its end")
        def first_turn():
            expect(self._start("Hello!"), "the agent should report an answer")
            expect_fine(relay.exchanges)

        @check(prefix + "second turn hits")
        def second_turn():
            before = len(relay.exchanges)
            expect(self._go_on("I feel tired."), "the agent should report an answer")
            expect_fine(relay.exchanges[before:])
            usage = relay.exchanges[-1].hit_and_prompt()
            expect(usage, "the answer should have usage", relay.exchanges[-1].answer[-300:])
            expect_hit(*usage)
            check.note(f"{prefix}second turn: {usage[0]} of {usage[1]} prompt tokens were hits")

        @check(prefix + "new session hits")
        def new_session():
            before = len(relay.exchanges)
            expect(self._start("Hello!"), "the agent should report an answer")
            usage = max((exchange.hit_and_prompt() for exchange in relay.exchanges[before:]),
                        key=lambda pair: pair[1])
            expect_hit(*usage, least=NEW_SESSION_SHARE)
            check.note(f"{prefix}new session: {usage[0]} of {usage[1]}")

        @check(prefix + "tool call (forced by the relay) and its result")
        def tool_call():
            before = len(relay.exchanges)
            relay.force(self._tool)
            expect(self._go_on("What is the weather?"), "the agent should report an answer")
            new = relay.exchanges[before:]
            expect_fine(new)
            forced = [index for index, exchange in enumerate(new) if exchange.is_forced]
            expect(forced, f"a request should list the tool {self._tool}")
            after = new[forced[0] + 1:]
            expect(after, "the result should go back to the server", new[forced[0]].answer[-600:])
            kinds = (b'"tool_result"', b'"function_call_output"', b'"role":"tool"')
            expect(any(kind in after[-1].request.replace(b": ", b":") for kind in kinds),
                   "the next request should hold the result", after[-1].request[-600:])


def expect_fine(exchanges):
    expect(exchanges, "there should be requests")
    for exchange in exchanges:
        expect(exchange.status() == 200, f"{exchange.path} should be answered 200",
               exchange.answer[:600])


def run_agent(make_session):
    """Runs the session that `make_session(base_url)` makes, and ends the script."""
    check = Checks()
    parts = urlsplit(URL)
    with Relay(parts.hostname, parts.port) as relay:
        make_session(relay.url).run(check, relay)
        keep_exchanges(relay)
    check.finish()


def keep_exchanges(relay):
    """What went over the wire, for whoever looks for the reason of a failure."""
    folder = fresh_folder("wire")
    for index, exchange in enumerate(relay.exchanges):
        (folder / f"{index}.request.json").write_bytes(exchange.request)
        (folder / f"{index}.answer.txt").write_bytes(exchange.answer)
