// Elements, and numbers as people read them.
const byId = (id) => document.getElementById(id);

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

// Only what differs is written, so that a screen reader hears of changes only.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// As many elements as entries, old ones used again.
function fillList(parent, entries, create, update) {
  while (parent.children.length > entries.length) parent.lastElementChild.remove();
  entries.forEach((entry, index) => {
    if (index >= parent.children.length) parent.append(create());
    update(parent.children[index], entry);
  });
}

const kWhole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const kOneDigit = new Intl.NumberFormat("en-US", {
  minimumFractionDigits: 1, maximumFractionDigits: 1,
});

function formatCount(value) {
  return kWhole.format(value);
}

function formatShort(value) {
  if (value < 10000) return kWhole.format(value);
  if (value < 1e6) return `${kOneDigit.format(value / 1e3)} k`;
  if (value < 1e9) return `${kOneDigit.format(value / 1e6)} M`;
  return `${kOneDigit.format(value / 1e9)} G`;
}

function formatRate(value) {
  if (value === null) return "–";
  return value < 99.95 ? kOneDigit.format(value) : formatShort(value);
}

function formatShare(value) {
  if (value === null) return "–";
  const percent = value * 100;
  const isRounded = percent === 0 || percent === 100;
  return `${isRounded ? kWhole.format(percent) : kOneDigit.format(percent)} %`;
}

function formatBytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  const isWhole = unit === 0 || value >= 99.95;
  return `${isWhole ? kWhole.format(value) : kOneDigit.format(value)} ${units[unit]}`;
}

function formatAge(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.05) return "now";
  if (seconds < 9.95) return `${kOneDigit.format(seconds)} s`;
  if (seconds < 90) return `${kWhole.format(seconds)} s`;
  if (seconds < 5400) return `${kWhole.format(seconds / 60)} min`;
  if (seconds < 129600) return `${kWhole.format(seconds / 3600)} h`;
  return `${kWhole.format(seconds / 86400)} d`;
}

// `largest`: of the column, so that its points stand below each other.
function formatMoney(value, largest) {
  const digits = largest < 0.01 ? 6 : largest < 1 ? 4 : largest < 100 ? 3 : 2;
  return `$${value.toLocaleString("en-US", {
    minimumFractionDigits: digits, maximumFractionDigits: digits,
  })}`;
}

function plural(count, one, many) {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

// What a browser may refuse to keep is forgotten.
function remember(storage, name, value) {
  try {
    if (value) window[storage].setItem(name, value);
    else window[storage].removeItem(name);
  } catch {
    return;
  }
}

function recall(storage, name) {
  try {
    return window[storage].getItem(name);
  } catch {
    return null;
  }
}
