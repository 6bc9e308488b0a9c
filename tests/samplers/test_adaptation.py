"""What is adapted: the step that an acceptance wants, and the scales that may be changed."""

import numpy as np
import pytest

import bismut as bm
from bismut.samplers.adaptation import longest_step, step_change
from bismut.samplers.domain import domain_of
from bismut.samplers.surface import surface_of
from bismut.samplers.target import unit_target


def test_the_step_that_an_acceptance_wants():
    """a = 2Φ(−c h²/2): from the acceptance of one step to the step of another acceptance."""
    from scipy.stats import norm

    accepted = lambda h: 2 * norm.cdf(-1.3 * h**2 / 2)
    h = 0.9
    assert accepted(h * np.exp(step_change(0.8, accepted(h)))) == pytest.approx(0.8, abs=1e-9)


def test_what_may_be_scaled():
    """Parameters beside a surface, not those in it, and none that a constraint across parameters ties."""
    beside = domain_of({"n": bm.Sphere(2), "R": bm.SO3(), "x": bm.Euclidean(2)})
    density = lambda p: 0.0 * p["x"][0]
    assert [root is None for root in unit_target(density, beside).roots] == [True, True, False]
    assert longest_step(unit_target(density, beside)) < 1
    across, _ = surface_of(beside, lambda p: p["x"] @ p["x"] + p["n"][0] - 2, "surface")
    assert [root is None for root in unit_target(density, across).roots] == [True, True, True]
    assert longest_step(unit_target(density, across)) == np.inf
