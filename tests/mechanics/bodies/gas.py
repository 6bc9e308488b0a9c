"""A gas of different dipoles with everything that acts between bodies, and nothing from outside: no symmetry is broken but that of the bodies."""

import jax.numpy as jnp
import numpy as np

import bismut as bm
from tests.mechanics.bodies.configurations import scattered

SYMMETRIES = {"momentum": bm.translations(), "angular": bm.left_rotations()}


def shapes(count: int) -> bm.Body:
    """Clouds without symmetry, all different."""
    generator = np.random.default_rng(5)
    return bm.stack_bodies([bm.body(0.5 * generator.normal(size=(4 + k, 3)), generator.uniform(0.5, 1.5, 4 + k)) for k in range(count)])


def kicks(a, b):
    """Three values for each pair: along the line of centres, on relative orientation, and on both."""
    near = jnp.exp(-0.3 * b.x @ b.x)
    return near * jnp.stack([0.4 * a.data * b.data, 0.3 * b.R[2, 0] + 0.2 * b.R[0, 1], 0.5 * b.x[1] * b.R[1, 1]])


def energies(count: int) -> bm.Potential:
    """Dipoles that repel when they touch, on a ring of springs that keeps them together."""
    moments = np.random.default_rng(6).normal(size=(count, 3))
    ring = [[k, (k + 1) % count] for k in range(count)]
    springs = bm.springs(ring, 0.8, np.linspace(0.0, 2.0, count), [[0.3, 0.1, 0.0], [0.0, -0.2, 0.3]])
    return bm.dipoles(moments) + bm.soft_spheres(np.linspace(0.9, 1.2, count)) + springs


def gas(count: int) -> bm.System:
    body = shapes(count)
    noise = bm.pair_noise(kicks, np.linspace(1.0, 1.5, count))
    return bm.rigid_bodies(mass=body.mass, inertia=body.moments, potential=energies(count), noise=noise, symmetries=SYMMETRIES)


def start(scheme: bm.Action, count: int) -> bm.State:
    generator = np.random.default_rng(8)
    velocity = 0.4 * generator.normal(size=(count, 3)) + [0.3, -0.5, 0.4], generator.normal(size=(count, 3))
    return scheme.start(scattered(count, 2), velocity=velocity)
