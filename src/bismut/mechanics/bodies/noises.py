"""Stochastic potentials of bodies.

    translation_noise   γ_ia  = s x_ia                3K  processes: forces with covariance s² 1 per unit time on every body
    orientation_noise   γ_iab = s_b (R_i)_ab          9K  processes: body torques with covariance diag(s₂²+s₃², s₁²+s₃², s₁²+s₂²)
    pair_noise          γ_ijn = w_n(i seen from j)    n K(K−1)/2 processes

The first two shake bodies from outside. The third depends on relative configurations alone: each process pushes two bodies with opposite forces, and
turns them with torques that make up for the couple of these, so total momentum and total angular momentum stay what they are on every
path, as in dissipative particle dynamics without its friction.

They act together as `translation_noise(...) + pair_noise(...)`.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from bismut.errors import ShapeError
from bismut.mechanics.bodies.arrays import numbers, per_body
from bismut.mechanics.bodies.box import cutoff_of
from bismut.mechanics.bodies.pair_energies import orientation_and_data
from bismut.mechanics.bodies.pairs import PairTerm, Placed
from bismut.mechanics.bodies.terms import BodyTerm, Noise
from bismut.mechanics.function import required_function


def translation_noise(strength: Any) -> Noise:
    """γ = s x_i, three for each body: white forces in space.

    strength  s, in force · √time: one number, (3,) for the axes of space, or (K, 1) or (K, 3) for bodies that differ
    """
    strength = numbers("strength", strength)
    return Noise.of(BodyTerm(lambda body: body.data * body.x, lambda x: per_body("strength", strength, x, (3,)), "translation noise"))


def orientation_noise(strength: Any) -> Noise:
    """γ = s_b (R_i)_ab, nine for each body: white torques.

    In body axes they have the covariance diag(s₂²+s₃², s₁²+s₃², s₁²+s₂²), whatever the orientation; 2s² for equal s. (A torque noise with a constant
    body-fixed vector is not the differential of a potential on SO(3).)

    strength  s, in torque · √time: one number, (3,) for the axes of the body, or (K, 1) or (K, 3) for bodies that differ
    """
    strength = numbers("strength", strength)
    return Noise.of(BodyTerm(lambda body: body.data * body.R, lambda x: per_body("strength", strength, x, (3,)), "orientation noise"))


def pair_noise(amplitude: Callable, data: Any = None, *, cutoff: Any = None, box: Any = None) -> Noise:
    """γ = w(a, b) for every pair: one value, or several as an array, each with a Wiener process of its own.

    The pair is passed as seen from its first body, a.x = 0 and a.R = 1, so that w can depend only on the relative configuration: b.x is where b
    lies and b.R how it is turned, in the axes of a. `data`, `cutoff` and `box` as in `pair_potential`. In energy · √time. For example

        pair_noise(lambda a, b: 0.3 * jnp.exp(-b.x @ b.x))                    kicks along the line of centres
        pair_noise(lambda a, b: 0.1 * b.R[2, 2] / (1 + b.x @ b.x))            and torques that turn the third axes of the two
    """
    w = required_function("The pair noise", amplitude, ("a", "b"))

    def value(pair, t, parameters):
        (A, mine), (B, other), x = pair.a, pair.b, pair.x
        if A is None:
            raise ShapeError("Pair noise sees a pair in the axes of its first body, but there are only positions. Use rigid_bodies.")
        first, second = Placed(jnp.zeros_like(x), jnp.eye(3, dtype=x.dtype), mine), Placed(A.T @ pair.r, A.T @ B, other)
        return w(first, second, t=t, parameters=parameters)

    name = f"pair noise {getattr(amplitude, '__name__', 'w')}".replace("<lambda>", "w")
    noise = Noise.of(PairTerm(value, orientation_and_data(data), name, cutoff=cutoff_of(cutoff), wants=w.wants))
    return noise if box is None else noise.inside(box)
