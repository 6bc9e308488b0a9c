"""The packages of bismut, stacked as the import contract in pyproject.toml orders them: python docs/pictures/rooms.py draws rooms.png beside itself.

Each imports only what is below it; those side by side do not import each other.
"""

import tomllib
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch
from PIL import Image

from bismut.palette import LIGHT

HERE = Path(__file__).parent.resolve()
CONTRACTS = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LAYERS = [layer.split(" : ") for layer in next(one["layers"] for one in CONTRACTS if one["type"] == "layers")]

FRONT, RUNS, MACHINE, MECHANICS, PROGRAMS, BASE = LIGHT.ochre, LIGHT.blue, LIGHT.magenta, LIGHT.sage, LIGHT.vermilion, LIGHT.soft
GROUPS = {FRONT: "in and out", RUNS: "runs", MACHINE: "", MECHANICS: "mechanics", PROGRAMS: "programs", BASE: "basics"}
SAYS = {
    "__main__": ("python -m bismut", FRONT),
    "cli": ("the command line; run files", FRONT),
    "_api": ("the public names", FRONT),
    "figures": ("pictures, by matplotlib", FRONT),
    "views": ("pages of moving bodies", FRONT),
    "sharing": ("formats of other programs", FRONT),
    "store": ("runs on disk: commit, resume, repair", RUNS),
    "gallery": ("systems to begin with", RUNS),
    "response": ("transport, sensitivities, free energies, fits", RUNS),
    "samplers": ("a log-density in, draws out", RUNS),
    "findings": ("laws, measured: verify, certificates, advice", RUNS),
    "ensembles": ("many trajectories: requests, blocks, observers, results", RUNS),
    "engines": ("a step as machine code: native (LLVM), XLA", MACHINE),
    "executors": ("threads, processes, Dask", MACHINE),
    "flows": ("steps: derived from an action, Langevin, Brownian, baselines", MECHANICS),
    "actions": ("schemes: one scalar per file", MECHANICS),
    "units": ("numbers with units, at the edges", MECHANICS),
    "mechanics": ("systems, starts, friction, constraints, bodies", MECHANICS),
    "noise": ("paths that drive", MECHANICS),
    "spaces": ("where points live: move, subtract", MECHANICS),
    "body_loops": ("work per body and per pair as one equation", PROGRAMS),
    "programs": ("functions as programs; one definition per operation", PROGRAMS),
    "tracing": ("are numbers known?", PROGRAMS),
    "compile_cache": ("compiled once", PROGRAMS),
    "function_hash": ("when functions are the same", PROGRAMS),
}
PLAIN = ("", BASE)  # small modules without words
GAP, LEFT, RIGHT = 0.010, 0.040, 0.998


def tint(colour: str, share: float = 0.14) -> tuple[float, ...]:
    """A colour thinned with that of the ground."""
    over, under = mpl.colors.to_rgb(colour), mpl.colors.to_rgb(LIGHT.ground)
    return tuple(share * a + (1 - share) * b for a, b in zip(over, under, strict=True))


def drawn(axis, name: str, left: float, below: float, width: float, height: float) -> None:
    text, colour = SAYS.get(name, PLAIN)
    shape = FancyBboxPatch((left, below), width, height, boxstyle="round,pad=0,rounding_size=0.006", fc=tint(colour), ec=colour, lw=1.1)
    axis.add_patch(shape)
    middle = below + height / 2
    if not text:
        axis.text(left + width / 2, middle, name, ha="center", va="center", fontsize=9.5, color=LIGHT.ink, family="monospace")
        return
    shown = axis.text(left + 0.012, middle, name, ha="left", va="center", fontsize=11, color=LIGHT.ink, weight="bold", family="monospace")
    end = axis.transData.inverted().transform(shown.get_window_extent(axis.figure.canvas.get_renderer()).corners())[:, 0].max()
    axis.text(end + 0.014, middle, text, ha="left", va="center", fontsize=10, color=LIGHT.ink)


def main() -> None:
    figure = plt.figure(figsize=(9.2, 7.0), dpi=100, facecolor=LIGHT.ground)
    axis = figure.add_axes((0.006, 0.006, 0.988, 0.988))
    axis.set(xlim=(0, 1), ylim=(0, 1))
    axis.axis("off")
    height = 0.998 / len(LAYERS)
    for i, names in enumerate(LAYERS):
        share = [max(len(name) * 1.3 + len(SAYS.get(name, PLAIN)[0]), 8) for name in names]
        left, free = LEFT, RIGHT - LEFT - GAP * (len(names) - 1)
        for name, part in zip(names, share, strict=True):
            width = free * part / sum(share)
            drawn(axis, name, left, 0.999 - (i + 1) * height + 0.004, width, height - 0.008)
            left += width + GAP
    colours = [SAYS.get(names[0], PLAIN)[1] for names in LAYERS]
    for colour, group in GROUPS.items():
        first, count = colours.index(colour), colours.count(colour)
        top, bottom = 0.995 - first * height, 1.003 - (first + count) * height
        axis.plot((0.027, 0.027), (bottom, top), color=colour, lw=2.2, solid_capstyle="butt")
        if group:  # beside a single row none fits
            axis.text(0.011, (top + bottom) / 2, group, rotation=90, ha="center", va="center", fontsize=10, color=LIGHT.ink)
    file = HERE / "rooms.png"
    figure.savefig(file, facecolor=LIGHT.ground)
    Image.open(file).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(file, optimize=True)


if __name__ == "__main__":
    main()
