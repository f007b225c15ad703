// The page itself: its key, its theme, and the question that it asks every second.
const kPollSeconds = 1;
const kMostRetrySeconds = 8;
const kKeyName = "locket-key";
const kThemeName = "locket-theme";
const kThemes = { "": "auto", light: "light", dark: "dark" };
// Also right where the server stands behind a longer path.
const kBase = location.pathname.replace(/\/(ui\/?)?$/, "/");

class Keyring {
  constructor(onChange) {
    this.onChange = onChange;
    this.key = recall("sessionStorage", kKeyName) ?? "";
    this.dialog = byId("key-dialog");
    byId("key-button").addEventListener("click", () => this.ask());
    byId("key-cancel").addEventListener("click", () => this.dialog.close());
    byId("key-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.key = byId("key").value.trim();
      remember("sessionStorage", kKeyName, this.key);
      this.dialog.close();
      this.onChange();
    });
  }

  ask() {
    byId("key-button").hidden = false;
    if (this.dialog.open) return;
    setText(byId("key-title"),
            this.key === "" ? "This server asks for a key" : "The key was not accepted");
    byId("key").value = "";
    this.dialog.showModal();
  }

  async request(path, options = {}) {
    const headers = { ...options.headers };
    if (this.key !== "") headers.Authorization = `Bearer ${this.key}`;
    const response = await fetch(kBase + path, { ...options, headers, cache: "no-store" });
    if (response.status === 401) this.ask();
    return response;
  }
}

class Poll {
  constructor(keyring, board) {
    this.keyring = keyring;
    this.board = board;
    this.timer = 0;
    this.isAsking = false;
    this.failures = 0;
    document.addEventListener("visibilitychange", () => this.ask());
  }

  // Nobody looks at a hidden page.
  async ask() {
    clearTimeout(this.timer);
    if (this.isAsking || document.hidden) return;
    this.isAsking = true;
    let isLocked = false;
    try {
      const path = `ui/state?prefixes=${this.board.prefixes}`;
      const response = await this.keyring.request(path, { signal: AbortSignal.timeout(8000) });
      isLocked = response.status === 401;
      if (isLocked) this.board.showStage("locked");
      else if (!response.ok) throw new Error(`status ${response.status}`);
      else this.board.show(await response.json());
      this.failures = 0;
    } catch {
      this.failures += 1;
      this.board.showStage("lost");
    }
    this.isAsking = false;
    const wait = Math.min(kMostRetrySeconds, kPollSeconds * 2 ** this.failures);
    if (!isLocked) this.timer = setTimeout(() => this.ask(), 1000 * wait);
  }
}

function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  setText(byId("theme-button"), `Theme: ${kThemes[theme]}`);
}

function startTheme() {
  const names = Object.keys(kThemes);
  let theme = recall("localStorage", kThemeName) ?? "";
  if (!names.includes(theme)) theme = "";
  applyTheme(theme);
  byId("theme-button").addEventListener("click", () => {
    theme = names[(names.indexOf(theme) + 1) % names.length];
    remember("localStorage", kThemeName, theme);
    applyTheme(theme);
  });
}

startTheme();
const board = new Board();
const keyring = new Keyring(() => poll.ask());
const poll = new Poll(keyring, board);
new Chat((path, options) => keyring.request(path, options), () => board.modelName || "locket");
poll.ask();
