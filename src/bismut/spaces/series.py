"""Functions of z = θ² whose closed forms cancel near θ = 0.

    sinc(z)    = sin θ / θ               versine(z) = (1 − cos θ) / θ²
    residue(z) = (θ − sin θ) / θ³        cotangent(z) = (1 − (θ/2) cot(θ/2)) / θ²
    arctangent(z) = arctan(√z) / √z

They are analytic in z, so derivatives of every order exist at 0 and are exact there. Below a border the Taylor series is used, with
enough terms for the third derivative too; the closed forms, which lose ε/z³ in it, begin where that no longer matters.
"""

from fractions import Fraction
from functools import cache
from math import factorial

import jax.numpy as jnp
from jaxtyping import Array, Float

_TERMS = 20
_BORDER = 9.0


@cache
def bernoulli(terms: int) -> tuple[Fraction, ...]:
    """b_k = B_k/k! for k < terms, the series of x/(e^x − 1), exactly: its product with Σ x^j/(j+1)! is 1. |b_2n| falls by 4π² from term to term."""
    b = [Fraction(1)]
    for k in range(1, terms):
        b.append(-sum((b[i] / factorial(k + 1 - i) for i in range(k)), Fraction(0)))
    return tuple(b)


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
    coefficients = tuple(float(abs(b)) for b in bernoulli(2 * _TERMS + 1)[2::2])
    # cos/sin and not 1/tan, whose derivatives cancel at half a turn. The series has the radius 4π²: at the border k³ (z/4π²)^k is 1e−13 for k = 20.
    return _joined(z, coefficients, lambda t: (1 - 0.5 * t * jnp.cos(t / 2) / jnp.sin(t / 2)) / t**2, border=4.0)


def arctangent(z: Float[Array, ""]) -> Float[Array, ""]:
    # The radius of convergence is 1, so the border is lower: k³ 0.25^k is below round-off for k = 40.
    coefficients = tuple((-1) ** k / (2 * k + 1) for k in range(40))
    return _joined(z, coefficients, lambda t: jnp.arctan(t) / t, border=0.25)
