"""Soft spheres.

    U = ε Σ_{i<j} (σ_ij / r)ⁿ,      σ_ij = (σ_i + σ_j)/2

A repulsion between centres that keeps bodies apart: forces, no torques. It is ε at contact, r = σ_ij.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from bismut.errors import DomainError
from bismut.mechanics.bodies.arrays import numbers, per_body
from bismut.mechanics.bodies.pairs import each_pair, separation
from bismut.mechanics.bodies.terms import Potential


def soft_spheres(diameter: Any = 1.0, strength: Any = 1.0, exponent: int = 12) -> Potential:
    """U = ε Σ_{i<j} ((σ_i + σ_j)/2r)ⁿ.

    diameter  σ, a length, one for all bodies or (K,)
    strength  ε, an energy
    exponent  n, a whole number ≥ 1
    """
    if not isinstance(exponent, int | np.integer) or exponent < 1:
        raise DomainError(f"exponent must be a whole number ≥ 1, but {exponent!r} came.")
    diameter, strength = numbers("diameter", diameter, positive=True), numbers("strength", strength)

    def U(x, R):
        del R
        a, b = each_pair(per_body("diameter", diameter, x))
        closeness = 0.25 * (a + b) ** 2 / separation(x)[1]  # (σ/r)²: no root for an even exponent
        power = closeness ** (exponent // 2) * (jnp.sqrt(closeness) if exponent % 2 else 1)
        return jnp.asarray(strength, x.dtype) * jnp.sum(power)

    return Potential(U, "soft spheres")
