"use strict";
/* Moving bodies. A frame shown is one pass over instances: y = x_b + R_b z for every part, and lines between such points. */

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

/* `fine`: as round as it should look where there are few bodies; `coarse` where there are so many that no one sees how round each is. */
function geometries(THREE, fine, coarse = false) {
  const turned = (profile, around = fine ? 48 : coarse ? 10 : 24) => {
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
    ball: shaded(new THREE.SphereGeometry(1, fine ? 40 : coarse ? 8 : 20, fine ? 28 : coarse ? 6 : 14), plain),
    ellipsoid: shaded(new THREE.SphereGeometry(1, fine ? 48 : coarse ? 12 : 24, fine ? 32 : coarse ? 8 : 16).rotateX(Math.PI / 2).toNonIndexed(), plain),
    rod: shaded(new THREE.CylinderGeometry(1, 1, 2, fine ? 64 : coarse ? 8 : 20).rotateX(Math.PI / 2), plain),
    line: shaded(new THREE.CylinderGeometry(1, 1, 2, 10).rotateX(Math.PI / 2), plain),
    block: shaded(new THREE.BoxGeometry(2, 2, 2), plain),
    arrow: shaded(turned(edged([[0, -1], [0.36, -1], [0.36, 0.4], [1, 0.4], [0, 1]])), plain),
    top: shaded(turned(edged([[0, 0], [0.95, 0.5], [1, 0.58], [0.14, 0.68], [0.1, 1], [0, 1]]), coarse ? 14 : 32), plain),
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
    panel.frames = scene.times.length;
    panel.places = new Uint16Array(await inflated(data.x, "deflate"));
    panel.turns = data.turns ? new Int16Array(await inflated(data.turns, "deflate")) : null;
    panel.numbers = {};
    for (const [name, text] of Object.entries(data.colours)) panel.numbers[name] = new Uint16Array(await inflated(text, "deflate"));
    await panel.assemble(THREE, data, shapes);
    panel.extent();
    panel.trails = data.trails.map((trail) => panel.trail(trail, shapes));
    if (data.box) panel.addBox();
    return panel;
  }

  async assemble(THREE, data, shapes) {
    Object.assign(this, { THREE, data, bodies: data.bodies });
    this.scene = new THREE.Scene();
    this.scene.add(new THREE.HemisphereLight(0xffffff, 0x9aa3b6, 2.3));
    this.sun = new THREE.DirectionalLight(0xffffff, 1.3);
    this.scene.add(this.sun);
    this.x = new Float32Array(3 * this.bodies);
    this.q = new Float32Array(4 * this.bodies);
    this.here = new Uint8Array(this.bodies);
    this.parts = [];
    for (const part of data.parts) this.parts.push(await this.part(part, shapes));
    this.lines = [];
    for (const line of data.lines) this.lines.push(await this.line(line, shapes));
  }

  mesh(geometry, count) {
    const { THREE } = this;
    const material = this.plain ? new THREE.MeshLambertMaterial({ vertexColors: true }) : new THREE.MeshStandardMaterial({ roughness: 0.55, metalness: 0.0, vertexColors: true });
    const mesh = new THREE.InstancedMesh(geometry, material, count);
    mesh.frustumCulled = false;
    mesh.instanceMatrix.setUsage(THREE.DynamicDrawUsage);
    for (let i = 0; i < count; i++) mesh.setColorAt(i, new THREE.Color("#ffffff"));
    this.scene.add(mesh);
    return mesh;
  }

  async rows(text) { return new Float32Array(await inflated(text, "deflate")); }

  async part(part, shapes) {
    const rows = await this.rows(part.rows);
    const mesh = this.mesh(shapes[part.kind], part.body.length);
    return { ...part, rows, mesh };
  }

  async line(line, shapes) {
    const rows = await this.rows(line.rows);
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

/* The camera on a sphere about a target: drag or arrow keys to orbit, wheel, pinch, + or − to zoom; right button, or shift, to pan. */
class Orbit {
  constructor(THREE, camera, canvas, changed) {
    Object.assign(this, { THREE, camera, changed, target: new THREE.Vector3(), fingers: new Map() });
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); this.fingers.set(event.pointerId, event); });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.fingers.delete(event.pointerId));
    canvas.addEventListener("pointermove", (event) => this.moved(event, canvas.clientHeight));
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.zoom(Math.exp(0.001 * event.deltaY)); }, { passive: false });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("keydown", (event) => this.pressed(event));
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");  // so that readers of screens leave the keys to it
    canvas.setAttribute("aria-label", "the bodies; arrow keys or dragging turn the view, with shift they move it, plus and minus or scrolling zoom");
  }

  /* 24 presses are once around. The page has other uses of these keys, so it does not see them. */
  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key], factor = { "+": 0.9, "=": 0.9, "-": 1 / 0.9, "−": 1 / 0.9 }[event.key];
    if (!way && !factor) return;
    event.preventDefault();
    event.stopPropagation();
    if (factor) this.zoom(factor);
    else if (event.shiftKey) this.pan(0.05 * way[0], 0.05 * way[1]);
    else this.turn((-Math.PI / 12) * way[0], (-Math.PI / 12) * way[1]);
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


/* The camera where everything is seen: from above if it is flat. `cell` is the width of the picture over its height. */
function home(orbit, flat, half, radius, cell) {
  const { camera, THREE } = orbit, angle = (camera.fov * Math.PI) / 360, [wide, high, deep] = half;
  const far = flat ? (1.12 * Math.max(high, wide / cell)) / Math.tan(angle) + deep : (1.04 * radius) / Math.sin(angle) / Math.min(1, cell);
  camera.near = far / 100; camera.far = far * 100;
  orbit.target.set(0, 0, 0);
  orbit.place(new THREE.Vector3(...(flat ? [0, -0.02, 1] : [0.62, -0.7, 0.36])).setLength(far));
}

/* Light from where one looks. */
function lit(panel, camera, radius) {
  const middle = new panel.THREE.Vector3(...panel.middle);
  panel.sun.position.copy(camera.position).add(camera.up.clone().multiplyScalar(radius)).add(middle);
  panel.sun.target.position.copy(middle);
  panel.sun.target.updateMatrixWorld();
}
