"""Sites of bodies, as numbers: for each kind of body n places in its frame, with charges, depths ε and sizes σ.

    y_ia = x_i + R_i z_a,       a = 1 ... n

Kinds with fewer sites than others are padded with sites at the centre that do nothing. Points have one site each, where they are.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from bismut.body_loops import each
from bismut.errors import DomainError, ShapeError
from bismut.mechanics.bodies.arrays import numbers, per_body
from bismut.programs.codegen.elementary.numbers import elementary

ELEMENTS = frozenset(
    re.findall(
        "[A-Z][a-z]?",
        "XHHeLiBeBCNOFNeNaMgAlSiPSClArKCaScTiVCrMnFeCoNiCuZnGaGeAsSeBrKrRbSrYZrNbMoTcRuRhPdAgCdInSnSbTeIXeCsBaLaCePrNdPmSmEuGdTbDyHoErTmYbLuHfTaWReOsIr"
        "PtAuHgTlPbBiPoAtRnFrRaAcThPaUNpPuAmCmBkCfEsFmMdNoLrRfDbSgBhHsMtDsRgCnNhFlMcLvTsOg",
    )
)


class Molecule(NamedTuple):
    """The sites of one kind of body: places (n, 3) in its frame, and names, or None."""

    points: np.ndarray
    names: tuple[str, ...] | None

    @property
    def atoms(self) -> Molecule:
        """Those of its sites that are atoms: where they have names, elements, without the M of TIP4P, say."""
        real = self.real
        return Molecule(self.points[real], None if self.names is None else tuple(self.names[a] for a in real))

    @property
    def real(self) -> list[int]:
        """The numbers of the sites that are atoms; all of them where no name is that of an element."""
        every = list(range(len(self.points)))
        return every if self.names is None else [a for a in every if self.names[a] in ELEMENTS] or every

    @property
    def tree(self) -> np.ndarray:
        """The shortest tree through the sites, as pairs (n − 1, 2): how they are drawn joined."""
        joined, pairs = [0], []
        while len(joined) < len(self.points):
            others = [i for i in range(len(self.points)) if i not in joined]
            length = np.linalg.norm(self.points[joined][:, None] - self.points[others], axis=-1)
            a, b = np.unravel_index(np.argmin(length), length.shape)
            pairs.append((joined[a], others[b]))
            joined.append(others[b])
        return np.array(pairs, int).reshape(-1, 2)


class SiteTable:
    """Sites and what they carry. `several` says whether bodies are of kinds, by their numbers `species` (K,)."""

    def __init__(self, points: Any, species: Any, *, names: Any = None, **carried: Any):
        self.species = None if species is None else _species(species)
        self.points = None if points is None else self._joined("points", points, (3,))
        self.n = 1 if self.points is None else self.points.shape[-2]
        self.carried = {name: self._carried(name, value) for name, value in carried.items()}
        self.molecules = None if points is None or isinstance(self.points, Tracer) else self._molecules(points, names)
        self.names = None if points is not None or names is None else self._of_points(names)

    def _molecules(self, points: Any, names: Any) -> tuple[Molecule, ...]:
        """The sites of each kind with their names, without padding."""
        kinds = [points] if self.species is None else list(points)
        named = [None] * len(kinds) if names is None else [names] if self.species is None else list(names)
        if len(named) != len(kinds) or any(one is not None and len(one) != len(z) for z, one in zip(kinds, named, strict=False)):
            raise ShapeError(f"names must name each of the sites, {[len(z) for z in kinds]} of them, got {names!r}.")
        return tuple(Molecule(np.asarray(z, float), None if one is None else tuple(map(str, one))) for z, one in zip(kinds, named, strict=True))

    def _of_points(self, names: Any) -> tuple[str, ...]:
        """A name for each point: those that were given, or that of its kind."""
        given = tuple(one if isinstance(one, str) else str(one[0]) for one in names)
        counts = [np.shape(value)[0] for value in self.carried.values() if np.ndim(value)]
        if self.species is not None and len(given) > self.species.max():
            return tuple(given[kind] for kind in self.species)
        if isinstance(names, str) or self.species is not None or any(count != len(given) for count in counts):
            raise ShapeError(f"names of points must name each of them, or each kind where species= is given, got {names!r}.")
        return given

    def _joined(self, name: str, value: Any, tail: tuple[int, ...]) -> Any:
        """Numbers of the sites of one kind, (n, *tail), or of several kinds, (kinds, n, *tail)."""
        if self.species is None:
            array = numbers(name, value)
            if np.ndim(array) != 1 + len(tail) or np.shape(array)[1:] != tail or not len(array):
                raise ShapeError(f"{name} must be {('n', *tail)} for the sites of each body, got shape {np.shape(array)}. Kinds need species=.")
            return array
        kinds = [np.asarray(numbers(name, one)) for one in value]
        if len(kinds) <= self.species.max() or any(one.ndim != 1 + len(tail) or one.shape[1:] != tail for one in kinds):
            shapes = [one.shape for one in kinds]
            raise ShapeError(f"species names {self.species.max() + 1} kinds: {name} must be a list of arrays {('n', *tail)} for them, got {shapes}.")
        most = max(len(one) for one in kinds)
        return np.stack([np.pad(one, [(0, most - len(one)), *((0, 0) for _ in tail)]) for one in kinds])

    def _carried(self, name: str, value: Any) -> Any:
        """One number for all sites, or one for each."""
        if not isinstance(value, list | tuple) and np.ndim(value) == 0:
            return numbers(name, value)
        if self.points is None:
            array = numbers(name, value)
            if np.ndim(array) != 1:
                raise ShapeError(f"{name} of points must be one number or (K,), got shape {np.shape(array)}.")
            if self.species is not None:
                array = np.asarray(array)[self.species]
            return array[:, None]
        lengths = [len(one) for one in (value if self.species is not None else [value])]
        given = self._joined(name, value, ())
        if given.shape[-1] != self.n:
            raise ShapeError(f"{name} must have one entry for each of the {self.n} sites, got {lengths}.")
        return given

    def of_bodies(self, name: str, x) -> Any:
        """What the sites of all bodies carry, (K, n)."""
        value = self.carried[name]
        if self.species is not None and self.points is not None and np.ndim(value):
            self.check_count(x)
            value = value[self.species]
        return per_body(name, value, x, (self.n,))

    def places(self, x, R) -> Any:
        """R z, (K, n, 3); None where sites are centres."""
        if self.points is None:
            return None
        if R is None:
            raise ShapeError("Sites are fixed in bodies that turn, but there are only positions. Use rigid_bodies, or sites(None, ...) for points.")
        points = self.points
        if self.species is not None:
            self.check_count(x)
            points = points[self.species]
        return each(lambda R, z: z @ R.T, R, per_body("points", points, x, (self.n, 3)))

    def check_count(self, x) -> None:
        if self.species is not None and len(self.species) != x.shape[0]:
            raise ShapeError(f"species names {len(self.species)} bodies, but there are {x.shape[0]}.")

    @property
    def size(self) -> float:
        """The largest distance of a site from the centre of its body."""
        return 0.0 if self.points is None or isinstance(self.points, Tracer) else float(np.linalg.norm(self.points, axis=-1).max())

    def silent(self, name: str) -> np.ndarray:
        """Which of the n sites carry nothing in any body."""
        value = self.carried[name]
        if isinstance(value, Tracer):
            return np.zeros(self.n, bool)
        return (np.broadcast_to(value, (*np.shape(value)[:-1], self.n)) == 0).reshape(-1, self.n).all(0)

    def own_charges(self, alpha: float, x) -> Any:
        """α Σ q²/√π + Σ_{a<b} q_a q_b erf(αr)/r over the sites of each body: what the waves of an Ewald sum hold of bodies by themselves."""
        charges = self.of_bodies("charges", x)
        xp = jnp if isinstance(charges, Tracer) else np
        energy = alpha / np.sqrt(np.pi) * xp.sum(charges**2)
        if self.n == 1 or self.points is None:
            return energy
        points = self.points if self.species is None else self.points[self.species]
        for a in range(self.n):
            for b in range(a):
                r = np.linalg.norm(points[..., a, :] - points[..., b, :], axis=-1)
                with np.errstate(divide="ignore", invalid="ignore"):
                    between = np.where(r > 0, elementary("erf", alpha * r) / r, 2 * alpha / np.sqrt(np.pi))
                energy = energy + xp.sum(charges[:, a] * charges[:, b] * between)
        return energy


def _species(value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not len(array) or (array < 0).any():
        raise DomainError("species must be whole numbers 0, 1, ... (K,), the kind of each body.")
    return array


def pair_table(name: str, pairs: Any) -> np.ndarray:
    """Pairs of bodies (E, 2), each once and the lower number first."""
    array = np.asarray(pairs)
    if array.size == 0:
        return np.zeros((0, 2), int)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu" or (array < 0).any() or (array[:, 0] == array[:, 1]).any():
        raise ShapeError(f"{name} must be pairs of different bodies, whole numbers (E, 2), got {array.dtype} of shape {array.shape}.")
    return np.unique(np.sort(array, axis=1), axis=0)


def partners(pairs: np.ndarray, count: int) -> np.ndarray:
    """The partners of each body, (K, m), padded with −1."""
    if len(pairs) and pairs.max() >= count:
        raise ShapeError(f"A pair names body {pairs.max()}, but the {count} bodies are numbered 0 ... {count - 1}.")
    rows: list[list[int]] = [[] for _ in range(count)]
    for i, j in pairs.tolist():
        rows[i].append(j)
        rows[j].append(i)
    most = max(map(len, rows))
    return np.array([row + [-1] * (most - len(row)) for row in rows])
