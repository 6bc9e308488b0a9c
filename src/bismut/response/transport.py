"""Transport coefficients, up to four ways that must agree.

    Einstein          D_ab = [MSD_ab(2τ) − MSD_ab(τ)]/2τ
    Green–Kubo        D_ab = ∫₀^τ ⟨J_a(0) J_b(s)⟩ ds                                J the displacement of a step over h, or a flux of the user's own
    linear response   D_ab = kT ⟨v_a⟩_{F e_b}/F         with forces ±F and ±2F on one noise, F → 0 by extrapolation, after the transient
    transient         D_ab = kT ⟨ΔX_a(τ)⟩/(F h)         the same, with a force that acts in one step alone; ΔX is what it moves

The window τ is by rule, unless one is given: the first lag that is 8 τ_c, τ_c = 2∫ρ² the correlation time of the flux, ρ its normalised correlation
(of an exponential its decay time; e⁻⁸ is cut off). What half the window gives is shown beside it: a slow tail of a correlation that begins fast shows
there, and wants a longer window. All errors are over independent trajectories; to those of both answers to a force is added what half the
window, and three quarters of it, would change, a bound on what is left of the transient. Einstein and Green–Kubo are of fluctuations: what the mean
drift contributes is subtracted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy.stats import t as student

from bismut.arguments import Rule, checked, flag, integer, number, positive
from bismut.ensembles import complete_run, request
from bismut.ensembles.checks import RUN
from bismut.ensembles.starts import start_at
from bismut.errors import BismutError, DomainError
from bismut.flows import Brownian
from bismut.formatting import table, with_error
from bismut.mechanics import Scheme
from bismut.process import check_process
from bismut.registry import PROVIDERS
from bismut.response import answers, pushed
from bismut.response.bath import no_bath
from bismut.response.displacements import Spread, adds_up, looks_between, turned_in_a_step

_TIMES = 8.0  # correlation times in a window
_FEWEST = 3.0  # of them, below which e⁻³ and more is missing from all ways alike, and that they agree says nothing
_FALSE = 1e-4  # probability that ways which agree are said not to, over all components and pairs of ways together
_MOST = 6  # components of a tensor
_SHARE = 4  # of the run, the part that each of the four forces takes
_OWN = {
    "trajectories": integer(2).but("Errors are over independent trajectories."),
    "part": Rule("a function of a displacement, such as lambda v: v[0]", callable),
    "flux": Rule("a function of a State, such as lambda state: state.p", callable),
    "window": positive,
    "response": flag,
    "scale": number("one finite number"),
}


@dataclass(frozen=True)
class Estimate:
    """One way: the tensor, its standard error, that of the mean of its diagonal, and the steps of all trajectories that it took."""

    value: np.ndarray
    stderr: np.ndarray
    mean_stderr: float
    work: float
    note: str = ""

    @property
    def trace(self) -> tuple[float, float]:
        """The mean over components and its error, which is over trajectories: components of one are not independent."""
        return float(np.trace(self.value) / len(self.value)), self.mean_stderr


@dataclass(frozen=True)
class Transport:
    """A transport coefficient by each way that applies.

    ways      by name: "einstein", "green_kubo", "response", "transient"
    window    τ, and what half of it gives
    missing   ways that do not apply, with the reason
    agree     whether all ways agree in every component and in their mean; a false alarm in 10⁻⁴ of runs, by Bonferroni and Student. None where they
              do, but the window is shorter than 3 correlation times, so that nothing can be said
    curves    lags, and at each lag value and error of Einstein and of Green–Kubo, the mean over components
    """

    ways: dict[str, Estimate]
    missing: dict[str, str]
    window: float
    correlation_time: float
    half: dict[str, float]
    agree: bool | None
    doubt: str
    curves: dict[str, np.ndarray] = field(repr=False)
    subject: str = ""

    @property
    def best(self) -> str:
        """The way with the smallest error; where they do not agree Einstein's, which assumes least, so that no small error hides it."""
        return min(self.ways, key=lambda name: self.ways[name].trace[1]) if self.agree else "einstein"

    @property
    def value(self) -> np.ndarray:
        """The tensor (d, d) by the way that is `best`."""
        return self.ways[self.best].value

    @property
    def stderr(self) -> np.ndarray:
        return self.ways[self.best].stderr

    def __repr__(self) -> str:
        d = len(self.value)
        verdicts = {True: "the ways agree", False: "THE WAYS DO NOT AGREE", None: "THE WINDOW IS TOO SHORT TO TELL WHETHER THE WAYS AGREE"}
        verdict = verdicts[self.agree]
        by = "" if self.agree else f" by {self.best}"
        lines = [f"{self.subject}: {with_error(*self.ways[self.best].trace)}{by}{f' (mean of {d} components)' if d > 1 else ''}; {verdict}"]
        for name, one in self.ways.items():
            value, error = one.trace
            lines.append(f"  {name:<12} {with_error(value, error):>20}   {one.work:.2g} steps, variance × steps {error**2 * one.work:.2g}{one.note}")
        lines += [f"  {name:<12} {'–':>20}   {why}" for name, why in self.missing.items()]
        halves = ", ".join(f"{name} {value:.4g}" for name, value in self.half.items())
        times = "" if math.isnan(self.correlation_time) else f", {self.window / max(self.correlation_time, 1e-300):.3g} correlation times"
        lines.append(f"  window {self.window:.4g}{times}; half of it gives {halves}")
        return "\n".join(lines + ([f"  {self.doubt}"] if self.doubt else []))

    def _repr_html_(self) -> str:
        rows = [(name, with_error(*one.trace), f"{one.work:.2g}") for name, one in self.ways.items()]
        return table(repr(self).splitlines()[0], rows, ("way", "mean over components", "steps"))

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        ways = {name: {"value": one.value.tolist(), "stderr": one.stderr.tolist(), "steps": one.work} for name, one in self.ways.items()}
        rest = {"window": self.window, "correlation_time": self.correlation_time, "half_window": self.half, "agree": self.agree, "doubt": self.doubt}
        return {"subject": self.subject, "ways": ways, "missing": self.missing} | rest

    def figure(self, file: str | Path | None = None, *, dark: bool = False) -> Any:
        """Both running estimates against the window, and the answer to a force; written to a file if one is given. Needs matplotlib."""
        return PROVIDERS["transport"](self, file, dark)


@checked(**(RUN | _OWN))
def transport(  # noqa: PLR0915
    scheme: Scheme,
    start: Any,
    *,
    step: float,
    steps: int,
    trajectories: int = 1000,
    burn_in: int = 0,
    seed: int = 0,
    part: Any = None,
    flux: Any = None,
    lags: int = 100,
    every: int | None = None,
    window: float | None = None,
    response: bool = True,
    scale: float = 1.0,
) -> Transport:
    """A transport coefficient by Einstein's relation, by Green and Kubo, and by answers to forces, with errors over independent trajectories.

    By default the diffusion tensor of displacements: of positions, angles, rotations in the body, for rigid bodies both and their coupling (6, 6).
    burn_in   steps to equilibrium
    part      the relevant part of a displacement, say lambda v: v[0]; leading axes are bodies, over which is averaged, the last has components
    flux      a function of a State instead, whose time integral takes the place of a displacement: of the pressure tensor for a viscosity, say
    lags      how many, `every` steps apart; by default together an eighth of the run. Turns are added up in every step, however far lags are apart
    window    the time τ at which both running estimates are read, at most half of all lags; by rule if omitted: 8 correlation times of the flux
    response  whether forces are applied, ones that stay and ones of a step, a quarter of the run each, to each of a few bodies; not for a flux, whose
              force is not known
    scale     a factor on everything: V/kT for a viscosity
    """
    check_process()
    if scheme.changes_box:
        raise DomainError(f"{scheme.title} scales places with the box, which is no motion. Measure transport at constant volume.")
    if part is not None and flux is not None:
        raise DomainError("Give part, of a displacement, or flux, a function of a State, not both.")
    overdamped = isinstance(scheme, Brownian)
    every = max(1, steps // (8 * lags)) if every is None else int(every)
    if lags * every > steps:
        raise DomainError(f"The longest lag is {lags} × {every} steps, but the run has {steps}. Take fewer lags, or more steps.")
    seen = flux is not None or not overdamped
    looks, between = looks_between(scheme.space, flux, every, seen)
    watch = Spread(part, flux, int(lags), seen, between, every=looks)
    _check_components(scheme, start, watch)
    settings = {"step": step, "trajectories": trajectories, "burn_in": burn_in, "seed": seed}
    run = complete_run(request(scheme, start, steps=steps, observe={"spread": watch}, **settings))
    spread = run.observables["spread"]
    lag, n = np.asarray(spread.coordinates["lag"]), int(spread.count)
    if n < 2:
        raise BismutError(f"Errors are over trajectories that finished, of which there are {n} of {trajectories}: {run.outcome}")
    both = {
        f"{name}{kind}": scale * np.asarray(getattr(spread, f"{name}{kind}"))
        for name in ("einstein", "green_kubo")
        for kind in ("", "_stderr", "_mean", "_mean_stderr")
    }
    _check_fluctuations(both["green_kubo" if seen else "einstein"][1] / (scale or 1.0) / lag[1], np.asarray(spread.drift), flux, scheme.system.dtype)
    index, tau, doubts = _window(lag, np.asarray(spread.reach) if seen else lag, both, seen, window)
    if flux is None and not adds_up(scheme.space) and (turn := turned_in_a_step(scheme, start, step)) > 1:
        doubts.append(f"an angle may turn half way in one step ({turn:.2g} times as far, at five standard deviations): take a smaller step")
    drift, drift_error = np.asarray(spread.drift), np.asarray(spread.drift_stderr)
    if flux is None and np.any(np.abs(drift) > float(student.isf(_FALSE / 2 / len(drift), n - 1)) * drift_error):
        doubts.append(f"there is a mean drift, {np.array2string(scale * drift, precision=3)}; what it contributes is subtracted")
    work = float(trajectories) * (steps + burn_in)
    names = ("einstein", "green_kubo") if seen else ("einstein",)
    ways = {name: Estimate(both[name][index], both[f"{name}_stderr"][index], float(both[f"{name}_mean_stderr"][index]), work) for name in names}
    missing = {} if seen else {"green_kubo": "overdamped motion has no velocity"}
    if failed := len(run.outcome.failures):
        doubts.append(f"{failed} of {trajectories} trajectories failed and are left out")
    halves = {name: float(both[f"{name}_mean"][max(1, index // 2)]) for name in names}
    why = "" if response else "response=False"
    why = why or ("the force that drives a flux is not known" if flux is not None else pushed.why_not(scheme))
    if none := no_bath(scheme):
        why = why or "without friction a force heats what it pushes"
        doubts.append(f"there is {none.partition(':')[0]}: the numbers are those of the energies it has, right if it was drawn from equilibrium")
    bodies, why = pushed.bodies_pushed(scheme, start, watch.picked) if not why else (0, why)
    if why:
        missing |= {"response": why, "transient": why}
    else:
        diffused = float(np.trace(ways["einstein"].value)) / len(ways["einstein"].value) / scale
        scales = (max(steps // _SHARE, 4), _SHARE, bodies, tau, diffused, float(lag[index]), scale)
        answered = answers.to_forces(answers.Pushes(scheme, run.final, watch, settings, *scales))
        ways |= {name: Estimate(one.value, one.stderr, one.mean_stderr, one.work, one.note) for name, one in answered.items()}
        halves["transient"] = answered["transient"].half
    curves = {"lag": lag} | {f"{name}{kind}": both[f"{name}_mean{kind}"] for name in names for kind in ("", "_stderr")}
    agree = _agree(ways, n)
    if agree and lag[index] < _FEWEST * (tau - 2 * lag[1]):  # of a flux that is forgotten between two lags 2∫ρ² still has 2 of them
        agree = None
        doubts.append(
            f"the window is shorter than {_FEWEST:g} correlation times of the flux, too short to tell: take more lags, a larger every or window"
        )
    elif not agree:
        doubts.append("two ways differ by more than their errors allow: a longer window (lags, every) or burn_in may tell which is right")
    subject = f"{scheme.title} on {scheme.space}, step {step:g}, {n} trajectories: " + ("diffusion" if flux is None else "integral of the flux")
    return Transport(ways, missing, float(lag[index]), tau, halves, agree, "; ".join(doubts), curves, subject)


def _check_fluctuations(first: np.ndarray, drift: np.ndarray, flux: Any, dtype: Any) -> None:
    """Refuse a flux that is not finite although states are, and what is constant; `first` is the slope of the first lag over its time."""
    what = "The flux" if flux is not None else "The part of a displacement"
    if not (np.isfinite(first).all() and np.isfinite(drift).all()):
        raise BismutError(
            f"{what} is NaN or infinite, although trajectories are finite: a root or a logarithm of a negative number, or a quotient by 0?"
        )
    if not np.any(np.abs(np.diagonal(first)) > 64 * float(np.finfo(dtype).eps) * drift**2):  # round-off of what the drift takes away
        raise BismutError(
            f"{what} does not fluctuate: it is {np.array2string(drift, precision=6)} at all times. What is constant has no transport coefficient."
        )


def _check_components(scheme: Scheme, start: Any, watch: Spread) -> None:
    if watch.part is not None:
        try:
            watch.part(jax.tree.map(lambda leaf: np.zeros(leaf.shape), jax.eval_shape(lambda: scheme.space.zero(scheme.system.dtype))))
        except IndexError as problem:  # JAX takes the last component in place of one that there is not
            raise DomainError(f"part picks a component that displacements of {scheme.space} do not have: {problem}.") from problem
        except Exception:  # of what NumPy has not, such as v.at
            pass
    example = start_at(scheme, start, 0.0).example
    shape = jax.eval_shape(lambda state: watch.begin(scheme, state, 0.0).position, example).shape
    if shape[1] > _MOST:
        raise DomainError(
            f"A displacement of {scheme.space} has {shape[1]} components, more than the {_MOST} of a tensor. Pick some: part=lambda v: v[:3], or "
            "shape it as (bodies, components)."
        )


def _window(lag: np.ndarray, reach: np.ndarray, both: dict[str, np.ndarray], seen: bool, asked: float | None) -> tuple[int, float, list[str]]:
    """The lag of the window, the correlation time (NaN without a flux), and doubts; `reach` is to where the integral of each lag goes."""
    half = (len(lag) - 1) // 2
    if asked is not None and not lag[1] <= asked <= lag[half] * (1 + 1e-9):
        raise DomainError(
            f"window must be between {lag[1]:.4g} and {lag[half]:.4g}, half of all lags, got {asked:g}. Take more lags, or a larger every."
        )
    slopes = np.trace(both["green_kubo" if seen else "einstein"], axis1=1, axis2=2)
    chosen = half if asked is None else round(asked / lag[1])
    if not seen:
        return chosen, math.nan, []
    rho = np.diff(slopes) / np.diff(reach)
    times = 2 * np.cumsum((rho / rho[0]) ** 2 * np.diff(reach))
    if asked is not None:
        return chosen, float(times[chosen - 1]), []
    past = np.flatnonzero(lag[1 : half + 1] >= _TIMES * times[:half])
    if len(past):
        return int(past[0]) + 1, float(times[past[0]]), []
    few = lag[half] / times[half - 1]
    short = f"the longest window, {lag[half]:.4g}, is only {few:.3g} correlation times of the flux: take more lags, or a larger every"
    return half, float(times[half - 1]), [short]


def _agree(ways: dict[str, Estimate], trajectories: int) -> bool:
    """Whether no pair of ways differs in a component, or in the mean of the diagonal, by more than chance lets one of them all."""
    numbers = [(np.append(one.value, one.trace[0]), np.append(one.stderr, one.trace[1])) for one in ways.values()]
    pairs = [(a, b) for i, a in enumerate(numbers) for b in numbers[:i]]
    count = sum(len(a[0]) for a, _ in pairs)
    sure = float(student.isf(_FALSE / 2 / max(count, 1), max(trajectories - 1, 1)))
    return all(bool(np.all(np.abs(a[0] - b[0]) <= sure * np.hypot(a[1], b[1]) + 1e-9 * np.abs(a[0]))) for a, b in pairs)
