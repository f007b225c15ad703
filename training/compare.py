"""Asks the engine the questions of recall.json and counts where it answers as the reference did.

    python compare.py FOLDER [--locket PROGRAM] [--sets recall,long] [--least 48]

FOLDER is an exported checkpoint with its recall.json; PROGRAM is also taken from LOCKET. Exit code 1 if a set has
fewer equal answers than `--least` of 50.
"""
import argparse
import json
import os
import secrets
import subprocess
import sys
import urllib.request

import prompt
from prompt import Message

REQUEST = ("messages", "thinking", "reasoning_effort", "drop_thinking", "tools")
MOST_TOKENS = 96


class Server:
    """`locket serve` as a child; use as a context manager."""

    def __init__(self, program, folder, log):
        self.key = secrets.token_hex(16)
        self.log = open(log, "w")  # noqa: SIM115 - lives as long as the server
        arguments = [program, "serve", folder, "--port", "0", "--memory", "off", "--mode", "reference"]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env={**os.environ, "LOCKET_API_KEY": self.key})
        self.url = None

    def __enter__(self):
        for line in self.process.stdout:
            if '"ready"' in line:
                self.url = json.loads(line)["url"]
                return self
        self.__exit__()
        raise SystemExit(f"the server did not start; see {self.log.name}")

    def __exit__(self, *_error):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()

    def answer(self, entry):
        body = {"model": "deepseek-flash", "temperature": 0, "max_tokens": MOST_TOKENS,
                "thinking": {"type": "disabled"}, **{key: entry[key] for key in REQUEST if key in entry}}
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(f"{self.url}/v1/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=120) as response:
            return message_of(json.load(response)["choices"][0]["message"])


def message_of(answer):
    functions = [call["function"] for call in answer.get("tool_calls") or []]
    calls = [(function["name"], json.loads(function["arguments"])) for function in functions]
    return Message("assistant", answer.get("content") or "", answer.get("reasoning_content") or None, calls)


def is_right(entry, reply):
    calls = [(call["name"], call["arguments"]) for call in entry.get("expected_calls", [])]
    return (reply.content, reply.calls) == (entry["expected"], calls)


def compare(server, entries, show):
    """(equal answers, right answers)."""
    equal = right = 0
    for entry in entries:
        reply = server.answer(entry)
        thinking = entry.get("thinking", {}).get("type") == "enabled"
        # A reply that never ends its reasoning is all reasoning to the server.
        reference = prompt.parse(entry["bounded"], thinking) or Message("assistant", "", entry["bounded"])
        same = reply == reference
        equal += same
        right += is_right(entry, reply)
        if not same and show > 0:
            show -= 1
            print(f"    {entry['messages'][-1]['content']} | engine: {reply} | reference: {entry['bounded']!r}")
    return equal, right


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--locket", default=os.environ.get("LOCKET", "locket"))
    parser.add_argument("--sets", help="of recall.json (default: all)")
    parser.add_argument("--least", type=int, default=48)
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("--log", default=os.devnull, help="of the server")
    args = parser.parse_args()
    with open(os.path.join(args.folder, "recall.json"), encoding="utf-8") as f:
        recall = json.load(f)
    names = args.sets.split(",") if args.sets else [name for name, value in recall.items() if isinstance(value, list)]
    good = True
    with Server(args.locket, args.folder, args.log) as server:
        for name in names:
            equal, right = compare(server, recall[name], args.show)
            count = len(recall[name])
            good &= equal * 50 >= args.least * count
            print(f"{name:9} {equal:3} of {count} as the reference, {right:3} right", flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
