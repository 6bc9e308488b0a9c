"""A free-energy difference from work that was done.

    Jarzynski    e^{−ΔF/kT} = ⟨e^{−W/kT}⟩                               one direction; rests on rare trajectories
    Crooks       P_F(W)/P_B(−W) = e^{(W − ΔF)/kT}                       the distributions cross at W = ΔF
    Bennett      Σ_F 1/(1 + (n_F/n_B) e^{(W − ΔF)/kT}) = Σ_B 1/(1 + (n_B/n_F) e^{(W + ΔF)/kT})         both directions, smallest variance

The crossing is found by logistic regression with a free slope, which Crooks says is 1/kT: a slope that is not tells of work, starts or a temperature
that are wrong. Numbers that show whether an average can be relied on:

    n_eff = (Σ w)²/Σ w²,   w = e^{−W/kT}         how many trajectories an exponential average rests on
    n_need ≈ e^{⟨W_diss⟩/kT}                     how many it needs, W_diss the dissipation of the other direction           (Jarzynski 2006)
    overlap = 4⟨f(1 − f)⟩ in [0, 1]              how much the two distributions have in common, f the summands of Bennett
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from bismut.errors import DomainError

_FEW = 100  # effective trajectories below which an exponential average is not believed
_APART = 0.03  # overlap below which Bennett's ratio is not believed either


@dataclass(frozen=True)
class Difference:
    """ΔF by one way, and what makes it doubtful."""

    value: float
    stderr: float
    note: str = ""
    doubt: str = ""


_APART_ALTOGETHER = Difference(math.nan, math.nan, "the distributions do not cross", "has no work that both directions do")


def checked_work(work: Any, name: str) -> np.ndarray:
    array = np.asarray(work, float)
    if array.ndim != 1 or len(array) < 2 or not np.isfinite(array).all():
        raise DomainError(f"{name} must be the work of two or more trajectories, finite numbers along one axis, got shape {array.shape}.")
    return array


def resolved(work: np.ndarray, kT: float) -> bool:
    """Whether W/kT is known to a thousandth: beyond 4·10¹² kT the last digit of W is more than that."""
    return bool(np.spacing(np.abs(work).max()) <= 1e-3 * kT)


def jarzynski(work: np.ndarray, kT: float, sign: int = 1) -> Difference:
    """−kT ln ⟨e^{−W/kT}⟩, of the other direction (sign −1) its negative."""
    x = -work / kT
    n = len(work)
    w = np.exp(x - x.max())
    value = -kT * (x.max() + math.log(w.mean()))
    stderr = kT * float(w.std(ddof=1) / w.mean()) / math.sqrt(n)
    effective, largest = float(w.sum() ** 2 / (w @ w)), float(w.max() / w.sum())
    note = f"n_eff {effective:.3g} of {n}, the largest has {100 * largest:.2g} %"
    doubt = f"rests on {effective:.3g} trajectories" if effective < _FEW else ""
    return Difference(sign * float(value), stderr, note, doubt)


def bennett(forward: np.ndarray, backward: np.ndarray, kT: float) -> Difference:
    """The acceptance ratio, with Bennett's variance."""
    nF, nB = len(forward), len(backward)
    M = math.log(nF / nB)
    expit = scipy.special.expit
    balance = lambda C: float(expit(-(M + (forward - C) / kT)).sum() - expit(M - (backward + C) / kT).sum())
    ends = min(forward.min(), -backward.max()) - 50 * kT, max(forward.max(), -backward.min()) + 50 * kT
    C = float(scipy.optimize.brentq(balance, *ends, xtol=1e-14 * (1 + abs(ends[0]) + abs(ends[1]))))  # pyright: ignore[reportArgumentType]
    fF, fB = expit(-(M + (forward - C) / kT)), expit(M - (backward + C) / kT)
    spread = lambda f: (float((f**2).mean() / f.mean() ** 2) - 1) / len(f)
    stderr = kT * math.sqrt(max(spread(fF) + spread(fB), 0.0))
    together = np.concatenate([fF * (1 - fF), fB * (1 - fB)])
    overlap = 4 * float(together.mean())
    doubt = f"forward and backward work overlap by {overlap:.2g} alone" if overlap < _APART else ""
    return Difference(C, stderr, f"overlap {overlap:.2g}", doubt)


def crossing(forward: np.ndarray, backward: np.ndarray, kT: float) -> Difference:
    """Where the two distributions cross, by logistic regression; the slope in units of 1/kT is in the note."""
    W = np.concatenate([forward, -backward])
    y = np.concatenate([np.ones(len(forward)), np.zeros(len(backward))])
    centre, scale = W.mean(), max(W.std(), 1e-12 * kT)
    X = np.stack([np.ones_like(W), (W - centre) / scale], 1)
    offset = math.log(len(forward) / len(backward))
    b = np.array([0.0, scale / kT])
    for _ in range(100):
        p = scipy.special.expit(offset + X @ b)
        H = (X * (p * (1 - p))[:, None]).T @ X
        if not np.isfinite(H).all() or np.linalg.cond(H) > 1e14:
            return _APART_ALTOGETHER
        move = np.linalg.solve(H, X.T @ (y - p))
        b = b + move
        if np.abs(move).max() < 1e-12 * (1 + np.abs(b).max()):
            break
    else:  # no slope is steep enough for distributions that are separate
        return _APART_ALTOGETHER
    covariance = np.linalg.inv(H)
    # The intercept is fixed by how many trajectories each direction has: it is not random, so this much of its variance is none.
    covariance[0, 0] -= min(covariance[0, 0], 1 / len(forward) + 1 / len(backward)) if covariance[0, 0] > 0 else 0.0
    slope = b[1] * kT / scale
    error = math.sqrt(max(covariance[1, 1], 0.0)) * kT / scale
    gradient = np.array([-scale / b[1], scale * b[0] / b[1] ** 2])
    stderr = math.sqrt(max(float(gradient @ covariance @ gradient), 0.0))
    doubt = f"the slope is {slope:.3g} ± {error:.2g} of 1/kT: Crooks does not hold" if abs(slope - 1) > 4.5 * error else ""
    return Difference(centre - scale * b[0] / b[1], stderr, f"slope {slope:.3g} ± {error:.2g} of 1/kT", doubt)


def needed(work: np.ndarray, difference: float, kT: float) -> float:
    """e^{⟨W_diss⟩/kT}: how many trajectories the exponential average of the other direction needs."""
    return float(np.exp(np.clip((work.mean() - difference) / kT, -50.0, 700.0)))
