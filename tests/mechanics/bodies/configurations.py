"""Configurations of bodies without any special place or direction, and rigid motions of all of them together."""

import numpy as np
from scipy.spatial.transform import Rotation


def scattered(count: int, seed: int = 0, spacing: float = 1.6) -> tuple[np.ndarray, np.ndarray]:
    """Bodies near the places of a lattice, so that none touch, turned at random."""
    generator = np.random.default_rng(seed)
    side = int(np.ceil(count ** (1 / 3)))
    places = np.stack(np.meshgrid(*[np.arange(side)] * 3), -1).reshape(-1, 3)[:count]
    x = spacing * (places + 0.2 * generator.uniform(-1, 1, (count, 3)))
    return x, Rotation.random(count, random_state=generator).as_matrix()


def moved(q, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The same bodies after one rigid motion of space."""
    generator = np.random.default_rng(seed)
    turn, shift = Rotation.random(random_state=generator).as_matrix(), generator.normal(size=3)
    return q[0] @ turn.T + shift, turn @ q[1]


def nudged(q, body: int, axis: int, amount: float) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """One body shifted along an axis of space, and one turned about an axis of its own."""
    x, R = q
    shift, turn = np.zeros_like(x), np.zeros(3)
    shift[body, axis] = turn[axis] = amount
    turned = R.copy()
    turned[body] = R[body] @ Rotation.from_rotvec(turn).as_matrix()
    return (x + shift, R), (x, turned)
