"""The waves of an Ewald sum, over all bodies at once.

    U = (4πC/V) Σ_{k, of ±k one} e^{−k²/4α²}/k² |S(k)|² + C [ 2π |M|²/((2ε + 1) V) − π Q²/(2α² V) ] − own part
    S(k) = Σ_j (q_j + i m_j·k) e^{ik·y_j},      Q = Σ q,      M = Σ q y + m

A loop over wave vectors around one over bodies. Under a strain (1 + s) of centres and box, k becomes (1 + s)⁻ᵀ k and V becomes det(1 + s) V; what is
fixed in a body stays. A net charge Q is neutralised by a uniform background.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from bismut.body_loops import total
from bismut.errors import DomainError
from bismut.mechanics.bodies.box import Box, Cutoff
from bismut.mechanics.bodies.electrostatics import Ewald, EwaldSplitting
from bismut.programs.codegen.elementary.numbers import elementary


class Sources(NamedTuple):
    """What makes the field of bodies: `places` (K, n, 3) from their centres, or None at the centres, with charges (K, n); or moments (K, 3)."""

    places: Any
    charges: Any
    moments: Any


@dataclass(frozen=True)
class LatticeTerm:
    """The far part of an Ewald sum.

    sources   (x, R) ↦ Sources
    own       (α, x) ↦ what waves hold of each body by itself, an energy, without C
    size      the largest distance of a charge from the centre of its body
    """

    sources: Callable
    own: Callable
    ewald: Ewald
    name: str
    constant: Any = 1.0
    cutoff: Cutoff | None = None
    size: float = 0.0
    margin: float = 1.0
    box: Box | None = None
    splitting: EwaldSplitting | None = None
    factor: Any = None
    wants: tuple[str, ...] = ()

    def scaled(self, factor) -> LatticeTerm:
        return replace(self, factor=factor if self.factor is None else factor * self.factor)

    def inside(self, box: Box) -> LatticeTerm:
        splitting = self.ewald.splitting(self.cutoff, box, self.size, self.margin)
        name = f"{self.name} (α = {splitting.alpha:.4g}, cutoff {self.ewald.cutoff(self.cutoff, box).end:.4g}, {len(splitting.waves)} wave vectors)"
        return replace(self, box=box, splitting=splitting, name=name)

    def at(self, x, R, strain=None):
        """The energy, with places strained by (1 + strain) if given."""
        if self.box is None or self.splitting is None:
            raise DomainError(f"{self.name} is a sum over images, but there is no box. Give box= to mechanical or rigid_bodies, or use .inside(box).")
        alpha, waves = self.splitting
        volume, sources = float(np.prod(self.box.lengths)), self.sources(x, R)
        if strain is None:
            squares = (waves**2).sum(1)
            weights = 4 * np.pi * elementary("exp", -squares / (4 * alpha * alpha)) / squares
            wave_sum = total(lambda k, w: w * _squared(_structure(k, x, sources)), _real(waves, x), _real(weights, x))
        else:
            back, stretch = _inverse_and_determinant(jnp.eye(3, dtype=x.dtype) + strain)
            volume, x = volume * stretch, x + x @ strain.T

            def wave(k):
                moved = k @ back
                square = moved @ moved
                return 4 * np.pi * jnp.exp(-square / (4 * alpha**2)) / square * _squared(_structure(moved, x, sources))

            wave_sum = total(wave, _real(waves, x))
        energy = wave_sum / volume - self.own(alpha, x)
        if not np.isinf(self.ewald.dielectric):
            moment = _moment(x, sources)
            energy = energy + 2 * np.pi / (2 * self.ewald.dielectric + 1) * (moment @ moment) / volume
        if sources.charges is not None:
            xp = np if isinstance(sources.charges, np.ndarray) else jnp
            energy = energy - np.pi / (2 * alpha**2) * xp.sum(sources.charges) ** 2 / volume
        energy = jnp.asarray(self.constant, x.dtype) * energy
        return energy if self.factor is None else jnp.asarray(self.factor, x.dtype) * energy


def _real(array, x):
    return jnp.asarray(array, x.dtype)


def _squared(s):
    return s @ s


def _structure(k, x, sources: Sources):
    """S(k) as two real numbers."""

    def of_charges(x, places, charges):
        angle = (k @ x if places is None else places @ k + k @ x).reshape(-1)
        return jnp.stack([jnp.sum(charges * jnp.cos(angle)), jnp.sum(charges * jnp.sin(angle))])

    def of_moment(x, m):
        angle, along = k @ x, m @ k
        return jnp.stack([-along * jnp.sin(angle), along * jnp.cos(angle)])

    if sources.moments is not None:
        return total(of_moment, x, sources.moments)
    if sources.places is None:
        return total(lambda x, q: of_charges(x, None, q), x, sources.charges)
    return total(of_charges, x, sources.places, sources.charges)


def _moment(x, sources: Sources):
    """M."""
    if sources.moments is not None:
        return total(lambda m: m, sources.moments)
    if sources.places is None:
        return total(lambda x, q: q[0] * x, x, sources.charges)
    return total(lambda x, s, q: q @ s + jnp.sum(q) * x, x, sources.places, sources.charges)


def _inverse_and_determinant(a):
    """Of a matrix (3, 3), by cofactors."""
    rows = jnp.stack([jnp.cross(a[1], a[2]), jnp.cross(a[2], a[0]), jnp.cross(a[0], a[1])])
    determinant = a[0] @ rows[0]
    return rows.T / determinant, determinant
