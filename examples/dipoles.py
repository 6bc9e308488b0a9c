"""Five magnetic needles that kick each other at random: energy wanders, total momentum and angular momentum stay what they were."""

import sys

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np

import bismut as bm

smoke = "--smoke" in sys.argv
K = 2 if smoke else 5
needle = bm.body([[0, 0, -0.5], [0, 0, 0.5], [0.2, 0, 0], [0, 0.2, 0.1]])  # points of mass 1: centre, inertia and principal axes follow

gas = bm.rigid_bodies(  # 1 declare: K bodies on (ℝ³ × SO(3))^K
    mass=np.full(K, needle.mass),
    inertia=np.tile(needle.moments, (K, 1)),
    potential=bm.dipoles((0.0, 0.0, 1.0)) + bm.soft_spheres() + bm.pair_potential(lambda a, b: 0.02 * (a.x - b.x) @ (a.x - b.x)),
    noise=bm.pair_noise(lambda a, b: jnp.exp(-b.x @ b.x / 4) * jnp.stack([1.0, 0.5 * b.R[2, 2]])),  # b as seen from a: nothing acts from outside
    symmetries={"momentum": bm.translations(), "angular momentum": bm.left_rotations()},
)
scheme = bm.VariationalEuler(gas)  # 2 discretise

angle = 2 * np.pi * np.arange(K) / K
ring = 1.8 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1)
start = scheme.start((ring, np.tile(needle.axes, (K, 1, 1))), velocity=(0.3 * np.roll(ring, 1, 1), np.ones((K, 3))))
run = bm.trajectory(scheme, start, step=0.01, steps=20 if smoke else 20_000, every=4 if smoke else 4_000, seed=7)  # 3 run

print("time    energy   total momentum            total angular momentum")
measured = jax.jit(jax.vmap(lambda state: (gas.energy(state), *(gas.momentum_map(name, state) for name in gas.symmetries))))(run.states)
for t, energy, P, J in zip(run.times, *measured, strict=True):
    print(f"{t:4.0f} {energy:9.3f}", *(" ".join(f"{value:8.4f}" for value in np.round(vector, 9) + 0.0) for vector in (P, J)))
print("largest change of either:", *(f"{jnp.max(jnp.abs(one - one[0])):.0e}" for one in measured[1:]))
