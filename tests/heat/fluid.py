"""Interacting anisotropic rigid bodies: dipoles with soft cores in a trap, all different."""

import functools

import jax.numpy as jnp
import numpy as np

import bismut as bm

KT = 0.6
MASS = np.array([1.0, 1.6, 0.7])
INERTIA = np.array([[0.4, 0.7, 0.9], [0.5, 0.5, 0.8], [0.3, 0.4, 0.35]])
PLACES = np.array([[0.0, 0.0, 0.0], [1.2, 0.1, 0.0], [0.2, 1.1, 0.5]])


@functools.cache
def fluid() -> bm.System:
    moments = np.array([[0.0, 0.0, 0.6], [0.3, 0.0, 0.4], [0.0, 0.5, 0.0]])
    potential = bm.dipoles(moments) + bm.soft_spheres(diameter=1.0, strength=1.0, exponent=6) + bm.harmonic_trap(0.5)
    return bm.rigid_bodies(mass=MASS, inertia=INERTIA, potential=potential)


def start_point():
    return jnp.asarray(PLACES), jnp.broadcast_to(jnp.eye(3), (3, 3, 3))


def axis_temperatures(state) -> jnp.ndarray:
    """p²/(m kT) for the three translational and m²/(I kT) for the three rotational axes, averaged over bodies; the canonical momentum is measured."""
    shift, turn = state.p
    return jnp.concatenate([jnp.mean(shift**2 / (MASS[:, None] * KT), 0), jnp.mean(turn**2 / (INERTIA * KT), 0)])


def local_friction(q):
    """Six columns per body that turn and grow with where the body is: a friction that depends on position, with rotations and shifts coupled."""
    x, R = q
    size = 1 + 0.5 * jnp.tanh(x[:, :1])
    bodies = jnp.arange(3)
    shift = jnp.zeros((3, 3, 3, 2)).at[bodies, :, bodies, 0].set(2.2 * size * R[:, :, 0]).at[bodies, :, bodies, 1].set(0.8 * R[:, :, 1])
    turn = jnp.zeros((3, 3, 3, 2)).at[bodies, :, bodies, 0].set(jnp.array([0.0, 0.5, 0.3])).at[bodies, :, bodies, 1].set(0.7 * R[:, 2, :])
    return shift.reshape(3, 3, 6), turn.reshape(3, 3, 6)


def singular(scale):
    """A matrix of rank two for each body, each with another direction that feels nothing."""
    null = np.array([[1.0, 2.0, 0.5], [-1.0, 0.5, 1.0], [0.3, -0.4, 1.0]])
    null /= np.linalg.norm(null, axis=1, keepdims=True)
    return scale * (np.eye(3) - null[:, :, None] * null[:, None, :])


FRICTIONS = {
    "scalar": {"rate": 3.0},
    "per axis": {"friction": (np.array([4.0, 3.0, 6.0]), np.array([1.5, 2.5, 2.0]))},
    "per body": {"friction": (np.array([[3.0], [5.0], [2.0]]), np.array([[1.6], [2.4], [1.2]]))},
    "degenerate": {"friction": (singular(4.0), singular(2.0))},
    "position dependent": {"friction": local_friction},
}
