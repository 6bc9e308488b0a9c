"""Molecules: sites on rigid bodies, and points, that attract, repel and carry charges.

    U = Σ_{i<j} S(r_ij) Σ_{a in i, b in j} 4ε_ab [(σ_ab/r_ab)¹² − (σ_ab/r_ab)⁶] + C q_a q_b u(r_ab)

r_ij is between centres, of the nearest image, and r_ab between sites: a cutoff takes or leaves molecules whole, so that neutral ones are cut without
leaving charge behind. u = 1/r, or what `electrostatics` makes of it. Sites of one body do not act on each other, nor do those of excluded pairs.
The pair of bodies is one item of the pair loop, written out for those sites that carry something: fine for molecules, slow to compile for bodies of
more than some tens of sites.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from operator import add
from typing import Any

import jax.numpy as jnp
import numpy as np

from bismut.body_loops import Bonds
from bismut.errors import DomainError, ShapeError
from bismut.mechanics.bodies.arrays import numbers, per_body, turned, vectors
from bismut.mechanics.bodies.box import Box, cutoff_of
from bismut.mechanics.bodies.electrostatics import BODY_MARGIN, DIPOLE_MARGIN, Electrostatics, Ewald, ReactionField
from bismut.mechanics.bodies.lattice import LatticeTerm, Sources
from bismut.mechanics.bodies.pairs import Lost, PairTerm, inverse_powers
from bismut.mechanics.bodies.site_table import SiteTable, pair_table, partners
from bismut.mechanics.bodies.terms import Potential
from bismut.registry import PAIR_ENERGIES

_FAR = 1e3  # where excluded pairs are moved before they are masked, in sizes of whatever is there: there is no 0/0 to differentiate


@PAIR_ENERGIES.register
def sites(
    points: Any = None,
    *,
    charges: Any = 0.0,
    epsilon: Any = 0.0,
    sigma: Any = 1.0,
    species: Any = None,
    constant: Any = 1.0,
    mixing: str = "lorentz-berthelot",
    electrostatics: Electrostatics | None = None,
    cutoff: Any = None,
    exclude: Any = (),
    only: Any = None,
    names: Any = None,
) -> Potential:
    """Lennard-Jones and Coulomb energies between the sites of bodies.

    points    where sites are in a body, (n, 3) from its centre of mass along its axes, as body(...).points has them; None for points, which are
              their own site
    charges, epsilon, sigma   q, ε, σ: one number for all sites, or one for each, (n,); of points (K,)
    species   (K,), whole numbers: the kind of each body. points, charges, ... are then lists with one entry for each kind
    constant  C, energy · length / charge²: 1/4πε₀, or 1 in reduced units
    mixing    of two sites: "lorentz-berthelot", σ = (σ_a + σ_b)/2, or "geometric", σ = √(σ_a σ_b); ε = √(ε_a ε_b) always
    electrostatics  None for q q/r, ReactionField(...) or Ewald(...)
    cutoff    between centres, as for lennard_jones; by default, of an Ewald sum, half of the shortest side. The near part of an Ewald sum, by then
              as small as its accuracy, fades from 0.95 of it on, Lennard-Jones energies as they are asked to
    exclude   pairs of bodies that do not act on each other, (E, 2); `bonded_pairs` finds them from bonds
    only      the pairs that act, (E, 2), in place of all: factor * sites(..., only=pairs) is a scaled 1–4 interaction
    names     of the sites of a body, (n,), elements say; of kinds a list for each; of points (K,), or one for each kind. Exports use them
    """
    if mixing not in ("lorentz-berthelot", "geometric"):
        raise DomainError(f'mixing must be "lorentz-berthelot" or "geometric", got {mixing!r}.')
    if electrostatics is not None and not isinstance(electrostatics, ReactionField | Ewald):
        raise ShapeError(f"electrostatics must be None, ReactionField(...) or Ewald(...), got {electrostatics!r}.")
    if only is not None and (np.size(exclude) or electrostatics is not None):
        raise DomainError("only= names all pairs that act, by q q/r: neither exclude= nor electrostatics= goes with it.")
    table = SiteTable(points, species, names=names, charges=charges, epsilon=epsilon, sigma=sigma)
    if np.any(np.asarray(table.carried["epsilon"]) < 0) or np.any(np.asarray(table.carried["sigma"]) < 0):
        raise DomainError("epsilon and sigma must not be negative.")
    fade, excluded, constant = cutoff_of(cutoff), pair_table("exclude", exclude), numbers("constant", constant)
    named = "reaction field" if isinstance(electrostatics, ReactionField) else "Ewald" if electrostatics else "Coulomb"
    deep, loud = (not table.silent(name).all() for name in ("epsilon", "charges"))
    parts = [name for name, there in (("Lennard-Jones", deep), (named, loud)) if there]
    if not parts:
        raise DomainError("sites carry nothing: give charges=, or epsilon= and sigma=.")
    energy = _SitePair(table, mixing, constant)
    view = lambda x, R: (table.places(x, R), *(table.of_bodies(name, x) for name in ("charges", "epsilon", "sigma")), _numbered(excluded, x))
    lost = (Lost(lambda x, R: (table.places(x, R), *(table.of_bodies(name, x) for name in ("epsilon", "sigma"))), energy.mean),) if deep else ()
    kept = None if loud and electrostatics is None else lost
    term = PairTerm(energy.with_charges(lambda r2, near: near), view, f"sites ({', '.join(parts)})", cutoff=fade, sites=table, lost=kept)
    if only is not None:
        act = pair_table("only", only)
        return Potential.of(replace(term, bonds=Bonds(act[:, 0], act[:, 1]), cutoff=None, name=f"{term.name} of {len(act)} pairs"))
    if isinstance(electrostatics, ReactionField):
        return Potential.of(replace(term, value=energy.with_charges(electrostatics.within(fade)), field=electrostatics))
    if electrostatics is None or not loud:
        return Potential.of(term)
    charged = _with_waves(replace(term, name="sites (Ewald)", lost=()), energy, electrostatics, excluded)
    if not deep:
        return charged
    attracting = replace(term, value=energy.with_charges(None), name="sites (Lennard-Jones)")
    return Potential.of(attracting if fade else replace(attracting, fit=partial(_within_half, attracting))) + charged


def _within_half(term: PairTerm, box: Box) -> PairTerm:
    """A term that was given no cutoff, with half of the shortest side, as the near part of an Ewald sum has."""
    return replace(term, cutoff=cutoff_of(min(box.lengths) / 2), fit=None)


class _SitePair:
    """The energy of two bodies, the sites of which are written out where they carry something."""

    def __init__(self, table: SiteTable, mixing: str, constant: Any):
        self.table, self.mixing, self.constant = table, mixing, constant
        loud, deep = ~table.silent("charges"), ~table.silent("epsilon")
        self.active = [(a, b, loud[a] and loud[b], deep[a] and deep[b]) for a in range(table.n) for b in range(table.n)]

    def with_charges(self, between, *, attract: bool = True):
        """(pair view, t, parameters) ↦ energy, where unit charges have the energy between(r², 1/r), or none without it."""

        def energy(pair, t, parameters):
            (here, q, depth, size, own), (there, p, other, length, its) = pair.a, pair.b
            hidden = None if own is None else jnp.any(own[1] == its[0])
            centres = pair.r if hidden is None else pair.r + jnp.where(hidden, _FAR * (1.0 + pair.r2), 0.0)
            value = jnp.zeros((), pair.r.dtype)
            for a, b, loud, deep in self.active:
                charges, attracts = between if loud else None, deep and attract
                if charges is None and not attracts:
                    continue
                r = centres if here is None else centres + there[b] - here[a]
                r2 = r @ r
                inverse, near = inverse_powers(r2)
                if attracts:
                    value = value + self._attraction(depth[a], other[b], size[a], length[b], inverse)
                if charges is not None:
                    value = value + jnp.asarray(self.constant, r.dtype) * q[a] * p[b] * charges(r2, near)
            return value if hidden is None else jnp.where(hidden, 0.0, value)

        return energy

    def _attraction(self, depth, other, size, length, inverse):
        """4ε [(σ/r)¹² − (σ/r)⁶] of two sites."""
        sigma = 0.5 * (size + length) if self.mixing == "lorentz-berthelot" else _root(size * length)
        six = (sigma * sigma * inverse) ** 3
        return 4 * _root(depth * other) * six * (six - 1)

    def mean(self, one: Any, other: Any, r: Any) -> Any:
        """Lennard-Jones energies of two bodies whose centres are r apart, each turned every way: of sites |z| and |z′| from their centres

        ¼ ∫∫ u(√(r² + z² + z′² + 2 r z c + 2 |r + z| z′ c′)) dc dc′,   −1 ≤ c, c′ ≤ 1
        """
        (here, depth, size), (there, others, length) = one, other
        value = jnp.zeros((), r.dtype)
        for a, b, _, attracts in self.active:
            if attracts:
                r2, weight = r * r, 1.0
                for axis, places in enumerate((None if here is None else here[a], None if there is None else there[b])):
                    if places is not None:
                        away, shape = places @ places, (-1, *(1,) * axis)
                        r2 = r2 + away + 2 * jnp.sqrt(r2 * away) * jnp.asarray(_COSINES, r.dtype).reshape(shape)
                        weight = weight * jnp.asarray(_WEIGHTS, r.dtype).reshape(shape)
                value = value + jnp.sum(weight * self._attraction(depth[a], others[b], size[a], length[b], 1 / r2))
        return value


_COSINES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_WEIGHTS = 0.5 * _WEIGHTS


def _root(x):
    return np.sqrt(x) if isinstance(x, np.ndarray | np.floating) else jnp.sqrt(x)


def _numbered(excluded: np.ndarray, x) -> Any:
    """The numbers of bodies, and those that each does not act on; None if all act."""
    return None if not len(excluded) else (np.arange(x.shape[0]), partners(excluded, x.shape[0]))


def _with_waves(term: PairTerm, energy: _SitePair, ewald: Ewald, excluded: np.ndarray) -> Potential:
    """Near part of charges, waves, and what waves hold of excluded pairs."""
    table, asked = energy.table, term.cutoff
    margin = BODY_MARGIN if table.n > 1 else 1.0

    def split(box):
        return ewald.splitting(asked, box, table.size, margin)

    def near(box):
        return replace(term, value=energy.with_charges(split(box).near, attract=False), cutoff=ewald.cutoff(asked, box), fit=None)

    def held(box):
        return replace(correction, value=energy.with_charges(lambda r2, near: -split(box).far(r2, near), attract=False), fit=None)

    sources = lambda x, R: Sources(table.places(x, R), table.of_bodies("charges", x), None)
    waves = LatticeTerm(sources, table.own_charges, ewald, "waves", energy.constant, asked, table.size, margin)
    parts: list = [replace(term, fit=near), waves]
    if len(excluded):
        bare = lambda x, R: (table.places(x, R), *(table.of_bodies(name, x) for name in ("charges", "epsilon", "sigma")), None)
        correction = PairTerm(energy.with_charges(lambda r2, near: near), bare, "excluded pairs", bonds=Bonds(*excluded.T), fit=held)
        parts.append(correction)
    return reduce(add, map(Potential.of, parts))


def dipole_sum(moments: Any, constant: Any, ewald: Ewald, cutoff: Any) -> Potential:
    """U of dipoles fixed in bodies with all their images: near part and waves."""
    moments, constant, asked = vectors("moments", moments), numbers("constant", constant), cutoff_of(cutoff)
    view = lambda x, R: turned("moments", moments, x, R)

    def near(box):
        split = ewald.splitting(asked, box, 0.0, DIPOLE_MARGIN)
        energy = lambda pair, t, parameters: jnp.asarray(constant, pair.r.dtype) * split.dipoles(pair.a, pair.b, *pair[5:])
        return PairTerm(energy, view, "dipoles (Ewald)", cutoff=ewald.cutoff(asked, box), lost=())

    def own(alpha, x):
        m = per_body("moments", moments, x, (3,))
        return 2 * alpha**3 / (3 * np.sqrt(np.pi)) * (np if isinstance(m, np.ndarray) else jnp).sum(m * m)

    def homeless(pair, t, parameters):
        raise AssertionError("an Ewald sum without a box is refused by its waves")

    waves = LatticeTerm(lambda x, R: Sources(None, None, view(x, R)), own, ewald, "waves", constant, asked, margin=DIPOLE_MARGIN)
    return Potential.of(PairTerm(homeless, view, "dipoles (Ewald)", cutoff=asked, fit=near)) + Potential.of(waves)
