"""The static structure factor, for each pair of species.

    S_ab(k) = ⟨ρ_a(k) ρ_b(−k)⟩ / √(N_a N_b),      ρ_a(k) = Σ_{j in a} e^{−ik·x_j},      k = 2π (n₁/l₁, n₂/l₂, ...) ≠ 0

averaged over wave vectors of (nearly) the same length, over time and over trajectories, with the errors of `time_average`. Where nothing is
correlated S_aa = 1 and S_ab = 0 exactly. A loop over wave vectors around one over points, inside the compiled program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import checked
from bismut.body_loops import each, total
from bismut.ensembles.observable import bare_value
from bismut.ensembles.observers.radial_distribution import NAMES, observed_box, pairs_of_species
from bismut.ensembles.observers.report import ObserverReport, Variables
from bismut.ensembles.observers.time_average import TimeAverage
from bismut.errors import DomainError, ShapeError
from bismut.registry import OBSERVERS

_MOST = 20_000  # wave vectors
_SAME = 1e-9  # relative: lengths of wave vectors that differ by less are equal


class StructureFactor(TimeAverage):
    """S(k) by shells of wave vectors. `function` returns places; without it they are points or centres of bodies."""

    largest: float = eqx.field(static=True)
    bins: int | None = eqx.field(static=True)
    species: tuple = eqx.field(static=True)
    sides: tuple[float, ...] = eqx.field(static=True)

    def bound(self, scheme, name, example):
        shape = jax.eval_shape(lambda state: self._places(scheme, state, 0.0), example).shape
        if len(shape) != 2:
            raise ShapeError(f"observe[{name!r}]: structure_factor needs places (n, d), got an array of shape {shape}.")
        n, d = shape
        box = observed_box(self.sides, scheme, d, f"observe[{name!r}]: a structure factor")
        species = self.species or (0,) * n
        if len(species) != n:
            raise ShapeError(f"observe[{name!r}]: species must name each of the {n} points, got {len(species)}.")
        sides = np.array(box.lengths)
        if 0.5 * np.prod(2 * np.floor(self.largest * sides / (2 * np.pi)) + 1) > 4 * _MOST:
            raise DomainError(f"observe[{name!r}]: there are more than {_MOST} wave vectors up to {self.largest:g} in {box}. Make largest= smaller.")
        observer = StructureFactor(self.function, self.largest, self.bins, species, box.lengths, every=self.every)
        waves, _ = observer.shells()
        if len(waves) == 0:
            raise DomainError(
                f"observe[{name!r}]: the shortest wave vector of {box} is {2 * np.pi / sides.max():.4g}, beyond largest={self.largest:g}."
            )
        return observer

    def _places(self, scheme, state, t):
        if self.function is not None:
            return jnp.asarray(bare_value(self.function, scheme, state, t), scheme.system.dtype)
        return state.q[0] if isinstance(state.q, tuple) else state.q

    def shells(self) -> tuple[np.ndarray, np.ndarray]:
        """Wave vectors (n, d), of k and −k one, and the shell of each, shells being numbered from the innermost."""
        sides = np.array(self.sides)
        most = np.floor(self.largest * sides / (2 * np.pi) * (1 + _SAME)).astype(int)
        grid = np.stack(np.meshgrid(*[np.arange(-n, n + 1) for n in most], indexing="ij"), -1).reshape(-1, len(sides))
        waves = 2 * np.pi * grid[len(grid) // 2 + 1 :] / sides
        length = np.linalg.norm(waves, axis=1)
        waves, length = waves[length <= self.largest * (1 + _SAME)], length[length <= self.largest * (1 + _SAME)]
        if self.bins is None:
            order = np.argsort(length, kind="stable")
            new = np.diff(length[order], prepend=length[order][:1]) > _SAME * self.largest
            shell = np.empty(len(length), int)
            shell[order] = np.cumsum(new)
        else:
            shell = np.minimum((length / self.largest * self.bins).astype(int), self.bins - 1)
            shell = np.unique(shell, return_inverse=True)[1]
        return waves, shell

    def value(self, scheme, state, t):
        """S of one configuration, (kinds, shells) as one vector."""
        x = self._places(scheme, state, t)
        waves, shell = self.shells()
        names = sorted(set(self.species), key=str)
        member = np.array([[one == name for name in names] for one in self.species], float)

        kinds = [(names.index(a), names.index(b)) for a, b in pairs_of_species(self.species)]
        sizes = [np.sqrt(self.species.count(names[i]) * self.species.count(names[j])) for i, j in kinds]

        def of_point(k, x, weight):
            angle = k @ x
            return jnp.stack([jnp.cos(angle) * weight, jnp.sin(angle) * weight])

        def products(k):
            rho = total(lambda x, weight: of_point(k, x, weight), x, member.astype(x.dtype))
            return jnp.stack([(rho[0, i] * rho[0, j] + rho[1, i] * rho[1, j]) / size for (i, j), size in zip(kinds, sizes, strict=True)])

        counts = np.bincount(shell)
        sums = jnp.zeros((len(counts), len(kinds)), x.dtype).at[shell].add(each(products, jnp.asarray(waves, x.dtype)))
        return (sums / jnp.asarray(counts[:, None], x.dtype)).T.ravel()

    def report(self, name, summary, clock):
        vector = super().report(name, summary, clock).variables
        waves, shell = self.shells()
        kinds, counts = pairs_of_species(self.species), np.bincount(shell)
        k = np.bincount(shell, np.linalg.norm(waves, axis=1)) / counts
        axes, shape = ("kind", "k"), (len(kinds), len(counts))
        names = {"mean": "S", "stderr": "stderr", "effective_samples": "effective_samples", "trusted": "trusted"}
        variables: Variables = {new: (axes, vector[old][1].reshape(shape)) for old, new in names.items()}
        variables["wave_vectors"] = (("k",), 2 * counts)
        S, error = variables["S"][1], variables["stderr"][1]
        peak = np.unravel_index(np.argmax(S), shape)
        text = f"largest {S[peak]:.3g} ± {error[peak]:.1g} at k = {k[peak[1]]:.3g}, {2 * len(waves)} wave vectors in {len(counts)} shells"
        doubt = "" if variables["trusted"][1].all() else "; some errors are not to be trusted, see `trusted`"
        return ObserverReport(name, variables, {"k": k, "kind": np.array([f"{a}-{b}" for a, b in kinds])}, text + doubt)


@OBSERVERS.register
@checked(species=NAMES)
def structure_factor(
    of: Callable | None = None,
    *,
    largest: float,
    bins: int | None = None,
    species: Any = None,
    box: Any = None,
    every: int | None = None,
) -> StructureFactor:
    """S(k) of points in a periodic box, for each pair of species, with errors.

    of        a function of a State that returns places (n, d), for sites of bodies say; by default points or centres of bodies
    largest   the largest |k|. The cost of a look is that of points times wave vectors, whose number grows as its third power
    bins      shells of equal width up to it; by default a shell for each length that occurs
    species   a name or number for each place; one species by default
    box       the periodic box: by default that of the system
    """
    if not (np.ndim(largest) == 0 and 0 < largest < np.inf):
        raise DomainError(f"largest must be a positive wave number, got {largest!r}.")
    if bins is not None and not 1 <= bins <= 100_000:
        raise DomainError(f"bins must be between 1 and 100000, or None, got {bins}.")
    names = () if species is None else tuple(np.asarray(species).tolist())
    sides = () if box is None else getattr(box, "lengths", None) or tuple(np.atleast_1d(np.asarray(box, float)).tolist())
    return StructureFactor(of, float(largest), None if bins is None else int(bins), names, sides, every=every)
