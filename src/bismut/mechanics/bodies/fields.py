"""What acts on each body by itself: gravity and confinement.

    gravity         U = −Σ_i M_i g·x_i
    harmonic_trap   U = ½ Σ_i (x_i − c)·k (x_i − c)
    soft_box        U = ε Σ_i Σ_a ((x_ia − c_a)/l_a)ⁿ,   n even

All act on centres of mass: forces, no torques.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from bismut.errors import DomainError
from bismut.mechanics.bodies.arrays import numbers, per_body, vectors
from bismut.mechanics.bodies.terms import Potential


def gravity(mass: Any, acceleration: Any = (0.0, 0.0, -1.0)) -> Potential:
    """U = −Σ M_i g·x_i.

    mass          M, one for all bodies or (K,), as given to rigid_bodies
    acceleration  g, (3,), in length / time², pointing down
    """
    mass, acceleration = numbers("mass", mass), vectors("acceleration", acceleration)

    def U(x, R):
        del R
        return -jnp.sum(per_body("mass", mass, x)[:, None] * x * jnp.asarray(acceleration, x.dtype))

    return Potential(U, "gravity")


def harmonic_trap(stiffness: Any = 1.0, centre: Any = (0.0, 0.0, 0.0)) -> Potential:
    """U = ½ Σ k (x − c)².

    stiffness  k, energy / length²: one number, (3,) for the axes, or (K, 1) or (K, 3) for bodies that differ
    centre     c, (3,), or (K, 3) for a trap of its own for each body
    """
    stiffness, centre = numbers("stiffness", stiffness), vectors("centre", centre)

    def U(x, R):
        del R
        d = x - per_body("centre", centre, x, (3,))
        return 0.5 * jnp.sum(per_body("stiffness", stiffness, x, (3,)) * d * d)

    return Potential(U, "harmonic trap")


def soft_box(half: Any, strength: Any = 1.0, exponent: int = 12, centre: Any = (0.0, 0.0, 0.0)) -> Potential:
    """U = ε Σ ((x − c)/l)ⁿ: flat inside a box, steep at its walls, and smooth everywhere.

    half      l, half the edges of the box, a length: one number or (3,)
    strength  ε, the energy at a wall
    exponent  n, even; the larger, the harder the walls
    """
    if not isinstance(exponent, int | np.integer) or exponent < 2 or exponent % 2:
        raise DomainError(f"exponent must be an even whole number ≥ 2, so that both walls repel, but {exponent!r} came.")
    half, strength, centre = numbers("half", half, positive=True), numbers("strength", strength), vectors("centre", centre)

    def U(x, R):
        del R
        inside = (x - per_body("centre", centre, x, (3,))) / per_body("half", half, x, (3,))
        return jnp.asarray(strength, x.dtype) * jnp.sum(inside ** int(exponent))

    return Potential(U, "soft box")
