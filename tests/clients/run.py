#!/usr/bin/env python3
"""Runs the real clients against `locket serve` with the small model.

Usage: run.py [--locket FILE] [--model FOLDER] [--build FOLDER] [--only WORD] [--url URL]

Installs the clients (install.py), starts the server on a free port with a fresh memory, runs every
client's script with a time limit and prints one line per client and the totals. Exit code 0: none
failed. Where the machine allows it, server and clients see no network but loopback.

--only runs the clients whose name contains WORD; --url uses a server that runs already, with the
key from LOCKET_KEY.
"""

import argparse
import json
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

from install import HERE, Clients, versions

REPOSITORY = HERE.parent.parent
MODEL_NAME = "deepseek-flash"
INSIDE = "LOCKET_CLIENTS_INSIDE"
READY_SECONDS = 120
DEAD_PROXY = "http://127.0.0.1:9"

# name, packages whose versions are shown, kind, script, seconds
CLIENTS = [
    ("openai (Python), chat", "pypi:openai", "sdks", "openai_chat", 180),
    ("openai (Python), Responses", "pypi:openai", "sdks", "openai_responses", 180),
    ("openai (Node)", "npm:openai", "node", "openai_node", 180),
    ("anthropic (Python)", "pypi:anthropic", "sdks", "anthropic_messages", 180),
    ("anthropic (Node)", "npm:@anthropic-ai/sdk", "node", "anthropic_node", 180),
    ("ai with @ai-sdk/openai-compatible", "npm:ai npm:@ai-sdk/openai-compatible", "node",
     "ai_sdk_compatible", 180),
    ("ai with @ai-sdk/deepseek", "npm:ai npm:@ai-sdk/deepseek", "node",
     "ai_sdk_deepseek", 180),
    ("ai with @ai-sdk/openai", "npm:ai npm:@ai-sdk/openai", "node",
     "ai_sdk_openai", 180),
    ("ai with @ai-sdk/anthropic", "npm:ai npm:@ai-sdk/anthropic", "node",
     "ai_sdk_anthropic", 180),
    ("LangChain openai", "pypi:langchain-openai", "sdks", "langchain_openai_chat", 180),
    ("LangChain deepseek", "pypi:langchain-deepseek", "sdks", "langchain_deepseek_chat", 180),
    ("LangChain anthropic", "pypi:langchain-anthropic", "sdks", "langchain_anthropic_chat", 180),
    ("litellm", "pypi:litellm", "litellm", "litellm_dialects", 300),
    ("Claude Code", "npm:@anthropic-ai/claude-code", "claude_code", "claude_code", 900),
    ("Codex", "npm:@openai/codex", "codex", "codex", 900),
    ("opencode", "npm:opencode-ai", "opencode", "opencode", 900),
    ("DeepSeek harness", "pypi:deepseek-harness-sdk", "harness", "harness_session", 900),
]


class Server:
    """`locket serve` as a child; use as a context manager."""

    def __init__(self, arguments, log):
        self._log = open(log, "w")  # noqa: SIM115 - lives as long as the server
        self._process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=self._log,
                                         text=True)
        self.url = None

    def __enter__(self):
        signal.alarm(READY_SECONDS)
        for line in self._process.stdout:
            if '"ready"' in line:
                self.url = json.loads(line)["url"]
                break
        signal.alarm(0)
        if self.url is None:
            raise SystemExit(f"the server said no ready line; see {self._log.name}")
        return self

    def __exit__(self, *_error):
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = "none within 30 s"
        self._log.close()
        if code != 0:
            print(f"the server's exit code: {code}; see {self._log.name}")


def enter_loopback():
    """Starts this program again where loopback is the only network. Returns if that cannot be."""
    if os.environ.get(INSIDE):
        bring_up_loopback()
        return
    probe = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None or subprocess.run([*probe, "true"], check=False,
                                                         capture_output=True).returncode != 0:
        print("no network namespace to be had here: clients get a proxy that leads nowhere")
        return
    os.environ[INSIDE] = "1"
    os.execvp("unshare", [*probe, sys.executable, *sys.argv])


def bring_up_loopback():
    import fcntl
    read_flags, write_flags, is_up = 0x8913, 0x8914, 0x1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(control, read_flags, request))[1]
        fcntl.ioctl(control, write_flags, struct.pack("16sh", b"lo", flags | is_up))


def client_environment(home, url, key):
    """Nothing of the caller's: no keys, no settings, and nobody reaches further than loopback."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(home),
        "LOCKET_URL": url, "LOCKET_MODEL": MODEL_NAME, "LOCKET_KEY": key,
        "PYTHONPATH": f"{HERE}/python:{HERE}/agents:{HERE}", "PYTHONDONTWRITEBYTECODE": "1",
        "HTTP_PROXY": DEAD_PROXY, "HTTPS_PROXY": DEAD_PROXY, "ALL_PROXY": DEAD_PROXY,
        "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGSMITH_TRACING": "false",
        "DO_NOT_TRACK": "1", "AI_SDK_LOG_WARNINGS": "false",
    }


def command_of(clients, kind, script):
    """The command of a client's script, and the program of an agent that it runs."""
    if kind == "node":
        return [clients.node, clients.node_folder / f"{script}.mjs"], None
    if kind in ("sdks", "litellm"):
        return [clients.python(kind), HERE / f"python/{script}.py"], None
    if kind == "harness":
        return [clients.python(kind), HERE / f"agents/{script}.py"], None
    return [sys.executable, HERE / f"agents/{script}.py"], getattr(clients, kind)


def run_client(clients, client, url, key):
    """(word, text): passed, failed or skipped, and what is to be said about it."""
    name, _, kind, script, seconds = client
    command, program = command_of(clients, kind, script)
    for needed in (command[0], program):
        if needed is not None and not Path(needed).exists():
            return "skipped", f"{needed} is not there"
    home = clients.build / "home" / script
    home.mkdir(parents=True, exist_ok=True)
    environment = client_environment(home, url, key)
    if program is not None:
        environment["LOCKET_PROGRAM"] = str(program)
    log = clients.build / "logs" / f"{script}.txt"
    log.parent.mkdir(exist_ok=True)
    with open(log, "w") as out:
        process = subprocess.Popen([str(word) for word in command], env=environment, cwd=home,
                                   stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "failed", f"not done within {seconds} s; see {log}"
    return read_result(log)


def read_result(log):
    lines = [line for line in log.read_text(errors="replace").splitlines()
             if line.startswith("RESULT ")]
    if not lines:
        return "failed", f"the script ended early; see {log}"
    result = json.loads(lines[-1].removeprefix("RESULT "))
    notes = "".join(f"; {note}" for note in result["notes"])
    if result["failed"]:
        why = "; ".join(f"[{each['name']}] {each['why']}" for each in result["failed"])
        done = len(result["passed"])
        return "failed", f"{why} ({done} checks passed{notes})"
    return "passed", f"{len(result['passed'])} checks{notes}"


def run_all(clients, only, url, key):
    known = versions()
    totals = Counter()
    for client in CLIENTS:
        if only.lower() not in client[0].lower():
            continue
        word, text = run_client(clients, client, url, key)
        totals[word] += 1
        shown = " and ".join(known[package] for package in client[1].split())
        print(f"{client[0]} {shown}: {word}: {text}", flush=True)
    print(", ".join(f"{totals[word]} {word}" for word in ("passed", "failed", "skipped")))
    return 0 if totals["failed"] == 0 and totals["passed"] > 0 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--locket", default=REPOSITORY / "build/release/locket")
    parser.add_argument("--model", default=REPOSITORY / "models/mini")
    parser.add_argument("--build", default=REPOSITORY / "build/clients")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--url")
    options = parser.parse_args()
    clients = Clients(options.build)
    if not os.environ.get(INSIDE) and not clients.install():
        return 1
    if options.url:
        return run_all(clients, options.only, options.url, os.environ["LOCKET_KEY"])
    enter_loopback()
    key = secrets.token_hex(16)
    os.environ["LOCKET_API_KEY"] = key
    memory = clients.build / "memory"
    shutil.rmtree(memory, ignore_errors=True)
    arguments = [options.locket, "serve", options.model, "--port", "0", "--memory", memory,
                 # Small enough that clients see such signs while a prompt is read.
                 "--sse-ping-interval", "1"]
    with Server([str(word) for word in arguments], clients.build / "server.log") as server:
        return run_all(clients, options.only, server.url, key)


if __name__ == "__main__":
    sys.exit(main())
