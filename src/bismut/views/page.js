/* A scene of moving bodies, recorded: frames are decoded once. */

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
  const reset = () => {
    const cell = (stage.clientWidth / columns) / (stage.clientHeight / rows);
    home(orbit, flat, [0, 1, 2].map((a) => Math.max(...panels.map((panel) => panel.half[a]))), radius, cell);
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
      lit(panel, camera, radius);
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
  element("reset").addEventListener("click", reset);
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
  size(); reset(); legend(); show(0);
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
