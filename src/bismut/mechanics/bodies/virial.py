"""Pressure of bodies in a periodic box, and what a cutoff leaves out of it.

    P_ab = (1/V) [ Σ_i p_ia v_ib − ∂U/∂ε_ab ],      P = tr P_ab / d

ε strains all places and the box; for rigid bodies centres are strained and orientations stay, the molecular virial. U is what the run has, with its
cutoffs, so P is the derivative of the free energy of that model. Beyond its cutoff a pair energy u is left out; where g(r) = 1 that amounts to

    u_tail = ½ ρ Σ_ab c_a c_b ∫ (1 − S(r)) u_ab(r) d^dr   per body,      P_tail = ρ u_tail

with the fractions c_a of kinds. Of sites on bodies u is the mean over all directions of both. Of charges in a reaction field or an Ewald sum nothing
is left out: only Lennard-Jones energies are.
"""

from __future__ import annotations

from dataclasses import replace
from math import gamma
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import DomainError
from bismut.mechanics.bodies.box import Box
from bismut.mechanics.bodies.forces import opened
from bismut.mechanics.bodies.inventory import acting_terms, inventory
from bismut.mechanics.bodies.lattice import LatticeTerm
from bismut.mechanics.bodies.pairs import Lost, PairTerm, distances
from bismut.mechanics.bodies.terms import BodyTerm, Potential, TupleTerm
from bismut.mechanics.state import State
from bismut.mechanics.system import System
from bismut.programs.dependence import depends
from bismut.programs.evaluation import evaluate

_MOST_KINDS = 20  # of a mixture


def pressure_tensor(system: System, state: State, t) -> Any:
    """P_ab of one state, a matrix (d, d)."""
    potential, box = boxed_potential(system)
    if not isinstance(state.p, tuple) and isinstance(state.q, tuple):
        raise DomainError("The pressure of bodies whose mobility couples translation and rotation has no kinetic part along the axes of space here.")
    q, v, p = state.q, system.velocity(state.q, state.p, t), state.p
    x, R = q if isinstance(q, tuple) else (q, None)
    v, p = (tree[0] if isinstance(tree, tuple) else tree for tree in (v, p))
    motion = jnp.einsum("ia,ib->ab", p, v)
    volume = np.prod(box.lengths) if state.box is None else jnp.prod(state.box)
    pressing = _pressing(potential, system)
    if not pressing.parts:
        return motion / volume
    return (motion + pressing.virial(x, R, t, system.in_box_of(state).parameters)) / volume


def _pressing(potential: Potential, system: System) -> Potential:
    """The terms that depend on places: fields that act on orientations only do no work when box and places are strained. Forces of the user's own are
    those of their energy, which is what is differentiated."""
    terms = opened(potential)
    return terms._with([part for part in terms.parts if not isinstance(part, BodyTerm) or acts_on_places(part, system)], terms._name)


def acts_on_places(part: BodyTerm, system: System) -> bool:
    """Whether the energy of single bodies depends on where they are, as its program shows."""
    q = jax.eval_shape(lambda: system.space.origin(system.dtype))
    x, R = q if isinstance(q, tuple) else (q, None)
    return depends(Potential.of(part), x, R)


def boxed_potential(system: System) -> tuple[Potential, Box]:
    """The potential of a system as terms, and its box; an error where there is no pressure."""
    bodies, terms = inventory(system), acting_terms(system._potential)
    if bodies is None or bodies.kind not in ("points", "bodies", "disks") or bodies.count is None:
        raise DomainError(f"A pressure is that of many points or bodies, such as rigid_bodies(...) or Euclidean(3) ** K, not of {system.space}.")
    if bodies.box is None or not np.isfinite(bodies.box.lengths).all():
        raise DomainError("A pressure needs a closed periodic box: mechanical(..., box=) or rigid_bodies(..., box=) with pair terms as potential.")
    if system.constraints:
        raise DomainError("The pressure of a system with constraints needs their forces, which a state does not hold. Use rigid_bodies.")
    if not isinstance(terms, Potential):
        raise DomainError("A pressure needs a potential made of terms, which see the box, such as lennard_jones(...); a plain function does not.")
    return terms, bodies.box


class TailCorrection(NamedTuple):
    """What cutoffs leave out where g(r) = 1: energy per body, and pressure."""

    energy: float
    pressure: float


def tail_correction(system: System) -> TailCorrection:
    """What cutoffs of pair energies leave out, if bodies beyond them are spread evenly and turned every way; of a mixture, those of every kind.

    system  of points or rigid bodies in a box, mechanical(Euclidean(d) ** K, ..., box=...) or rigid_bodies(..., box=...), with energies of distances
            between centres, or Lennard-Jones energies of sites

    Bonded terms, springs and other terms of given pairs have no cutoff, so that nothing of them is left out, and neither of charges in a reaction
    field or an Ewald sum.
    """
    potential, box = boxed_potential(system)
    potential, bodies = _pressing(potential, system), inventory(system)
    assert bodies is not None
    cut = [term for term in potential.parts if not _whole(term)]
    if not cut:
        raise DomainError(f"Nothing is left out of {potential}: none of its terms has a cutoff.")
    d = len(box.lengths)
    x = jnp.zeros((bodies.bodies, d), system.dtype)
    R = jnp.tile(jnp.eye(d, dtype=system.dtype), (bodies.bodies, 1, 1)) if bodies.turns else None
    volume, left_out = float(np.prod(box.lengths)), sum(_left_out(term, x, R, system) for term in cut)
    return TailCorrection(0.5 * left_out / (bodies.bodies * volume), 0.5 * left_out / volume**2)


def _whole(term: Any) -> bool:
    """Whether nothing of a term is left out."""
    return isinstance(term, TupleTerm | LatticeTerm) or (isinstance(term, PairTerm) and (term.bonds is not None or term.lost == ()))


def _left_out(term: Any, x: Any, R: Any, system: System) -> float:
    """Σ_ij ∫ (1 − S) u_ij d^dr over all pairs i, j, counted twice, kind by kind."""
    if not isinstance(term, PairTerm) or term.cutoff is None:
        raise DomainError(f"{term.name} is no pair energy with a cutoff, which a tail correction is for.")
    if R is not None and term.lost is None and depends(lambda R: term.view(x, R), R):
        raise DomainError(f"A tail correction is that of central energies and of Lennard-Jones sites, but {term.name} depend on orientations.")
    lost = (Lost(term.view, _central(term, x.shape[1], system)),) if term.lost is None else term.lost
    return sum(_of_kinds(term, one, x, R) for one in lost)


def _central(term: PairTerm, d: int, system: System) -> Any:
    """(one, other, r) ↦ the energy of a term that depends on the distance alone."""
    bare = replace(term, cutoff=None, factor=None)

    def energy(one, other, r):
        between = distances(jnp.zeros(d, r.dtype), r * jnp.eye(d, dtype=r.dtype)[0], {None})[None]
        return bare.at(one, other, (), between, jnp.zeros((), r.dtype), system.parameters)

    return energy


def _of_kinds(term: PairTerm, lost: Lost, x: Any, R: Any) -> float:
    """Σ_ij ∫ (1 − S) u_ij d^dr, of each pair of kinds once."""
    count, d = x.shape
    leaves, structure = jax.tree.flatten(lost.view(x, R))
    rows = np.concatenate([np.reshape(np.asarray(leaf, float), (count, -1)) for leaf in leaves], 1) if leaves else np.zeros((count, 0))
    _, first, number = np.unique(rows, axis=0, return_index=True, return_counts=True)
    if len(first) > _MOST_KINDS:
        raise DomainError(f"A tail correction is that of up to {_MOST_KINDS} kinds of points, but {term.name} has {len(first)} that differ.")
    kinds = [structure.unflatten([jnp.asarray(leaf[k]) for leaf in leaves]) for k in first]
    pairs = ((a, b) for a in range(len(kinds)) for b in range(a, len(kinds)))
    scale = 1.0 if term.factor is None else float(term.factor)
    between = lambda a, b: _beyond(term, lambda r: lost.energy(kinds[a], kinds[b], r), d)
    return scale * sum((1 if a == b else 2) * float(number[a] * number[b]) * between(a, b) for a, b in pairs)


def _beyond(term: PairTerm, energy: Any, d: int) -> float:
    """∫ (1 − S) u d^dr by quadrature, up to the cutoff in r and beyond it in c/r."""
    cutoff = term.cutoff
    assert cutoff is not None

    def density(r):
        return (1 - cutoff(r * r)) * energy(r) * r ** (d - 1)

    def integral(points: int) -> float:
        x, weights = np.polynomial.legendre.leggauss(points)
        x, weights = 0.5 * (x + 1), 0.5 * weights
        near, far = cutoff.begin + (cutoff.end - cutoff.begin) * x, cutoff.end / x
        values = np.asarray(evaluate(jax.vmap(density), np.concatenate([near, far])))
        return float((cutoff.end - cutoff.begin) * weights @ values[:points] + cutoff.end * (weights / x**2) @ values[points:])

    value = integral(64)
    if not abs(value - integral(128)) <= 1e-6 * abs(value):
        raise DomainError(f"{term.name} falls off too slowly for a tail correction: the integral beyond its cutoff does not converge.")
    return 2 * np.pi ** (d / 2) / gamma(d / 2) * value
