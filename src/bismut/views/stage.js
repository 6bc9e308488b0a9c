/* What is drawn of bodies: a panel for each scheme, all looked at by one camera. */
class Stage {
  static async build(drawings, seen, names, changed) {
    const THREE = await three(), stage = new Stage(), { flat } = drawings[0].data;
    Object.assign(stage, { THREE, drawings, seen, flat, panels: [], box: element("stage"), share: 1, mean: 25 });
    stage.bodies = drawings.reduce((sum, drawing) => sum + drawing.bodies, 0);
    stage.renderer = new THREE.WebGLRenderer({ antialias: stage.bodies < 64 });
    stage.renderer.outputColorSpace = THREE.LinearSRGBColorSpace;  // colours are shown as they are written
    stage.box.prepend(stage.renderer.domElement);
    stage.camera = new THREE.PerspectiveCamera(35, 1, 0.01, 1000);
    stage.camera.up.set(0, flat ? 1 : 0, flat ? 0 : 1);
    stage.orbit = new Orbit(THREE, stage.camera, stage.renderer.domElement, changed);
    stage.labels = names.map((name) => {
      const label = document.createElement("div");
      label.className = "label";
      label.textContent = name;
      stage.box.append(label);
      return label;
    });
    return stage;
  }

  get copied() { return this.panels.length ? this.panels[0].copies : 0; }

  async copies(count) {
    const bodies = this.bodies * count, shapes = geometries(this.THREE, bodies < 64, bodies >= 64);
    shapes.mark("ellipsoid");
    for (const panel of this.panels) panel.gone();
    this.panels = [];
    for (const [p, drawing] of this.drawings.entries()) {
      const panel = await LivePanel.build(this.THREE, drawing, shapes, this.seen[p], count);
      panel.series = this.drawings.length > 1 && drawing.bodies === 1 ? p : null;  // the colour of its curves
      panel.scene.position.set(...panel.middle.map((a) => -a));
      panel.scene.updateMatrixWorld(true);
      panel.paint();
      this.panels.push(panel);
    }
    this.radius = Math.max(...this.panels.map((panel) => panel.radius));
    this.home();
  }

  /* Panels beside one another, or one above the other, whichever makes them larger: width and height of one, and how many in a row. */
  cells() {
    const count = this.drawings.length, width = this.box.clientWidth, height = Math.max(this.box.clientHeight, 1), across = width > height ? count : 1;
    return { across, width: width / across, height: (height * across) / count };
  }

  home() {
    const { width, height } = this.cells(), half = [0, 1, 2].map((a) => Math.max(...this.panels.map((panel) => panel.half[a])));
    home(this.orbit, this.flat, half, this.radius, width / height);
  }

  size() {
    this.renderer.setPixelRatio((window.devicePixelRatio || 1) * this.share);
    this.renderer.setSize(this.box.clientWidth, this.box.clientHeight, false);
  }

  present(runs) { this.panels.forEach((panel, p) => panel.present(runs[p].seen)); }

  paint() { for (const panel of this.panels) panel.paint(); }

  forget() { for (const panel of this.panels) panel.forget(); }

  /* Fewer pixels while it moves, where the machine draws too slowly: 30 frames a second are 33 ms each. All of them where it stands still. */
  adapt(moving, ms) {
    this.mean = moving ? 0.9 * this.mean + 0.1 * ms : 25;
    const share = !moving ? 1 : this.mean > 45 && this.share > 0.4 ? Math.max(0.4, 0.8 * this.share) : this.share;
    if (share === this.share) return;
    Object.assign(this, { share, mean: 25 });
    this.size();
  }

  draw() {
    const { across, width, height } = this.cells();
    this.renderer.setClearColor(palette().ground);
    this.renderer.setScissorTest(true);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    this.panels.forEach((panel, p) => {
      const x = (p % across) * width, y = Math.floor(p / across) * height, up = this.box.clientHeight - y - height;
      this.renderer.setViewport(x, up, width, height);
      this.renderer.setScissor(x, up, width, height);
      lit(panel, this.camera, this.radius);
      this.renderer.render(panel.scene, this.camera);
      if (this.labels[p]) Object.assign(this.labels[p].style, { left: `${x}px`, bottom: `${up}px`, width: `${width}px` });
    });
  }
}
