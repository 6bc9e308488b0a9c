/* Bodies of several trajectories of a program that runs, side by side in one scene. A state becomes a pose by (x, R) = c + A s.

   bodies of copy c are K c ... K c + K − 1; after all of them, body K C + c is the space of copy c, which stands still */

class LiveDrawing {
  static async read(data) {
    const drawing = new LiveDrawing(), list = async (name, Kind) => new Kind(await inflated(data[name], "deflate"));
    Object.assign(drawing, { data, bodies: data.bodies, turns: data.turns });
    for (const [name, Kind] of [["constant", Float64Array], ["places", Int32Array], ["columns", Int32Array], ["factors", Float64Array]]) drawing[name] = await list(name, Kind);
    drawing.out = new Float64Array(data.size);
    return drawing;
  }

  /* x, then R if there is one, of one state. */
  of(state) {
    const { out, constant, places, columns, factors } = this;
    for (let o = 0; o < out.length; o++) {
      let sum = constant[o];
      for (let e = places[o]; e < places[o + 1]; e++) sum += factors[e] * state[columns[e]];
      out[o] = sum;
    }
    return out;
  }
}

/* A unit quaternion (w, x, y, z) from the rotation that begins at m[at], by the largest of its components. */
function quaternion(m, at, out, to) {
  const a = m[at], b = m[at + 4], c = m[at + 8], trace = a + b + c;
  const d = (i, j) => m[at + 3 * i + j];
  let w, x, y, z;
  if (trace > 0) [w, x, y, z] = [1 + trace, d(2, 1) - d(1, 2), d(0, 2) - d(2, 0), d(1, 0) - d(0, 1)];
  else if (a >= b && a >= c) [w, x, y, z] = [d(2, 1) - d(1, 2), 1 + a - b - c, d(0, 1) + d(1, 0), d(0, 2) + d(2, 0)];
  else if (b >= c) [w, x, y, z] = [d(0, 2) - d(2, 0), d(0, 1) + d(1, 0), 1 + b - a - c, d(1, 2) + d(2, 1)];
  else [w, x, y, z] = [d(1, 0) - d(0, 1), d(0, 2) + d(2, 0), d(1, 2) + d(2, 1), 1 + c - a - b];
  const size = Math.hypot(w, x, y, z);
  out[to] = w / size; out[to + 1] = x / size; out[to + 2] = y / size; out[to + 3] = z / size;
}

class LivePanel extends Panel {
  static TRAIL = 240;

  /* `seen`: states along a trial, by which the camera is placed. */
  static async build(THREE, drawing, shapes, seen, copies) {
    const { data } = drawing, K = data.bodies, panel = new LivePanel();
    const alone = copies === 1 ? panel : await LivePanel.build(THREE, drawing, shapes, seen, 1);
    const all = (bodies) => Array.from({ length: copies }, (_, c) => bodies.map((b) => (b < 0 ? K * copies + c : K * c + b))).flat();
    Object.assign(panel, { drawing, K, copies, plain: K * copies >= 64, frames: seen.length, recorded: seen, values: null, offsets: Array.from({ length: copies }, () => [0, 0, 0]) });
    const again = { ...data, bodies: (K + 1) * copies, parts: data.parts.map((part) => ({ ...part, body: all(part.body) })), lines: data.lines.map((line) => ({ ...line, first: all(line.first), second: all(line.second) })) };
    await panel.assemble(THREE, again, shapes);
    if (copies === 1) panel.extent();
    else panel.arrange(alone);
    panel.tails = copies <= 9 ? Array.from({ length: copies }, (_, c) => data.trails.map(({ body, at }) => panel.tail(body < 0 ? K * copies + c : K * c + body, at, shapes))).flat() : [];
    panel.trails = [];
    panel.addEdges();
    return panel;
  }

  /* Of parts and lines, one after the other for every copy. */
  async rows(text) {
    const rows = await super.rows(text), all = new Float32Array(rows.length * this.copies);
    for (let c = 0; c < this.copies; c++) all.set(rows, c * rows.length);
    return all;
  }

  /* Copies in a square, in the plane in which they are looked at. */
  arrange(alone) {
    const side = Math.ceil(Math.sqrt(this.copies)), rows = Math.ceil(this.copies / side), wide = 2.15 * Math.max(alone.half[0], 1e-9), high = 2.15 * Math.max(alone.half[1], 1e-9);
    const apart = this.data.flat ? [wide, high] : [2.15 * Math.hypot(alone.half[0], alone.half[1]) / 1.2, 2.15 * Math.hypot(alone.half[0], alone.half[1]) / 1.2];
    this.offsets = this.offsets.map((_, c) => [((c % side) - (side - 1) / 2) * apart[0], ((rows - 1) / 2 - Math.floor(c / side)) * apart[1], 0]);
    this.middle = alone.middle;
    this.half = [alone.half[0] + (apart[0] * (side - 1)) / 2, alone.half[1] + (apart[1] * (rows - 1)) / 2, alone.half[2]];
    this.radius = 0.8 * Math.hypot(...this.half);  // seen from aside, the corners of a square are not where a sphere would be
    this.thickness = alone.thickness;
  }

  pose(frame) {
    const { K, copies, drawing, x, q, here, data } = this, values = frame === null || frame === undefined ? this.values : this.recorded[frame];
    const size = values.length / Math.max(1, Math.round(values.length / this.length));
    for (let c = 0; c < copies; c++) {
      const out = drawing.of(values.subarray(c * size, (c + 1) * size)), [dx, dy, dz] = this.offsets[c];
      for (let b = 0; b < K; b++) {
        const to = K * c + b, at = 3 * b;
        let fine = true;
        for (let a = 0; a < 3; a++) {
          let place = out[at + a];
          const length = data.box ? data.box[a] : 0;
          if (length) place -= length * Math.round(place / length);
          fine &&= Number.isFinite(place);
          x[3 * to + a] = fine ? place + (a === 0 ? dx : a === 1 ? dy : dz) : 0;
        }
        if (drawing.turns) quaternion(out, 3 * K + 9 * b, q, 4 * to);
        else { q[4 * to] = 1; q[4 * to + 1] = q[4 * to + 2] = q[4 * to + 3] = 0; }
        here[to] = fine && Number.isFinite(q[4 * to]) ? 1 : 0;
        if (!here[to]) { q[4 * to] = 1; q[4 * to + 1] = q[4 * to + 2] = q[4 * to + 3] = 0; }
      }
      const space = K * copies + c;
      x.set([dx, dy, dz], 3 * space);
      q.set([1, 0, 0, 0], 4 * space);
      here[space] = 1;
    }
  }

  get length() { return this.recorded[0].length; }

  addEdges() {
    if (!this.data.box) return;
    const { THREE, data } = this, sides = data.box.map((side, i) => side || Math.max(2 * this.half[i], 1e-3));
    this.edges = new THREE.LineBasicMaterial();
    for (const offset of this.offsets) {
      const edges = new THREE.LineSegments(new THREE.EdgesGeometry(new THREE.BoxGeometry(...sides)), this.edges);
      edges.position.set(...offset.map((o, a) => o + (data.box[a] ? 0 : this.middle[a])));
      this.scene.add(edges);
    }
  }

  /* Where a point has been lately, as thin rods. */
  tail(body, at, shapes) {
    const mesh = this.mesh(shapes.line, LivePanel.TRAIL);
    mesh.count = 0;
    return { body, at, mesh, last: null, next: 0 };
  }

  follow() {
    const { THREE } = this, up = new THREE.Vector3(0, 0, 1), turn = new THREE.Quaternion(), size = new THREE.Vector3(), matrix = new THREE.Matrix4();
    for (const tail of this.tails) {
      if (!this.here[tail.body]) { tail.last = null; continue; }
      const now = this.point(tail.body, tail.at, 0, new THREE.Vector3()), before = tail.last;
      if (!before) { tail.last = now; continue; }
      const along = now.clone().sub(before), length = along.length();
      if (length < 0.004 * this.radius / Math.sqrt(this.copies)) continue;
      tail.last = now;
      if (this.data.box && this.data.box.some((side, a) => side && Math.abs(along.getComponent(a)) > side / 2)) continue;
      turn.setFromUnitVectors(up, along.clone().divideScalar(length));
      size.set(0.5 * this.thickness, 0.5 * this.thickness, length / 2);
      tail.mesh.setMatrixAt(tail.next % LivePanel.TRAIL, matrix.compose(before.clone().addScaledVector(along, 0.5), turn, size));
      tail.mesh.instanceMatrix.needsUpdate = true;
      tail.next += 1;
      tail.mesh.count = Math.min(tail.next, LivePanel.TRAIL);
    }
  }

  forget() { for (const tail of this.tails) Object.assign(tail, { last: null, next: 0 }), (tail.mesh.count = 0); }

  present(values) { this.values = values; this.show(null); this.follow(); }

  paint() {
    super.paint();
    const shade = new this.THREE.Color(), white = new this.THREE.Color("#ffffff"), series = palette().series, own = this.K * this.copies;
    for (const tail of this.tails) {
      shade.set(paint("vermilion"));
      for (let i = 0; i < LivePanel.TRAIL; i++) tail.mesh.setColorAt(i, shade);
      tail.mesh.instanceColor.needsUpdate = true;
    }
    for (const part of this.parts) {
      if (part.colour) continue;
      part.body.forEach((body, i) => {
        shade.set(body >= own ? paint("soft") : series[(this.series ?? (this.K > 1 ? body % this.K : Math.floor(body / this.K))) % series.length]);
        if (!DARK.matches && body < own) shade.lerp(white, 0.25);  // as on recorded pages
        part.mesh.setColorAt(i, shade);
      });
      part.mesh.instanceColor.needsUpdate = true;
    }
  }

  gone() { this.scene.traverse((one) => { if (one.isInstancedMesh) { one.dispose(); one.material.dispose(); } }); }
}
