"""Functions of z = θ² that closed forms lose near θ = 0.

    sinc(z)    = sin θ / θ               versine(z) = (1 − cos θ) / θ²
    residue(z) = (θ − sin θ) / θ³        cotangent(z) = (1 − (θ/2) cot(θ/2)) / θ²
    arctangent(z) = arctan(√z) / √z

They are analytic in z, so derivatives of every order exist at 0, and we differentiate exactly there. Below a border the Taylor series is used, with
enough terms for the third derivative too; the closed forms, which lose ε/z³ in it, begin where that no longer matters.
"""

from fractions import Fraction
from math import factorial

import jax.numpy as jnp
from jaxtyping import Array, Float

# Numerators and denominators of the Bernoulli numbers |B_2n|, n = 1, 2, ...; the ratio of |B_2n|/(2n)! tends to 1/4π².
_BERNOULLI = (
    (1, 6),
    (1, 30),
    (1, 42),
    (1, 30),
    (5, 66),
    (691, 2730),
    (7, 6),
    (3617, 510),
    (43867, 798),
    (174611, 330),
    (854513, 138),
    (236364091, 2730),
    (8553103, 6),
    (23749461029, 870),
    (8615841276005, 14322),
    (7709321041217, 510),
    (2577687858367, 6),
    (26315271553053477373, 1919190),
    (2929993913841559, 6),
    (261082718496449122051, 13530),
)

_TERMS = 20
_BORDER = 9.0


def _polynomial(z, coefficients):
    value = jnp.zeros_like(z) + coefficients[-1]
    for c in coefficients[-2::-1]:
        value = value * z + c
    return value


def _joined(z, coefficients, closed, border=_BORDER):
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
    coefficients = tuple(float(Fraction(*b) / factorial(2 * n + 2)) for n, b in enumerate(_BERNOULLI))
    # cos/sin and not 1/tan, whose derivatives cancel at half a turn. The series has the radius 4π²: at the border k³ (z/4π²)^k is 1e−13 for k = 20.
    return _joined(z, coefficients, lambda t: (1 - 0.5 * t * jnp.cos(t / 2) / jnp.sin(t / 2)) / t**2, border=4.0)


def arctangent(z: Float[Array, ""]) -> Float[Array, ""]:
    # The radius of convergence is 1, so the border is lower: k³ 0.25^k is below round-off for k = 40.
    coefficients = tuple((-1) ** k / (2 * k + 1) for k in range(40))
    return _joined(z, coefficients, lambda t: jnp.arctan(t) / t, border=0.25)
