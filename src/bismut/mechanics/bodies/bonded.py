"""Energies of bonds, angles and dihedrals of points.

    bonds       Σ ½ k (r − l)²                                            (`springs` between centres)
    angles      Σ ½ k (θ − θ₀)²,            θ at the middle of i, j, k
    dihedrals   Σ k [1 + cos(n φ − φ₀)],    φ about the bond j–k of i, j, k, l; φ = 0 where i and l are on the same side (cis)

    bonded_pairs(bonds, 1), (bonds, 2), (bonds, 3)      the 1–2, 1–3 and 1–4 pairs; by the shortest way, each pair once

Each is one loop over its tuples of points, whose differences are those of nearest images in a box. θ is atan2(|a × b|, a·b) and φ is an atan2 as
well: both keep their digits near 0 and π. At θ = 0 and π the derivative of θ itself is undefined, but with t = |a × b|/(a·b)

    (θ − θ₀)² = arctan²(t) = t² − ⅔ t⁴ + ...       θ₀ = π and θ near it, or θ₀ = 0 and θ near that

is a power series in |a × b|², so a chain that is straight at rest has forces and second derivatives there, too. With any other θ₀ the energy has a
cone at θ = 0 and π: the force on its tip is 0, the mean over all directions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from bismut.errors import DomainError, ShapeError
from bismut.mechanics.bodies.arrays import numbers
from bismut.mechanics.bodies.pair_energies import springs
from bismut.mechanics.bodies.site_table import pair_table
from bismut.mechanics.bodies.terms import Potential, TupleTerm

_NEAR = 0.01  # t² below which arctan²(t) is its series: t^(2n) (−1)^(n−1) (1 + 1/3 + ... + 1/(2n − 1))/n, to 10^−20 there
_SQUARE = [(-1) ** (n - 1) * sum(1 / (2 * m - 1) for m in range(1, n + 1)) / n for n in range(1, 11)]


def bonds(ends: Any, stiffness: Any = 1.0, length: Any = 1.0) -> Potential:
    """U = Σ ½ k (r − l)².

    ends       the two points of each bond, whole numbers (B, 2)
    stiffness  k, energy / length², one for all or (B,)
    length     l, one for all or (B,)
    """
    return springs(ends, stiffness, length)


def angles(triples: Any, stiffness: Any = 1.0, angle: Any = np.pi / 2) -> Potential:
    """U = Σ ½ k (θ − θ₀)², θ at the middle point of each triple.

    triples    three points for each angle, whole numbers (A, 3)
    stiffness  k, an energy, one for all or (A,)
    angle      θ₀ in radians, one for all or (A,); np.pi for what is straight at rest
    """

    def energy(a, b, k, rest):
        a = -a
        across, along = jnp.cross(a, b), a @ b
        s, straight = across @ across, jnp.where(along < 0, jnp.pi, 0.0).astype(a.dtype)
        near = (rest == straight) & (s < _NEAR * along * along)
        tip = (s == 0) & (along != 0)
        # What `where` does not choose has a derivative too, so neither side is given numbers at which its own is infinite.
        theta = jnp.where(tip, straight, jnp.arctan2(jnp.sqrt(jnp.where(near | tip, 1.0, s)), along))
        t2 = jnp.where(near, s, 0.0) / jnp.where(near, along * along, 1.0)
        return 0.5 * k * jnp.where(near, t2 * _series(t2), (theta - rest) ** 2)

    return _tuples("angles", triples, 3, energy, stiffness=stiffness, angle=angle)


def dihedrals(quadruples: Any, stiffness: Any = 1.0, multiplicity: Any = 1, phase: Any = 0.0) -> Potential:
    """U = Σ k [1 + cos(n φ − φ₀)], φ about the middle bond of each quadruple; several terms of one dihedral are several rows.

    quadruples    four points for each dihedral, whole numbers (D, 4)
    stiffness     k, an energy, one for all or (D,)
    multiplicity  n, whole numbers, one for all or (D,): with others the energy would jump at φ = π
    phase         φ₀ in radians, one for all or (D,)
    """
    known = numbers("multiplicity", multiplicity)
    if not isinstance(known, Tracer) and (known != np.round(known)).any():
        raise DomainError(f"multiplicity of dihedrals must be whole, because the energy jumps at φ = π otherwise, got {known.tolist()}.")

    def energy(a, b, c, k, n, shift):
        first, second = jnp.cross(a, b), jnp.cross(b, c)
        phi = jnp.arctan2(jnp.sqrt(b @ b) * (a @ second), first @ second)
        return k * (1 + jnp.cos(n * phi - shift))

    return _tuples("dihedrals", quadruples, 4, energy, stiffness=stiffness, multiplicity=multiplicity, phase=phase)


def _series(t2: Any) -> Any:
    """arctan²(t)/t² as a series in t²."""
    value = _SQUARE[-1]
    for coefficient in _SQUARE[-2::-1]:
        value = coefficient + t2 * value
    return value


def _tuples(name: str, members: Any, size: int, energy: Callable, **numbers_of: Any) -> Potential:
    table = np.asarray(members)
    if table.ndim != 2 or table.shape[1] != size or table.dtype.kind not in "iu" or (table < 0).any():
        raise ShapeError(f"{name} need whole numbers (n, {size}), {size} points for each, got {table.dtype} of shape {table.shape}.")
    if any(len(set(row)) < size for row in table.tolist()):
        raise ShapeError(f"{name} must name {size} different points each.")
    own = [numbers(key, value) for key, value in numbers_of.items()]
    for key, value in zip(numbers_of, own, strict=True):
        if np.shape(value) not in ((), (len(table),)):
            raise ShapeError(f"{key} of {name} must be one number or ({len(table)},), got shape {np.shape(value)}.")
    return Potential.of(TupleTerm(energy, table, tuple(own), name))


def bonded_pairs(bonds: Any, *steps: int) -> np.ndarray:
    """Pairs that are so many bonds apart, (E, 2): bonded_pairs(bonds, 1, 2, 3) are those that force fields exclude or scale.

    bonds  pairs of points (or bodies) that are bonded, whole numbers (B, 2)
    steps  how many bonds apart, by the shortest way; 1 if not given
    """
    pairs, wanted = pair_table("bonds", bonds), set(steps or (1,))
    if not all(isinstance(step, int | np.integer) and step >= 1 for step in wanted):
        raise DomainError(f"Points are a whole number of bonds ≥ 1 apart, got {sorted(wanted)}.")
    near: dict[int, set[int]] = {}
    for i, j in pairs.tolist():
        near.setdefault(i, set()).add(j)
        near.setdefault(j, set()).add(i)
    apart = []
    for start in near:
        seen, edge = {start}, {start}
        for step in range(1, max(wanted) + 1):
            edge = {k for i in edge for k in near[i]} - seen
            seen |= edge
            if step in wanted:
                apart += [(start, end) for end in edge if end > start]
    return pair_table("bonds", np.array(sorted(apart), int))
