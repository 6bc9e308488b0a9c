"""Statistical claims, about averages and distributions.

    alarm = P(|x̄ − e| as large as this, if the true distance is δ)        small: the claim |⟨x⟩ − e| ≤ δ is false
    doubt = P(|x̄ − e| as small as this, if the true distance is δ)        small: the claim is true

Averages are over trajectories, which are independent: each contributes the mean over its looks, and the standard error needs no correlation time. A
report makes many such claims, so alarms are judged together by Holm's rule: the probability that a report without any false claim raises an alarm
is at most the stated one, however the findings depend on each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy

from bismut.findings.finding import Finding, Verdict

ALARM = 1e-3  # probability of a false alarm in a report
RESOLVED = 0.05  # departures of a distribution function that a sample must be able to show before it passes
SURE = 4.5  # standard errors by which two estimates of one number may differ: a false alarm in 150 000
_LEAST = 30  # trajectories that make a standard error


class Mean(NamedTuple):
    """An average with its standard error, the number of trajectories, and the number of independent samples with the same error."""

    value: float
    error: float
    trajectories: int
    samples: float


def mean_of(looks: np.ndarray) -> Mean:
    """Of values (looks, trajectories); trajectories that failed are left out."""
    looks = np.atleast_2d(np.asarray(looks, float))
    looks = looks[:, np.isfinite(looks).all(0)]
    count = looks.shape[1]
    if count < 2:
        return Mean(float("nan"), float("inf"), count, 0.0)
    each = looks.mean(0)
    spread, single = float(each.var(ddof=1)), float(looks.var())
    samples = min(count * single / spread, float(looks.size)) if spread > 0 else float(looks.size)
    return Mean(float(each.mean()), float(np.sqrt(spread / count)), count, samples)


def ratio_of(above: np.ndarray, below: np.ndarray) -> Mean:
    """⟨above⟩/⟨below⟩ of values (looks, trajectories), its error by linearisation."""
    bottom = mean_of(below).value
    ratio = mean_of(above).value / bottom
    return mean_of(above - ratio * below)._replace(value=ratio, error=mean_of((above - ratio * below) / bottom).error)


def close_to(law: str, mean: Mean, expected: float, tolerance: float, how: str, data: Mapping[str, Any] | None = None) -> Finding:
    """The claim |⟨x⟩ − expected| ≤ tolerance."""
    common = {"error": mean.error, "expected": expected, "samples": mean.samples, "data": data or {}}
    if not np.isfinite(mean.value) or mean.trajectories < _LEAST:
        why = f"{how}; {mean.trajectories} trajectories are too few" if mean.trajectories < _LEAST else f"{how}; it is not finite"
        return Finding(law, mean.value, tolerance, Verdict.undecided, why, alarm=1.0, doubt=1.0, **common)
    gap, beyond = abs(mean.value - expected), lambda x: float(scipy.special.stdtr(mean.trajectories - 1, -x))  # Student's
    error = max(mean.error, np.finfo(float).tiny)
    alarm = beyond((gap - tolerance) / error) + beyond((gap + tolerance) / error)
    doubt = beyond((tolerance - gap) / error)
    return Finding(law, mean.value, tolerance, Verdict.undecided, how, alarm=min(alarm, 1.0), doubt=doubt, **common)


def holm_verdicts(findings: Sequence[Finding], alarm: float = ALARM) -> tuple[Finding, ...]:
    """Verdicts on all statistical findings together: Holm's rule for failing, each doubt below the same level for passing."""
    probability = lambda value: 1.0 if value is None or np.isnan(value) else value
    statistical = sorted((i for i, one in enumerate(findings) if one.alarm is not None), key=lambda i: probability(findings[i].alarm))
    failed: set[int] = set()
    for place, i in enumerate(statistical):
        if not probability(findings[i].alarm) <= alarm / (len(statistical) - place):
            break
        failed.add(i)
    out = list(findings)
    for i in statistical:
        otherwise = Verdict.passed if probability(findings[i].doubt) <= alarm else Verdict.undecided
        out[i] = replace(findings[i], verdict=Verdict.failed if i in failed else otherwise)
    return tuple(out)


# Distributions.


def gamma_distribution(values: np.ndarray, shape: float, tolerance: float) -> list[Finding]:
    """Are values of ½⟨p, v⟩/kT, one of each trajectory, distributed as Γ(shape) with a scale within 1 ± tolerance?

    The scale in that band which suits the sample best is taken, which makes both tests err towards silence. Kolmogorov–Smirnov is sensitive in the
    middle, Anderson–Darling at the ends.
    """
    values = np.sort(np.asarray(values, float)[np.isfinite(values)])
    n = len(values)
    if n < _LEAST:
        why = f"{n} trajectories are too few"
        return [Finding("kinetic energy distribution", float("nan"), RESOLVED, Verdict.undecided, why, alarm=1.0, doubt=1.0)]
    scales = np.linspace(1 - tolerance, 1 + tolerance, 41) if tolerance else np.ones(1)
    uniforms = [np.clip(scipy.special.gammainc(shape, values / scale), 1e-300, 1 - 1e-16) for scale in scales]
    farthest, ends = min(map(_kolmogorov, uniforms)), min(map(_anderson, uniforms))
    # Dvoretzky, Kiefer, Wolfowitz and Massart: how far the true distribution function can be from the sample's.
    band = float(np.sqrt(np.log(2 / ALARM) / (2 * n)))
    sized = f"of {n} independent samples from Γ({shape:g})"
    common: dict[str, Any] = {"doubt": 0.0 if farthest + band <= RESOLVED else 1.0, "samples": float(n)}
    ks = f"largest departure of the distribution function, {sized}; true one within {band:.2g} more"
    ks_alarm = float(scipy.special.kolmogorov(farthest * (np.sqrt(n) + 0.12 + 0.11 / np.sqrt(n))))  # Stephens' correction for finite n
    data = {"values": values[:: max(1, n // 400)], "shape": shape}
    ad = f"Anderson–Darling A², {sized}; beyond the limit once in {1 / ALARM:.0f}"
    critical = float(scipy.special.chdtri(1, ALARM / (1.15 * np.sqrt(3.0))) / 2)
    return [
        Finding("kinetic energy (KS)", farthest, RESOLVED, Verdict.undecided, ks, alarm=ks_alarm, data=data, **common),
        Finding("kinetic energy (AD)", ends, critical, Verdict.undecided, ad, alarm=anderson_tail(ends), **common),
    ]


def _kolmogorov(u: np.ndarray) -> float:
    n = len(u)
    return float(max((np.arange(1, n + 1) / n - u).max(), (u - np.arange(n) / n).max()))


def _anderson(u: np.ndarray) -> float:
    """A² = −n − Σ (2i − 1)/n [ln u_i + ln(1 − u_{n+1−i})] of sorted u."""
    n = len(u)
    odd = 2 * np.arange(1, n + 1) - 1
    return float(-n - np.sum(odd * (np.log(u) + np.log1p(-u[::-1]))) / n)


def anderson_tail(A2: float) -> float:
    """P(A² > x) ≈ √3 P(χ²₁ > 2x), from above.

    A² is Σ χ²₁/(j(j + 1)) for large samples. Zolotarev's tail of such a sum belongs to its largest term, times Π_{j≥2} (1 − 2/(j(j+1)))^{−½} = √3.
    It is 11 % too small at 5 % and closer beyond, so 1.15 of it is an upper bound there.
    """
    return float(min(1.0, 1.15 * np.sqrt(3.0) * scipy.special.chdtrc(1, 2 * A2)))
