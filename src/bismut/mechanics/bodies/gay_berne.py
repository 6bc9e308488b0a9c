"""Elongated or flat bodies (Gay and Berne, J. Chem. Phys. 74, 3316 (1981)).

    U = Σ_{i<j} 4 ε(u, w, n) [ ρ⁻¹² − ρ⁻⁶ ],      ρ = (r − σ(u, w, n) + σ₀)/σ₀

with u, w the axes of the two bodies in space, n = r/|r|, and

    g(χ) = 1 − (χ/2) [ (n·u + n·w)²/(1 + χ u·w) + (n·u − n·w)²/(1 − χ u·w) ]
    σ = σ₀ g(χ)^(−1/2),                               χ  = (κ² − 1)/(κ² + 1)
    ε = ε₀ [1 − χ²(u·w)²]^(−ν/2) g(χ′)^μ,             χ′ = (κ′^(1/μ) − 1)/(κ′^(1/μ) + 1)

κ is length over breadth, κ′ the depth of the well side by side over that end to end, for parallel bodies. For κ = κ′ = 1 this is the Lennard-Jones
energy. Bodies that overlap so far that r < σ − σ₀ have no energy: the well is meant to be met from outside.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from bismut.mechanics.bodies.arrays import numbers, turned, vectors
from bismut.mechanics.bodies.box import cutoff_of
from bismut.mechanics.bodies.pairs import PairTerm
from bismut.mechanics.bodies.terms import Potential
from bismut.registry import PAIR_ENERGIES


@PAIR_ENERGIES.register
def gay_berne(
    elongation: Any = 3.0,
    well_ratio: Any = 5.0,
    breadth: Any = 1.0,
    depth: Any = 1.0,
    mu: Any = 2.0,
    nu: Any = 1.0,
    axis: Any = (0.0, 0.0, 1.0),
    *,
    cutoff: Any = None,
) -> Potential:
    """U = Σ_{i<j} 4ε [ρ⁻¹² − ρ⁻⁶], ρ = (r − σ + σ₀)/σ₀, with ε and σ as the module says.

    elongation  κ, length over breadth; below 1 for discs
    well_ratio  κ′, side by side over end to end
    breadth     σ₀, a length
    depth       ε₀, an energy
    mu, nu      exponents of the well's depth
    axis        the long axis in the body, (3,) for all bodies or (K, 3); only its direction counts
    cutoff      where it has faded to zero, a length (fading from 0.8 of it on), or the two lengths between which it fades
    """
    kappa, ratio = numbers("elongation", elongation, positive=True), numbers("well_ratio", well_ratio, positive=True)
    sigma0, epsilon0 = numbers("breadth", breadth, positive=True), numbers("depth", depth)
    mu, nu, axis = numbers("mu", mu, positive=True), numbers("nu", nu), vectors("axis", axis)
    chi = (kappa**2 - 1) / (kappa**2 + 1)
    chi_well = (ratio ** (1 / mu) - 1) / (ratio ** (1 / mu) + 1)

    lengths = jnp if isinstance(axis, Tracer) else np
    unit = axis / lengths.linalg.norm(axis, axis=-1, keepdims=True)

    def energy(pair, t, parameters):
        u, w, r, near = pair.a, pair.b, pair.r, pair.near
        real = lambda value: jnp.asarray(value, r.dtype)
        ru, rw, uw = (r @ u) * near, (r @ w) * near, u @ w
        plus, minus = (ru + rw) ** 2, (ru - rw) ** 2

        def g(c):
            return 1 - 0.5 * c * (plus / (1 + c * uw) + minus / (1 - c * uw))

        sigma = real(sigma0) / jnp.sqrt(g(real(chi)))
        epsilon = real(epsilon0) * (1 - (real(chi) * uw) ** 2) ** real(-0.5 * nu) * g(real(chi_well)) ** real(mu)
        six = (real(sigma0) / (pair.r2 * near - sigma + real(sigma0))) ** 6
        return 4 * epsilon * six * (six - 1)

    view = lambda x, R: turned("axis", unit, x, R)
    return Potential.of(PairTerm(energy, view, "Gay–Berne", cutoff=cutoff_of(cutoff), extent=(sigma0, kappa * sigma0)))
