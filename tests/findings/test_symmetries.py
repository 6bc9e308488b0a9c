"""`verify` judges a symmetry by L, γ and the constraint at points in general position, and a momentum map by the terms it is made of.

Each of the first three cases blames a right scheme if one of these is left out.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings import Finding
from bismut.findings.path_checks import along_path
from tests.findings.studies import study

pytestmark = pytest.mark.usefixtures("compiled_quickly")


def finding(scheme, start, law: str) -> Finding:
    """As `verify` finds it, along a path on which nothing else fails."""
    found = {finding.law: finding for finding in along_path(study(scheme, start, 0.02))}
    assert not any(finding.held is False for finding in found.values())
    return found[law]


def on_an_ellipsoid(squash: float) -> tuple[bm.VariationalEuler, bm.State]:
    """x² + squash y² + 3z² = 1 in gravity: a surface of revolution only if squash is 1."""
    scheme = bm.VariationalEuler(
        bm.mechanical(
            bm.Euclidean(3),
            mass=1.0,
            potential=lambda q: q[2],
            noise=lambda q: jnp.array([0.3 * q[2]]),
            constraint=lambda q: jnp.array([q[0] ** 2 + squash * q[1] ** 2 + 3 * q[2] ** 2 - 1]),
            symmetries={"vertical": bm.left_rotation((0.0, 0.0, 1.0))},
        )
    )
    start = scheme.start(jnp.array([0.8, 0.3, 0.2]), velocity=jnp.array([0.3, 0.4, 0.2]), project=True)
    assert isinstance(start, bm.State)
    return scheme, start


def test_a_rotation_that_does_not_keep_the_surface_is_no_symmetry():
    kept = finding(*on_an_ellipsoid(2.0), "momentum map 'vertical'")
    assert kept.held is None
    assert "it changes the constraint" in kept.how
    assert kept.measured > 0.1


def test_a_rotation_that_keeps_the_surface_is_one():
    report = bm.verify(*on_an_ellipsoid(1.0), step=0.02, order=False)
    kept = report["momentum map 'vertical'"]
    assert report.ok
    assert kept.held
    assert kept.measured < 1e-13


def planar(potential, noise=None) -> bm.VariationalEuler:
    return bm.VariationalEuler(bm.mechanical(bm.Euclidean(2), mass=1.0, potential=potential, noise=noise, symmetries={"turn": bm.left_rotation(1.0)}))


@pytest.mark.parametrize(
    ("scheme", "blamed"),
    [
        (planar(lambda q: q[0] ** 4 + q[1] ** 4), "L ("),
        (planar(lambda q: q @ q, lambda q: jnp.array([q @ q, q[0] ** 2 * q[1] ** 2])), "the noise ("),
    ],
    ids=["potential", "noise"],
)
def test_a_start_at_which_the_symmetry_breaking_has_no_slope_does_not_hide_it(scheme, blamed):
    """On an axis d/dφ of x⁴ + y⁴ and of x²y² vanishes, and the path leaves it."""
    kept = finding(scheme, scheme.start(jnp.array([1.0, 0.0]), velocity=jnp.array([0.0, 0.4])), "momentum map 'turn'")
    assert kept.held is None
    assert blamed in kept.how
    assert kept.measured > 1e-3


@pytest.mark.parametrize("scale", [1.0, 1e-21], ids=["unit energies", "joules of a molecule"])
def test_small_units_do_not_make_a_symmetry(scale):
    """L of order 10⁻²¹ changes by as little under a rotation that is none."""
    scheme = bm.VariationalEuler(
        bm.mechanical(
            bm.Euclidean(2), mass=scale, potential=lambda q: scale * (q[0] ** 4 + 2 * q[1] ** 2), symmetries={"turn": bm.left_rotation(1.0)}
        )
    )
    kept = finding(scheme, scheme.start(jnp.array([1.0, 0.3]), velocity=jnp.array([0.1, 0.4])), "momentum map 'turn'")
    assert kept.held is None
    assert "it changes L" in kept.how


def three_bodies() -> bm.VariationalEuler:
    """Pairs that pull each other with different strengths: the sums of forces cancel to round-off only."""
    pairs = ((0, 1, 1.0), (1, 2, 3.0), (0, 2, 2.0))
    return bm.VariationalEuler(
        bm.mechanical(
            bm.Euclidean(3) ** 3,
            mass=1.0,
            potential=lambda x: sum(k * jnp.sqrt(1 + jnp.sum((x[i] - x[j]) ** 2)) for i, j, k in pairs),
            symmetries={"momentum": bm.translations(), "angular": bm.left_rotations()},
        )
    )


def test_from_rest_round_off_is_not_divided_by_a_momentum_of_zero():
    scheme = three_bodies()
    start = scheme.start(jnp.array([[0.1, 0.2, 0.0], [1.3, 0.7, 0.2], [-1.0, 0.3, 2.0]]), velocity=jnp.zeros((3, 3)))
    report = bm.verify(scheme, start, step=0.02, order=False)
    assert report.ok
    for law in ("momentum map 'momentum'", "momentum map 'angular'"):
        assert report[law].held
        assert report[law].measured < 1e-13


def test_where_nothing_moves_nothing_is_said():
    scheme = planar(lambda q: q @ q)
    report = bm.verify(scheme, scheme.start(jnp.zeros(2), velocity=jnp.zeros(2)), step=0.02, order=False)
    kept = report["momentum map 'turn'"]
    assert report.ok
    assert not kept.known
    assert kept in report.unmeasured
    assert np.isnan(kept.measured)


def test_the_report_says_what_it_did_not_measure():
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), mass=1.0, potential=lambda q: q[0] ** 4, noise=lambda q: q, force=lambda q, v: -v))
    report = bm.verify(scheme, scheme.start(jnp.ones(1), velocity=jnp.ones(1)), step=0.02, order=False)
    assert [finding.law for finding in report.unmeasured] == ["momentum maps", "orders"]
    assert "not measured: order=False" in str(report)
    assert "2 laws not measured" in str(report)
    free = bm.VariationalEuler(bm.mechanical(bm.Euclidean(1), mass=1.0, potential=lambda q: q[0] ** 4))
    report = bm.verify(free, free.start(jnp.ones(1), velocity=jnp.ones(1)), step=0.02)
    assert [finding.law for finding in report.unmeasured] == ["momentum maps"]
    assert "the system names no symmetries" in str(report)
