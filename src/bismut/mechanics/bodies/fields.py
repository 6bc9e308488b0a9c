"""Energies of single bodies: gravity, confinement and a uniform field.

    gravity         U = −Σ_i M_i g·x_i
    uniform_field   U = −Σ_i m_i·B,   m_i = R_i d_i
    harmonic_trap   U = ½ Σ_i (x_i − c)·k (x_i − c)
    soft_box        U = ε Σ_i Σ_a ((x_ia − c_a)/l_a)ⁿ,   n even

All but the field act on centres of mass: forces, no torques.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from bismut.errors import DomainError
from bismut.mechanics.bodies.arrays import numbers, per_body, vectors
from bismut.mechanics.bodies.terms import BodyTerm, Potential


def gravity(mass: Any, acceleration: Any = (0.0, 0.0, -1.0)) -> Potential:
    """U = −Σ M_i g·x_i.

    mass          M, one for all bodies or (K,), as given to rigid_bodies
    acceleration  g, (3,), in length / time², pointing down
    """
    mass, acceleration = numbers("mass", mass), vectors("acceleration", acceleration)

    energy = lambda body: -body.data * (body.x @ jnp.asarray(acceleration, body.x.dtype))
    return Potential.of(BodyTerm(energy, lambda x: per_body("mass", mass, x), "gravity"))


def harmonic_trap(stiffness: Any = 1.0, centre: Any = (0.0, 0.0, 0.0)) -> Potential:
    """U = ½ Σ k (x − c)².

    stiffness  k, energy / length²: one number, (3,) for the axes, or (K, 1) or (K, 3) for bodies that differ
    centre     c, (3,), or (K, 3) for a separate trap for each body
    """
    stiffness, centre = numbers("stiffness", stiffness), vectors("centre", centre)

    def energy(body):
        k, c = body.data
        d = body.x - c
        return 0.5 * jnp.sum(k * d * d)

    return Potential.of(BodyTerm(energy, lambda x: (_per_axis("stiffness", stiffness, x), _per_axis("centre", centre, x)), "harmonic trap"))


def soft_box(half: Any, strength: Any = 1.0, exponent: int = 12, centre: Any = (0.0, 0.0, 0.0)) -> Potential:
    """U = ε Σ ((x − c)/l)ⁿ: flat inside a box, steep at its walls, and smooth everywhere.

    half      l, half the edges of the box, a length: one number or (3,)
    strength  ε, the energy at a wall
    exponent  n, even; the larger, the harder the walls
    """
    if not isinstance(exponent, int | np.integer) or exponent < 2 or exponent % 2:
        raise DomainError(f"exponent must be an even whole number ≥ 2, so that both walls repel, got {exponent!r}.")
    half, strength, centre = numbers("half", half, positive=True), numbers("strength", strength), vectors("centre", centre)

    def energy(body):
        l, c = body.data
        return jnp.asarray(strength, body.x.dtype) * jnp.sum(((body.x - c) / l) ** int(exponent))

    return Potential.of(BodyTerm(energy, lambda x: (_per_axis("half", half, x), _per_axis("centre", centre, x)), "soft box"))


def uniform_field(field: Any, moments: Any) -> Potential:
    """U = −Σ_i m_i·B, m_i = R_i d_i: torque m × B, no force.

    field    B in space, (3,), in energy / moment
    moments  d_i in the body, (3,) for all bodies or (K, 3)
    """
    field, moments = vectors("field", field), vectors("moments", moments)
    energy = lambda body: -(body.R @ body.data) @ jnp.asarray(field, body.x.dtype)
    return Potential.of(BodyTerm(energy, lambda x: per_body("moments", moments, x, (3,)), "uniform field"))


def _per_axis(name: str, value: Any, x):
    """Numbers for the axes of space, for each body."""
    return per_body(name, value, x, (3,))
