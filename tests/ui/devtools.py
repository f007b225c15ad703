"""A headless Chromium, driven over the DevTools protocol through a pair of pipes."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
SECONDS = 20


def find_program():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One process with one page. Errors that the page reports are collected in `errors`."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(prefix="locket_ui_",
                                                   ignore_cleanup_errors=True)
        to_read, self._to = os.pipe()
        self._from, from_write = os.pipe()
        # Above the numbers that the browser wants its pipes under.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (to_read, from_write)]
        for end in (to_read, from_write):
            os.close(end)
        arguments = [program, "--headless", "--remote-debugging-pipe", "--disable-gpu",
                     "--no-first-run", "--disable-dev-shm-usage",
                     f"--user-data-dir={self.profile.name}"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        redirect = f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}'
        self.process = subprocess.Popen(["bash", "-c", redirect, "bash", *arguments],
                                        pass_fds=ends, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        for end in ends:
            os.close(end)
        self._buffer = b""
        self._next_id = 0
        self._answers = {}
        self._session = None
        self.errors = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self._session = None
        try:
            self.call("Browser.close")
            self.process.wait(SECONDS)
        except (OSError, RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self._to)
        os.close(self._from)
        self.profile.cleanup()

    def call(self, method, **parameters):
        """Sends a command and gives its result."""
        self._next_id += 1
        message = {"id": self._next_id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        wanted, end = self._next_id, time.monotonic() + SECONDS
        while wanted not in self._answers:
            self._receive(end - time.monotonic())
            if time.monotonic() > end:
                raise TimeoutError(f"no answer to {method} within {SECONDS} s")
        answer = self._answers.pop(wanted)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _receive(self, seconds):
        if not select.select([self._from], [], [], max(0, seconds))[0]:
            return
        data = os.read(self._from, 1 << 20)
        if not data:
            raise RuntimeError("the browser has gone")
        self._buffer += data
        *messages, self._buffer = self._buffer.split(b"\0")
        for message in messages:
            self._take(json.loads(message))

    def _take(self, message):
        if "id" in message:
            self._answers[message["id"]] = message
            return
        parameters = message["params"]
        if message["method"] == "Log.entryAdded":
            entry = parameters["entry"]
            if entry["level"] in ("error", "warning"):
                self.errors.append(f"{entry['source']}: {entry['text']} {entry.get('url', '')}")
        elif message["method"] == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"]))
        elif message["method"] == "Runtime.consoleAPICalled" and parameters["type"] != "log":
            self.errors.append(json.dumps(parameters["args"]))

    def evaluate(self, expression):
        """The value of an expression of the page, a promise awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression, seconds=SECONDS):
        """Waits until an expression is true."""
        end = time.monotonic() + seconds
        while True:
            if self.evaluate(f"Boolean({expression})"):
                return
            if time.monotonic() > end:
                raise AssertionError(f"not true within {seconds} s: {expression}\n"
                                     f"the page says: {self.evaluate('document.body.innerText')}")
            self._receive(0.05)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait_for(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def press(self, key, shift=False):
        """A key of the keyboard, by its DOM name."""
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38,
                 "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, " ": 32}
        event = {"key": key, "code": "Space" if key == " " else key,
                 "windowsVirtualKeyCode": codes[key], "modifiers": 8 if shift else 0}
        text = {"Enter": "\r", " ": " "}.get(key)
        if text:
            event["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        event.pop("text", None)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def resize(self, width, height, is_phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2 if is_phone else 1, mobile=is_phone)

    def prefer(self, scheme):
        """Whether the user prefers "light" or "dark"."""
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path, whole_page=False):
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=whole_page)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
