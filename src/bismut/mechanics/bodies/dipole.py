"""Dipoles, magnetic or electric.

    U = C Σ_{i<j} [ m_i·m_j / r³ − 3 (m_i·r)(m_j·r) / r⁵ ],      m_i = R_i d_i,   r = x_j − x_i
    U = −Σ_i m_i·B                                                in a uniform field

The moment d_i is fixed in the body. C = μ₀/4π with moments in A·m² and B in tesla, or 1/4πε₀ with moments in C·m and B the electric field in V/m;
C = 1 in reduced units. A pair head to tail has the energy −2m²/r³, which has no floor: add a repulsion, such as `soft_spheres`.
"""

from typing import Any

import jax.numpy as jnp

from bismut.mechanics.bodies.arrays import numbers, per_body, turned, vectors
from bismut.mechanics.bodies.box import cutoff_of
from bismut.mechanics.bodies.pairs import PairTerm
from bismut.mechanics.bodies.terms import BodyTerm, Potential


def dipoles(moments: Any, constant: Any = 1.0, *, cutoff: Any = None) -> Potential:
    """U = C Σ_{i<j} [m_i·m_j/r³ − 3(m_i·r)(m_j·r)/r⁵], m_i = R_i d_i.

    moments   d_i in the body, (3,) for all bodies or (K, 3)
    constant  C, in energy · length³ / moment²
    cutoff    where it has faded to zero, a length (fading from 0.8 of it on), or the two lengths between which it fades
    """
    moments, constant = vectors("moments", moments), numbers("constant", constant)

    def energy(pair, t, parameters):
        m, n, r = pair.a, pair.b, pair.r
        across = m @ n - 3 * (m @ r) * (n @ r) * pair.inverse
        return jnp.asarray(constant, r.dtype) * across * pair.inverse * pair.near

    return Potential.of(PairTerm(energy, lambda x, R: turned("moments", moments, x, R), "dipoles", cutoff=cutoff_of(cutoff)), "dipoles")


def uniform_field(field: Any, moments: Any) -> Potential:
    """U = −Σ_i m_i·B, m_i = R_i d_i: torque m × B, no force.

    field    B in space, (3,), in energy / moment
    moments  d_i in the body, (3,) for all bodies or (K, 3)
    """
    field, moments = vectors("field", field), vectors("moments", moments)
    energy = lambda body: -(body.R @ body.data) @ jnp.asarray(field, body.x.dtype)
    return Potential.of(BodyTerm(energy, lambda x: per_body("moments", moments, x, (3,))), "uniform field")
