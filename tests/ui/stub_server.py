"""A server that behaves as Locket does towards its page, with made-up numbers."""

import base64
import hashlib
import http.server
import json
import math
import re
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GIB = 1 << 30


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def build_page():
    """Page and policy, from the same parts and with the same policy as the program's."""
    folder = ROOT / "src/server/ui"
    recipe = (ROOT / "cmake/ui_page.cmake").read_text()
    names = re.search(r"LOCKET_UI_SCRIPTS ([a-z_ ]+)\)", recipe).group(1).split()
    style = "\n" + (folder / "page.css").read_text()
    script = "\n" + "".join((folder / f"{name}.js").read_text() for name in names)
    page = (folder / "page.html").read_text()
    page = page.replace("/* the style */", style).replace("/* the script */", script)
    source = (ROOT / "src/server/ui_page.cc").read_text()
    body = source[source.index("std::string policy()"):]
    policy = "".join(re.findall(r'"([^"]*)"', body[:body.index("source_of")]))
    return page, policy.replace("{}", digest(script), 1).replace("{}", digest(style), 1)


def prefix(name, parent, tokens, ram, disk, **more):
    return {"name": name, "parent": parent, "tokens": tokens, "ram_bytes": ram * tokens,
            "disk_bytes": disk * tokens, "pinned": False, "in_use": False, "age_seconds": 12,
            **more}


PREFIXES = [
    prefix("9f31c0ffee01", -1, 18432, 5400, 5300, in_use=True, pinned=True, age_seconds=0),
    prefix("1b7722aa9c02", 0, 61440, 5400, 5300, in_use=True, age_seconds=0),
    prefix("c44d10be3303", 1, 24064, 5400, 0, in_use=True, age_seconds=0),
    prefix("7e90aa11d204", 1, 9216, 5400, 5300, age_seconds=184),
    prefix("02ab93cc7105", 0, 43008, 0, 5300, age_seconds=8400),
    prefix("5d5d01f0ab06", 4, 12800, 0, 5300, age_seconds=8400),
    prefix("e8a0427b1907", 0, 4352, 5400, 5300, age_seconds=41),
    prefix("a1c3e5f70908", -1, 30720, 0, 5300, age_seconds=260000),
    prefix("66b2d9004e09", 7, 2048, 0, 5300, age_seconds=260000),
    prefix("3c19f7a8d50a", -1, 896, 5400, 5300, age_seconds=75),
]


def request_row(number, stage, prompt, read, hit, written, age):
    return {"id": number, "label": ["team-a", "batch", "", "nightly"][number % 4], "stage": stage,
            "prompt_tokens": prompt, "read_tokens": read, "hit_tokens": hit,
            "completion_tokens": written, "age_seconds": age}


def day(name, requests, hit, miss, output):
    return {"day": name, "requests": requests, "hit": hit, "miss": miss, "output": output}


def caller(name, requests, hit, miss, output):
    return {"name": name, "requests": requests, "hit": hit, "miss": miss, "output": output}


class Stub:
    """The server and what a test sets and sees. `key`: the one that is asked for, if any."""

    WRITTEN_PER_SECOND = 240
    READ_PER_SECOND = 700
    HIT_PER_SECOND = 6300

    def __init__(self):
        self.page, self.policy = build_page()
        self.key = None
        self.stage = "ready"
        self.is_down = False
        self.is_wavy = False
        self.bodies = []       # of chat requests
        self.queries = []      # of /ui/state
        self.left = threading.Event()  # a reader left in mid-stream
        self.piece_seconds = 0.01
        self.start = time.time()
        stub = self

        class Handler(StubHandler):
            server_stub = stub

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def state(self, known):
        now = time.time()
        seconds = now - self.start
        # Rates that change, for pictures.
        busy = seconds + (4 * (1 - math.cos(seconds / 5)) if self.is_wavy else 0)
        prefixes = {"version": 3, "left_out": 14, "complete": True}
        if known != "3":
            prefixes["nodes"] = PREFIXES
        return {
            "time": round(now, 3),
            "model": {"stage": self.stage, "progress": 0.42,
                      "name": "deepseek-flash", "numerics": "reference",
                      "context_tokens": 1048576, "version": "0.1.0"},
            "load": {"queued": 1, "running": 4, "paused": 1, "steps": 9120,
                     "prompt_tokens": int(912_000 + self.READ_PER_SECOND * busy),
                     "hit_tokens": int(8_400_000 + self.HIT_PER_SECOND * busy),
                     "generated_tokens": int(184_302 + self.WRITTEN_PER_SECOND * busy),
                     "preemptions": 2},
            "requests": [request_row(412, "generating", 104_960, 104_960, 103_936,
                                     620 + int(40 * seconds), 15 + seconds),
                         request_row(413, "reading", 61_500, 44_032, 36_864, 0, 4.2),
                         request_row(414, "generating", 912, 912, 0, 75, 2.1),
                         request_row(415, "paused", 2_300, 2_300, 1_920, 512, 33),
                         request_row(416, "queued", 18_000, 0, 0, 0, 0.3)],
            "request_count": 5,
            "memory": {"bytes_per_token": 5412.5, "measured_bytes_per_token": 5480.2,
                       "ram_used_bytes": int(11.4 * GIB),
                       "ram_budget_bytes": 16 * GIB, "disk_used_bytes": int(58.3 * GIB),
                       "disk_quota_bytes": 200 * GIB, "ram_evictions": 1204,
                       "disk_evictions": 0, "disk_corrupt": 0,
                       "disk_written_bytes": int(71.9 * GIB)},
            "days": [day("2026-11-28", 1204, 0.4112, 1.9031, 2.2017),
                     day("2026-11-29", 1733, 0.6020, 2.1177, 2.9120),
                     day("2026-11-30", 902, 0.3125, 0.8841, 1.4402)],
            "callers": [caller("team-a", 700, 0.2201, 0.6012, 1.1020),
                        caller("nightly", 202, 0.0924, 0.2829, 0.3382)],
            "prefixes": prefixes,
        }


class StubHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_stub = None

    def log_message(self, *arguments):
        pass

    def answer(self, status, kind, body, headers=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def answer_json(self, status, value):
        self.answer(status, "application/json", json.dumps(value).encode())

    def is_refused(self):
        stub = self.server_stub
        if stub.is_down:
            self.answer_json(503, {"error": {"message": "closing down"}})
        elif stub.key and self.headers.get("Authorization") != f"Bearer {stub.key}":
            self.answer_json(401, {"error": {"message": "The API key is missing or wrong."}})
        else:
            return False
        return True

    def do_GET(self):
        stub = self.server_stub
        path, _, query = self.path.partition("?")
        if path in ("/ui", "/"):
            self.answer(200, "text/html; charset=utf-8", stub.page.encode(),
                        [("Content-Security-Policy", stub.policy),
                         ("X-Content-Type-Options", "nosniff")])
        elif path != "/ui/state":
            self.answer_json(404, {"error": {"message": "There is no such page."}})
        elif not self.is_refused():
            stub.queries.append(query)
            self.answer_json(200, stub.state(query.partition("=")[2]))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/v1/chat/completions" or self.is_refused():
            return
        request = json.loads(body)
        self.server_stub.bodies.append(request)
        text = request["messages"][-1]["content"]
        if text == "fail":
            self.answer_json(400, {"error": {"message": "The prompt is <b>too long</b>."}})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            self.stream(text)
        except OSError:
            self.server_stub.left.set()
        self.close_connection = True

    def stream(self, text):
        self.write(": keep-alive\n")
        self.delta({"role": "assistant", "content": None, "reasoning_content": ""})
        for piece in ("They say ", "<i>something</i> ", "and wait."):
            self.delta({"reasoning_content": piece})
        if text == "endless":
            while True:
                self.delta({"content": "more "})
        if text == "break":
            self.event({"error": {"message": "The model stands still."}})
            return
        for piece in ("You said: ", text, ". 东", "京 ", "<img src=x onerror=alert(1)>",
                      "\n\nNothing is forgotten between two questions, so the second one ",
                      "starts where the first one ended."):
            self.delta({"content": piece})
        self.delta({"content": ""}, finish="stop")
        usage = {"prompt_tokens": 1234, "completion_tokens": 9, "total_tokens": 1243,
                 "prompt_tokens_details": {"cached_tokens": 1152}}
        self.event({"choices": [], "usage": usage})
        self.write("data: [DONE]\n\n")

    def delta(self, delta, finish=None):
        time.sleep(self.server_stub.piece_seconds)
        self.event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def event(self, value):
        self.write(f"data: {json.dumps(value, ensure_ascii=False)}\n\n")

    def write(self, text):
        self.wfile.write(text.encode())
        self.wfile.flush()
