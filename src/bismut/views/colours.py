"""By what bodies are coloured.

kinetic energy   ½⟨p, v⟩ of each body          energy          of the whole system, the same for all its bodies
angular speed    |w|                            speed           |v|
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bismut.host import evaluate
from bismut.mechanics import State, System
from bismut.views.motion import Motion


def colours(motion: Motion, bodies: int) -> dict[str, np.ndarray]:
    """Names and numbers (frames, K); none for a system that is not known."""
    system = motion.system
    if system is None:
        return {}
    if not system.has_lagrangian:  # velocities are not known; the Hamiltonian is
        energy = np.asarray(jax.jit(jax.vmap(lambda q, p, t: system.energy(State(q, p), t)))(motion.q, motion.p, motion.times))
        return {"energy": np.repeat(energy[:, None], bodies, 1)}
    velocity, energy = _of_frames(system, motion)
    found: dict[str, np.ndarray] = {}
    p, v = jax.tree.leaves(motion.p), [np.asarray(leaf) for leaf in jax.tree.leaves(velocity)]
    if len(p) != len(v) or any(a.shape != b.shape for a, b in zip(p, v, strict=True)):
        return found
    apart = all(leaf.ndim > 1 and leaf[0].size % bodies == 0 for leaf in v)
    if bodies > 1 and apart:
        found["kinetic energy"] = np.sum([0.5 * _each(a * b, bodies).sum(-1) for a, b in zip(p, v, strict=True)], 0)
    else:
        found["energy"] = np.repeat(energy[:, None], bodies, 1)
    turning = _rotating(motion, len(v))
    for name, wanted in (("angular speed", True), ("speed", False)):
        leaves = [leaf for leaf, turns in zip(v, turning, strict=True) if turns == wanted]
        if leaves and apart:
            found[name] = np.linalg.norm(_each(leaves[0], bodies)[..., :3], axis=-1)
    return found


def _each(leaf: np.ndarray, bodies: int) -> np.ndarray:
    return leaf.reshape(len(leaf), bodies, -1)


def _rotating(motion: Motion, count: int) -> list[bool]:
    """Which arrays of the velocity turn something: those whose points are rotations. On SE(3) angular and linear velocity are one array."""
    points = jax.tree.leaves(motion.q)
    square = lambda leaf: leaf.ndim > 2 and leaf.shape[-2:] in ((3, 3), (2, 2))
    if len(points) != count:
        return [square(points[0])] * count
    same = jax.tree.leaves(motion.p)
    return [square(point) and point.shape != momentum.shape for point, momentum in zip(points, same, strict=True)]


def _of_frames(system: System, motion: Motion) -> tuple[Any, np.ndarray]:
    """Velocities and energies of all frames."""

    def one(q, p, t):
        return system.velocity(q, p, t), system.energy(State(q, p), t)

    velocity, energy = evaluate(jax.vmap(one), motion.q, motion.p, motion.times)
    return velocity, np.asarray(energy)
