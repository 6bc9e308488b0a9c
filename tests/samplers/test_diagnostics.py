"""R̂ and effective sample sizes are those of ArviZ, and those of processes whose memory is known."""

import arviz
import numpy as np
import pytest

from bismut.samplers import diagnostics


def autoregressive(rho, chains=8, draws=500, seed=0):
    """x' = ρ x + √(1 − ρ²) z, from equilibrium: τ = (1 + ρ)/(1 − ρ)."""
    rng = np.random.default_rng(seed)
    x = np.empty((chains, draws))
    x[:, 0] = rng.normal(size=chains)
    for k in range(1, draws):
        x[:, k] = rho * x[:, k - 1] + np.sqrt(1 - rho**2) * rng.normal(size=chains)
    return x


@pytest.mark.parametrize("rho", [-0.6, 0.0, 0.5, 0.95])
@pytest.mark.parametrize("odd", [0, 1])
def test_the_numbers_of_arviz(rho, odd):
    x = autoregressive(rho, draws=500 + odd, seed=7) + np.linspace(0, 0.2, 8)[:, None]
    for value, method in ((diagnostics.ess_bulk(x), "bulk"), (diagnostics.ess_tail(x), "tail"), (diagnostics.ess_mean(x), "mean")):
        assert value == pytest.approx(float(arviz.ess(x, method=method)), rel=1e-9)
    assert diagnostics.rhat(x) == pytest.approx(float(arviz.rhat(x, method="rank")), rel=1e-12)


def test_memory_that_is_known():
    x = autoregressive(0.8, chains=200, draws=1000)
    assert diagnostics.ess_mean(x) == pytest.approx(x.size / 9, rel=0.05)


def test_chains_that_disagree():
    x = autoregressive(0.2)
    x[0] += 3
    assert diagnostics.rhat(x) > 1.1


@pytest.mark.parametrize(("chains", "draws", "rho"), [(256, 30, 0.3), (1024, 30, 0.0), (1024, 100, 0.6), (8, 1000, 0.5), (256, 200, -0.5)])
def test_chains_that_agree_are_not_suspected_for_being_short(chains, draws, rho):
    """R̂² is 1 − 1/n + τ/(n − τ) of them; what is left stays below 1.01 in 6 runs of each, whose scatter is a third of that."""
    runs = [autoregressive(rho, chains, draws, seed) for seed in range(6)]
    left = [diagnostics.excess(x) for x in runs]
    assert max(left) < 1.01
    assert np.std(left) < 0.01 / 3
    n, tau = draws // 2, (1 + rho) / (1 - rho) - 2 * rho / (1 - rho) ** 2 / (draws // 2)  # Σ ρ^|k| (1 − |k|/n), but for ρⁿ
    expected = np.sqrt(1 - 1 / n + tau / (n - tau))
    assert np.mean([diagnostics.rhat(x) for x in runs]) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(("chains", "draws"), [(256, 30), (8, 1000)])
def test_chains_that_disagree_are_suspected_however_short(chains, draws):
    """Half of them shifted by 0.6 deviations, or half of them wider: a share of 0.08 of the variance is between chains."""
    odd = np.arange(chains)[:, None] % 2
    x = autoregressive(0.3, chains, draws)
    assert diagnostics.excess(x + 0.6 * odd) > 1.03
    assert diagnostics.excess(x * (1 + odd)) > 1.03
    assert diagnostics.excess(autoregressive(0.97, chains, draws // 5)) > 1.05  # as long as their memory
