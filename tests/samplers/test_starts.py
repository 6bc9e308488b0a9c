"""Chains begin where steps can be made, on surfaces too; those that never move are named."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.samplers import diagnostics
from bismut.samplers.domain import domain_of
from bismut.samplers.starts import spread_starts
from bismut.samplers.surface import surface_of
from bismut.samplers.target import unit_target

STEEP = 1000.0


def test_starts_descend_along_a_surface():
    """Of e^{κ z} on S² to within 20/κ of the pole, and on the surface; of random points one in a hundred is there."""
    target = unit_target(lambda x: STEEP * x[2], domain_of(bm.Sphere(2)))
    q = np.asarray(spread_starts(target, 256, (0, 0)))
    assert np.abs((q**2).sum(1) - 1).max() < 1e-9
    assert q[:, 2].min() > 1 - 20 / STEEP


def test_starts_descend_along_a_surface_that_a_user_gives():
    """U = 100 (x + y + z)² on an ellipsoid: it falls to where its slope along the surface vanishes, and no coordinate of the normal remains."""
    ellipsoid, _ = surface_of(domain_of(bm.Euclidean(3)), lambda x: x[0] ** 2 / 4 + x[1] ** 2 + x[2] ** 2 - 1, "surface")
    q = np.asarray(spread_starts(unit_target(lambda x: -100 * jnp.sum(x) ** 2, ellipsoid), 64, (1, 0)))
    assert np.abs(q[:, 0] ** 2 / 4 + q[:, 1] ** 2 + q[:, 2] ** 2 - 1).max() < 1e-9
    assert np.abs(q.sum(1)).max() < 0.05
    assert np.std(q[:, 0]) > 0.3  # they are led down, not together


@pytest.mark.long
def test_a_steep_density_on_a_sphere():
    """⟨z⟩ = coth κ − 1/κ of e^{κ z}, at 4 standard errors: a false alarm in 16 000. Three chains that never move make 1 − ⟨z⟩ 24 times as large."""
    draws = bm.sample(bm.Sphere(2), lambda x: STEEP * x[2], chains=256, draws=30, burn_in=60, seed=0, progress=False)
    z = draws["x"][..., 2]
    assert abs(z.mean() - (1 - 1 / STEEP)) < 4 * z.std() / np.sqrt(diagnostics.ess_mean(z))
    assert z.std() < 2 / STEEP
    assert draws.stuck == 0
    assert draws.pieces == 1


def test_chains_that_never_move_are_named():
    """One of 128 begins far from the pole, where no step of the others has a solution."""
    start = np.tile([0.0, 0.0, 1.0], (128, 1))
    start[40] = 0.6, 0.0, -0.8
    draws = bm.sample(bm.Sphere(2), lambda x: STEEP * x[2], chains=128, draws=30, burn_in=60, start=start, leapfrogs=3, progress=False)
    assert draws.stuck == 1
    assert draws.unsolved == pytest.approx(1 / 128, abs=0.002)
    assert not draws.trusted
    assert any("1 of 128 chains never moved" in remark for remark in draws.remarks)
