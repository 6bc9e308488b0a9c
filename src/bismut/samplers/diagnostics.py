"""Whether chains agree, and how many independent draws they are worth (Vehtari, Gelman, Simpson, Carpenter & Bürkner, Bayesian Analysis 16, 2021).

    R̂    √(variance of everything / variance within chains) of halves of chains, by normal scores of ranks; or of those of |x − median|, if larger
    ESS   chains × draws / τ,    τ = −1 + 2 Σ_k P_k,    P_k = ρ(2k) + ρ(2k+1) while positive, made to fall
          bulk: of normal scores;   tail: the smaller one of the indicators of x ≤ 5 % and x ≤ 95 % quantiles;   mean: of x itself

Means of n correlated draws scatter though chains agree: then R̂² is 1 − 1/n + τ/(n − τ), 1.07² for 15 draws with τ = 2, however many chains there
are. What says that chains disagree is the rest,

    excess   √(R̂² − τ/(n − τ) + 1/n),    τ from covariances within the halves of chains alone, so that no disagreement hides in it

ArviZ computes the same numbers, and a test holds them equal; here a thousand chains go through one Fourier transform.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

Values = np.ndarray  # (chain, draw)

EACH, CHAINS = 8, 256  # draws of a chain that are needed, and chains at most that are looked at
_POINTS = 4096  # in half a second


def rhat(x: Values) -> float:
    """R̂ of one quantity."""
    return float(max(map(_ratio, _bulk_and_folded(x))))


def excess(x: Values) -> float:
    """R̂ without what memory alone would make of it; 1 for chains that agree, down to a few dozen draws each, and of draws that are as many as ten
    times their memory."""

    def left(scores: Values) -> float:
        n, tau = scores.shape[1], _memory(scores)
        return np.sqrt(max(_ratio(scores) ** 2 - tau / (n - tau) + 1 / n, 0.0))

    return float(max(map(left, _bulk_and_folded(x))))


def ess_bulk(x: Values) -> float:
    return _ess(_scores(_halves(x)))


def ess_tail(x: Values) -> float:
    halves = _halves(x)
    return min(_ess((halves <= limit).astype(float)) for limit in np.quantile(x, (0.05, 0.95)))


def ess_mean(x: Values) -> float:
    """Of the mean of x: its standard error is the deviation of x over the root of this."""
    return _ess(_halves(x))


def summary_row(x: Values) -> dict[str, float]:
    """Mean, deviation, the standard error of the mean, quantiles, and the measures above."""
    x = np.asarray(x, float)
    if not np.isfinite(x).all():
        return dict.fromkeys(("mean", "sd", "error", "5%", "95%", "ess_bulk", "ess_tail", "rhat", "excess_rhat"), np.nan)
    low, high = np.quantile(x, (0.05, 0.95))
    sd = float(np.std(x, ddof=1))
    return {
        "mean": float(x.mean()),
        "sd": sd,
        "error": sd / np.sqrt(ess_mean(x)),
        "5%": float(low),
        "95%": float(high),
        "ess_bulk": ess_bulk(x),
        "ess_tail": ess_tail(x),
        "rhat": rhat(x),
        "excess_rhat": excess(x),
    }


def _halves(x: Any) -> Values:
    x = np.asarray(x, float)
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def _scores(x: Values) -> Values:
    """Normal scores of ranks, ties sharing theirs."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks = rankdata(x.ravel(), method="average")
    return ndtri((ranks - 0.375) / (x.size + 0.25)).reshape(x.shape)


def _bulk_and_folded(x: Values) -> tuple[Values, Values]:
    halves = _halves(x)
    return _scores(halves), _scores(np.abs(halves - np.median(halves)))


def _memory(x: Values) -> float:
    """τ = Σ_k ρ(k)(1 − |k|/n) within chains. About their own means covariances are too small, by the variance τ/n of those: solved for τ, and at
    most n/2, beyond which chains are too short to tell."""
    n, tau = x.shape[1], 1.0
    lags = _autocovariance(x) * n / (n - np.arange(n))
    if not lags[0] > 0:
        return tau
    for _ in range(20):
        rho = (1 - tau / n) * lags / lags[0] + tau / n
        pairs = (rho[0 : n - 1 : 2] + rho[1:n:2])[: max(n // 4, 1)]
        negative = np.flatnonzero(pairs < 0)
        count = 2 * (int(negative[0]) if len(negative) else len(pairs))
        tau = float(np.clip(-1 + 2 * rho[:count] @ (1 - np.arange(count) / n), 1 / n, n / 2))
    return tau


def _ratio(x: Values) -> float:
    n = x.shape[1]
    within = np.var(x, axis=1, ddof=1).mean()
    between = n * np.var(x.mean(1), ddof=1)
    return np.sqrt((between / within + n - 1) / n) if within > 0 else np.nan


def _ess(x: Values) -> float:
    chains, n = x.shape
    if n < 4:
        return np.nan
    if np.ptp(x) == 0:
        return float(x.size)
    lags = _autocovariance(x)
    within = lags[0] * n / (n - 1)
    total = within * (n - 1) / n + (np.var(x.mean(1), ddof=1) if chains > 1 else 0.0)
    rho = 1 - (within - lags) / total
    rho[0] = 1.0
    even, odd = rho[0 : n - 1 : 2], rho[1:n:2]
    pairs = even[: len(odd)] + odd
    usable = max((n - 2) // 2 - 1, 1)  # the last lags rest on too few products
    negative = np.flatnonzero(pairs[:usable] < 0)
    count = int(negative[0]) if len(negative) else usable
    tau = -1 + 2 * np.minimum.accumulate(pairs[:count]).sum()
    tau += max(even[count], 0.0) if count < len(even) else 0.0
    return float(x.size / max(tau, 1 / np.log10(x.size)))


def _autocovariance(x: Values) -> np.ndarray:
    """Averaged over chains, for all lags; sums of products over n."""
    from scipy.fft import irfft, next_fast_len, rfft

    n = x.shape[1]
    size = next_fast_len(2 * n, real=True)
    spectrum = np.asarray(rfft(x - x.mean(1, keepdims=True), size, axis=1))
    power = (np.abs(spectrum) ** 2).mean(0)
    return np.asarray(irfft(power, size))[:n] / n


# Whether a surface is in pieces that no chain leaves.


def pieces(q: Any) -> int:
    """How many clusters of whole chains there are, of points (chain, draw, ...); 1 if chains meet.

        draws joined to their nearest neighbours, the closest first (single linkage):      a piece is a cluster of whole chains

    A chain that goes everywhere has its draws among those of all others, so no cluster on the way to the last one holds all draws of some chains and
    of no others: of m chains with n draws each, that a cluster of n draws is one chain has a probability of order m^(1−n). Pieces nearer to each
    other than the draws that are looked at, four thousand, remain unnoticed. Means and R̂ of coordinates see nothing of pieces around the same
    middle, as concentric circles are.
    """
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(q)]
    chains, draws = leaves[0].shape[:2]
    which, when = np.arange(min(chains, CHAINS)), np.linspace(0, draws - 1, min(draws, _POINTS // min(chains, CHAINS))).astype(int)
    x = np.concatenate([leaf[which][:, when].reshape(len(which), len(when), -1) for leaf in leaves], -1)
    return _whole(x.reshape(-1, x.shape[-1]), len(which), len(when))


def _whole(x: np.ndarray, chains: int, each: int) -> int:
    """The largest number of disjoint clusters that are made of whole chains and leave none out."""
    from scipy.cluster.hierarchy import linkage

    if chains < 2:
        return 1
    members = [1 << (k // each) for k in range(len(x))]  # the chains of each cluster, as bits
    sizes, split = [1] * len(x), [1] * len(x)
    for a, b in linkage(x, "single")[:, :2].astype(int):
        chain, size = members[a] | members[b], sizes[a] + sizes[b]
        apart = not members[a] & members[b] and all(sizes[k] == each * members[k].bit_count() for k in (a, b))
        members.append(chain)
        sizes.append(size)
        split.append(split[a] + split[b] if apart else 1)
    return split[-1]
