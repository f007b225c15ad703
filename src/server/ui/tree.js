// The prefixes as a tree. A row is a run of tokens without a fork; its bar lies where those tokens
// stand in their prompts. Only one row can be reached with Tab, the arrow keys go on from there.
const kOpenDepth = 3;

class PrefixTree {
  constructor(place) {
    this.place = place;
    this.roots = [];
    this.folds = new Map();  // name: whether it is open, where the user has said so
    this.current = null;     // name
    this.longest = 1;
    place.addEventListener("keydown", (event) => this.onKey(event));
    place.addEventListener("click", (event) => this.onClick(event));
  }

  show(nodes) {
    const items = nodes.map((node) => ({ ...node, children: [], above: null, start: 0 }));
    this.roots = [];
    this.longest = 1;
    for (const item of items) {
      item.above = items[item.parent] ?? null;
      item.depth = item.above ? item.above.depth + 1 : 0;
      item.start = item.above ? item.above.start + item.above.tokens : 0;
      (item.above ? item.above.children : this.roots).push(item);
      this.longest = Math.max(this.longest, item.start + item.tokens);
    }
    this.draw();
  }

  isOpen(item) {
    return this.folds.get(item.name) ?? item.depth + 1 < kOpenDepth;
  }

  visible(list = this.roots, found = []) {
    list.forEach((item, index) => {
      found.push({ item, index, count: list.length });
      if (item.children.length > 0 && this.isOpen(item)) this.visible(item.children, found);
    });
    return found;
  }

  draw() {
    const hadFocus = this.place.contains(document.activeElement);
    this.rows = this.visible();
    if (!this.rows.some((row) => row.item.name === this.current)) {
      this.current = this.rows[0]?.item.name ?? null;
    }
    fillList(this.place, this.rows, () => this.makeRow(), (row, entry) => this.fillRow(row, entry));
    if (hadFocus) this.focusCurrent();
  }

  makeRow() {
    const row = make("div", "node");
    row.setAttribute("role", "treeitem");
    const who = make("span", "who");
    who.append(make("span", "fold"), make("code"), make("span", "tag live", "in use"),
               make("span", "tag", "pinned"));
    const track = make("span", "track");
    track.append(make("span"));
    row.append(who, track, make("span", "number strong"), make("span", "number"),
               make("span", "number age"));
    return row;
  }

  fillRow(row, { item, index, count }) {
    const hasChildren = item.children.length > 0;
    const isOpen = hasChildren && this.isOpen(item);
    row.dataset.name = item.name;
    row.tabIndex = item.name === this.current ? 0 : -1;
    row.setAttribute("aria-level", item.depth + 1);
    row.setAttribute("aria-posinset", index + 1);
    row.setAttribute("aria-setsize", count);
    if (hasChildren) row.setAttribute("aria-expanded", isOpen);
    else row.removeAttribute("aria-expanded");
    const [who, track, tokens, bytes, age] = row.children;
    const [fold, name, live, pinned] = who.children;
    who.style.paddingLeft = `${item.depth * 14}px`;
    fold.className = hasChildren ? "fold can" : "fold";
    setText(fold, hasChildren ? (isOpen ? "▾" : "▸") : "");
    setText(name, item.name.slice(0, 8));
    live.hidden = !item.in_use;
    pinned.hidden = !item.pinned;
    const bar = track.firstChild;
    bar.className = item.ram_bytes > 0 ? (item.disk_bytes > 0 ? "both" : "ram") : "disk";
    bar.style.left = `${(100 * item.start) / this.longest}%`;
    bar.style.width = `${(100 * item.tokens) / this.longest}%`;
    setText(tokens, formatCount(item.tokens));
    setText(bytes, formatBytes(Math.max(item.ram_bytes, item.disk_bytes)));
    setText(age, formatAge(item.age_seconds));
    row.setAttribute("aria-label", this.describe(item));
    row.title = this.describe(item);
  }

  describe(item) {
    const places = [];
    if (item.ram_bytes > 0) places.push(`${formatBytes(item.ram_bytes)} in RAM`);
    if (item.disk_bytes > 0) places.push(`${formatBytes(item.disk_bytes)} on disk`);
    const parts = [item.name, `tokens ${formatCount(item.start)} to ` +
                   formatCount(item.start + item.tokens), ...places];
    if (item.age_seconds > 0) parts.push(`used ${formatAge(item.age_seconds)} ago`);
    if (item.in_use) parts.push("in use");
    if (item.pinned) parts.push("pinned");
    return parts.join(", ");
  }

  focusCurrent() {
    const index = this.rows.findIndex((row) => row.item.name === this.current);
    this.place.children[index]?.focus();
  }

  moveTo(item) {
    if (!item) return;
    this.current = item.name;
    this.draw();
    this.focusCurrent();
  }

  fold(item, isOpen) {
    this.folds.set(item.name, isOpen);
    this.moveTo(item);
  }

  onKey(event) {
    const at = this.rows.findIndex((row) => row.item.name === this.current);
    if (at < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    const item = this.rows[at].item;
    const isOpen = item.children.length > 0 && this.isOpen(item);
    const steps = {
      ArrowDown: () => this.moveTo(this.rows[at + 1]?.item),
      ArrowUp: () => this.moveTo(this.rows[at - 1]?.item),
      Home: () => this.moveTo(this.rows[0].item),
      End: () => this.moveTo(this.rows.at(-1).item),
      ArrowRight: () => (isOpen ? this.moveTo(item.children[0]) : this.fold(item, true)),
      ArrowLeft: () => (isOpen ? this.fold(item, false) : this.moveTo(item.above)),
      Enter: () => this.fold(item, !isOpen),
      " ": () => this.fold(item, !isOpen),
    };
    if (!Object.hasOwn(steps, event.key)) return;
    event.preventDefault();
    steps[event.key]();
  }

  onClick(event) {
    const row = event.target.closest(".node");
    if (!row) return;
    const { item } = this.rows.find((entry) => entry.item.name === row.dataset.name);
    if (event.target.closest(".fold.can")) this.fold(item, !this.isOpen(item));
    else this.moveTo(item);
  }
}
