"""A particle in a double well, at three temperatures in one run: where it is found, beside exp(−U/kT)."""

import sys

import jax

jax.config.update("jax_enable_x64", True)

import numpy as np

import bismut as bm

smoke = "--smoke" in sys.argv
potential = lambda q: (q[0] ** 2 - 1) ** 2 + 0.2 * q[0]  # the left well is deeper
particle = bm.mechanical(bm.Euclidean(1), potential=potential)

scheme = bm.Langevin(particle, temperature=0.5, friction=1.0)  # BAOAB
trajectories = 50 if smoke else 4_000
start = scheme.start(np.random.default_rng(1).choice([-1.0, 1.0], (trajectories, 1)), temperature=0.5)
temperatures = [0.35, 0.5, 1.0]
result = bm.simulate(
    scheme,
    start,
    step=0.1,
    steps=200 if smoke else 5_000,
    burn_in=100 if smoke else 2_000,
    trajectories=trajectories,
    seed=7,
    observe={"q": bm.histogram(lambda state: state.q[0], range=(-2, 2), bins=40, every=5), "left": bm.time_average(lambda state: state.q[0] < 0)},
    sweep={"temperature": temperatures},  # the same program and the same noise for each
)

print("  kT   found on the left      exact   largest error of the density")
centres = result.q.density.bin.values
fine = np.linspace(-3, 3, 6001)
for i, kT in enumerate(temperatures):
    weight = lambda q, kT=kT: np.exp(-potential(np.asarray(q)[None]) / kT)
    exact = weight(centres) / (weight(fine).sum() * (fine[1] - fine[0]))
    left = weight(fine[fine < 0]).sum() / weight(fine).sum()
    mean, error = float(result.left.mean[i]), float(result.left.stderr[i])
    print(f"{kT:4.2f}   {mean:8.4f} ± {error:.4f}   {left:8.4f}   {np.abs(result.q.density[i].values - exact).max():.4f} of {exact.max():.2f}")
