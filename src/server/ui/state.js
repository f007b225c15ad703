// What the server says of itself, on the page.
const kStageText = {
  connecting: "connecting", loading: "loading", ready: "ready", draining: "closing down",
  failed: "failed", lost: "no connection", locked: "needs a key",
};

class Board {
  constructor() {
    this.history = new History();
    this.tree = new PrefixTree(byId("tree"));
    this.prefixes = 0;  // version of what the tree shows
    this.modelName = "";
  }

  showStage(stage, progress) {
    const place = byId("stage");
    place.dataset.stage = stage;
    const percent = stage === "loading" ? ` ${Math.floor(progress * 100)} %` : "";
    setText(place, kStageText[stage] + percent);
    byId("loading").hidden = stage !== "loading";
    byId("loading-bar").value = progress ?? 0;
  }

  show(state) {
    this.showModel(state.model);
    this.showRates(state);
    this.showRequests(state);
    this.showMemory(state.memory);
    this.showPrefixes(state.prefixes);
    this.showBill(state);
  }

  showModel(model) {
    this.modelName = model.name;
    this.showStage(model.stage, model.progress);
    setText(byId("model-name"), model.name || "–");
    const facts = [];
    if (model.context_tokens > 0) facts.push(`${formatCount(model.context_tokens)} tokens`);
    if (model.numerics) facts.push(model.numerics);
    if (model.version) facts.push(model.version);
    setText(byId("model-facts"), facts.join(" · "));
    const title = model.name ? `${model.name} – Locket` : "Locket";
    if (document.title !== title) document.title = title;
  }

  showRates({ time, load }) {
    const history = this.history;
    history.add({ time, written: load.generated_tokens, read: load.prompt_tokens,
                  hit: load.hit_tokens });
    setText(byId("written-rate"), formatRate(history.rate("written")));
    setText(byId("written-total"), `${formatShort(load.generated_tokens)} since the start`);
    drawSpark(byId("written-spark"), history.rates("written"));
    setText(byId("read-rate"), formatRate(history.rate("read")));
    setText(byId("read-total"), `${formatShort(load.prompt_tokens)} computed`);
    drawSpark(byId("read-spark"), history.rates("read"));
    setText(byId("hit-rate"), formatShare(history.hitShare()));
    const all = load.hit_tokens + load.prompt_tokens;
    const share = all > 0 ? load.hit_tokens / all : null;
    setText(byId("hit-total"), `${formatShare(share)} since the start`);
    drawSpark(byId("hit-spark"), history.hitShares(), 1);
  }

  showRequests({ requests, request_count: count, load }) {
    const parts = [`${formatCount(load.running)} running`, `${formatCount(load.queued)} waiting`];
    if (load.paused > 0) parts.push(`${formatCount(load.paused)} paused`);
    if (load.preemptions > 0) {
      parts.push(plural(load.preemptions, "preemption", "preemptions"));
    }
    if (count > requests.length) parts.push(`${formatCount(requests.length)} shown`);
    setText(byId("requests-count"), parts.join(" · "));
    byId("requests").hidden = requests.length === 0;
    byId("requests-legend").hidden = requests.length === 0;
    byId("requests-empty").hidden = requests.length > 0;
    fillList(byId("request-rows"), requests, makeRequestRow, fillRequestRow);
  }

  showMemory(memory) {
    const hasModel = memory.bytes_per_token > 0;
    const isMeasured = memory.measured_bytes_per_token > 0;
    const bytes = isMeasured ? memory.measured_bytes_per_token : memory.bytes_per_token;
    setText(byId("token-bytes"), hasModel ? formatCount(bytes) : "–");
    setText(byId("token-bytes-kind"), isMeasured ? "measured" : "in full pages");
    const room = memory.ram_budget_bytes / memory.bytes_per_token;
    const foot = `${formatCount(memory.bytes_per_token)} in full pages, room for ${formatShort(room)}`;
    setText(byId("token-bytes-foot"), hasModel ? foot : "");
    showMeter("ram", memory.ram_used_bytes, memory.ram_budget_bytes);
    showMeter("disk", memory.disk_used_bytes, memory.disk_quota_bytes);
    const notes = [`${formatBytes(memory.disk_written_bytes)} written`];
    const evicted = memory.ram_evictions + memory.disk_evictions;
    if (evicted > 0) notes.push(`${formatCount(evicted)} evicted`);
    if (memory.disk_corrupt > 0) notes.push(`${formatCount(memory.disk_corrupt)} damaged`);
    setText(byId("memory-notes"), notes.join(" · "));
  }

  showPrefixes(prefixes) {
    if (!prefixes.nodes) return;
    this.prefixes = prefixes.version;
    this.tree.show(prefixes.nodes);
    const shown = plural(prefixes.nodes.length, "run of tokens", "runs of tokens");
    const more = prefixes.left_out > 0 ? `, ${formatCount(prefixes.left_out)} smaller ones` : "";
    setText(byId("tree-count"), shown + more + (prefixes.complete ? "" : ", and more"));
    byId("tree").hidden = prefixes.nodes.length === 0;
    byId("tree-legend").hidden = prefixes.nodes.length === 0;
    byId("tree-empty").hidden = prefixes.nodes.length > 0;
  }

  showBill({ days, callers }) {
    const sum = (bill) => bill.hit + bill.miss + bill.output;
    const newest = days.at(-1);
    setText(byId("bill-today"), newest ? `${formatMoney(sum(newest), sum(newest))} on ${newest.day}` : "");
    byId("bill").hidden = !newest;
    byId("bill-empty").hidden = Boolean(newest);
    const largest = Math.max(...days.map(sum));
    const fill = (row, bill) => {
      const cells = [bill.day ?? (bill.name || "(no key)"), formatCount(bill.requests),
                     ...[bill.hit, bill.miss, bill.output, sum(bill)].map(
                       (value) => formatMoney(value, largest))];
      cells.forEach((text, index) => setText(row.children[index], text));
    };
    fillList(byId("bill-days"), days, makeBillRow, fill);
    const isOneWithoutKey = callers.length === 1 && callers[0].name === "";
    fillList(byId("bill-callers"), isOneWithoutKey ? [] : callers, makeBillRow, fill);
  }
}

function makeRequestRow() {
  const row = make("tr");
  const prompt = make("td", "wide");
  const track = make("div", "track");
  track.append(make("span", "hit"), make("span", "read"));
  prompt.append(track);
  const state = make("td");
  state.append(make("span", "state"));
  row.append(make("td", "label"), state, prompt, make("td", "number tokens"),
             make("td", "number written"), make("td", "number"));
  for (const cell of row.children) cell.setAttribute("role", "cell");
  row.setAttribute("role", "row");
  return row;
}

function fillRequestRow(row, request) {
  const [label, state, prompt, tokens, written, age] = row.children;
  setText(label, request.label || `#${request.id}`);
  state.firstChild.className = `state ${request.stage}`;
  setText(state.firstChild, request.stage);
  const all = Math.max(1, request.prompt_tokens);
  const hit = Math.min(request.hit_tokens, all);
  const read = Math.max(0, Math.min(request.read_tokens, all) - hit);
  const track = prompt.firstChild;
  track.title = `${formatCount(hit)} remembered, ${formatCount(read)} computed of ` +
                `${formatCount(request.prompt_tokens)} tokens`;
  track.setAttribute("role", "img");
  track.setAttribute("aria-label", track.title);
  track.children[0].style.width = `${(100 * hit) / all}%`;
  track.children[1].style.left = `${(100 * hit) / all}%`;
  track.children[1].style.width = `${(100 * read) / all}%`;
  setText(tokens, formatCount(request.prompt_tokens));
  setText(written, formatCount(request.completion_tokens));
  setText(age, formatAge(request.age_seconds));
}

function makeBillRow() {
  const row = make("tr");
  row.append(make("td", "label"));
  for (let cell = 0; cell < 5; cell += 1) row.append(make("td", "number"));
  return row;
}

// A limit of 0: there is none.
function showMeter(name, used, limit) {
  const share = limit > 0 ? Math.min(1, used / limit) : 0;
  byId(`${name}-bar`).style.width = used > 0 ? `max(3px, ${100 * share}%)` : "0";
  const of = limit > 0 ? `of ${formatBytes(limit)}` : "without a limit";
  setText(byId(`${name}-amount`), `${formatBytes(used)} ${of}`);
}
