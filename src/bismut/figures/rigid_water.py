"""Rigid water at large steps: temperatures, energy and pressure against the step, for four ways of stepping in a bath.

    A(h) = A + B h²        fitted to each quantity of each scheme; A of a temperature should be that of the bath, B says what a step costs

A study goes in rounds: each continues every scheme at every step by as much time, because energy and pressure remember picoseconds, whatever the
step; with as many steps instead, the errors of small steps are too small and the weighted fit believes them. Means of rounds are the samples; the
first fifth of the rounds is left out. χ² of a fit for each degree of freedom is about 1 where errors are right and the law holds.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from scipy import constants

from bismut.actions import Verlet
from bismut.ensembles import acceptance, potential_energy, pressure, simulate
from bismut.figures.figure import Figure, FigureTable, Note
from bismut.figures.style import colour
from bismut.flows import BAOAB, GLA, OBABO, Langevin, Metropolised
from bismut.gallery.water import KT, on_a_lattice, water
from bismut.mechanics import inventory

SPLITTINGS = {"BAOAB": BAOAB, "OBABO": OBABO, "GLA": GLA(Verlet), "Metropolised": Metropolised()}
QUANTITIES = ("T, motion", "T, axis 1", "T, axis 2", "T, axis 3", "U", "P")
KELVIN = 298.15 / KT
BAR = 1e3 / constants.N_A / 1e-27 / 1e5  # of kJ/mol/nm³
_LOOKS = {"BAOAB": ("blue", "o"), "OBABO": ("vermilion", "s"), "GLA": ("sage", "^"), "Metropolised": ("magenta", "D")}


class Means(Protocol):
    """One scheme at one step (fs): means and standard errors of the quantities."""

    @property
    def scheme(self) -> str: ...
    @property
    def step(self) -> float: ...
    @property
    def mean(self) -> np.ndarray: ...
    @property
    def error(self) -> np.ndarray: ...


class RecordedMeans(NamedTuple):
    """As a file of records has them."""

    scheme: str
    step: float
    mean: np.ndarray
    error: np.ndarray


class StepFit(NamedTuple):
    """A + B h²: the limit A as h → 0 and the slope B, (2,), their standard errors, and χ² for each degree of freedom."""

    values: np.ndarray
    errors: np.ndarray
    misfit: float


@dataclass
class WaterRun:
    """One scheme at one step (fs): the means of the rounds, (rounds, 6) in K, kJ/mol per molecule and bar, and the fraction of accepted steps."""

    scheme: str
    step: float
    rounds: list = field(default_factory=list)
    accepted: float = 1.0

    @property
    def known(self) -> np.ndarray:
        """The means of the rounds that count."""
        return np.array(self.rounds)[len(self.rounds) // 5 :]

    @property
    def mean(self) -> np.ndarray:
        return self.known.mean(0)

    @property
    def error(self) -> np.ndarray:
        """The largest standard error that means of 1, 2, 4, ... successive rounds give, as long as there are three of them."""
        values, errors = self.known, []
        while not errors or len(values) >= 3:
            errors.append(values.std(0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.full(values.shape[1], np.inf))
            even = values[: len(values) // 2 * 2]
            values = 0.5 * (even[::2] + even[1::2])
        return np.max(errors, 0)


@dataclass
class WaterStudy:
    """All runs, and how they were made; each round continues each run by `span` ps."""

    molecules: int
    sites: int
    accuracy: float
    trajectories: int
    span: float
    rate: float
    runs: list[WaterRun]

    def of(self, scheme: str) -> list[WaterRun]:
        return [run for run in self.runs if run.scheme == scheme]

    @property
    def schemes(self) -> list[str]:
        return list(dict.fromkeys(run.scheme for run in self.runs))

    def fit(self, scheme: str, quantity: int) -> StepFit:
        return fitted(self.of(scheme), quantity)


def fitted(runs: Sequence[Means], quantity: int) -> StepFit:
    """By least squares with the errors of the means as weights."""
    weights = np.array([1 / run.error[quantity] for run in runs])
    matrix = np.stack([np.ones(len(runs)), [run.step**2 for run in runs]], -1) * weights[:, None]
    data = weights * [run.mean[quantity] for run in runs]
    covariance = np.linalg.pinv(matrix.T @ matrix)
    values = covariance @ matrix.T @ data
    freedom = len(runs) - 2
    return StepFit(values, np.sqrt(np.diag(covariance)), float(((matrix @ values - data) ** 2).sum() / freedom) if freedom > 0 else np.nan)


def study(
    molecules: int = 27,
    *,
    sites: int = 3,
    accuracy: float = 0.0,
    schemes: Sequence[str] = tuple(SPLITTINGS),
    steps: Sequence[float] = (0.5, 1.0, 2.0, 4.0, 6.0),
    rounds: int = 10,
    span: float = 1.0,
    settle: float = 10.0,
    trajectories: int = 4,
    rate: float = 5.0,
    seed: int = 1,
    note: Callable[[str], Any] = print,
    after: Callable[[WaterStudy], Any] = lambda done: None,
) -> WaterStudy:
    """`rounds` of `span` ps at each of the `steps` (fs) by each scheme, from places that BAOAB at 1 fs settled for `settle` ps."""
    system = water(molecules, sites, accuracy=accuracy)
    known = inventory(system)
    assert known is not None
    assert known.box is not None
    mass, moments = jnp.asarray(known.mass)[:, None], jnp.asarray(known.moments)

    def temperatures(state):
        p, spin = state.p
        return KELVIN * jnp.concatenate([jnp.mean(p**2 / mass)[None], jnp.mean(spin**2 / moments, 0)])

    observe = {"T": temperatures, "U": potential_energy, "P": pressure}
    bath = Langevin(system, temperature=KT, rate=rate)
    note("settling")
    start = bath.start(on_a_lattice(molecules, known.box.lengths[0]), temperature=KT)
    count = max(1, round(settle / 0.001))
    settled = simulate(bath, start, step=0.001, steps=count, every=count, trajectories=trajectories, seed=seed, progress=False)
    places = jax.tree.map(np.asarray, settled.final.q)
    done = WaterStudy(molecules, sites, accuracy, trajectories, span, rate, [WaterRun(name, float(fs)) for name in schemes for fs in steps])
    bound = {name: bath.with_splitting(SPLITTINGS[name]) for name in schemes}
    states = [bound[run.scheme].start(places, temperature=KT, ledger=run.scheme == "Metropolised") for run in done.runs]
    for number in range(rounds):
        for k, run in enumerate(done.runs):
            note(f"round {number + 1} of {rounds}: {run.scheme}, {run.step:g} fs")
            watched = observe | ({"accepted": acceptance} if run.scheme == "Metropolised" else {})
            length = max(1, round(1000 * span / run.step))
            settings = {"step": run.step / 1000, "steps": length, "every": max(1, length // 25), "trajectories": trajectories, "observe": watched}
            result = simulate(bound[run.scheme], states[k], seed=seed + 1 + number * len(states) + k, progress=False, **settings)
            states[k] = result.final
            values = [result.T.mean, result.U.mean / molecules, BAR * result.P.mean]
            run.rounds.append(np.concatenate([np.atleast_1d(np.asarray(one)[1:].mean(0)) for one in values]))
            if run.scheme == "Metropolised":
                run.accepted = float(np.asarray(result.accepted.mean)[-1])
        after(done)
    return done


def run(quick: bool, note: Note) -> WaterStudy:
    return study(27, rounds=4, span=0.02, settle=0.5, note=note) if quick else study(216, rounds=20, span=2.0, settle=20.0, note=note)


def draw(data: WaterStudy):
    """A panel for motion and for each axis."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(12, 8.5), sharex=True, sharey=True)
    for quantity, axes in enumerate(panels.flat):
        for shift, scheme in enumerate(data.schemes):
            shade, mark = _LOOKS[scheme]
            runs, (level, slope) = data.of(scheme), data.fit(scheme, quantity).values
            steps = np.array([run.step for run in runs])
            means, errors = zip(*((run.mean[quantity], run.error[quantity]) for run in runs), strict=True)
            fine = np.linspace(0, steps.max() + 0.3, 100)
            axes.errorbar(steps + 0.06 * (shift - 1.5), means, yerr=errors, fmt=mark, color=colour(shade), capsize=3, label=scheme)
            axes.plot(fine, level + slope * fine**2, color=colour(shade), linewidth=1.2)
        axes.axhline(298.15, color=colour("ink"), linestyle="--", linewidth=1.2)
        axes.set(
            title=QUANTITIES[quantity].removeprefix("T, "), xlabel="step, fs" if quantity > 1 else "", ylabel="" if quantity % 2 else "temperature, K"
        )
    panels[0, 0].legend(loc="lower left")
    figure.suptitle(f"{data.molecules} rigid water molecules: temperatures against the step (dashed: that of the bath; lines: A + B h²)")
    return figure


def table(data: WaterStudy) -> FigureTable:
    """The fits of all quantities."""
    return fits(data.runs)


def fits(runs: Sequence[Means]) -> FigureTable:
    """A and B with their standard errors, and χ² for each degree of freedom, of each quantity by each scheme."""

    def row(scheme: str, quantity: int) -> tuple[str, ...]:
        (level, slope), (da, db), misfit = fitted([run for run in runs if run.scheme == scheme], quantity)
        digits = 3 if QUANTITIES[quantity] == "U" else 1 if quantity < 4 else 0
        signed = f"{slope:.{digits + 1}f}".replace("-", "−")
        return (
            scheme,
            QUANTITIES[quantity],
            f"{level:.{digits}f} ± {da:.{digits}f}".replace("-", "−"),
            f"{signed} ± {db:.{digits + 1}f}",
            f"{misfit:.1f}" if np.isfinite(misfit) else "–",
        )

    schemes = dict.fromkeys(run.scheme for run in runs)
    title = "A + B h², h in fs; T in K, U in kJ/mol per molecule, P in bar; χ² for each degree of freedom"
    return FigureTable(title, ("scheme", "quantity", "A", "B", "χ²"), [row(scheme, k) for k in range(len(QUANTITIES)) for scheme in schemes])


def recorded(file: Path) -> list[RecordedMeans]:
    """The means of a file of records that this figure wrote."""
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    columns = lambda row, more: np.array([float(row[name + more]) for name in QUANTITIES])
    return [RecordedMeans(row["scheme"], float(row["step"]), columns(row, ""), columns(row, ", error")) for row in rows]


def records(data: WaterStudy) -> FigureTable:
    rows = [(run.scheme, run.step, run.accepted, *np.stack([run.mean, run.error], -1).ravel()) for run in data.runs]
    return FigureTable("", ("scheme", "step", "accepted", *(f"{name}{error}" for name in QUANTITIES for error in ("", ", error"))), rows)


def caption(data: WaterStudy) -> str:
    model, charges = "SPC/E" if data.sites == 3 else "TIP4P", "an Ewald sum" if data.accuracy else "a reaction field"
    rounds = len(data.runs[0].rounds)
    return (
        f"{data.molecules} rigid {model} molecules with {charges}, a bath of 298.15 K and rate {data.rate:g}/ps; {data.trajectories} trajectories, "
        f"{rounds} rounds of {data.span:g} ps at each step, of which the first fifth is left out. Bars are standard errors: the largest of "
        "those from means of 1, 2 and 4 successive rounds."
    )


FIGURE = Figure("rigid-water", "Rigid water: the temperature of every axis against the step", run, draw, table, records, caption)
