"""The radial distribution function, for each pair of species.

    g_ab(r) = V/n_ab ⟨Σ_{i in a, j in b} δ(r − r_ij)⟩ / (d-dimensional shell)            1 where nothing is correlated

    n_ab = N_a N_b − Σ_bodies c_a c_b: the ordered pairs of different bodies, which have c_a sites of kind a; N (N − 1) and N_a N_b of points

    ⟨Σ_{i in a, j in b} [r_ij < r]⟩/N_a = n_ab/(N_a V) ∫_0^r g_ab                        the coordination number

With a direction u_i for each point pairs are counted by the angle between theirs as well: g(r, cos) with cos = u_i·u_j, whose mean over cos is g(r).

Places are handed to the host, where a k-d tree lists the pairs within reach, or counts them where there are too many: the cost of a look grows with
the number of neighbours, not with that of pairs. Counts are kept for groups of trajectories and for stretches of the run. Errors come from the spread
between groups, or, where there are few trajectories, between stretches, of which there are 16 to 32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy

from bismut.arguments import Rule, checked, function
from bismut.ensembles.observable import bare_value
from bismut.ensembles.observers.report import ObserverReport
from bismut.ensembles.observers.watcher import Watcher
from bismut.errors import DomainError, ShapeError
from bismut.mechanics import Scheme
from bismut.mechanics.bodies import Box, box_of, inventory
from bismut.registry import OBSERVERS

_GROUPS = 16  # of trajectories, by their numbers; from so many on errors are between them
_STRETCHES = 32
_MOST_PAIRS = 2_000_000  # that are listed, in some 200 MB


class PairCounts(NamedTuple):
    """Configurations (groups, stretches) and ordered pairs (groups, stretches, kinds, bins); a stretch is `length` looks, a power of two, and there
    were `looks` of them."""

    configurations: np.ndarray
    pairs: np.ndarray
    length: np.ndarray
    looks: np.ndarray


class RadialDistribution(Watcher):
    """Counts of distances between points in bins of equal width."""

    of: Callable | None = eqx.field(static=True)
    cutoff: float = eqx.field(static=True)
    bins: int = eqx.field(static=True)
    species: tuple = eqx.field(static=True)
    sides: tuple[float, ...] = eqx.field(static=True)
    exclude: int = eqx.field(static=True)
    directions: Callable | None = eqx.field(static=True, default=None)
    angles: int = eqx.field(static=True, default=1)

    def bound(self, scheme, name, example):
        shape = jax.eval_shape(lambda state: self._places(scheme, state, 0.0), example).shape
        if len(shape) != 2:
            raise ShapeError(f"observe[{name!r}]: radial_distribution needs places (n, d), got an array of shape {shape}.")
        n, d = shape
        box = observed_box(self.sides, scheme, d, f"observe[{name!r}]: a radial distribution")
        if self.cutoff > min(box.lengths) / 2 * (1 + 1e-12):
            raise DomainError(
                f"observe[{name!r}]: cutoff {self.cutoff:g} is more than half of the shortest side of {box}, where nearest images end. "
                f"Set cutoff={min(box.lengths) / 2:g} or less."
            )
        species = self.species or (0,) * n
        if len(species) != n:
            raise ShapeError(f"observe[{name!r}]: species must name each of the {n} points, got {len(species)}.")
        if n % self.exclude:
            raise ShapeError(f"observe[{name!r}]: {n} points are not bodies of {self.exclude} each, as sites_per_body says.")
        directions = self.directions
        if directions is not None:
            turned = jax.eval_shape(lambda state: bare_value(directions, scheme, state, 0.0), example).shape
            if turned != (n, 3) or self.exclude > 1:
                raise ShapeError(f"observe[{name!r}]: directions must return one vector for each of {n} bodies, ({n}, 3), got shape {turned}.")
        more = (self.directions, self.angles)
        return RadialDistribution(self.of, self.cutoff, self.bins, species, box.lengths, self.exclude, *more, every=self.every)

    def _places(self, scheme, state, t):
        if self.of is not None:
            return bare_value(self.of, scheme, state, t)
        return state.q[0] if isinstance(state.q, tuple) else state.q

    def look(self, memory, scheme, state, t):
        places = self._places(scheme, state, t)
        return memory, places if self.directions is None else jnp.concatenate([places, bare_value(self.directions, scheme, state, t)], 1)

    @property
    def kinds(self) -> list[tuple[Any, Any]]:
        """Pairs of species, each once."""
        return pairs_of_species(self.species)

    def collect(self, tally, looks):
        rows = np.asarray(looks.rows, float)
        tally = self._blank() if tally is None else tally
        for k in range(len(looks.steps)):
            look = int(tally.looks)
            tally = tally._replace(looks=np.asarray(look + 1))
            if look >= _STRETCHES * tally.length:
                tally = _halved(tally)
            for j, trajectory in enumerate(looks.trajectories):
                if looks.counted is not None and not looks.counted[k, j]:
                    continue
                place = int(trajectory) % _GROUPS, look // int(tally.length)
                tally.configurations[place] += 1
                tally.pairs[place] += self._count(rows[k, j])
        return tally

    def _count(self, x: np.ndarray) -> np.ndarray:
        """Ordered pairs (kinds, bins) of one configuration."""
        sides = np.asarray(self.sides)
        wrapped = x[:, : len(sides)] - sides * np.floor(x[:, : len(sides)] / sides)
        wrapped = np.where(wrapped >= sides, 0.0, wrapped)  # round-off
        names, edges = np.asarray(self.species, object), np.linspace(0.0, self.cutoff, self.bins + 1)
        if self.directions is not None:
            return self._count_angles(wrapped, names, x[:, len(sides) :])
        tree = scipy.spatial.KDTree(wrapped, boxsize=sides)
        if self._fit(tree):
            i, j = tree.query_pairs(self.cutoff, output_type="ndarray").T
            other = i // self.exclude != j // self.exclude
            return self._binned(wrapped, *((i, j) if self.exclude == 1 else (i[other], j[other])))
        trees = {name: scipy.spatial.KDTree(wrapped[names == name], boxsize=sides) for name in set(self.species)}
        counts = np.array([np.diff(trees[a].count_neighbors(trees[b], edges)) for a, b in self.kinds])
        return counts if self.exclude == 1 else counts - self._binned(wrapped, *_within_bodies(len(x), self.exclude))

    def _fit(self, tree: scipy.spatial.KDTree) -> bool:
        """Whether a list of the pairs within reach is small. It is three to ten times as fast as counting them in the tree, radius by radius."""
        return tree.n * (tree.n - 1) // 2 <= _MOST_PAIRS or (tree.count_neighbors(tree, self.cutoff) - tree.n) // 2 <= _MOST_PAIRS

    def _binned(self, wrapped: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Ordered pairs (kinds, bins) among those of i and j: bins without their lower end, and in the arithmetic of the tree, so that both agree."""
        r2 = np.zeros(len(i))
        for side, x in zip(self.sides, wrapped.T, strict=True):
            d = np.abs(x[i] - x[j])
            d = np.minimum(d, side - d)
            r2 += d * d
        squares = np.linspace(0.0, self.cutoff, self.bins + 1) ** 2
        place = np.minimum((np.sqrt(r2) * (self.bins / self.cutoff)).astype(np.intp), self.bins - 1)  # right to the one beside
        place -= r2 <= squares[place]
        place += r2 > squares[place + 1]
        width = self.bins + 2  # one for points at the same place, and one for what is beyond the cutoff
        place += 1
        if len(self.kinds) > 1:
            names = sorted(set(self.species), key=str)
            numbers = {name: number for number, name in enumerate(names)}
            label = np.array([numbers[name] for name in self.species])
            kind = np.zeros((len(names), len(names)), np.intp)
            for number, (a, b) in enumerate(self.kinds):
                kind[[numbers[a], numbers[b]], [numbers[b], numbers[a]]] = number * width
            place += kind[label[i], label[j]]
        pairs = np.bincount(place, minlength=width * len(self.kinds)).reshape(-1, width)[:, 1:-1]
        return pairs * np.array([[2 if a == b else 1] for a, b in self.kinds])

    def _count_angles(self, wrapped: np.ndarray, names: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Ordered pairs (kinds, bins · angles), by distance and by the cosine of the angle between directions."""
        sides, u = np.asarray(self.sides), u / np.linalg.norm(u, axis=1)[:, None]
        i, j = scipy.spatial.KDTree(wrapped, boxsize=sides).query_pairs(self.cutoff, output_type="ndarray").T
        r = wrapped[j] - wrapped[i]
        r = np.linalg.norm(r - sides * np.round(r / sides), axis=1)
        place = np.minimum((r / self.cutoff * self.bins).astype(int), self.bins - 1) * self.angles
        cosine = sum((u[i, k] * u[j, k] for k in range(u.shape[1])), np.zeros(len(i)))  # `einsum` would add in an order of the processor's
        place += np.clip((0.5 * (1 + cosine) * self.angles).astype(int), 0, self.angles - 1)
        kinds = [((names[i] == a) & (names[j] == b)).astype(int) + ((names[i] == b) & (names[j] == a)).astype(int) for a, b in self.kinds]
        return np.array([np.bincount(place, times, self.bins * self.angles) for times in kinds]).astype(np.int64)

    def _blank(self) -> PairCounts:
        places = (_GROUPS, _STRETCHES)
        counts = np.zeros((*places, len(self.kinds), self.bins * self.angles), np.int64)
        return PairCounts(np.zeros(places, np.int64), counts, np.asarray(1), np.asarray(0))

    def close(self, tally, memory, ended):
        return self._blank() if tally is None else tally

    def merge(self, a, b):
        while a.length != b.length:
            a, b = (_halved(a), b) if a.length < b.length else (a, _halved(b))
        return PairCounts(a.configurations + b.configurations, a.pairs + b.pairs, a.length, np.maximum(a.looks, b.looks))

    def report(self, name, summary, clock):
        d, volume = len(self.sides), float(np.prod(self.sides))
        edges = np.linspace(0.0, self.cutoff, self.bins + 1)
        shell = _ball(d) * np.diff(np.prod([edges] * d, axis=0))
        numbers = {one: self.species.count(one) for one in set(self.species)}
        bodies = [self.species[k : k + self.exclude] for k in range(0, len(self.species), self.exclude)]
        own = lambda a, b: sum(body.count(a) * body.count(b) for body in bodies)
        ideal = np.array([numbers[a] * numbers[b] - own(a, b) for a, b in self.kinds], float)
        many, pairs = summary.configurations, summary.pairs
        grouped = (many.sum(1) > 0).sum() >= _GROUPS
        n, counts = (many.sum(1), pairs.sum(1)) if grouped else (many.ravel(), pairs.reshape(-1, *pairs.shape[2:]))
        total, parts = max(int(n.sum()), 1), int((n > 0).sum())
        mean = counts.sum(0) / total

        def error_of(counts: np.ndarray, mean: np.ndarray) -> np.ndarray:
            spread = ((counts - mean * n[:, None, None]) ** 2).sum(0)
            return np.sqrt(parts / (parts - 1) * spread) / total if parts > 1 else np.full(mean.shape, np.nan)

        error = error_of(counts, mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = volume / (ideal[:, None] * np.repeat(shell / self.angles, self.angles))
        density = np.array([numbers[b] for _, b in self.kinds]) / volume
        centres = np.array([numbers[a] for a, _ in self.kinds])[:, None]
        near = np.cumsum(mean.reshape(len(self.kinds), self.bins, -1).sum(-1), 1)
        # Bins beside each other are correlated: pairs are summed up to r in each group before groups are compared.
        within = np.cumsum(counts.reshape(len(counts), len(self.kinds), self.bins, -1).sum(-1), 2)
        near_error = error_of(within, within.sum(0) / total)
        axes = ("kind", "r") if self.directions is None else ("kind", "r", "cosine")
        shape = (len(self.kinds), self.bins, self.angles)[: len(axes)]
        variables = {"g": (axes, (mean * scale).reshape(shape)), "stderr": (axes, (error * scale).reshape(shape))}
        variables |= {"coordination": (("kind", "r"), near / centres), "coordination_stderr": (("kind", "r"), near_error / centres)}
        variables |= {"edges": (("r_edge",), edges), "density": (("kind",), density)}
        labels = np.array([f"{a}-{b}" for a, b in self.kinds])
        coordinates = {"r": 0.5 * (edges[1:] + edges[:-1]), "kind": labels}
        coordinates |= {} if self.directions is None else {"cosine": (2 * np.arange(self.angles) + 1) / self.angles - 1}
        peak = np.unravel_index(np.argmax(mean * scale), mean.shape)
        place = coordinates["r"][peak[1] // self.angles]
        text = f"largest {(mean * scale)[peak]:.3g} ± {(error * scale)[peak]:.1g} at r = {place:.3g}, {total} configurations"
        return ObserverReport(name, variables, coordinates, text)

    def summary_bytes(self, row, looks, trajectories):
        return 8 * _GROUPS * _STRETCHES * len(self.kinds) * self.bins * self.angles


def _within_bodies(points: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of places of one body, where each has so many in a row."""
    one, other = np.triu_indices(each, 1)
    first = np.arange(0, points, each)[:, None]
    return (first + one).ravel(), (first + other).ravel()


def _halved(counts: PairCounts) -> PairCounts:
    """Stretches twice as long, in the first half of the places."""

    def joined(array: np.ndarray) -> np.ndarray:
        pairs = array[:, ::2] + array[:, 1::2]
        return np.concatenate([pairs, np.zeros_like(pairs)], 1)

    return counts._replace(configurations=joined(counts.configurations), pairs=joined(counts.pairs), length=counts.length * 2)


def pairs_of_species(species: Sequence) -> list[tuple[Any, Any]]:
    """Pairs of species, each once."""
    names = sorted(set(species), key=str)
    return [(a, b) for i, a in enumerate(names) for b in names[i:]]


def observed_box(sides: tuple[float, ...], scheme: Scheme, d: int, what: str) -> Box:
    """The periodic box that was given, or that of the system."""
    if scheme.changes_box:
        raise DomainError(
            f"{what} is counted in one box, but {scheme.title} changes it. Measure it at constant volume, at the mean density found here."
        )
    known = inventory(scheme.system)
    box = box_of(sides[0] if len(sides) == 1 else sides or None, d) or (None if known is None else known.box)
    if box is None or not np.isfinite(box.lengths).all():
        raise DomainError(f"{what} needs a closed periodic box, for its density. Give box=.")
    return box


NAMES = Rule("a name or number for each point", lambda of: of is None or (isinstance(of, Sequence | np.ndarray) and not isinstance(of, str)))


@OBSERVERS.register
@checked(species=NAMES, directions=function)
def radial_distribution(
    of: Callable | None = None,
    *,
    cutoff: float,
    bins: int = 100,
    species: Any = None,
    box: Any = None,
    sites_per_body: int = 1,
    directions: Callable | None = None,
    angles: int = 20,
    every: int | None = None,
) -> RadialDistribution:
    """g(r) between points in a periodic box, for each pair of species, and coordination numbers up to the end of each bin; both with errors.

    of        a function of a State that returns places (n, d), for sites of bodies say; by default points or centres of bodies
    cutoff    the largest distance, at most half of the shortest side of the box
    bins      how many, of equal width
    species   a name or number for each place; one species by default
    box       the periodic box: by default that of the system
    sites_per_body  how many successive places belong to one body, whose distances from each other are left out
    directions  a function of a State that returns a vector (n, 3) for each place: g is then resolved by the cosine between those of two places
    angles    how many bins of that cosine, of equal width; g is 1 in all of them where neither places nor directions are correlated
    """
    if not (np.ndim(cutoff) == 0 and 0 < cutoff < np.inf):
        raise DomainError(f"cutoff must be a positive length, got {cutoff!r}.")
    if not 1 <= bins <= 100_000:
        raise DomainError(f"bins must be between 1 and 100000, got {bins}.")
    if sites_per_body < 1:
        raise DomainError(f"sites_per_body must be a whole number ≥ 1, got {sites_per_body}.")
    if not 1 <= angles <= 1000:
        raise DomainError(f"angles must be between 1 and 1000, got {angles}.")
    names = () if species is None else tuple(np.asarray(species).tolist())
    sides = () if box is None else getattr(box, "lengths", None) or tuple(np.atleast_1d(np.asarray(box, float)).tolist())
    return RadialDistribution(
        of, float(cutoff), int(bins), names, sides, int(sites_per_body), directions, int(angles) if directions is not None else 1, every=every
    )


def _ball(d: int) -> float:
    """The volume of the unit ball, V_d = V_{d−2} 2π/d."""
    return (1.0, 2.0)[d] if d < 2 else _ball(d - 2) * 2 * np.pi / d
