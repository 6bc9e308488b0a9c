"""How large may the step be?

    bias(h) = ⟨f⟩_h − ⟨f⟩_0 ≈ c h^r,        the largest h with |bias| ≤ tolerance

Several steps, each with an ensemble of its own; a line through the averages against h^r, weighted by their errors, gives c and the limit h → 0,
which is compared with what exp(−H/kT) has where that is known. The advice stays on the safe side of the error of c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bismut.arguments import checked
from bismut.ensembles.checks import RUN
from bismut.errors import BismutError
from bismut.findings import gibbs
from bismut.findings.bath import bath_of
from bismut.findings.equilibrium import sampled_values
from bismut.findings.equilibrium_report import potential_and_own
from bismut.findings.sampling import Sample, sample
from bismut.findings.statistics import mean_of
from bismut.findings.verify import seconds_of, study_of
from bismut.formatting import table, with_error
from bismut.mechanics import Scheme, State
from bismut.process import check_process

_LEVELS = (2.0, 1.0, 0.5)


@dataclass(frozen=True)
class BiasCurve:
    """Biases of one observable over its spread: steps, values and errors, the coefficient c with its error, and the limit h → 0 with its own."""

    name: str
    steps: np.ndarray
    bias: np.ndarray
    error: np.ndarray
    coefficient: float
    coefficient_error: float
    limit: float
    limit_error: float
    order: float

    def largest(self, tolerance: float) -> float:
        """The step at which |c| h^r, with two standard errors of c, reaches the tolerance."""
        steepest = abs(self.coefficient) + 2 * self.coefficient_error
        return float((tolerance / steepest) ** (1 / self.order)) if steepest > 0 else float("inf")


@dataclass(frozen=True)
class Advice:
    """The largest step for which every bias stays below the tolerance; `tried` is the largest step tried, and nothing beyond it is known.

    doubt  why the averages are not yet those of equilibrium, so that nothing can be advised; empty where they are
    """

    step: float
    tolerance: float
    curves: tuple[BiasCurve, ...]
    tried: float
    doubt: str = ""

    def __repr__(self) -> str:
        more = " (the largest that was tried)" if self.step >= self.tried else ""
        lines = [f"a step up to {self.step:.3g}{more} keeps biases below {self.tolerance:g} of each spread"]
        lines = [f"no advice: {self.doubt}. A larger budget=, or a start nearer to equilibrium, would tell"] if self.doubt else lines
        return "\n".join([*lines, *("  " + "   ".join(row) for row in self._rows())])

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                f"{curve.name:<20}",
                f"c = {with_error(curve.coefficient, curve.coefficient_error)} per h^{curve.order:g}",
                f"at h → 0 {with_error(curve.limit, curve.limit_error)}",
                f"h ≤ {min(curve.largest(self.tolerance), self.tried):.3g}",
            )
            for curve in self.curves
        ]

    def _repr_html_(self) -> str:
        return table(repr(self).splitlines()[0], self._rows(), ("observable", "bias", "limit", "largest step"))


@checked(**RUN)
def advise_step(
    scheme: Scheme,
    start: Any,
    *,
    step: float,
    tolerance: float = 0.01,
    observables: Mapping[str, Callable[[State], Any]] | None = None,
    temperature: float | None = None,
    seed: int = 0,
    budget: int | float | str = 20.0,
) -> Advice:
    """The largest step for which the bias in temperature, potential energy and your own observables stays below a tolerance, with the curve.

    step       a step to begin with; twice and half of it are tried as well
    tolerance  of biases, each over the spread of its observable
    budget     seconds for sampling, or "2m", as a count of work: the clock is not looked at

    Where averages are not yet those of equilibrium, `advice.doubt` says so and `advice.step` is NaN.
    """
    check_process()
    study = replace(study_of(scheme, start, step, seed), temperature=temperature, observables=observables or {}, tolerance=tolerance)
    bath, why = bath_of(scheme, study.state, step, study.t0, temperature)
    if bath is None:
        raise BismutError(
            f"advise_step needs a scheme with a temperature: {why or 'this one claims none'}. Give temperature= if it has one nevertheless."
        )
    record, share = sampled_values(study, bath), seconds_of(budget) / len(_LEVELS)
    steps = np.array([level * step for level in _LEVELS])
    common: dict[str, Any] = {"budget": share, "tolerance": tolerance, "t0": study.t0}
    runs = [sample(scheme, study.state.q, bath, record, step=float(h), seed=seed + i, **common) for i, h in enumerate(steps)]
    functions = potential_and_own(study, bath)
    known = gibbs.quadrature(scheme.system, bath, functions, runs[-1].final.q, study.t0) if not scheme.system.constraints else None
    exact = {name: value[0] for name, value in (known or {}).items()} | {"excess": 0.0}
    order = float(scheme.claims.weak_order or 1)
    curves = {name: _curve(name, steps, runs, exact.get(name), order) for name in ("excess", *functions)}
    doubt = _doubt(steps, runs, [curve for name, curve in curves.items() if name in exact], tolerance)
    largest = min([curve.largest(tolerance) for curve in curves.values()] + [float(steps.max())])
    return Advice(float("nan") if doubt else largest, tolerance, tuple(curves.values()), float(steps.max()), doubt)


def _doubt(steps: np.ndarray, runs: list[Sample], known: list[BiasCurve], tolerance: float) -> str:
    """Why averages are not those of equilibrium: a run still moves or explodes, or a limit h → 0 is not the exact value."""
    for h, run in zip(steps, runs, strict=True):
        if not run.stable:
            return f"the step {h:g} is not stable"
        if run.settled:
            return f"the run with step {h:g} is not in equilibrium yet"
    off = [curve.name for curve in known if abs(curve.limit) > 5 * curve.limit_error + tolerance]
    return f"{', '.join(off)} at h → 0 is not what exp(−H/kT) gives" if off else ""


def _curve(name: str, steps: np.ndarray, runs: list, exact: float | None, order: float) -> BiasCurve:
    """Weighted least squares of averages against h^r; biases are from the exact value, or from the limit."""
    means = [mean_of(run.values[name]) for run in runs]
    spread = float(np.mean([np.nanstd(run.values[name]) for run in runs])) or 1.0
    values, errors = (np.array([getattr(mean, part) for mean in means]) / spread for part in ("value", "error"))
    weights = 1 / np.maximum(errors, 1e-300) ** 2
    design = np.stack([np.ones_like(steps), steps**order], 1)
    inverse = np.linalg.inv(design.T @ (design * weights[:, None]))
    limit, slope = inverse @ (design.T @ (weights * values))
    base = limit if exact is None else exact / spread
    label = {"excess": "temperature", "potential": "⟨U⟩/kT"}.get(name, name.removeprefix("own "))
    slope_error, limit_error = (float(np.sqrt(inverse[i, i])) for i in (1, 0))
    return BiasCurve(label, steps, values - base, errors, float(slope), slope_error, float(limit - base), limit_error, order)
