"use strict";
/* The engine of a page: a WebAssembly module, its memory, and how it is called; what `engines/native/engine.py` is for the processor.

   (entries, n)  trajectories side by side, n a multiple of the vector's width      (n, entries)  one after the other, where lanes are bodies

   Functions are called with one table of addresses and whole numbers, 64 bits each. */

const ARRAYS = { float64: Float64Array, float32: Float32Array, int64: BigInt64Array, uint64: BigUint64Array, int32: Int32Array, uint32: Uint32Array, int16: Int16Array, uint16: Uint16Array, int8: Int8Array, uint8: Uint8Array, bool: Uint8Array };
const FULL = 0, WRONG = 1, DONE = 2, FIRST = 64, PAGE = 65536;
const count = (leaf) => leaf.shape.reduce((product, side) => product * side, 1);
const unpacked = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const read = (text, dtype) => new ARRAYS[dtype](unpacked(text).buffer);

/* One module with its memory. What is laid out anew for another number of trajectories begins where the module's own data end. */
class Module {
  static async compile(data) {
    const module = new Module(), stream = new Blob([unpacked(data.code)]).stream().pipeThrough(new DecompressionStream("deflate"));
    module.manifest = data.manifest;
    module.instance = (await WebAssembly.instantiate(await new Response(stream).arrayBuffer(), {})).instance;
    module.memory = module.instance.exports.memory;
    module.numbers = data.numbers.map((text, i) => read(text, data.manifest.numbers[i].dtype));
    module.sizes = {};
    module.clear();
    return module;
  }

  clear() { this.top = this.manifest.heap; }

  room(bytes) {
    const at = Math.ceil(this.top / 64) * 64;
    this.top = at + bytes;
    const missing = this.top - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / PAGE));
    return at;
  }

  at(address, dtype, length) { return new ARRAYS[dtype](this.memory.buffer, address, length); }

  put(values, dtype) {
    const address = this.room(values.byteLength);
    this.at(address, dtype, values.length).set(values);
    return address;
  }

  /* How many trajectories there is room for, and how many times around the loop over them. */
  places(trajectories) {
    const { across, width } = this.manifest;
    this.n = across ? trajectories : Math.ceil(trajectories / width) * width;
    this.groups = across ? this.n : this.n / width;
  }

  column(leaf) { return { ...leaf, size: count(leaf), address: this.room(count(leaf) * this.n * ARRAYS[leaf.dtype].BYTES_PER_ELEMENT) }; }

  view(column) { return this.at(column.address, column.dtype, column.size * this.n); }

  /* Entry i of a trajectory. */
  place(column, i, trajectory) { return this.manifest.across ? trajectory * column.size + i : i * this.n + trajectory; }

  /* From one array for all, (entries), or one for each, (trajectories, entries); places past the last trajectory repeat it. */
  fill(column, values, trajectories) {
    const all = this.view(column), alike = values.length === column.size;
    for (let k = 0; k < this.n; k++) {
      const from = alike ? 0 : Math.min(k, trajectories - 1) * column.size;
      for (let i = 0; i < column.size; i++) all[this.place(column, i, k)] = values[from + i];
    }
  }

  /* (trajectories, entries) */
  taken(column, trajectories) {
    const all = this.view(column), values = new ARRAYS[column.dtype](column.size * trajectories);
    for (let k = 0; k < trajectories; k++) for (let i = 0; i < column.size; i++) values[k * column.size + i] = all[this.place(column, i, k)];
    return values;
  }

  /* Memory that every call shares. */
  lay(trajectories, step, t0) {
    this.clear();
    this.places(trajectories);
    const real = this.manifest.real, one = (value) => this.put(ARRAYS[real].of(value), real);
    this.shared = [one(step), one(t0)];
    this.leaves = this.numbers.map((values, i) => this.put(values, this.manifest.numbers[i].dtype));
    this.work = {}; this.tables = {}; this.lists = {};
    for (const [name, need] of Object.entries(this.manifest.functions)) {
      this.work[name] = this.room(need.workspace);
      this.tables[name] = this.room(8 * need.entries);
      this.lists[name] = need.lists.map((facts, i) => this.list(name, i, facts));
    }
    this.unchecked = true;
  }

  list(name, i, facts) {
    const size = (this.sizes[`${name} ${i}`] ||= facts.bodies * (FIRST + 2 * facts.width) + 1024);
    return { size, found: this.room(4 * size), list: this.room(4 * size), report: this.room(24), facts };
  }

  /* A parameter: one entry of a leaf that all trajectories share. */
  change(leaf, entry, value) {
    this.numbers[leaf][entry] = value;
    if (this.leaves) this.at(this.leaves[leaf], this.manifest.numbers[leaf].dtype, this.numbers[leaf].length)[entry] = value;
  }

  /* Whether all went well; if a list of neighbours was full there is more room for it now, and the call is to be made again. */
  call(name, entries) {
    const lists = this.lists[name];
    for (const list of lists) this.at(list.report, "int64", 3).fill(0n);
    const own = lists.flatMap((list) => [list.found, list.list, list.size, list.report, this.unchecked ? 1 : 0]);
    const all = [this.work[name], this.groups, this.n, ...this.shared, ...this.leaves, ...entries, ...own];
    if (all.length !== this.manifest.functions[name].entries) throw new Error(`the table of ${name} has ${this.manifest.functions[name].entries} entries, ${all.length} came`);
    const table = this.at(this.tables[name], "int64", all.length);
    all.forEach((value, i) => { table[i] = BigInt(value); });
    this.instance.exports[name](this.tables[name]);
    let fitted = true;
    lists.forEach((list, i) => {
      const report = this.at(list.report, "int64", 3);
      if (report[WRONG]) throw new Error(`A list of neighbours of ${list.facts.bodies} bodies misses interacting pairs.`);
      if (report[DONE]) this.unchecked = false;
      if (!report[FULL]) return;
      fitted = false;
      this.sizes[`${name} ${i}`] = Math.max(Number(report[FULL]), 2 * list.size);
      this.lists[name][i] = this.list(name, i, list.facts);
    });
    return fitted;
  }
}

/* Many trajectories on their way. */
class Simulation {
  static async load(data) {
    const simulation = new Simulation();
    simulation.data = data;
    simulation.module = await Module.compile(data.program);
    simulation.starter = data.start.program ? await Module.compile(data.start.program) : null;
    simulation.start = data.start.leaves.map((text, i) => read(text, data.program.manifest.state[i].dtype));
    return simulation;
  }

  restart({ trajectories, step, seed, values }) {
    Object.assign(this, { trajectories, h: step, seed, k: 0, t0: this.data.t0 });
    if (seed !== null) this.sow(BigInt(seed));
    values.forEach((value, i) => this.write(i, value));
    const { module } = this, { manifest } = module;
    module.lay(trajectories, step, this.t0);
    this.state = manifest.state.map((leaf) => module.column(leaf));
    this.carry = manifest.carry.map((leaf) => module.column(leaf));
    this.spare = module.lists.advance.length ? this.carry.map((leaf) => module.column(leaf)) : [];
    this.rows = manifest.rows.map((leaves) => leaves.map((leaf) => module.column(leaf)));
    this.numbers = module.column({ shape: [], dtype: "uint64" });
    this.failed = module.column({ shape: [], dtype: "int64" });
    module.fill(this.numbers, BigUint64Array.from({ length: trajectories }, (_, i) => BigInt(i)), trajectories);
    module.view(this.failed).fill(-1n);
    this.enter();
    this.begin();
  }

  /* The states at which a run starts. */
  enter() {
    const states = this.starter ? this.drawn() : this.start;
    this.state.forEach((column, i) => this.module.fill(column, states[i], this.trajectories));
  }

  /* Random momenta, by a module of its own. */
  drawn() {
    const { starter, trajectories } = this;
    starter.lay(trajectories, 1.0, this.t0);
    const words = starter.manifest.state.map((leaf) => starter.column(leaf)), carry = starter.manifest.carry.map((leaf) => starter.column(leaf));
    starter.fill(words[0], Uint32Array.from({ length: trajectories }, (_, i) => i), trajectories);
    starter.view(words[1]).fill(0);
    while (!starter.call("begin", [0, ...words.map((w) => w.address), ...carry.map((c) => c.address)]));
    return starter.manifest.where.map((i) => starter.taken(carry[i], trajectories));
  }

  sow(seed) {
    const words = [Number(seed & 0xffffffffn), Number((seed >> 32n) & 0xffffffffn)];
    for (const [module, places] of [[this.module, this.data.seed.program], [this.starter, this.data.seed.start]])
      (module ? places : []).forEach(([leaf, word]) => module.change(leaf, 0, words[word]));
  }

  write(which, value) {
    const { program, start } = this.data.controls[which];
    program.forEach(([leaf, entry]) => this.module.change(leaf, entry, value));
    if (this.starter) start.forEach(([leaf, entry]) => this.starter.change(leaf, entry, value));
  }

  begin() {
    this.module.unchecked = true;
    const columns = [...this.state, ...this.carry].map((column) => column.address);
    while (!this.module.call("begin", [this.k, ...columns]));
  }

  /* Another value from here on. What a step keeps for the next one depends on it, so the states begin anew; and before the first step so does what is
     drawn at random, as it would be in Python. */
  change(which, value) {
    this.write(which, value);
    if (this.k) this.module.manifest.where.forEach((leaf, i) => this.module.view(this.state[i]).set(this.module.view(this.carry[leaf])));
    else this.enter();
    this.begin();
  }

  /* So many steps, and a look at the end of them. */
  advance(steps, looks = true) {
    const { module } = this, look = looks ? steps || 1 : 0, lead = looks && !steps ? 1 : 0;
    this.carry.forEach((column, i) => { if (this.spare.length) module.view(this.spare[i]).set(module.view(column)); });
    const before = this.spare.length ? module.view(this.failed).slice() : null;
    const watches = this.rows.flatMap((row) => [look, lead ? 0 : looks ? look : -1, ...row.map((column) => column.address)]);
    const call = () => module.call("advance", [this.k, lead, steps ? 1 : 0, steps, this.data.phase, this.numbers.address, this.failed.address, ...this.carry.map((c) => c.address), ...watches]);
    while (!call()) {
      this.carry.forEach((column, i) => module.view(column).set(module.view(this.spare[i])));
      module.view(this.failed).set(before);
    }
    this.k += steps;
  }

  get t() { return this.t0 + this.h * this.k; }

  states() { return this.module.manifest.where.map((leaf) => this.module.taken(this.carry[leaf], this.trajectories)); }

  failures() {
    const steps = [...this.module.view(this.failed).subarray(0, this.trajectories)].map(Number);
    const lost = steps.filter((k) => k >= 0);
    return { count: lost.length, step: lost.length ? Math.min(...lost) : -1, trajectory: lost.length ? steps.indexOf(Math.min(...lost)) : -1 };
  }

  /* Observables of every trajectory, (components, trajectories). */
  observed() {
    return this.data.observables.map(({ watch }) => {
      const column = this.rows[watch][0], all = this.module.view(column), n = this.trajectories;
      return Array.from({ length: column.size }, (_, i) => Float64Array.from({ length: n }, (_, k) => Number(all[this.module.place(column, i, k)])));
    });
  }

  /* What bodies are drawn from, for the first few trajectories: the entries of their states one after the other, or of the watch that makes poses. */
  seen(trajectories) {
    const { pose, sources } = this.data, { module } = this;
    const columns = pose !== null ? this.rows[pose] : sources.map((i) => this.carry[module.manifest.where[i]]);
    const size = columns.reduce((sum, column) => sum + column.size, 0), values = new Float64Array(size * trajectories);
    let at = 0;
    for (const column of columns) {
      const all = module.view(column);
      for (let k = 0; k < trajectories; k++) for (let i = 0; i < column.size; i++) values[k * size + at + i] = Number(all[module.place(column, i, k)]);
      at += column.size;
    }
    return values;
  }
}

let lost = null, several = [], end = Infinity, cost = 1e-3;  // why there is no run; one simulation for each scheme, on one path; the step at which that ends; ms of a step of all, as measured

const seen = (drawn) => several.map((one) => ({ failures: one.failures(), observed: one.observed(), seen: one.seen(Math.min(drawn, one.trajectories)) }));
const answer = (drawn) => ({ k: several[0].k, t: several[0].t, cost, runs: seen(drawn) });
const advance = (steps) => { const most = Math.min(steps, end - several[0].k); for (const one of several) one.advance(most); };
const COMMANDS = {
  load: async ({ programs, ends }) => { several = await Promise.all(programs.map((data) => Simulation.load(data))); end = ends ?? Infinity; return {}; },
  restart: (settings) => { for (const one of several) one.restart(settings); advance(0); return answer(settings.drawn); },
  change: ({ which, value, drawn }) => { for (const one of several) one.change(which, value); advance(0); return answer(drawn); },
  look: ({ drawn }) => answer(drawn),
  /* As many steps as are asked for, but no more than fit into so many ms. A step that is dear is made all the same. */
  advance: ({ steps, budget, drawn }) => {
    const few = Math.max(1, Math.min(steps, Math.floor(budget / cost))), begin = performance.now();
    const from = several[0].k;
    advance(few);
    const each = (performance.now() - begin) / Math.max(1, several[0].k - from);
    cost = Math.max(0.7 * cost + 0.3 * each, 1e-6);
    return { ...answer(drawn), made: few };
  },
  /* All of them, whatever they take. */
  run: ({ steps, drawn }) => { advance(steps); return answer(drawn); },
  /* Where bodies get to, of each scheme: poses along the way, before the run begins. */
  rehearse: ({ settings, looks, every, budget }) => {
    const found = several.map(() => []), end = performance.now() + budget;
    for (const one of several) one.restart({ ...settings, trajectories: 1 });
    for (let i = 0; i <= looks && performance.now() < end; i++) { advance(i ? every : 0); several.forEach((one, p) => found[p].push(one.seen(1))); }
    return { found };
  },
  states: ({ which = 0 }) => ({ states: several[which].states(), shapes: several[which].state.map((column) => column.shape), k: several[which].k }),
};
self.onmessage = async ({ data: { number, command, argument } }) => {
  try {
    if (lost && command !== "restart") throw lost;
    lost = null;
    self.postMessage({ number, value: await COMMANDS[command](argument) });
  } catch (problem) {
    if (problem instanceof RangeError) lost = problem;  // no memory: what was laid out of it is no run, until another one begins
    self.postMessage({ number, problem: String(problem.message || problem), memory: problem instanceof RangeError });
  }
};
