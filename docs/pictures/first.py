"""The picture of the README, from the top that stands there: python docs/pictures/first.py"""

import os
import sys
from pathlib import Path

os.environ["JAX_ENABLE_X64"] = "1"
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "site"))

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from PIL import Image
from still import paint, plt

import bismut as bm
from bismut.gallery import entry

BLUE, VERMILION = "#0072B2", "#D55E00"
inertia = jnp.array([1.0, 2.0, 3.0])
top = bm.System(
    space=bm.SO3(),
    lagrangian=lambda R, w: 0.5 * w @ (inertia * w) - 3.0 * R[2, 2],
    noise=lambda R: jnp.array([0.5 * R[2, 2], 0.3 * R[2, 2] ** 2]),
    symmetries={"vertical": bm.left_rotation((0.0, 0.0, 1.0))},
)
scheme = bm.VariationalEuler(top)
start = scheme.start(jnp.eye(3), velocity=jnp.array([0.3, 0.2, 1.0]))
observe = {"energy": bm.values(bm.energy), "J": bm.values(bm.momentum("vertical"))}
result = bm.simulate(scheme, start, step=0.01, steps=1_000, trajectories=1_000, seed=7, every=10, observe=observe)
kept = bm.trajectory(scheme, start, step=0.01, steps=420, every=2, seed=7)

with mpl.rc_context({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False}):
    figure = plt.figure(figsize=(11, 3.6), dpi=120, layout="constrained")
    shown, spread, conserved = figure.subplots(1, 3, width_ratios=[1, 1.25, 1.25])
    paint(shown, entry("heavy-top").picture(top, np.asarray(kept.q)), 150)
    shown.set_title("a top in random fields")
    time = result.times
    energy, J = (np.asarray(result[name].dataset()["value"].transpose("time", ...)) for name in ("energy", "J"))
    spread.plot(time, energy[:, :150], color=BLUE, linewidth=0.5, alpha=0.25)
    spread.plot(time, energy.mean(1), color="black", linewidth=1.8)
    spread.set(xlabel="time", title="energy: noise pumps it in", xlim=(0, 10))
    conserved.plot(time, (J - J[0])[:, :150] * 1e14, color=VERMILION, linewidth=0.5, alpha=0.25)
    conserved.set(xlabel="time", title="vertical angular momentum − 3, × 10¹⁴", xlim=(0, 10), ylim=(-9, 9))
    figure.savefig(HERE / "first.png")
    plt.close(figure)
Image.open(HERE / "first.png").convert("RGB").quantize(96, dither=Image.Dither.NONE).save(HERE / "first.png", optimize=True)
