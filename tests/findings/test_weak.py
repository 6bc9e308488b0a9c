"""Averages of one step and of two half steps part like h^{r+1}: the weak order r, by quadrature and not by sampling."""

from itertools import combinations_with_replacement
from math import prod

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings import order_checks
from bismut.findings.convergence_study import Convergence, normal_quadrature, weak_convergence
from bismut.gallery.random_magnetic_field import ENTRY
from tests.findings.studies import study

pytestmark = pytest.mark.usefixtures("compiled_quickly")


@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_the_quadrature_is_exact_to_degree_five(d):
    """E of every monomial in at most three of d normals: products of 1, 0, 1, 0, 3, 0."""
    points, weights = normal_quadrature(d)
    gaussian = (1, 0, 1, 0, 3, 0)
    for degree in range(6):
        for powers in combinations_with_replacement(range(min(d, 3)), degree):
            counts = [powers.count(axis) for axis in range(min(d, 3))]
            average = weights @ np.prod(points[:, : len(counts)] ** counts, axis=1)
            assert average == pytest.approx(prod(gaussian[n] for n in counts), abs=1e-11)


def shaken(noise: bool) -> bm.System:
    gamma = (lambda q: jnp.array([q[0] * q[1], jnp.sin(q[0]) + q[1]])) if noise else None
    return bm.mechanical(bm.Euclidean(2), mass=1.3, potential=lambda q: jnp.cos(q[0]) * q[1] + 0.3 * (q @ q) ** 2, noise=gamma)


@pytest.mark.parametrize(
    ("scheme", "order"),
    [(bm.VariationalEuler(shaken(True)), 1), (bm.EulerMaruyama(shaken(True)), 1), (bm.Langevin(shaken(False), temperature=1.0, friction=0.5), 2)],
    ids=["variational Euler", "Euler–Maruyama", "BAOAB"],
)
def test_weak_orders(scheme, order):
    """Measured 1.001, 0.999, 2.018: there is no chance in it."""
    found = weak_convergence(scheme, scheme.start(jnp.array([0.3, 0.4]), velocity=jnp.array([0.5, -0.2])), (0.02, 0.01, 0.005), 0.0)
    assert abs(found.order - order) < 0.05


def test_a_slope_that_is_small_at_large_steps_is_measured_at_smaller_ones(monkeypatch):
    """Terms in h² and h³ nearly cancel at h = 0.05, where the slope is 0.66. One that stays small is a failure."""
    scheme = bm.HamiltonianVerlet(ENTRY.build())
    state = ENTRY.start(scheme)
    found = order_checks.weak_order(study(scheme, state, 0.05))
    assert found.verdict.value == "pass"
    assert found.data["steps"][0] < 0.05
    half = lambda scheme, state, steps, t0: Convergence(np.array(steps), np.array(steps) ** 1.5, 0.5)
    monkeypatch.setattr(order_checks, "weak_convergence", half)
    assert order_checks.weak_order(study(scheme, state, 0.05)).verdict.value == "fail"
