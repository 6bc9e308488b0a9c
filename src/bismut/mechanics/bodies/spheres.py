"""Soft spheres.

    U = ε Σ_{i<j} (σ_ij / r)ⁿ,      σ_ij = (σ_i + σ_j)/2

A repulsion between centres that keeps bodies apart: forces, no torques. It is ε at contact, r = σ_ij.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from bismut.errors import DomainError
from bismut.mechanics.bodies.arrays import numbers, per_body
from bismut.mechanics.bodies.box import cutoff_of
from bismut.mechanics.bodies.pairs import PairTerm
from bismut.mechanics.bodies.terms import Potential


def soft_spheres(diameter: Any = 1.0, strength: Any = 1.0, exponent: int = 12, *, cutoff: Any = None) -> Potential:
    """U = ε Σ_{i<j} ((σ_i + σ_j)/2r)ⁿ.

    diameter  σ, a length, one for all bodies or (K,)
    strength  ε, an energy
    exponent  n, a whole number ≥ 1
    cutoff    where it has faded to zero, a length (fading from 0.8 of it on), or the two lengths between which it fades
    """
    if not isinstance(exponent, int | np.integer) or exponent < 1:
        raise DomainError(f"exponent must be a whole number ≥ 1, got {exponent!r}.")
    diameter, strength = numbers("diameter", diameter, positive=True), numbers("strength", strength)

    def energy(pair, t, parameters):
        sigma = 0.5 * (pair.a + pair.b)
        closeness = sigma * sigma * pair.inverse  # (σ/r)²: no root for an even exponent
        power = closeness ** (exponent // 2) * (sigma * pair.near if exponent % 2 else 1)
        return jnp.asarray(strength, power.dtype) * power

    seen = lambda x, R: per_body("diameter", diameter, x)
    return Potential.of(PairTerm(energy, seen, "soft spheres", cutoff=cutoff_of(cutoff)), "soft spheres")
