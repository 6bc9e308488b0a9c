"""Frames a second of pages that run, in Chromium without a screen and with software rendering: python -m benchmarks.frames [seconds]

    frame = 24 ms of steps in a worker, then bodies and plots        30 a second are wanted: of 100 tops, and of 500 dipoles with a cutoff

A frame counts when its steps were made and drawn. Beside it the processor time of all processes of the browser over the frames made, and how much of
the pixels of a side the page still draws while it moves (`stage.js` draws fewer where frames take more than 45 ms, at least 40 %).
"""

import sys
import tempfile
from pathlib import Path

import jax
import numpy as np
from tests.pages.browser import Browser

import bismut as bm
from bismut.gallery import entry
from bismut.views import page_of

SHARE = '{ const one = document.querySelector("#stage canvas"); one.width / (one.clientWidth * devicePixelRatio); }'


def tops() -> bm.Page:
    return page_of(entry("heavy-top"), trajectories=100, seed=1)


def dipoles(count: int = 500, side: float = 12.0) -> bm.Page:
    """Dipoles in a periodic box, a lattice at first, with neighbour lists."""
    energy = (bm.dipoles((0.0, 0.0, 0.6), cutoff=1.9) + bm.soft_spheres(cutoff=1.9)).inside((side,) * 3)
    bodies = bm.rigid_bodies(mass=np.ones(count), inertia=np.tile([0.1, 0.15, 0.2], (count, 1)), potential=energy)
    scheme = bm.Langevin(bodies, temperature=1.0, friction=0.5)
    places = side / 8 * (np.stack(np.unravel_index(np.arange(count), (8, 8, 8)), -1) + 0.5) - side / 2
    return bm.page(scheme, scheme.start((places, np.tile(np.eye(3), (count, 1, 1))), temperature=1.0), step=0.005, seed=1)


def processor_seconds(root: int) -> float:
    """Of a process and all that it began."""
    used, children = 0.0, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        children.setdefault(int(fields[1]), []).append((int(folder.name), (int(fields[11]) + int(fields[12])) / 100))
    waiting = [root]
    while waiting:
        for child, seconds in children.get(waiting.pop(), []):
            used += seconds
            waiting.append(child)
    return used


def measure(page: bm.Page, draw: int, seconds: float) -> str:
    browser = Browser()
    try:
        with tempfile.TemporaryDirectory() as folder:
            browser.open(page.save(Path(folder) / "page.html"))
            browser.run(f"bismut.draw({draw}).then(() => null)")
            browser.run('{ const one = document.getElementById("pace"); one.value = 2.3; one.dispatchEvent(new Event("input")); }')
            browser.run("bismut.play(true)")
            browser.run("new Promise((done) => setTimeout(done, 4000))")  # until the number of pixels has settled
            first, clock, step = browser.run("[bismut.frames(), performance.now(), bismut.state().k]")
            before = processor_seconds(browser.process.pid)
            browser.run(f"new Promise((done) => setTimeout(done, {1000 * seconds}))")
            after = processor_seconds(browser.process.pid)
            share = browser.run(SHARE)
            last, then, end = browser.run("[bismut.frames(), performance.now(), bismut.state().k]")
    finally:
        browser.close()
    frames, passed = last - first, (then - clock) / 1000
    each = 1000 * (after - before) / max(frames, 1)
    speed = f"{frames / passed:5.1f} frames a second at {100 * share:3.0f} % of the pixels of a side"
    return f"{speed}, {each:5.1f} ms of processor time each, {(end - step) / passed:6.0f} steps a second"


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    for name, page, draw in (("100 tops, one drawn", tops(), 1), ("100 tops, all drawn", tops(), 100), ("500 dipoles with a cutoff", dipoles(), 1)):
        print(f"{name:26} {measure(page, draw, seconds)}", flush=True)


if __name__ == "__main__":
    main()
