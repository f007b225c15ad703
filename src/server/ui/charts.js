// Sums since the server's start, sampled; rates are what differs between two samples. And the
// small curves that show them.
const kSvg = "http://www.w3.org/2000/svg";
const kKeptSeconds = 120;
const kRateSeconds = 5;
const kHitSeconds = 60;

class History {
  constructor() {
    this.samples = [];
  }

  add(sample) {
    const last = this.samples.at(-1);
    if (last) {
      const isRestart = sample.written < last.written || sample.read < last.read;
      if (isRestart || sample.time <= last.time) this.samples = [];
    }
    this.samples.push({ ...sample, hitShare: null });
    while (this.samples[0].time < sample.time - kKeptSeconds) this.samples.shift();
    this.samples.at(-1).hitShare = this.hitShare();
  }

  // The sample `seconds` before the last one, or the next best.
  before(seconds) {
    const last = this.samples.at(-1);
    const old = this.samples.findLast((sample) => sample.time <= last.time - seconds);
    return old ?? this.samples[0];
  }

  rate(field) {
    const last = this.samples.at(-1);
    const first = this.before(kRateSeconds);
    if (!last || last === first) return null;
    return (last[field] - first[field]) / (last.time - first.time);
  }

  // Of the prompt tokens of the last minute, those that were remembered.
  hitShare() {
    const last = this.samples.at(-1);
    const first = this.before(kHitSeconds);
    const hit = last.hit - first.hit;
    const all = hit + last.read - first.read;
    return all > 0 ? hit / all : null;
  }

  rates(field) {
    return this.samples.slice(1).map((sample, index) => {
      const before = this.samples[index];
      return (sample[field] - before[field]) / (sample.time - before.time);
    });
  }

  hitShares() {
    const known = this.samples.findIndex((sample) => sample.hitShare !== null);
    return known < 0 ? [] : this.samples.slice(known).map((sample) => sample.hitShare ?? 0);
  }
}

// `most`: the value at the upper edge; without it the largest one.
function drawSpark(place, values, most) {
  if (!place.firstChild) {
    const svg = document.createElementNS(kSvg, "svg");
    svg.setAttribute("viewBox", "0 0 100 100");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    for (const name of ["area", "line"]) {
      const path = document.createElementNS(kSvg, "path");
      path.setAttribute("class", name);
      svg.append(path);
    }
    place.append(svg);
  }
  const [area, line] = place.firstChild.children;
  const top = most ?? Math.max(...values, 1e-9);
  const step = 100 / (kKeptSeconds - 1);
  const start = 100 - step * (values.length - 1);
  const points = values.map((value, index) =>
    `${(start + index * step).toFixed(2)} ${(98 - 96 * Math.min(1, value / top)).toFixed(2)}`);
  const curve = points.length > 1 ? `M${points.join("L")}` : "";
  line.setAttribute("d", curve);
  area.setAttribute("d", curve && `${curve}L100 100L${start.toFixed(2)} 100Z`);
}
