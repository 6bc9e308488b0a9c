/* A page that runs: a worker makes steps, this draws what it saw. One request is under way at a time, so a slow step never piles up. */

const BUDGET = 24;  // ms of steps for a frame
const QUIET = 90;  // ms between two drawings of the plots

class Engine {
  constructor(text) {
    this.worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    this.waiting = new Map();
    this.number = 0;
    this.worker.onmessage = ({ data: { number, value, problem, memory } }) => {
      const { done, failed } = this.waiting.get(number);
      this.waiting.delete(number);
      problem ? failed(Object.assign(new Error(problem), { memory })) : done(value);
    };
    this.worker.onerror = (event) => { for (const { failed } of this.waiting.values()) failed(new Error(event.message)); };
  }

  ask(command, argument = {}) {
    return new Promise((done, failed) => {
      this.number += 1;
      this.waiting.set(this.number, { done, failed });
      this.worker.postMessage({ number: this.number, command, argument });
    });
  }
}

async function main() {
  const [programs, shown] = ["programs", "shown"].map((id) => JSON.parse(element(id).textContent));
  const engine = new Engine(element("worker").textContent), [{ controls, observables }] = programs;
  element("programs").textContent = "";
  element("name").querySelector("h1").textContent = shown.title;
  element("name").querySelector("p").textContent = [shown.subtitle, shown.undrawn].filter(Boolean).join(". ");
  await engine.ask("load", { programs, ends: shown.ends });

  const run = { k: 0, h: shown.step, trajectories: shown.trajectories, seed: shown.seed, parts: [] };
  const values = controls.map((control) => control.value), frames = [], names = programs.length > 1 ? programs.map((one) => one.name) : [];
  let playing = false, busy = false, stale = true, drawn = 1, owed = 0, last = 0, plotted = 0, pace = shown.steps, latest = null, limited = false, shots = 0;
  const settings = () => ({ trajectories: run.trajectories, step: run.h, seed: run.seed, values: [...values], drawn });  // as they are now: what is posted later must not see what is changed later
  key(names, element("key"));
  const plots = observables.map((one) => new Plot(one, names, element("plots")));

  let stage = null;
  if (shown.drawings) {
    const every = Math.max(1, Math.round(0.08 / run.h)), { found } = await engine.ask("rehearse", { settings: settings(), looks: 60, every, budget: 400 });
    const drawings = await Promise.all(shown.drawings.map((data) => LiveDrawing.read(data)));
    stage = await Stage.build(drawings, found.map((states) => states.filter((state, i) => !i || state.every(Number.isFinite))), names, () => { stale = true; });
  } else document.body.classList.add("plain");

  const lost = ({ failures: { count, step, trajectory } }, p) =>
    count ? `${names.length ? `${names[p]}: ` : ""}${count} of ${run.trajectories} trajectories failed; the first, number ${trajectory}, at step ${step}. A smaller step size may help.` : "";
  const show = (seen) => {
    if (!seen.k) {  // the first time of a run, and nothing of one before it
      plots.forEach((plot) => plot.clear());
      stage?.forget();
      element("trouble").style.display = "none";
    }
    latest = seen;
    run.k = seen.k;
    element("time").textContent = `t = ${short(seen.t, 5)} · step ${seen.k.toLocaleString("en")}`;
    const ended = seen.k === shown.ends, box = element("failed");
    const text = [...seen.runs.map(lost), ended ? `The path of the noise ends here, at step ${seen.k}.` : ""].filter(Boolean).join(" ");
    box.style.display = text ? "block" : "none";
    if (box.textContent !== text) box.textContent = text;
    if (ended && playing) play(false);
    plots.forEach((plot, i) => plot.add(seen.t, seen.runs.flatMap((one) => one.observed[i])));
    stage?.present(seen.runs);
    stale = true;
  };
  /* One request after the other. */
  let queue = Promise.resolve();
  const ask = (command, argument) => (queue = queue.then(() => engine.ask(command, argument)).then((seen) => { show(seen); return seen; }).catch((problem) => { play(false); trouble(problem); }));
  /* Parts are written down when the worker has answered, in the order of its answers, with the values that were sent to it. */
  const restart = () => {
    owed = 0;
    const begun = settings();
    return ask("restart", begun).then((seen) => {
      if (!seen) run.k = 0;
      run.parts = seen ? [{ from: 0, values: begun.values }] : [];
      plots.forEach((plot) => plot.draw());
    });
  };
  const change = (which, value) => {
    values[which] = value + 0;  // Python would not be told of a zero with a sign
    const now = [...values];
    return ask("change", { which, value: now[which], drawn }).then((seen) => {
      if (!seen) return;
      const part = run.parts[run.parts.length - 1];
      if (part.from === run.k) part.values = now;
      else { run.parts.push({ from: run.k, values: now }); plots.forEach((plot) => plot.mark(latest.t)); }
      plots.forEach((plot) => plot.draw());
    });
  };
  const play = (on) => {
    playing = on;
    owed = 0;
    element("play").textContent = on ? "\u2759\u2759" : "\u25b6";
    element("play").setAttribute("aria-label", on ? "pause" : "play");
  };
  const once = () => { play(false); return ask("run", { steps: 1, drawn }).then(() => plots.forEach((plot) => plot.draw())); };
  const paced = () => { element("paced").textContent = `${short(pace * run.h, 2)} time/s${limited ? ", at most" : ""}`; };

  // Sliders and their numbers.
  controls.forEach((control, i) => {
    const row = document.createElement("div"), label = document.createElement("label"), number = document.createElement("input"), slider = document.createElement("input");
    const name = control.entry === null ? control.name : `${control.name} [${control.entry}]`;
    row.className = "row";
    label.textContent = name;
    label.htmlFor = `number-${i}`;
    Object.assign(number, { id: `number-${i}`, type: "number", step: "any", value: control.value, inputMode: "decimal" });
    Object.assign(slider, { id: `slider-${i}`, type: "range", min: control.low, max: control.high, step: "any", value: control.value });
    slider.setAttribute("aria-label", name);
    slider.addEventListener("input", () => { const value = Number(Number(slider.value).toPrecision(4)); number.value = value; change(i, value); });
    slider.addEventListener("keydown", (event) => {  // with any step, arrows would move by one
      const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (!way) return;
      event.preventDefault();
      const value = Number(Math.min(control.high, Math.max(control.low, values[i] + (way * (control.high - control.low)) / 50)).toPrecision(4));
      slider.value = number.value = value;
      change(i, value);
    });
    number.addEventListener("change", () => { if (number.value !== "" && Number.isFinite(Number(number.value))) { slider.value = number.value; change(i, Number(number.value)); } else number.value = values[i]; });
    row.append(label, number, slider);
    element("sliders").append(row);
  });
  if (!controls.length) element("sliders-title").hidden = true;

  // The run.
  const setting = (id, value, read) => {
    element(id).value = value;
    element(id).addEventListener("change", () => { const found = read(element(id).value.trim()); if (found === null) element(id).value = run[{ step: "h" }[id] || id]; else { run[{ step: "h" }[id] || id] = found; choices(); restart(); paced(); } });
  };
  const choices = () => {
    const known = [1, 4, 9, 25, 100].filter((count) => count <= run.trajectories && count * (stage ? stage.bodies : Infinity) <= 4000), box = element("drawn");
    box.replaceChildren(...known.map((count) => new Option(count === 1 ? "draw one" : `draw ${count}`, count)));
    drawn = known.includes(drawn) ? drawn : 1;
    box.value = drawn;
    box.style.display = stage && known.length > 1 ? "" : "none";
    if (stage?.copied && stage.copied !== drawn) return draw(drawn);
  };
  const draw = async (count) => { drawn = count; element("drawn").value = count; await queue; await stage.copies(drawn); await ask("look", { drawn }); };
  setting("trajectories", run.trajectories, (text) => (/^[1-9][0-9]*$/.test(text) && Number(text) <= shown.most ? Number(text) : null));
  setting("step", run.h, (text) => (Number(text) > 0 && Number.isFinite(Number(text)) ? Number(text) : null));
  setting("seed", run.seed ?? "", (text) => (/^[0-9]{1,20}$/.test(text) && BigInt(text) < 2n ** 64n ? String(BigInt(text)) : null));  // 007 is no number of Python's
  element("trajectories").max = shown.most;
  if (run.seed === null) element("seed-row").style.display = "none";
  element("step").disabled = !shown.any_step;  // a path that was recorded with its step
  element("drawn").addEventListener("change", (event) => draw(Number(event.target.value)));
  element("pace").value = Math.log10(pace);
  element("pace").addEventListener("input", (event) => { pace = Math.round(10 ** Number(event.target.value)); paced(); });
  element("play").addEventListener("click", () => play(!playing));
  element("once").addEventListener("click", once);
  element("restart").addEventListener("click", restart);
  element("camera").addEventListener("click", () => { stage?.home(); });
  if (!stage) element("camera").style.display = "none";
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && event.target.tagName !== "BUTTON") { event.preventDefault(); play(!playing); }
    if (event.key === "ArrowRight") once();
    if (event.key === "r") restart();
  });
  const script = () => python(shown, programs, run);
  element("code").addEventListener("click", async () => { play(false); await queue; element("script").querySelector("pre").textContent = script(); element("copy").textContent = "copy"; element("script").showModal(); });
  element("close").addEventListener("click", () => element("script").close());
  element("copy").addEventListener("click", async () => {
    const text = element("script").querySelector("pre");
    try { await navigator.clipboard.writeText(text.textContent); } catch { getSelection().selectAllChildren(text); document.execCommand("copy"); }
    element("copy").textContent = "copied";
  });
  DARK.addEventListener("change", () => { stage?.paint(); plots.forEach((plot) => plot.draw()); stale = true; });

  choices();
  if (stage) { await stage.copies(drawn); stage.size(); new ResizeObserver(() => { stage.size(); stale = true; }).observe(element("stage")); }
  await restart();
  stage?.home();
  paced();
  new ResizeObserver(() => plots.forEach((plot) => plot.draw())).observe(element("side"));

  const tick = (now) => {
    requestAnimationFrame(tick);
    const passed = Math.min(now - last, 200) / 1000;
    last = now;
    if (playing && !busy) {
      owed += passed * pace;
      const steps = Math.floor(owed);
      if (steps) {
        busy = true;
        owed -= steps;
        frames.push(now);
        if (frames.length > 120) frames.shift();
        shots += 1;
        ask("advance", { steps, budget: BUDGET, drawn }).then((seen) => {
          busy = false;
          const slow = Boolean(seen) && seen.made < 0.9 * steps;
          if (slow !== limited) { limited = slow; paced(); }
        });
      }
    }
    const full = stage && !playing && stage.share < 1;
    if (!stale && !full) return;
    stale = false;
    stage?.adapt(playing, Math.min(1000 * passed, 200));
    stage?.draw();
    if (now - plotted > QUIET) { plotted = now; plots.forEach((plot) => plot.draw()); } else stale = playing;
  };
  requestAnimationFrame(tick);
  // What a test, or a curious reader, may ask the page.
  window.bismut = { ready: true, run: (steps) => ask("run", { steps, drawn }), states: (which = 0) => engine.ask("states", { which }), script, restart, change, play, state: () => ({ ...run, t: latest.t, values, observed: latest.runs[0].observed, failures: latest.runs[0].failures, runs: latest.runs }), plots, rate: () => (frames.length > 1 ? (1000 * (frames.length - 1)) / (frames[frames.length - 1] - frames[0]) : 0), frames: () => shots, draw };
}

function trouble(problem) {
  element("trouble").style.display = "grid";
  element("trouble").textContent = problem.memory ? `This browser has no memory for that many trajectories (${problem.message}). Choose fewer, or restart.` : `This page needs a browser with WebAssembly SIMD, WebGL 2 and DecompressionStream (Chrome 91, Firefox 113, Safari 16.4 or newer). ${problem}`;
  console.error(problem);
}

main().catch(trouble);
