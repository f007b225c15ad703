"""A relay in front of the server for agents: it keeps what went over the wire, and it can make the
next request force a call of one tool, since the small model never decides for one by itself.

Everything else passes unchanged, answers byte by byte. Only for loopback and for clients that send
a Content-Length.
"""

import json
import re
import socket
import threading

RECEIVE = 65536
FORCED_TOKENS = 512


class Exchange:
    """One POST: path, the request as it was sent on, and the answer so far."""

    def __init__(self, path, request):
        self.path = path
        self.request = request
        self.answer = b""
        self.is_forced = False

    def status(self):
        found = re.match(rb"HTTP/1\.1 (\d+)", self.answer)
        return int(found.group(1)) if found else None

    def objects(self):
        """The JSON objects of an answer: of a stream's data lines, or of the whole body."""
        text = self.answer.decode("utf-8", "replace")
        found = [line.partition(":")[2].strip() for line in re.split(r"\r?\n", text)
                 if line.startswith("data:")]
        if not found:
            found = [text[text.find("{"):text.rfind("}") + 1]]
        objects = []
        for piece in found:
            try:
                objects.append(json.loads(piece))
            except ValueError:
                continue
        return [each for each in objects if isinstance(each, dict)]

    def hit_and_prompt(self):
        """Tokens that were remembered and all of the prompt, of the last usage; None without."""
        result = None
        for each in self.objects():
            usage = (each.get("response") or each.get("message") or each).get("usage")
            if isinstance(usage, dict):
                result = read_usage(usage) or result
        return result


def read_usage(usage):
    if "prompt_tokens" in usage:
        return usage.get("prompt_cache_hit_tokens", 0), usage["prompt_tokens"]
    if "cache_read_input_tokens" in usage:
        hit = usage["cache_read_input_tokens"] or 0
        return hit, hit + usage.get("input_tokens", 0)
    if "input_tokens_details" in usage:
        return usage["input_tokens_details"].get("cached_tokens", 0), usage["input_tokens"]
    return None


def keep_required(tool):
    """Takes optional arguments out of a tool: a small model does not find the end of a text."""
    holder = tool.get("function") or tool
    schema = holder.get("input_schema") or holder.get("parameters") or {}
    required = schema.get("required") or []
    properties = schema.get("properties") or {}
    schema["properties"] = {name: properties[name] for name in required}


def force_tool(path, body, name):
    """The body with a call of tool `name` forced, in the words of the dialect of `path`; thinking
    is left out, since it and a forced call exclude each other."""
    body = {key: value for key, value in body.items() if key not in ("thinking", "reasoning")}
    for tool in body["tools"]:
        if (tool.get("function") or tool).get("name") == name:
            keep_required(tool)
    if path.endswith("/messages"):
        return body | {"tool_choice": {"type": "tool", "name": name}, "max_tokens": FORCED_TOKENS}
    if path.endswith("/responses"):
        return body | {"tool_choice": {"type": "function", "name": name},
                       "max_output_tokens": FORCED_TOKENS}
    return body | {"tool_choice": {"type": "function", "function": {"name": name}},
                   "max_tokens": FORCED_TOKENS}


class Relay:
    """Listens on 127.0.0.1; use as a context manager. `exchanges` is in order of arrival."""

    def __init__(self, host, port):
        self._upstream = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._forced_tool = None
        self.exchanges = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self._listener.close()

    def force(self, tool):
        """The next POST that carries a tool whose name is `tool`, or ends in it, forces it."""
        with self._lock:
            self._forced_tool = tool

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, client.makefile("rb") as source:
            try:
                self._relay_one(client, source)
            except OSError:
                return  # one of both sides left, which the other one sees

    def _relay_one(self, client, source):
        lines = []
        while (line := source.readline()) not in (b"\r\n", b""):
            lines.append(line)
        if not lines:
            return
        method, target = lines[0].decode().split()[:2]
        heads = {line.partition(b":")[0].strip().lower(): line.partition(b":")[2].strip()
                 for line in lines[1:]}
        if heads.get(b"expect", b"").lower() == b"100-continue":
            client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = source.read(int(heads.get(b"content-length", b"0")))
        exchange = Exchange(target.partition("?")[0], body)
        if method == "POST":
            body = self._note(exchange)
        dropped = (b"content-length", b"connection", b"expect")
        kept = [line for line in lines[1:]
                if line.partition(b":")[0].strip().lower() not in dropped]
        head = lines[0] + b"".join(kept) + b"Connection: close\r\n"
        if body or method == "POST":
            head += b"Content-Length: %d\r\n" % len(body)
        with socket.create_connection(self._upstream) as server:
            server.sendall(head + b"\r\n" + body)
            while piece := server.recv(RECEIVE):
                exchange.answer += piece
                client.sendall(piece)

    def _note(self, exchange):
        with self._lock:
            self.exchanges.append(exchange)
            if self._forced_tool is None:
                return exchange.request
            name = full_name(exchange.request, self._forced_tool)
            if name is None:
                return exchange.request
            self._forced_tool = None
        exchange.is_forced = True
        exchange.request = json.dumps(
            force_tool(exchange.path, json.loads(exchange.request), name)).encode()
        return exchange.request


def full_name(request, tool):
    """The name under which a request lists a tool; agents put names of servers before it."""
    try:
        tools = json.loads(request).get("tools") or []
    except ValueError:
        return None
    for each in tools:
        name = (each.get("function") or each).get("name") or ""
        if name == tool or name.endswith("_" + tool):
            return name
    return None
