"""Dipoles, magnetic or electric.

    U = C Σ_{i<j} [ m_i·m_j / r³ − 3 (m_i·r)(m_j·r) / r⁵ ],      m_i = R_i d_i,   r = x_j − x_i
    U = −Σ_i m_i·B                                                in a uniform field

The moment d_i is fixed in the body. C = μ₀/4π with moments in A·m² and B in tesla, or 1/4πε₀ with moments in C·m and B the electric field in V/m;
C = 1 in reduced units. A pair head to tail has the energy −2m²/r³, which has no floor: add a repulsion, such as `soft_spheres`.
"""

from typing import Any

import jax.numpy as jnp

from bismut.mechanics.bodies.arrays import numbers, turned, vectors
from bismut.mechanics.bodies.pairs import each_pair, separation
from bismut.mechanics.bodies.terms import Potential


def dipoles(moments: Any, constant: Any = 1.0) -> Potential:
    """U = C Σ_{i<j} [m_i·m_j/r³ − 3(m_i·r)(m_j·r)/r⁵], m_i = R_i d_i.

    moments   d_i in the body, (3,) for all bodies or (K, 3)
    constant  C, in energy · length³ / moment²
    """
    moments, constant = vectors("moments", moments), numbers("constant", constant)

    def U(x, R):
        m, n = each_pair(turned("moments", moments, x, R))
        r, r2 = separation(x)
        along = jnp.sum(m * r, -1) * jnp.sum(n * r, -1)
        return jnp.asarray(constant, x.dtype) * jnp.sum((jnp.sum(m * n, -1) - 3 * along / r2) / (r2 * jnp.sqrt(r2)))

    return Potential(U, "dipoles")


def uniform_field(field: Any, moments: Any) -> Potential:
    """U = −Σ_i m_i·B, m_i = R_i d_i: torque m × B, no force.

    field    B in space, (3,), in energy / moment
    moments  d_i in the body, (3,) for all bodies or (K, 3)
    """
    field, moments = vectors("field", field), vectors("moments", moments)
    return Potential(lambda x, R: -jnp.sum(turned("moments", moments, x, R) * jnp.asarray(field, x.dtype)), "uniform field")
