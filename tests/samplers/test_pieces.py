"""Surfaces in pieces are noticed though every coordinate is alike on all of them, and whole surfaces are not suspected."""

import numpy as np
import pytest

import bismut as bm
from bismut.samplers.diagnostics import pieces


def circles(chains, draws, radius, seed=0):
    angle = np.random.default_rng(seed).uniform(0, 2 * np.pi, (chains, draws))
    return np.stack([np.cos(angle), np.sin(angle)], -1) * radius(chains, draws)


def test_circles_with_one_middle_are_two_pieces():
    outer = lambda chains, draws: np.where(np.arange(chains) % 3 == 0, 1.2, 1.0)[:, None, None]
    assert pieces(circles(60, 50, outer)) == 2
    assert pieces(circles(300, 8, outer)) == 2


@pytest.mark.parametrize(("chains", "draws"), [(4, 8), (64, 8), (500, 20)])
def test_chains_that_go_everywhere_are_one_piece(chains, draws):
    """On a circle, and on two between which every chain goes; 3 seeds of each. Of 4 chains with 8 draws, one in 4⁷ would be alone in a cluster."""
    rng = np.random.default_rng(1)
    for seed in range(3):
        assert pieces(circles(chains, draws, lambda chains, draws: 1.0, seed)) == 1
        assert pieces(circles(chains, draws, lambda chains, draws: rng.choice([1.0, 1.2], (chains, draws, 1)), seed)) == 1
        assert pieces((rng.normal(size=(chains, draws, 12)),)) == 1


@pytest.mark.long
def test_draws_on_concentric_circles_are_not_trusted():
    """The weight of the outer one, 1.2/2.2 by length, is that of where chains began, and no measure of coordinates tells."""
    two = lambda q: (q @ q - 1) * (q @ q - 1.44)
    draws = bm.sample(bm.Euclidean(2), lambda q: 0.0 * q[0], constraint=two, chains=192, draws=24, burn_in=40, seed=3, progress=False)
    outside = np.linalg.norm(draws["x"], axis=-1) > 1.1
    assert (outside == outside[:, :1]).all()
    assert draws.pieces == 2
    assert not draws.trusted
    assert any("2 groups that never come among each other" in remark for remark in draws.remarks)
