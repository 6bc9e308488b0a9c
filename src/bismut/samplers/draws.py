"""What `sample` returns: draws by name, how the chains went, and whether they can be trusted.

posterior      (chain, draw, ...) of each parameter
sample_stats   lp = log ρ, acceptance, diverging, unsolved, energy and energy_error of each draw; the error is Δ of the last trajectory that was
               tried, accepted or not, and ∞ where that failed or led where ρ is 0
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from bismut.arguments import is_integer
from bismut.ensembles.progress import Progress
from bismut.errors import BismutError, DomainError, nearest
from bismut.formatting import table
from bismut.samplers import diagnostics
from bismut.samplers.adaptation import Log
from bismut.samplers.diagnostics import EACH, pieces
from bismut.samplers.exchange import Ladder
from bismut.samplers.frozen import DrawRecord, Frozen, joined
from bismut.samplers.scheme import Trajectories, Tuning
from bismut.samplers.target import Target

if TYPE_CHECKING:
    import xarray

_COLUMNS = ("mean", "sd", "error", "5%", "95%", "ess_bulk", "ess_tail", "rhat")
_SHOWN = 12  # rows of a table in a repr
TRUSTED = 1.01  # R̂ without what memory makes of it, up to which chains agree
_FEW = 100  # effective draws below which quantiles say little
_CHANCE = 1e-3  # expected number of chains without one accepted trajectory, up to which there should be none
_UNSOLVED = 0.05  # of draws, from which places that chains hardly leave are likely; the burn-in aims at a fifth of it, and ellipses have 0.02


@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """Draws of `bm.sample`: `draws["x"]` is an array (chain, draw, ...), `draws.tree` all of them as a tree that ArviZ reads.

    arrays   of each parameter, by name
    kernel   by name;      log: the rounds of the burn-in
    seconds  of the burn-in and of the draws
    frozen   the chain that made the draws, where it is now; `more` continues it

    Draws can be pickled if log_density and constraint can, as functions of a module can: `more` in another process gives the same bits.
    """

    arrays: dict[str, np.ndarray]
    record: DrawRecord
    frozen: Frozen
    kernel: str
    log: Log
    seconds: dict[str, float]

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.arrays:
            raise BismutError(f"There is no parameter {name!r}. {nearest(name, self.arrays)}")
        return self.arrays[name]

    @property
    def chains(self) -> int:
        return self.sample_stats["lp"].shape[0]

    @property
    def draws(self) -> int:
        return self.sample_stats["lp"].shape[1]

    @property
    def acceptance(self) -> float:
        """The fraction of trajectories that were accepted."""
        return self.record.acceptance

    @property
    def divergences(self) -> int:
        """How many draws have trajectories behind them that diverged."""
        return int(self.sample_stats["diverging"].sum())

    @property
    def stuck(self) -> int:
        """How many chains had no trajectory accepted in all their draws, where at the acceptance of all chains there should be none."""
        trajectories = self.draws * self.frozen.thin
        if self.chains * (1 - self.acceptance) ** trajectories > _CHANCE:
            return 0
        return int((self.sample_stats["acceptance"].max(1) == 0).sum())

    @property
    def unsolved(self) -> float:
        """The fraction of draws with a trajectory behind them that had a step without a solution, or one that does not lead back."""
        return float(self.sample_stats["unsolved"].mean())

    @cached_property
    def pieces(self) -> int:
        """Into how many groups chains on a surface fall that never come among each other, where their memory is short enough to tell; 1 if all do."""
        fits = self.target.domain.constraint is not None and self.ladder is None and self.draws >= EACH
        return pieces(self.record.q) if fits and self.ess >= EACH * self.chains else 1

    @property
    def tuning(self) -> Tuning:
        """Step, length and friction of the frozen chain."""
        return self.frozen.tuning

    @property
    def target(self) -> Target:
        """What was sampled; `roots` are the scales of coordinates, `spreads` those of groups."""
        return self.frozen.target

    @property
    def ladder(self) -> Ladder | None:
        """Of replica exchange: levels, how often neighbours swapped, round trips."""
        return self.frozen.ladder

    def more(self, draws: int, progress: bool | None = False) -> Draws:
        """The chains continued by so many draws, together with those there are: to the bit what one longer run gives."""
        if not is_integer(draws) or draws < 1:
            raise DomainError(f"draws must be a whole number ≥ 1, got {draws!r}.")
        clock = time.perf_counter()
        with Progress(progress, self.chains, draws * self.frozen.thin, None) as bar:
            frozen, record = self.frozen.draw(int(draws), lambda trajectories: bar.advance(trajectories, self.chains))
        new = user_arrays(self.target, record.q)
        arrays = {name: np.concatenate([array, new[name]], 1) for name, array in self.arrays.items()}
        seconds = self.seconds | {"draws": self.seconds["draws"] + time.perf_counter() - clock}
        return Draws(arrays, joined([self.record, record]), frozen, self.kernel, self.log, seconds)

    @property
    def scheme(self) -> Trajectories:
        """The frozen chain, as a scheme."""
        return Trajectories(self.target, self.tuning)

    @property
    def sample_stats(self) -> dict[str, np.ndarray]:
        """lp, acceptance, diverging, unsolved, energy and energy_error of each draw; with a ladder also which replica it is of."""
        return self.record.stats

    @cached_property
    def tree(self) -> xarray.DataTree:
        """Groups `posterior` and `sample_stats` with axes (chain, draw, ...), which ArviZ accepts. R̂, bulk and tail ESS are attributes of each
        variable, one number for each component in the order of its entries; of the posterior the worst of them."""
        import xarray

        axes = lambda name, array: ("chain", "draw", *(f"{name}_dim_{k}" for k in range(array.ndim - 2)))
        measured = lambda name, array: {key: [self.table[label][key] for label in _labels(name, array)] for key in ("rhat", "ess_bulk", "ess_tail")}
        group = lambda arrays: xarray.Dataset({name: (axes(name, array), array) for name, array in arrays.items()}).assign_coords(
            chain=np.arange(self.chains), draw=np.arange(self.draws)
        )
        attributes = {"inference_library": "bismut", "kernel": self.kernel, "tuning": str(self.tuning), "measure": self.target.domain.measure}
        attributes |= {"sampling_time": self.seconds["draws"], "burn_in_time": self.seconds["burn-in"], "acceptance": self.acceptance}
        if self.ladder is not None:
            attributes |= {"levels": self.ladder.levels, "swap_acceptance": self.ladder.acceptance, "round_trips": int(self.ladder.trips.sum())}
        attributes |= {"rhat": self.rhat, "ess": self.ess, "divergences": self.divergences}
        posterior = group(self.arrays).assign_attrs(attributes)
        for name, array in self.arrays.items():
            posterior[name].attrs |= measured(name, array)
        return xarray.DataTree.from_dict({"/posterior": posterior, "/sample_stats": group(self.sample_stats)})

    def to_arviz(self) -> Any:
        """The tree as the installed ArviZ takes it: an InferenceData before version 1, the tree itself from then on."""
        try:
            import arviz
        except ImportError:
            raise BismutError("to_arviz needs ArviZ: pip install 'bismut[sample]'. `draws.tree` holds the same without it.") from None
        kind = getattr(arviz, "InferenceData", None)
        return self.tree if kind is None else kind(**{name: self.tree[name].to_dataset() for name in ("posterior", "sample_stats")})

    @cached_property
    def table(self) -> dict[str, dict[str, float]]:
        """Mean, deviation, error of the mean, quantiles, bulk and tail ESS and R̂ of every component."""
        rows = {}
        for name, array in self.arrays.items():
            for label, index in _labels(name, array).items():
                rows[label] = diagnostics.summary_row(array[(slice(None), slice(None), *index)])
        return rows

    @property
    def rhat(self) -> float:
        """The largest R̂."""
        return max((row["rhat"] for row in self.table.values() if np.isfinite(row["rhat"])), default=float("nan"))

    @property
    def excess_rhat(self) -> float:
        """The largest R̂ without what the memory of chains alone would make of it, which short chains have however well they agree."""
        return max((row["excess_rhat"] for row in self.table.values() if np.isfinite(row["excess_rhat"])), default=float("nan"))

    @property
    def ess(self) -> float:
        """The smallest of all bulk and tail effective sample sizes, of what varies."""
        sizes = [min(row["ess_bulk"], row["ess_tail"]) for row in self.table.values() if row["sd"] > 0]
        return min(sizes, default=float("nan"))

    @property
    def trusted(self) -> bool:
        """Whether every component has at least 100 effective draws and an R̂ ≤ √(1.01² + τ/(n − τ) − 1/n), where n draws of half a chain have the
        memory τ, no trajectory diverged, every chain moved, and a surface is not in pieces. For long chains that is R̂ ≤ 1.01."""
        return self.excess_rhat <= TRUSTED and self.ess >= _FEW and not self.divergences and not self.stuck and self.pieces == 1

    def as_json(self) -> dict[str, Any]:
        """What `bismut sample --json` prints."""
        ladder = self.ladder
        exchange = {} if ladder is None else {"levels": ladder.levels, "swap_acceptance": ladder.acceptance, "round_trips": int(ladder.trips.sum())}
        return {
            "kernel": self.kernel,
            "space": self.target.domain.title,
            "measure": self.target.domain.measure,
            "chains": self.chains,
            "draws": self.draws,
            "tuning": {"step": float(self.tuning.step), "leapfrogs": self.tuning.leapfrogs, "friction": float(self.tuning.friction)},
            "acceptance": self.acceptance,
            "divergences": self.divergences,
            "seconds": self.seconds,
            "trusted": self.trusted,
            "remarks": self.remarks,
            "parameters": self.table,
        } | ({"ladder": exchange} if exchange else {})

    @property
    def remarks(self) -> list[str]:
        """What speaks against trusting the draws."""
        doubts = []
        if not self.excess_rhat <= TRUSTED:
            doubts.append(
                f"R̂ is up to {self.rhat:.4f}, {self.excess_rhat:.4f} > {TRUSTED} without the share that memory explains: chains disagree, or are "
                "short against their memory; more draws, thin or burn_in would tell"
            )
        if self.ess < _FEW:
            doubts.append(f"only {self.ess:.0f} effective draws of the slowest parameter: take more draws, or a larger thin")
        if self.divergences:
            doubts.append(f"{self.divergences} trajectories diverged: ρ may be too steep somewhere for this step; raise acceptance=")
        if self.stuck:
            doubts.append(
                f"{self.stuck} of {self.chains} chains never moved, where {self.acceptance:.2f} of all trajectories were accepted: "
                "they are where ρ is too steep for this step, and count as draws; give start= or a longer burn_in"
            )
        if self.pieces > 1:
            doubts.append(
                f"chains fall into {self.pieces} groups that never come among each other: the surface is in pieces, and what they weigh was not "
                "sampled, but is how many chains began on each; hold it softly, −|g(x)|²/2ε², with a ladder in ε"
            )
        if self.unsolved > _UNSOLVED:
            doubts.append(
                f"{self.unsolved:.1%} of the draws had a step that was not solved or does not lead back, which refuses its trajectory: "
                "chains may hardly leave where that is so; raise acceptance="
            )
        if self.ladder is not None and not self.ladder.trips.sum():
            doubts.append("no replica came back from the last level: take more levels, a nearer last one, or more draws")
        if self.record.note:
            doubts.append(self.record.note)
        return doubts

    def summary(self, rows: int | None = None) -> str:
        """The table as text; at most `rows` of it."""
        names = list(self.table)
        shown = names if rows is None else names[:rows]
        width = max(map(len, shown), default=1)
        lines = [" " * width + "".join(f"{column:>10}" for column in _COLUMNS)]
        for name in shown:
            row = self.table[name]
            numbers = [f"{row[c]:10.0f}" if c.startswith("ess") else f"{row[c]:10.3f}" if c == "rhat" else f"{row[c]:10.4g}" for c in _COLUMNS]
            lines.append(f"{name:<{width}}" + "".join(numbers))
        if len(shown) < len(names):
            lines.append(f"and {len(names) - len(shown)} more: print(draws.summary())")
        return "\n".join(lines)

    def _how(self) -> str:
        return (
            f"{self.kernel} on {self.target.domain.title}; {self.chains} chains, {self.draws} draws each"
            f"{f', one of {thin} trajectories' if (thin := self.frozen.thin) > 1 else ''}; {self.tuning}; acceptance {self.acceptance:.3f}; "
            f"{'' if self.ladder is None else f'{self.ladder}; '}"
            f"{self.seconds['burn-in']:.1f} s of burn-in, {self.seconds['draws']:.1f} s of draws ({self.record.engine} engine)"
        )

    def __repr__(self):
        return "\n".join([self._how(), *(f"  note: {remark}" for remark in self.remarks), self.summary(_SHOWN)])

    def _repr_html_(self) -> str:
        rows = [(name, *(f"{row[column]:.4g}" for column in _COLUMNS)) for name, row in self.table.items()]
        return table("; ".join([self._how(), *self.remarks]), rows, ("parameter", *_COLUMNS))


def _labels(name: str, array: np.ndarray) -> dict[str, tuple[int, ...]]:
    """What the components of a parameter are called, and their indices."""
    return {f"{name}[{', '.join(map(str, index))}]" if index else name: index for index in product(*map(range, array.shape[2:]))}


def user_arrays(target: Target, q: Any) -> dict[str, np.ndarray]:
    """The draws as the log-density sees them, by name: `x` for a single parameter; the arrays of one that has several are numbered."""
    points = jax.jit(jax.vmap(jax.vmap(target.point)))(q)
    named = points if isinstance(points, dict) else {"x": points}
    arrays = {}
    for name, point in named.items():
        leaves = jax.tree.leaves(point)
        arrays |= {name if len(leaves) == 1 else f"{name}_{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    return arrays
