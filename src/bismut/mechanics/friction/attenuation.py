"""What one contact with the bath leaves of a momentum.

    p ← c p + √(kT m (1 − c²)) z,      c(x) = 1 − x φ(x),     x = γh

    exact    φ = (1 − e^{−x})/x,   c = e^{−x}                       relaxation at fixed q
    cayley   φ = 1/(1 + x/2),      c = (1 − x/2)/(1 + x/2)          GJ-I, of Grønbech-Jensen and Farago

Whatever φ, the momenta of the bath are exp(−p²/2mkT) exactly. Without forces the chain of momenta diffuses positions by

    (kT/Γ) (x/2)(1 + c)/(1 − c)  =  (kT/Γ) (1 − xφ/2)/φ

so cayley diffuses rightly at every step, and any other φ where drifts and kicks last b h, b² = φ/(1 − xφ/2) (Sivak, Chodera and Crooks). These are
the GJ set: φ is its c₃. It needs 0 < φ < 2/x, and φ = 1 − x/2 + O(x²) for order 2.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

Loss = Callable[[Array], Array]


def relaxation(x):
    """φ(x) = (1 − e^{−x})/x, of exact relaxation."""
    near = x < 1e-3
    far = jnp.where(near, 1.0, x)
    return jnp.where(near, 1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6)))), -jnp.expm1(-far) / far)


def cayley(x):
    """φ(x) = 1/(1 + x/2), of GJ-I."""
    return 1 / (1 + x / 2)


def decay_and_variance(loss: Loss | None, x: Float[Array, ...]) -> tuple[Float[Array, ...], Float[Array, ...]]:
    """c and 1 − c²; exact relaxation if no φ is given."""
    if loss is None:
        return jnp.exp(-x), -jnp.expm1(-2 * x)
    lost = x * loss(x)
    return 1 - lost, lost * (2 - lost)


def matrix_functions(loss: Loss | None) -> tuple[Callable, Callable]:
    """φ, and ((1 − c²)/2x)^{1/2} = (φ (1 − xφ/2))^{1/2}, for functions of a matrix."""
    if loss is None:
        return relaxation, lambda x: jnp.sqrt(relaxation(2 * x))
    return loss, lambda x: jnp.sqrt(loss(x) * (1 - x * loss(x) / 2))


def free_diffusion(loss: Loss | None, x: Float[Array, ...]) -> Float[Array, ...]:
    """(x/2)(1 + c)/(1 − c): diffusion without forces, in units of kT/Γ; (x/2) coth(x/2) for exact relaxation."""
    phi = relaxation(x) if loss is None else loss(x)
    return (1 - x * phi / 2) / phi
