"""Errors at a fixed time fall like h^r on one Brownian path, towards the Stratonovich limit: the slope r of their logarithms.

The reference is the classical Runge–Kutta method on a path 16 times finer than the finest step measured, which has the Stratonovich limit. Seeds are
fixed, so a slope is one number, not a chance event; the bands are those that the schemes claim.
"""

import functools

import jax
import numpy as np
import pytest

import bismut as bm
from bismut.errors import DomainError
from bismut.findings.convergence_study import Convergence, convergence, copies, final_states, final_states_by_xla
from bismut.findings.order_checks import slope_finding
from tests.flows.catalogue import scheme, system
from tests.systems import random_state

LEVELS, FINEST = (16, 32, 64), 1024


pytestmark = pytest.mark.usefixtures("compiled_quickly")


@functools.cache
def reference(space: str) -> bm.RungeKutta4:
    return bm.RungeKutta4(system(space))


def slope(space: str, name: str, **settings) -> float:
    common = {"t0": 0.0, "time": 1.0, "levels": LEVELS, "finest": FINEST, "trajectories": 32, "seed": 3}
    found = convergence(scheme(space, name), reference(space), random_state(system(space), 6, 0.5), **(common | settings))
    assert np.isfinite(found.errors).all()
    assert (np.diff(found.errors) < 0).all()
    return found.order


@pytest.mark.parametrize("space", ["plane", "nine_noises", pytest.param("vehicle", marks=pytest.mark.slow)])
def test_strong_order_one_with_any_number_of_noises(space):
    """Mean square over 32 paths, on ℝ², SO(3) and SE(3) with 2, 9 and 3 Wiener processes. Measured: 0.99, 1.04, 1.06."""
    # The step on SE(3) costs most, and errors there are in their regime with half the steps.
    settings = {"time": 0.5, "levels": (8, 16, 32), "finest": 512} if space == "vehicle" else {}
    assert abs(slope(space, "euler left", **settings) - 1) < 0.1


@pytest.mark.parametrize("make", [bm.EulerMaruyama, bm.ImplicitEulerMaruyama])
def test_the_euler_maruyama_methods_are_of_strong_order_one(make):
    """They differ from variational schemes in structure, not in order. Measured: 1.03 and 0.97."""
    start = random_state(system("plane"), 6, 0.5)
    found = convergence(make(system("plane")), reference("plane"), start, t0=0.0, time=1.0, levels=LEVELS, finest=FINEST, trajectories=32, seed=3)
    assert abs(found.order - 1) < 0.15


@pytest.mark.parametrize(
    ("space", "name", "order", "band"),
    [
        ("plane", "euler left", 1, 0.1),
        ("plane", "midpoint", 2, 0.15),
        ("plane", "verlet", 2, 0.15),
        ("heavy_top", "euler left exp", 1, 0.1),
        pytest.param("heavy_top", "midpoint exp", 2, 0.15, marks=pytest.mark.slow),
        ("heavy_top", "verlet exp", 2, 0.15),
    ],
)
def test_the_order_without_noise(space, name, order, band):
    """Slopes of the deterministic error over three halvings of the step."""
    # On the plane as many paths as above, though all are equal: the same shapes, and nothing is compiled twice.
    assert abs(slope(space, name, noise=0.0, trajectories=32 if space == "plane" else 1) - order) < band


def test_levels_that_do_not_divide_the_finest_are_refused():
    with pytest.raises(DomainError, match="multiple of every level"):
        slope("plane", "euler left", levels=(16, 30))


def test_studies_arrive_where_xla_does():
    """Three paths of eight steps with a table of increments, by the engine that studies ask and by XLA: to round-off."""
    made = bm.VariationalEuler(bm.mechanical(bm.Circle(), potential=lambda q: -np.cos(1.0) * q**2, noise=lambda q: (q**3)[None]))
    start, dW = made.start(0.3, velocity=0.4), 0.1 * np.random.default_rng(1).normal(size=(3, 8, 1))
    given = made, copies(start, 3), 0.05, dW, 8, 0.0
    for a, b in zip(jax.tree.leaves(final_states(*given)), jax.tree.leaves(final_states_by_xla(*given)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
        assert np.ptp(a) > 1e-3


def test_an_order_higher_than_claimed_is_no_evidence_for_the_claim():
    """Where noise does not show, the strong order is the order without noise: 2 where 1 is claimed is shown as a fact, and says why."""
    steps = np.array([0.1, 0.05, 0.025])
    verdict = lambda slope, error, claimed=1: slope_finding(
        "strong order", claimed, "slope", Convergence(steps, steps**slope, slope, error, None, 64)
    )
    assert verdict(2.13, 0.04).verdict.value == "fact"
    assert "higher than the 1 that is claimed" in verdict(2.13, 0.04).how
    assert verdict(2.0, 0.0).verdict.value == "fact"
    assert verdict(1.02, 0.0).verdict.value == "pass"
    assert verdict(0.7, 0.0).verdict.value == "fail"
    assert verdict(1.5, 0.2).verdict.value == "undecided"  # until chance has been judged
