"""Functions of z = θ² that closed forms lose near θ = 0.

    sinc(z)    = sin θ / θ               versine(z) = (1 − cos θ) / θ²
    residue(z) = (θ − sin θ) / θ³        cotangent(z) = (1 − (θ/2) cot(θ/2)) / θ²
    arctangent(z) = arctan(√z) / √z

They are analytic in z, so derivatives of every order exist at 0, and we differentiate exactly there. Below z = 1 the Taylor series is used:
its truncation error is below 1e−17 including the third derivative, while the closed forms would lose ε/z³ there. Above 1 they are safe.
"""

from math import factorial

import jax.numpy as jnp
from jaxtyping import Array, Float

# |B_2n| / (2n)! for n = 1, 2, ...: ratios tend to 1/4π². B_2n are the Bernoulli numbers.
_BERNOULLI = (1 / 6, 1 / 30, 1 / 42, 1 / 30, 5 / 66, 691 / 2730, 7 / 6, 3617 / 510, 43867 / 798, 174611 / 330, 854513 / 138, 236364091 / 2730)

_TERMS = 13


def _polynomial(z, coefficients):
    value = jnp.zeros_like(z) + coefficients[-1]
    for c in coefficients[-2::-1]:
        value = value * z + c
    return value


def _joined(z, coefficients, closed, border=1.0):
    """Series below the border, closed form above, each evaluated only where it is finite so that gradients are too."""
    small = z < border
    return jnp.where(small, _polynomial(jnp.where(small, z, 0.0), coefficients), closed(jnp.sqrt(jnp.where(small, border, z))))


def _alternating(first: int):
    return tuple((-1) ** k / factorial(2 * k + first) for k in range(_TERMS))


def sinc(z: Float[Array, ""]) -> Float[Array, ""]:
    return _joined(z, _alternating(1), lambda t: jnp.sin(t) / t)


def versine(z: Float[Array, ""]) -> Float[Array, ""]:
    return _joined(z, _alternating(2), lambda t: 2 * (jnp.sin(t / 2) / t) ** 2)


def residue(z: Float[Array, ""]) -> Float[Array, ""]:
    return _joined(z, _alternating(3), lambda t: (t - jnp.sin(t)) / t**3)


def cotangent(z: Float[Array, ""]) -> Float[Array, ""]:
    coefficients = tuple(b / factorial(2 * n + 2) for n, b in enumerate(_BERNOULLI))
    return _joined(z, coefficients, lambda t: (1 - (t / 2) / jnp.tan(t / 2)) / t**2)


def arctangent(z: Float[Array, ""]) -> Float[Array, ""]:
    # The radius of convergence is 1, so the border is lower: 0.1^20 is below round-off.
    coefficients = tuple((-1) ** k / (2 * k + 1) for k in range(20))
    return _joined(z, coefficients, lambda t: jnp.arctan(t) / t, border=0.1)
