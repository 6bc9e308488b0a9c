/* Observables as they come: mean, spread (one standard deviation) and error of the mean over trajectories; how they are distributed; how far what
   should stay has drifted. History is kept at up to 512 times: when it is full, every second one is dropped. */

const KEPT = 512;
const short = (x, digits = 4) => {
  if (!Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  return (size >= 1e5 || size < 1e-3 ? x.toExponential(Math.max(0, digits - 2)).replace("e+", "e") : String(Number(x.toPrecision(digits)))).replace("-", "−");
};

/* Mean, standard deviation and standard error of the finite ones. */
function statistics(values) {
  let n = 0, mean = 0, square = 0;
  for (const x of values) if (Number.isFinite(x)) { n += 1; const d = x - mean; mean += d / n; square += d * (x - mean); }
  const spread = n > 1 ? Math.sqrt(square / (n - 1)) : 0;
  return n ? { n, mean, spread, error: spread / Math.sqrt(n) } : { n, mean: NaN, spread: NaN, error: NaN };
}

/* Which scheme has which colour; nothing where there is one. */
function key(names, home) {
  const paint = () => home.replaceChildren(...names.map((name, p) => {
    const item = document.createElement("li"), line = document.createElement("i");
    line.style.background = palette().series[p % palette().series.length];
    item.append(line, name);
    return item;
  }));
  home.style.display = names.length ? "flex" : "none";
  DARK.addEventListener("change", paint);
  paint();
}

/* Curves of one observable: its components, of one scheme after the other. Colours are components where there is one scheme, and schemes where there
   are several. */
class Plot {
  constructor(data, names, home) {
    Object.assign(this, { data, names, kind: data.kept ? "drift" : "time", size: data.size * Math.max(1, names.length) });
    const card = document.createElement("div"), header = document.createElement("header"), name = document.createElement("b");
    card.className = "plot";
    name.textContent = data.name;
    this.output = document.createElement("output");
    this.output.setAttribute("aria-live", "off");  // rewritten eleven times a second; whoever wants to hear it goes there
    this.select = document.createElement("select");
    this.select.setAttribute("aria-label", `how ${data.name} is plotted`);
    for (const [kind, label] of [["time", "over time"], ["histogram", "histogram"], ["drift", "drift"]]) this.select.add(new Option(label, kind));
    this.select.value = this.kind;
    this.select.addEventListener("change", () => { this.kind = this.select.value; this.draw(); });
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    header.append(name, this.output, this.select);
    card.append(header, this.canvas);
    home.append(card);
    this.clear();
  }

  clear() { Object.assign(this, { history: [], stride: 1, skipped: 0, first: null, point: null, now: null, marks: [] }); }

  /* `values`: (components, trajectories). */
  add(t, values) {
    this.first ||= values;
    this.now = values;
    this.t = t;
    const drift = values.map((component, i) => component.reduce((most, x, k) => (Number.isFinite(x) ? Math.max(most, Math.abs(x - this.first[i][k])) : most), 0));
    this.point = { t, of: values.map(statistics), drift };
    const last = this.history[this.history.length - 1];
    if (last && t <= last.t) return;
    if (this.skipped > 0) { this.skipped -= 1; return; }
    this.history.push(this.point);
    this.skipped = this.stride - 1;
    if (this.history.length >= KEPT) { this.history = this.history.filter((_, i) => i % 2 === 0); this.stride *= 2; }
  }

  mark(t) { this.marks.push(t); }

  /* What is plotted, in words and for those who do not see it. */
  text() {
    if (!this.names.length) return this.words(0, this.size);
    return this.names.map((name, p) => `${name}: ${this.words(p * this.data.size, (p + 1) * this.data.size)}`).join("; ");
  }

  words(from, to) {
    const of = this.point.of.slice(from, to), drift = this.point.drift.slice(from, to);
    if (this.kind === "drift") return `drift ${short(Math.max(...drift), 3)}`;
    return of.map((one) => (one.n > 1 ? `${short(one.mean)} ± ${short(one.error, 2)}` : short(one.mean))).slice(0, 3).join(", ") + (of.length > 3 ? " …" : "");
  }

  colour(c) { const { series } = palette(); return series[(this.names.length ? Math.floor(c / this.data.size) : c) % series.length]; }

  dash(c) { return DASHES[(c % this.data.size) % DASHES.length]; }

  draw() {
    if (!this.point) return;
    const ratio = window.devicePixelRatio || 1, width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    this.output.textContent = this.text();
    this.canvas.setAttribute("aria-label", `${this.data.name}, ${this.select.selectedOptions[0].textContent}: ${this.text()} at t = ${short(this.t)}`);
    if (!width) return;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) { this.canvas.width = Math.round(width * ratio); this.canvas.height = Math.round(height * ratio); }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    this.frame = { pen, left: 46, right: width - 4, top: 8, bottom: height - 18 };
    ({ time: () => this.overTime(), histogram: () => this.histogram(), drift: () => this.drift() })[this.kind]();
  }

  axes([x0, x1], [y0, y1], xs, ys, label = (y) => short(y, 3)) {
    const { pen, left, right, top, bottom } = this.frame, colours = palette();
    const X = (x) => left + ((x - x0) / (x1 - x0 || 1)) * (right - left), Y = (y) => bottom - ((y - y0) / (y1 - y0 || 1)) * (bottom - top);
    pen.lineWidth = 1; pen.strokeStyle = colours.rule; pen.fillStyle = colours.soft; pen.setLineDash([]);
    pen.textAlign = "right"; pen.textBaseline = "middle";
    for (const y of ys) { pen.beginPath(); pen.moveTo(left, Math.round(Y(y)) + 0.5); pen.lineTo(right, Math.round(Y(y)) + 0.5); pen.stroke(); pen.fillText(label(y), left - 6, Y(y)); }
    pen.textBaseline = "alphabetic";
    for (const x of xs) { pen.textAlign = X(x) > right - 12 ? "right" : X(x) < left + 8 ? "left" : "center"; pen.fillText(short(x, 4), X(x), bottom + 14); }
    this.scales = { X, Y };
    return { pen, X, Y };
  }

  curve(pen, points, colour, dash = []) {
    pen.beginPath();
    let on = false;
    for (const [x, y] of points) { if (!Number.isFinite(y)) { on = false; continue; } on ? pen.lineTo(x, y) : pen.moveTo(x, y); on = true; }
    if (points.length === 1 && on) { pen.arc(points[0][0], points[0][1], 1.5, 0, 7); pen.setLineDash([]); }  // one time is no line yet
    pen.strokeStyle = colour; pen.lineWidth = 1.5; pen.lineJoin = "round"; pen.setLineDash(dash); pen.stroke(); pen.setLineDash([]);
  }

  band(pen, upper, lower, colour, alpha) {
    const fine = upper.map((p, i) => [p, lower[i]]).filter(([a, b]) => Number.isFinite(a[1]) && Number.isFinite(b[1]));
    if (fine.length < 2) return;
    pen.beginPath();
    fine.forEach(([a], i) => (i ? pen.lineTo(...a) : pen.moveTo(...a)));
    for (const [, b] of fine.reverse()) pen.lineTo(...b);
    pen.globalAlpha = alpha; pen.fillStyle = colour; pen.fill(); pen.globalAlpha = 1;
  }

  points() { const last = this.history[this.history.length - 1]; return last === this.point ? this.history : [...this.history, this.point]; }

  overTime() {
    const all = this.points(), flat = all.flatMap(({ of }) => of.flatMap((one) => [one.mean - one.spread, one.mean + one.spread])).filter(Number.isFinite);
    const [low, high] = padded(Math.min(...flat), Math.max(...flat)), t0 = all[0].t, t1 = Math.max(all[all.length - 1].t, t0 + 1e-9);
    const { pen, X, Y } = this.axes([t0, t1], [low, high], ticks(t0, t1, 4), ticks(low, high, 3));
    this.marked(pen, X, t0, t1);
    for (let c = 0; c < this.size; c++) {
      const at = (shift) => all.map(({ t, of }) => [X(t), Y(of[c].mean + shift(of[c]))]), colour = this.colour(c);
      if (this.now[c].length > 1) {
        this.band(pen, at((one) => one.spread), at((one) => -one.spread), colour, 0.14);
        this.band(pen, at((one) => one.error), at((one) => -one.error), colour, 0.3);
      }
      this.curve(pen, at(() => 0), colour, this.dash(c));
    }
  }

  /* How far the worst trajectory is from where it began; powers of ten. */
  drift() {
    const all = this.points(), floor = 1e-17, log = (x) => Math.log10(Math.max(x, floor));
    const flat = all.flatMap(({ drift }) => drift.map(log)), high = Math.ceil(Math.max(...flat, -15) + 0.2), low = Math.min(-17, high - 3), t0 = all[0].t, t1 = Math.max(all[all.length - 1].t, t0 + 1e-9);
    const every = Math.max(1, Math.ceil((high - low) / 3)), rows = Array.from({ length: 1 + Math.floor((high - low) / every) }, (_, i) => high - i * every);
    const { pen, X, Y } = this.axes([t0, t1], [low, high], ticks(t0, t1, 4), rows, (y) => (y <= low ? "0" : `1e${String(y).replace("-", "−")}`));
    this.marked(pen, X, t0, t1);
    for (let c = 0; c < this.size; c++) this.curve(pen, all.map(({ t, drift }) => [X(t), Y(log(drift[c]))]), this.colour(c), this.dash(c));
  }

  /* Over trajectories now, or where these are few, over the times that are kept: (curves, bins), each with an area of 1. */
  bins() {
    const many = this.now[0].length >= 30;
    const values = this.now.map((component, c) => [...(many ? component : this.points().map(({ of }) => of[c].mean))].filter(Number.isFinite));
    const flat = values.flat(), [low, high] = padded(Math.min(...flat), Math.max(...flat)), bins = Math.max(8, Math.min(40, Math.round(2 * Math.cbrt(values[0].length))));
    const heights = values.map((component) => {
      const counts = new Array(bins).fill(0);
      for (const x of component) counts[Math.min(bins - 1, Math.floor(((x - low) / (high - low)) * bins))] += 1;
      return counts.map((n) => (n * bins) / (Math.max(1, component.length) * (high - low)));
    });
    return { many, low, high, bins, heights };
  }

  histogram() {
    const { many, low, high, bins, heights } = this.bins();
    const most = Math.max(...heights.flat(), 1e-300);
    const { pen, X, Y } = this.axes([low, high], [0, 1.08 * most], ticks(low, high, 4), ticks(0, 1.08 * most, 2));
    heights.forEach((row, c) => {
      const outline = row.flatMap((y, i) => [[X(low + (i * (high - low)) / bins), Y(y)], [X(low + ((i + 1) * (high - low)) / bins), Y(y)]]);
      this.band(pen, outline, outline.map(([x]) => [x, Y(0)]), this.colour(c), 0.18);
      this.curve(pen, outline, this.colour(c), this.dash(c));
    });
    pen.fillStyle = palette().soft; pen.textAlign = "right";
    pen.fillText(many ? `${this.now[0].length} trajectories, now` : `${this.points().length} times`, this.frame.right - 2, this.frame.top + 8);
  }

  /* Where a parameter was changed. */
  marked(pen, X, t0, t1) {
    pen.strokeStyle = palette().soft; pen.setLineDash([2, 3]); pen.lineWidth = 1;
    for (const t of this.marks.filter((t) => t >= t0 && t <= t1)) { pen.beginPath(); pen.moveTo(X(t), this.frame.top); pen.lineTo(X(t), this.frame.bottom); pen.stroke(); }
    pen.setLineDash([]);
  }
}

const DASHES = [[], [6, 3], [6, 3, 2, 3], [2, 2], [9, 3, 2, 3], [3, 3]];

function padded(low, high) {
  if (!(Number.isFinite(low) && Number.isFinite(high))) return [0, 1];
  const span = high - low, least = 1e-9 * Math.max(Math.abs(low), Math.abs(high)) || 1e-9;
  return span < least ? [low - Math.max(least, Math.abs(low) * 0.02), high + Math.max(least, Math.abs(high) * 0.02)] : [low - 0.06 * span, high + 0.06 * span];
}

/* About so many round numbers between two others. */
function ticks(low, high, many) {
  const rough = (high - low) / many, size = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map((k) => k * size).find((k) => k >= rough), found = [];
  for (let x = Math.ceil(low / step) * step; x <= high + 1e-9 * step; x += step) found.push(Math.abs(x) < 1e-9 * step ? 0 : x);
  return found;
}
