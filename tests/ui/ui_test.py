#!/usr/bin/env python3
"""The page /ui in a real browser.

Usage: ui_test.py [--server URL] [--screenshots FOLDER] [TEST ...]

Without --server a stub stands in for Locket, with the page and the policy of the program. Tests
that need made-up numbers or a server that misbehaves are skipped with --server.
"""

import argparse
import json
import sys
import time
import unittest
from pathlib import Path

import devtools
import stub_server

OPTIONS = argparse.Namespace(server=None, screenshots=None)

# Every text must stand out from what is behind it, as WCAG 2.1 AA wants it.
LOW_CONTRASTS = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (color) => rgba(color).slice(0, 3).map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }).reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const ground = (element) => {
    const color = getComputedStyle(element).backgroundColor;
    return rgba(color)[3] > 0 || !element.parentElement ? color : ground(element.parentElement);
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const isText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!isText || !element.checkVisibility()) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push(`${element.textContent.trim()}: ${ratio.toFixed(2)}`);
  }
  return found;
})()"""


class PageTest(unittest.TestCase):
    """One browser for all tests, a new stub and an empty storage for each."""

    @classmethod
    def setUpClass(cls):
        cls.browser = devtools.Browser(devtools.find_program())
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.stub = None
        if OPTIONS.server is None:
            self.stub = stub_server.Stub()
            self.addCleanup(self.stub.close)
        self.url = (OPTIONS.server or self.stub.url).rstrip("/")
        self.browser.call("Storage.clearDataForOrigin", origin=self.url, storageTypes="all")
        self.browser.resize(1280, 900)
        self.browser.prefer("light")
        self.browser.errors.clear()

    def tearDown(self):
        self.browser.open("about:blank")
        self.assertEqual(self.browser.errors, [], "the browser complains")

    def open(self):
        self.browser.open(f"{self.url}/ui")
        self.browser.evaluate("sessionStorage.clear(); localStorage.clear()")
        self.browser.open("about:blank")
        self.browser.errors.clear()
        self.browser.open(f"{self.url}/ui")
        self.browser.wait_for("document.getElementById('stage').dataset.stage !== 'connecting'")

    def text(self, selector):
        return self.browser.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText")

    def count(self, selector):
        return self.browser.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def focused(self):
        return self.browser.evaluate("document.activeElement.id")

    def ask(self, text):
        self.browser.evaluate("document.getElementById('prompt').focus()")
        self.browser.type(text)
        self.browser.press("Enter")

    def wait_for_answers(self, count=1):
        self.browser.wait_for(f"document.querySelectorAll('.message .facts').length === {count}")


class AnyServerTest(PageTest):
    def test_loads_nothing_but_its_own_state(self):
        self.open()
        self.browser.wait_for("performance.getEntriesByType('resource').length > 1")
        names = set(self.browser.evaluate(
            "performance.getEntriesByType('resource').map((entry) => entry.name.split('?')[0])"))
        self.assertEqual(names, {f"{self.url}/ui/state"})

    def test_shows_the_model(self):
        self.open()
        self.browser.wait_for("document.getElementById('stage').innerText === 'ready'")
        self.assertNotEqual(self.text("#model-name"), "–")
        self.assertIn("tokens", self.text("#model-facts"))
        self.assertRegex(self.text("#token-bytes"), r"^[1-9][0-9,]*$")
        self.browser.wait_for("document.getElementById('written-rate').innerText !== '–'")

    def test_the_policy_stops_foreign_scripts_and_requests(self):
        self.open()
        self.browser.evaluate("""(() => {
          window.ran = [];
          try { document.body.innerHTML += "<b>x</b>"; window.ran.push("markup"); } catch {}
          const script = document.createElement("script");
          try { script.textContent = "window.ran.push('script')"; } catch {}
          document.body.append(script);
          try { setTimeout("window.ran.push('text')"); } catch {}
        })()""")
        reached = self.browser.evaluate(
            "fetch('http://127.0.0.2:9/').then(() => true, () => false)")
        self.assertEqual(self.browser.evaluate("window.ran"), [])
        self.assertFalse(reached)
        refused = [error for error in self.browser.errors if "Content Security Policy" in error]
        self.assertTrue(any("connect-src" in error for error in refused), self.browser.errors)
        self.browser.errors.clear()

    def test_streams_an_answer_as_text(self):
        self.open()
        self.ask("Say <b>hello</b>.")
        self.wait_for_answers()
        self.assertEqual(self.text(".message.user"), "Say <b>hello</b>.")
        self.assertEqual(self.count("#messages b, #messages i, #messages img"), 0)
        self.assertRegex(self.text(".message .facts"),
                         r"\d tokens? · .*[\d,]+ of [\d,]+ remembered")
        self.assertEqual(self.focused(), "prompt")
        self.assertEqual(self.browser.evaluate("document.getElementById('prompt').value"), "")

    def test_shift_and_enter_begins_a_line(self):
        self.open()
        self.browser.evaluate("document.getElementById('prompt').focus()")
        before = self.browser.evaluate("document.getElementById('prompt').offsetHeight")
        self.browser.type("one")
        self.browser.press("Enter", shift=True)
        self.browser.type("two")
        self.assertEqual(self.browser.evaluate("document.getElementById('prompt').value"),
                         "one\ntwo")
        self.assertGreater(
            self.browser.evaluate("document.getElementById('prompt').offsetHeight"), before)
        self.assertEqual(self.count(".message"), 0)

    def test_everything_is_reached_with_tab_and_shows_it(self):
        self.open()
        self.browser.wait_for("document.getElementById('stage').innerText === 'ready'")
        seen = []
        for _ in range(40):
            self.browser.press("Tab")
            name, outline = self.browser.evaluate("""(() => {
              const style = getComputedStyle(document.activeElement);
              return [document.activeElement.id || document.activeElement.className ||
                      document.activeElement.tagName,
                      `${style.outlineStyle} ${style.outlineWidth}`];
            })()""")
            if name == "BODY" or name in seen and name != "scroll":
                break
            seen.append(name)
            self.assertRegex(outline, r"^solid [1-9]", name)
        for name in ("skip", "theme-button", "thinking", "new-chat", "messages", "prompt", "send"):
            self.assertIn(name, seen)

    def test_the_first_link_leads_to_the_chat(self):
        self.open()
        self.browser.press("Tab")
        self.browser.press("Enter")
        self.browser.wait_for("document.activeElement.id === 'prompt'")

    def test_follows_the_theme_of_the_system(self):
        self.open()
        color = "getComputedStyle(document.body).backgroundColor"
        light = self.browser.evaluate(color)
        self.browser.prefer("dark")
        dark = self.browser.evaluate(color)
        self.assertNotEqual(light, dark)
        self.browser.prefer("light")
        self.assertEqual(self.browser.evaluate(color), light)

    def test_the_chosen_theme_stays(self):
        self.open()
        color = "getComputedStyle(document.body).backgroundColor"
        light = self.browser.evaluate(color)
        self.browser.evaluate("document.getElementById('theme-button').focus()")
        self.browser.press("Enter")
        self.assertEqual(self.text("#theme-button"), "Theme: light")
        self.browser.press("Enter")
        self.assertEqual(self.text("#theme-button"), "Theme: dark")
        dark = self.browser.evaluate(color)
        self.assertNotEqual(light, dark)
        self.browser.open("about:blank")
        self.browser.open(f"{self.url}/ui")
        self.assertEqual(self.browser.evaluate(color), dark)
        self.assertEqual(self.text("#theme-button"), "Theme: dark")

    def test_every_text_is_legible_in_both_themes(self):
        self.open()
        self.browser.wait_for("document.getElementById('stage').innerText === 'ready'")
        self.ask("Hello")
        self.wait_for_answers()
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            self.assertEqual(self.browser.evaluate(LOW_CONTRASTS), [], scheme)

    def test_fits_a_phone(self):
        self.browser.resize(360, 740, is_phone=True)
        self.open()
        self.ask("A_word_without_any_blank_" * 8)
        self.wait_for_answers()
        self.assertEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 360)
        outside = self.browser.evaluate("""[...document.querySelectorAll(
            "button, select, textarea, dt, h1, h2, h3, .tile b, .amount, .node > *, #requests td")]
          .filter((element) => element.checkVisibility())
          .filter((element) => element.getBoundingClientRect().right > 360.5 ||
                               element.getBoundingClientRect().left < -0.5)
          .map((element) => element.id || element.className || element.tagName)""")
        self.assertEqual(outside, [])
        small = self.browser.evaluate("""[...document.querySelectorAll("button, select, textarea")]
          .filter((element) => element.checkVisibility() && element.offsetHeight < 36)
          .map((element) => element.id)""")
        self.assertEqual(small, [], "too small for a finger")

    def test_takes_pictures(self):
        if not OPTIONS.screenshots:
            self.skipTest("no folder for pictures was named (--screenshots)")
        folder = Path(OPTIONS.screenshots)
        folder.mkdir(parents=True, exist_ok=True)
        for name, width, scheme in (("light", 1440, "light"), ("dark", 1440, "dark"),
                                    ("tablet", 820, "light"), ("phone", 360, "dark")):
            self.browser.resize(width, 1000, is_phone=width == 360)
            self.browser.prefer(scheme)
            self.open()
            self.ask("What do you remember?")
            self.wait_for_answers()
            time.sleep(3)  # for a piece of the curves
            height = self.browser.evaluate("document.documentElement.scrollHeight")
            self.browser.resize(width, max(1000, height) if width < 1000 else 1000, width == 360)
            self.browser.screenshot(folder / f"ui_{name}.png")


@unittest.skipIf("--server" in sys.argv, "needs a server that does as the test says")
class StubbedTest(PageTest):
    def number(self, selector):
        return float(self.text(selector).split()[0].replace(",", ""))

    def test_computes_rates_from_one_state_to_the_next(self):
        self.open()
        self.browser.wait_for("document.getElementById('written-rate').innerText !== '–'")
        self.assertAlmostEqual(self.number("#written-rate"), stub_server.Stub.WRITTEN_PER_SECOND,
                               delta=24)
        self.assertAlmostEqual(self.number("#read-rate"), stub_server.Stub.READ_PER_SECOND,
                               delta=70)
        self.assertAlmostEqual(self.number("#hit-rate"), 90, delta=0.5)
        self.assertEqual(self.text("#token-bytes"), "5,480")

    def test_shows_requests_memory_and_bill(self):
        self.open()
        self.browser.wait_for("document.querySelectorAll('#request-rows tr').length === 5")
        self.assertEqual(self.text("#requests-count"),
                         "4 running · 1 waiting · 1 paused · 2 preemptions")
        row = "#request-rows tr:nth-child(2)"
        self.assertEqual(self.text(f"{row} .state"), "reading")
        widths = self.browser.evaluate(
            f"[...document.querySelectorAll('{row} .track span')].map((s) => s.style.width)")
        self.assertEqual([round(float(width[:-1])) for width in widths], [60, 12])
        self.assertEqual(self.text("#ram-amount"), "11.4 GiB of 16.0 GiB")
        self.assertEqual(self.text("#disk-amount"), "58.3 GiB of 200 GiB")
        self.assertEqual(self.text("#bill-today"), "$2.637 on 2026-11-30")
        self.assertEqual(self.count("#bill-days tr"), 3)
        self.assertEqual(self.text("#bill-callers tr td"), "team-a")

    def test_asks_for_prefixes_only_once(self):
        self.open()
        self.browser.wait_for("document.querySelectorAll('.node').length === 10")
        self.stub.queries.clear()
        self.browser.wait_for("performance.getEntriesByType('resource').length > 3")
        self.assertEqual(set(self.stub.queries), {"prefixes=3"})
        self.assertEqual(self.count(".node"), 10)
        self.assertEqual(self.text("#tree-count"), "10 runs of tokens, 14 smaller ones")

    def test_the_tree_is_walked_with_the_arrow_keys(self):
        self.open()
        self.browser.wait_for("document.querySelectorAll('.node').length === 10")
        self.browser.evaluate("document.querySelector('.node[tabindex=\"0\"]').focus()")
        name = "document.activeElement.dataset.name.slice(0, 4)"
        steps = [("ArrowDown", "1b77"), ("ArrowLeft", "1b77"), ("ArrowDown", "02ab"),
                 ("ArrowUp", "1b77"), ("ArrowRight", "1b77"), ("ArrowRight", "c44d"),
                 ("ArrowLeft", "1b77"), ("End", "3c19"), ("Home", "9f31"), (" ", "9f31"),
                 ("ArrowDown", "a1c3")]
        for key, wanted in steps:
            self.browser.press(key)
            self.assertEqual(self.browser.evaluate(name), wanted, key)
        self.assertEqual(self.count(".node[tabindex='0']"), 1)
        self.assertEqual(self.count(".node"), 4)
        self.assertEqual(self.count(".node[aria-expanded='false']"), 1)

    def test_reasoning_stands_apart_and_folds(self):
        self.stub.piece_seconds = 0.15
        self.open()
        self.ask("Why?")
        self.browser.wait_for("document.querySelector('details')?.open")
        self.browser.wait_for("document.querySelector('.content').innerText !== ''")
        self.assertEqual(self.browser.evaluate(
            "document.getElementById('messages').getAttribute('aria-busy')"), "true")
        self.wait_for_answers()
        self.assertFalse(self.browser.evaluate("document.querySelector('details').open"))
        self.assertEqual(self.browser.evaluate("document.querySelector('.reasoning').textContent"),
                         "They say <i>something</i> and wait.")
        self.assertTrue(self.text(".content").startswith("You said: Why?. 东京 <img src=x"))
        self.assertTrue(self.text(".facts").startswith("9 tokens · "))
        self.assertIn("1,152 of 1,234 remembered", self.text(".facts"))
        self.browser.evaluate("document.querySelector('summary').focus()")
        self.browser.press("Enter")
        self.browser.wait_for("document.querySelector('details').open")

    def test_a_conversation_goes_on_and_begins_anew(self):
        self.open()
        self.browser.wait_for("document.getElementById('stage').innerText === 'ready'")
        self.browser.evaluate("document.getElementById('thinking').value = 'disabled'")
        self.ask("one")
        self.wait_for_answers(1)
        self.ask("two")
        self.wait_for_answers(2)
        roles = [turn["role"] for turn in self.stub.bodies[1]["messages"]]
        self.assertEqual(roles, ["user", "assistant", "user"])
        self.assertTrue(self.stub.bodies[1]["messages"][1]["content"].startswith("You said: one"))
        self.assertEqual(self.stub.bodies[1]["model"], "deepseek-flash")
        self.assertEqual(self.stub.bodies[1]["thinking"], {"type": "disabled"})
        self.assertIs(self.stub.bodies[1]["stream"], True)
        self.browser.evaluate("document.getElementById('new-chat').click()")
        self.assertEqual(self.count(".message"), 0)
        self.ask("three")
        self.wait_for_answers(1)
        self.assertEqual(len(self.stub.bodies[2]["messages"]), 1)

    def test_escape_stops_and_leaves_the_server(self):
        self.open()
        self.ask("endless")
        self.browser.wait_for("document.querySelector('.content')?.innerText.includes('more more')")
        self.assertTrue(self.browser.evaluate("!document.getElementById('stop').hidden"))
        self.browser.press("Escape")
        self.wait_for_answers()
        self.assertTrue(self.stub.left.wait(10), "the request went on")
        self.assertIn("stopped", self.text(".facts"))
        self.assertIn("more", self.text(".content"))
        self.assertTrue(self.browser.evaluate("document.getElementById('stop').hidden"))
        self.ask("and then?")
        self.wait_for_answers(2)
        self.assertIn("more", self.stub.bodies[1]["messages"][1]["content"])

    def test_the_stop_button_is_reached_with_tab(self):
        self.open()
        self.ask("endless")
        self.browser.wait_for("!document.getElementById('stop').hidden")
        self.browser.press("Tab")
        self.assertEqual(self.focused(), "stop")
        self.browser.press("Enter")
        self.assertTrue(self.stub.left.wait(10), "the request went on")

    def test_says_what_the_server_refuses_and_keeps_the_message(self):
        self.open()
        self.ask("fail")
        self.browser.wait_for("document.querySelector('.trouble')")
        self.assertEqual(self.text(".trouble"), "The prompt is <b>too long</b>.")
        self.assertEqual(self.browser.evaluate("document.getElementById('prompt').value"), "fail")
        self.browser.errors.clear()  # the browser reports the status 400

    def test_says_that_an_answer_broke(self):
        self.open()
        self.ask("break")
        self.browser.wait_for("document.querySelector('.trouble')")
        self.assertEqual(self.text(".trouble"), "The model stands still.")

    def test_asks_for_a_key_and_keeps_it_for_the_tab_only(self):
        self.stub.key = "sk-right"
        self.open()
        self.browser.wait_for("document.getElementById('key-dialog').open")
        self.assertEqual(self.text("#stage"), "needs a key")
        self.assertEqual(self.focused(), "key")
        self.browser.type("sk-wrong")
        self.browser.press("Enter")
        self.browser.wait_for("document.getElementById('key-dialog').open && "
                              "document.getElementById('key-title').innerText.includes('not')")
        self.browser.type("sk-right")
        self.browser.press("Enter")
        self.browser.wait_for("document.getElementById('stage').innerText === 'ready'")
        self.ask("Hello")
        self.wait_for_answers()
        self.assertEqual(self.browser.evaluate("localStorage.length"), 0)
        self.assertIn("sk-right", self.browser.evaluate("JSON.stringify(sessionStorage)"))
        self.browser.errors.clear()  # the browser reports the status 401

    def test_comes_back_when_the_server_does(self):
        self.open()
        self.browser.wait_for("document.getElementById('stage').innerText === 'ready'")
        self.stub.is_down = True
        self.browser.wait_for("document.getElementById('stage').innerText === 'no connection'")
        self.stub.is_down = False
        self.browser.wait_for("document.getElementById('stage').innerText === 'ready'")
        self.browser.errors.clear()  # the browser reports the status 503

    def test_shows_how_far_loading_is(self):
        self.stub.stage = "loading"
        self.open()
        self.browser.wait_for("document.getElementById('stage').innerText === 'loading 42 %'")
        value = self.browser.evaluate("document.getElementById('loading-bar').value")
        self.assertAlmostEqual(value, 0.42)
        self.stub.stage = "draining"
        self.browser.wait_for("document.getElementById('stage').innerText === 'closing down'")
        self.assertTrue(self.browser.evaluate("document.getElementById('loading').hidden"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server")
    parser.add_argument("--screenshots")
    parser.add_argument("tests", nargs="*")
    parser.parse_args(namespace=OPTIONS)
    if devtools.find_program() is None:
        sys.exit("ui_test: no Chromium here; install chromium-headless-shell")
    unittest.main(argv=[sys.argv[0], *OPTIONS.tests], verbosity=1)


if __name__ == "__main__":
    main()
