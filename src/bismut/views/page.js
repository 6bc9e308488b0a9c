"use strict";
/* A scene of moving bodies. Frames are decoded once; a frame shown is one pass over instances: y = x_b + R_b z for every part, and lines between such points. */

const GONE = 65535, FRAMES_A_SECOND = 25;
const element = (id) => document.getElementById(id);
const PALETTES = JSON.parse(element("palettes").textContent), DARK = window.matchMedia("(prefers-color-scheme: dark)");
const palette = () => (DARK.matches ? PALETTES.dark : PALETTES.light);
const paint = (name) => palette()[name] || name;  // a colour is a name of the palette, or itself

async function inflated(text, format) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
  return new Response(stream).arrayBuffer();
}

/* three.js out of the library that the page carries: a module in the form of AMD. */
async function three() {
  const code = new TextDecoder().decode(await inflated(element("library").textContent, "gzip"));
  let made = null;
  window.define = (name, needs, factory) => { made = factory(); };
  const script = document.createElement("script");
  script.textContent = code;
  document.head.appendChild(script);
  delete window.define;
  element("library").textContent = "";
  return made.ThreeJsProvider.THREE;
}

/* `fine`: as round as it should look where there are few bodies. */
function geometries(THREE, fine) {
  const turned = (profile, around = fine ? 48 : 24) => {
    const made = new THREE.LatheGeometry(profile.map(([r, z]) => new THREE.Vector2(r, z)), around);
    return made.rotateX(Math.PI / 2);
  };
  const shaded = (geometry, shade) => {
    const place = geometry.attributes.position, colour = new Float32Array(place.count * 3);
    for (let i = 0; i < place.count; i++) colour.fill(shade(place.getX(i), place.getY(i), place.getZ(i)), 3 * i, 3 * i + 3);
    geometry.setAttribute("color", new THREE.BufferAttribute(colour, 3));
    return geometry;
  };
  const plain = () => 1;
  // Halves and a quarter are shaded, so that every turn can be seen.
  const marked = (x, y, z) => (z > 1e-6 ? 1 : 0.7) * (x > 1e-6 && y > 1e-6 ? 0.82 : 1);
  const edged = (points) => points.flatMap((p, i) => (i && i < points.length - 1 ? [p, p] : [p]));
  return {
    ball: shaded(new THREE.SphereGeometry(1, fine ? 40 : 20, fine ? 28 : 14), plain),
    ellipsoid: shaded(new THREE.SphereGeometry(1, fine ? 48 : 24, fine ? 32 : 16).rotateX(Math.PI / 2).toNonIndexed(), plain),
    rod: shaded(new THREE.CylinderGeometry(1, 1, 2, fine ? 64 : 20).rotateX(Math.PI / 2), plain),
    line: shaded(new THREE.CylinderGeometry(1, 1, 2, 10).rotateX(Math.PI / 2), plain),
    block: shaded(new THREE.BoxGeometry(2, 2, 2), plain),
    arrow: shaded(turned(edged([[0, -1], [0.36, -1], [0.36, 0.4], [1, 0.4], [0, 1]])), plain),
    top: shaded(turned(edged([[0, 0], [0.95, 0.5], [1, 0.58], [0.14, 0.68], [0.1, 1], [0, 1]]), 32), plain),
    mark(name) {
      const geometry = this[name], place = geometry.attributes.position;
      if (geometry.index) return;
      for (let i = 0; i < place.count; i += 3) {  // one shade for each triangle, by its middle
        const middle = [0, 1, 2].map((a) => (place.array[3 * i + a] + place.array[3 * i + 3 + a] + place.array[3 * i + 6 + a]) / 3);
        geometry.attributes.color.array.fill(marked(...middle), 3 * i, 3 * i + 9);
      }
    },
  };
}

/* One trajectory: its decoded frames and the meshes that show them. */
class Panel {
  static async read(THREE, data, shapes, scene) {
    const panel = new Panel();
    Object.assign(panel, { THREE, data, bodies: data.bodies, frames: scene.times.length });
    panel.places = new Uint16Array(await inflated(data.x, "deflate"));
    panel.turns = data.turns ? new Int16Array(await inflated(data.turns, "deflate")) : null;
    panel.numbers = {};
    for (const [name, text] of Object.entries(data.colours)) panel.numbers[name] = new Uint16Array(await inflated(text, "deflate"));
    panel.scene = new THREE.Scene();
    panel.scene.add(new THREE.HemisphereLight(0xffffff, 0x9aa3b6, 2.3));
    panel.sun = new THREE.DirectionalLight(0xffffff, 1.3);
    panel.scene.add(panel.sun);
    panel.x = new Float32Array(3 * panel.bodies);
    panel.q = new Float32Array(4 * panel.bodies);
    panel.here = new Uint8Array(panel.bodies);
    panel.parts = [];
    for (const part of data.parts) panel.parts.push(await panel.part(part, shapes));
    panel.lines = [];
    for (const line of data.lines) panel.lines.push(await panel.line(line, shapes));
    panel.extent();
    panel.trails = data.trails.map((trail) => panel.trail(trail, shapes));
    if (data.box) panel.addBox();
    return panel;
  }

  mesh(geometry, count) {
    const { THREE } = this;
    const material = new THREE.MeshStandardMaterial({ roughness: 0.55, metalness: 0.0, vertexColors: true });
    const mesh = new THREE.InstancedMesh(geometry, material, count);
    mesh.frustumCulled = false;
    mesh.instanceMatrix.setUsage(THREE.DynamicDrawUsage);
    for (let i = 0; i < count; i++) mesh.setColorAt(i, new THREE.Color("#ffffff"));
    this.scene.add(mesh);
    return mesh;
  }

  async part(part, shapes) {
    const rows = new Float32Array(await inflated(part.rows, "deflate"));
    const mesh = this.mesh(shapes[part.kind], part.body.length);
    return { ...part, rows, mesh };
  }

  async line(line, shapes) {
    const rows = new Float32Array(await inflated(line.rows, "deflate"));
    const mesh = this.mesh(shapes.line, line.first.length);
    return { ...line, rows, mesh };
  }

  /* The path of a point as thin rods, of which a frame shows those up to its time. A body that leaves the box on one side and comes back on the other
     leaves a gap. */
  trail({ body, at }, shapes) {
    const { THREE } = this, points = [], matrix = new THREE.Matrix4(), size = new THREE.Vector3(), turn = new THREE.Quaternion(), up = new THREE.Vector3(0, 0, 1);
    for (let frame = 0; frame < this.frames; frame++) {
      this.pose(frame);
      if (body >= 0 && !this.here[body]) break;
      points.push(this.point(body, at, 0, new THREE.Vector3()));
    }
    const mesh = this.mesh(shapes.line, Math.max(points.length - 1, 1));
    for (let i = 0; i + 1 < points.length; i++) {
      const along = points[i + 1].clone().sub(points[i]), length = along.length(), middle = points[i].clone().addScaledVector(along, 0.5);
      const apart = this.data.box && this.data.box.some((side, a) => side && Math.abs(along.getComponent(a)) > side / 2);
      turn.setFromUnitVectors(up, length > 0 ? along.divideScalar(length) : up);
      size.set(0.5 * this.thickness, 0.5 * this.thickness, length / 2).multiplyScalar(apart ? 0 : 1);
      mesh.setMatrixAt(i, matrix.compose(middle, turn, size));
    }
    return { mesh, last: points.length - 1 };
  }

  addBox() {
    const { THREE, data } = this;
    const sides = data.box.map((side, i) => side || Math.max(data.hi[i] - data.lo[i], 1e-3));
    const middle = data.box.map((side, i) => (side ? 0 : (data.hi[i] + data.lo[i]) / 2));
    const edges = new THREE.LineSegments(new THREE.EdgesGeometry(new THREE.BoxGeometry(...sides)), new THREE.LineBasicMaterial());
    edges.position.set(...middle);
    this.edges = edges.material;
    this.scene.add(edges);
  }

  /* Positions and orientations of a frame. */
  pose(frame) {
    const { bodies, data, places, turns } = this;
    for (let b = 0; b < bodies; b++) {
      const at = 3 * (frame * bodies + b);
      this.here[b] = places[at] !== GONE && places[at + 1] !== GONE && places[at + 2] !== GONE ? 1 : 0;
      for (let a = 0; a < 3; a++) this.x[3 * b + a] = data.lo[a] + ((data.hi[a] - data.lo[a]) * places[at + a]) / 65534;
      if (turns) for (let a = 0; a < 4; a++) this.q[4 * b + a] = turns[4 * (frame * bodies + b) + a] / 32767;
      else this.q.set([1, 0, 0, 0], 4 * b);
    }
  }

  /* x_b + R_b z; body −1 is space itself. */
  point(body, z, at, out) {
    out.set(z[at], z[at + 1], z[at + 2]);
    if (body < 0) return out;
    const x = this.x;
    out.applyQuaternion(this.turn(body));
    return out.set(out.x + x[3 * body], out.y + x[3 * body + 1], out.z + x[3 * body + 2]);
  }

  turn(body) {
    const found = (this.spare ||= new this.THREE.Quaternion());
    if (body < 0) return found.set(0, 0, 0, 1);
    const q = this.q, at = 4 * body;
    return found.set(q[at + 1], q[at + 2], q[at + 3], q[at]).normalize();
  }

  show(frame) {
    const { THREE } = this;
    this.pose(frame);
    const place = new THREE.Vector3(), end = new THREE.Vector3(), turn = new THREE.Quaternion(), own = new THREE.Quaternion();
    const size = new THREE.Vector3(), matrix = new THREE.Matrix4(), up = new THREE.Vector3(0, 0, 1);
    for (const part of this.parts) {
      part.body.forEach((body, i) => {
        const at = 10 * i, rows = part.rows;
        this.point(body, rows, at + 3, place);
        turn.copy(this.turn(body)).multiply(own.set(rows[at + 7], rows[at + 8], rows[at + 9], rows[at + 6]));
        size.set(rows[at], rows[at + 1], rows[at + 2]).multiplyScalar(body < 0 || this.here[body] ? 1 : 0);
        part.mesh.setMatrixAt(i, matrix.compose(place, turn, size));
      });
      part.mesh.instanceMatrix.needsUpdate = true;
    }
    for (const line of this.lines) {
      line.first.forEach((body, i) => {
        const other = line.second[i], seen = (body < 0 || this.here[body]) && (other < 0 || this.here[other]);
        this.point(body, line.rows, 6 * i, place);
        this.point(other, line.rows, 6 * i + 3, end).sub(place);
        if (this.data.box) this.data.box.forEach((side, a) => { if (side) end.setComponent(a, end.getComponent(a) - side * Math.round(end.getComponent(a) / side)); });
        const length = end.length();
        place.addScaledVector(end, 0.5);
        turn.setFromUnitVectors(up, length > 0 ? end.divideScalar(length) : up);
        size.set(this.thickness, this.thickness, length / 2).multiplyScalar(seen ? 1 : 0);
        line.mesh.setMatrixAt(i, matrix.compose(place, turn, size));
      });
      line.mesh.instanceMatrix.needsUpdate = true;
    }
    for (const trail of this.trails) trail.mesh.count = Math.min(frame, trail.last);
  }

  /* What has a colour that stays, in those of the ground. */
  paint() {
    const shade = new this.THREE.Color(), all = (mesh, name) => {
      shade.set(paint(name));
      for (let i = 0; i < mesh.instanceColor.count; i++) mesh.setColorAt(i, shade);
      mesh.instanceColor.needsUpdate = true;
    };
    for (const part of this.parts) if (part.colour) all(part.mesh, part.colour);
    for (const line of this.lines) all(line.mesh, line.colour);
    for (const trail of this.trails) all(trail.mesh, "vermilion");
    if (this.edges) this.edges.color.set(paint("soft"));
    this.stops = palette().scale.map((text) => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16) / 255));
  }

  colour(frame, name) {
    const shade = new this.THREE.Color(), white = new this.THREE.Color("#ffffff"), series = palette().series;
    for (const part of this.parts) {
      if (part.colour) continue;
      part.body.forEach((body, i) => {
        const number = body < 0 || name === "body" ? null : this.numbers[name][frame * this.bodies + body];
        shade.set(body < 0 ? paint("soft") : series[body % series.length]);
        if (!DARK.matches && body >= 0) shade.lerp(white, 0.25);  // on white, shadows would make the colours of lines black
        if (number !== null) mix(shade, this.stops, number === GONE ? 0 : number / 65534);
        part.mesh.setColorAt(i, shade);
      });
      part.mesh.instanceColor.needsUpdate = true;
    }
  }

  /* What the camera has to see: whatever is drawn, at forty times. */
  extent() {
    const { THREE, data } = this, at = new THREE.Vector3(), balls = [], stride = Math.max(1, Math.floor(this.frames / 40));
    const add = (point, size) => balls.push([point.x, point.y, point.z, size]);
    for (let frame = 0; frame < this.frames; frame += stride) {
      this.pose(frame);
      for (const part of this.parts)
        part.body.forEach((body, i) => {
          const r = part.rows.subarray(10 * i, 10 * i + 6);
          if (body < 0 ? frame === 0 : this.here[body]) add(this.point(body, r, 3, at), Math.max(r[0], r[1], r[2]));
        });
      for (const line of this.lines)
        [line.first, line.second].forEach((ends, end) => ends.forEach((body, i) => {
          if (body < 0 ? frame === 0 : this.here[body]) add(this.point(body, line.rows, 6 * i + 3 * end, at), 0);
        }));
    }
    const box = [-1, 1].map((sign) => [0, 1, 2].map((a) => balls.reduce((found, ball) => Math.max(found, sign * ball[a] + ball[3]), -Infinity)));
    const lo = box[0].map((x) => -x), hi = box[1];
    if (data.box) data.box.forEach((side, a) => { if (side) { lo[a] = Math.min(lo[a], -side / 2); hi[a] = Math.max(hi[a], side / 2); } });
    this.middle = lo.map((l, a) => (l + hi[a]) / 2);
    this.half = lo.map((l, a) => (hi[a] - l) / 2);
    const far = balls.reduce((found, ball) => Math.max(found, Math.hypot(...this.middle.map((m, a) => ball[a] - m)) + ball[3]), 0);
    this.radius = Math.max(data.box ? Math.hypot(...this.half) : far, 1e-9);
    this.thickness = 0.008 * this.radius;
  }
}

function mix(colour, stops, share) {
  const place = share * (stops.length - 1), i = Math.min(Math.floor(place), stops.length - 2), f = place - i;
  const [r, g, b] = [0, 1, 2].map((a) => stops[i][a] * (1 - f) + stops[i + 1][a] * f);
  colour.r = r; colour.g = g; colour.b = b;
}

/* The camera on a sphere about a target: drag to orbit, wheel or pinch to zoom, right button or shift to pan. */
class Orbit {
  constructor(THREE, camera, canvas, changed) {
    Object.assign(this, { THREE, camera, changed, target: new THREE.Vector3(), fingers: new Map() });
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); this.fingers.set(event.pointerId, event); });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.fingers.delete(event.pointerId));
    canvas.addEventListener("pointermove", (event) => this.moved(event, canvas.clientHeight));
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.zoom(Math.exp(0.001 * event.deltaY)); }, { passive: false });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  moved(event, height) {
    const before = this.fingers.get(event.pointerId);
    if (!before) return;
    const dx = (event.clientX - before.clientX) / height, dy = (event.clientY - before.clientY) / height;
    if (this.fingers.size === 2) {
      const other = [...this.fingers.values()].find((finger) => finger.pointerId !== event.pointerId);
      const apart = (finger) => Math.hypot(finger.clientX - other.clientX, finger.clientY - other.clientY);
      this.zoom(apart(before) / Math.max(apart(event), 1));
    } else if (event.shiftKey || event.buttons & 2) this.pan(dx, dy);
    else this.turn(-2 * Math.PI * dx, -Math.PI * dy);
    this.fingers.set(event.pointerId, event);
  }

  turn(around, over) {
    const { THREE, camera } = this, arm = camera.position.clone().sub(this.target);
    const angle = arm.angleTo(camera.up), side = new THREE.Vector3().crossVectors(camera.up, arm).normalize();
    arm.applyAxisAngle(side, Math.max(0.02, Math.min(Math.PI - 0.02, angle + over)) - angle).applyAxisAngle(camera.up, around);
    this.place(arm);
  }

  zoom(factor) { this.place(this.camera.position.clone().sub(this.target).multiplyScalar(factor)); }

  pan(dx, dy) {
    const arm = this.camera.position.clone().sub(this.target), wide = 2 * arm.length() * Math.tan((this.camera.fov * Math.PI) / 360);
    const [right, up] = [0, 1].map((column) => new this.THREE.Vector3().setFromMatrixColumn(this.camera.matrix, column));
    this.target.addScaledVector(right, -dx * wide).addScaledVector(up, dy * wide);
    this.place(arm);
  }

  place(arm) {
    this.camera.position.copy(this.target).add(arm);
    this.camera.lookAt(this.target);
    this.changed();
  }
}

async function main() {
  const scene = JSON.parse(element("scene").textContent);
  element("scene").textContent = "";
  const THREE = await three();
  const shapes = geometries(THREE, Math.max(...scene.panels.map((panel) => panel.bodies)) < 100);
  shapes.mark("ellipsoid");
  const panels = [];
  for (const data of scene.panels) panels.push(await Panel.read(THREE, data, shapes, scene));

  let frame = 0, playing = false, by = "body", last = 0, left = 0, stale = true;
  const stage = element("stage");
  const renderer = new THREE.WebGLRenderer({ antialias: true, preserveDrawingBuffer: true });
  renderer.outputColorSpace = THREE.LinearSRGBColorSpace;  // colours are shown as they are written
  stage.appendChild(renderer.domElement);
  const camera = new THREE.PerspectiveCamera(35, 1, 0.01, 1000);
  const flat = panels[0].data.flat, radius = Math.max(...panels.map((panel) => panel.radius));
  camera.up.set(0, flat ? 1 : 0, flat ? 0 : 1);
  const columns = Math.ceil(Math.sqrt(panels.length)), rows = Math.ceil(panels.length / columns);
  const labels = panels.map((panel) => {
    const label = document.createElement("div");
    label.className = "label";
    label.textContent = panels.length > 1 ? panel.data.label : `${scene.title} · ${panel.data.label}`;
    stage.appendChild(label);
    return label;
  });
  const orbit = new Orbit(THREE, camera, renderer.domElement, () => { stale = true; });
  const home = () => {
    const cell = (stage.clientWidth / columns) / (stage.clientHeight / rows), angle = (camera.fov * Math.PI) / 360;
    const [wide, high, deep] = [0, 1, 2].map((a) => Math.max(...panels.map((panel) => panel.half[a])));
    const far = flat ? (1.12 * Math.max(high, wide / cell)) / Math.tan(angle) + deep : (1.04 * radius) / Math.sin(angle) / Math.min(1, cell);
    const from = flat ? [0, -0.02, 1] : [0.62, -0.7, 0.36];
    camera.near = far / 100; camera.far = far * 100;
    orbit.target.set(0, 0, 0);
    orbit.place(new THREE.Vector3(...from).setLength(far));
  };
  // Every panel is looked at about its own middle, by the same camera.
  panels.forEach((panel) => { panel.scene.position.set(...panel.middle.map((a) => -a)); panel.scene.updateMatrixWorld(true); });

  const draw = () => {
    const width = stage.clientWidth, height = stage.clientHeight, w = width / columns, h = height / rows;
    renderer.setClearColor(palette().ground);
    renderer.setScissorTest(true);
    camera.aspect = w / h;
    camera.updateProjectionMatrix();
    panels.forEach((panel, i) => {
      const x = (i % columns) * w, y = Math.floor(i / columns) * h;
      renderer.setViewport(x, height - y - h, w, h);
      renderer.setScissor(x, height - y - h, w, h);
      panel.sun.position.copy(camera.position).add(camera.up.clone().multiplyScalar(radius)).add(new THREE.Vector3(...panel.middle));
      panel.sun.target.position.set(...panel.middle);
      panel.sun.target.updateMatrixWorld();
      renderer.render(panel.scene, camera);
      labels[i].style.left = `${x}px`;
      labels[i].style.top = `${y}px`;
    });
  };
  const show = (number) => {
    frame = Math.max(0, Math.min(scene.times.length - 1, number));
    panels.forEach((panel) => { panel.show(frame); panel.colour(frame, by); });
    element("slider").value = frame;
    element("time").textContent = `t = ${Number(scene.times[frame].toPrecision(5))}`;
    stale = true;
  };
  const play = (on) => {
    playing = on;
    element("play").textContent = on ? "\u2759\u2759" : "\u25b6";
    if (on && frame === scene.times.length - 1) show(0);
  };
  const size = () => { renderer.setPixelRatio(window.devicePixelRatio || 1); renderer.setSize(stage.clientWidth, stage.clientHeight, false); stale = true; };
  const legend = () => {
    const box = element("scale"), range = scene.colours[by];
    box.style.display = range ? "block" : "none";
    if (!range) return;
    box.querySelector("b").textContent = by;
    box.querySelector("i").style.background = `linear-gradient(90deg, ${palette().scale.join(", ")})`;
    range.forEach((value, i) => { box.querySelectorAll("em")[i].textContent = Number(value.toPrecision(3)); });
  };

  element("slider").max = scene.times.length - 1;
  element("slider").addEventListener("input", (event) => { play(false); show(Number(event.target.value)); });
  element("play").addEventListener("click", () => play(!playing));
  element("reset").addEventListener("click", home);
  for (const name of ["body", ...Object.keys(scene.colours)]) element("colour").add(new Option(name, name));
  element("colour").addEventListener("change", (event) => { by = event.target.value; legend(); show(frame); });
  document.addEventListener("keydown", (event) => {
    if (event.target.tagName === "SELECT" || event.target.id === "slider") return;
    if (event.key === " ") { event.preventDefault(); play(!playing); }
    if (event.key === "ArrowRight") { play(false); show(frame + 1); }
    if (event.key === "ArrowLeft") { play(false); show(frame - 1); }
  });
  DARK.addEventListener("change", () => { panels.forEach((panel) => panel.paint()); legend(); show(frame); });
  new ResizeObserver(size).observe(stage);

  panels.forEach((panel) => panel.paint());
  size(); home(); legend(); show(0);
  const tick = (now) => {
    requestAnimationFrame(tick);
    if (playing) {
      left += (Math.min(now - last, 200) / 1000) * FRAMES_A_SECOND * Number(element("speed").value);
      const whole = Math.floor(left);
      left -= whole;
      if (whole) show((frame + whole) % scene.times.length);
    }
    last = now;
    if (stale) { stale = false; draw(); }
  };
  requestAnimationFrame(tick);
  // What a test, or a curious reader, may ask the page.
  window.bismut = { ready: true, show, frames: scene.times.length, frame: () => frame, place: (panel, body) => { panels[panel].pose(frame); return [...panels[panel].x.slice(3 * body, 3 * body + 3)]; }, turn: (panel, body) => { panels[panel].pose(frame); return [...panels[panel].q.slice(4 * body, 4 * body + 4)]; } };
}

main().catch((problem) => {
  element("trouble").style.display = "grid";
  element("trouble").textContent = `This page needs a browser with WebGL 2 and DecompressionStream (Chrome 80, Firefox 113, Safari 16.4 or newer). ${problem}`;
  console.error(problem);
});
