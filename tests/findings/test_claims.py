"""What a scheme does not claim cannot fail, and is shown; what it claims falsely is named."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.mechanics import Claims
from tests.systems import random_state

pytestmark = pytest.mark.usefixtures("compiled_quickly")

STEP = 0.05


def central(**parts) -> bm.System:
    """A particle in the plane with a potential and a noise that know only the distance from the origin; cheap to compile."""
    whole = {"potential": lambda q: jnp.cos(q @ q) + 0.3 * (q @ q) ** 2, "noise": lambda q: jnp.array([q @ q, jnp.sin(q @ q)])}
    return bm.mechanical(bm.Euclidean(2), mass=1.3, symmetries={"turn": bm.left_rotation(1.0)}, **(whole | parts))


def verify(scheme, **settings):
    return bm.verify(scheme, random_state(scheme.system, 6), step=STEP, **settings)


def held(report) -> dict:
    return {finding.law: finding.held for finding in report.findings}


class Liar(bm.EulerMaruyama):
    """Says that it is symplectic and keeps momentum maps."""

    claims = Claims(order=1, symplectic=True, momentum_maps=True)


def test_a_false_claim_fails_and_the_same_scheme_without_it_does_not():
    lying, honest = verify(Liar(central()), order=False), verify(bm.EulerMaruyama(central()), order=False)
    laws = ("symplectic defect", "phase volume", "momentum map 'turn'")
    neither, right = ("orders", "own adjoint", "reversible"), ("solve", "derivatives of L", "derivatives of the noise")
    assert not lying.ok
    assert held(lying) == {**dict.fromkeys(laws, False), **dict.fromkeys(right, True), **dict.fromkeys(neither)}
    assert "✗ symplectic defect" in str(lying)
    assert honest.ok
    assert held(honest) == {**dict.fromkeys(laws, None), **dict.fromkeys(right, True), **dict.fromkeys(neither)}
    assert "not claimed" in honest["symplectic defect"].how
    for law in laws:
        assert honest[law].measured == lying[law].measured > 1e-5


class Boaster(bm.VariationalEuler):
    """Says that it is of second order."""

    claims = Claims(order=2, symplectic=True, momentum_maps=True)


@pytest.mark.long
def test_a_false_order_is_the_only_thing_that_fails():
    """Of the error, and of the energy that is kept."""
    report = verify(Boaster(central()), integrity=False)
    assert [law for law, kept in held(report).items() if kept is False] == ["order", "modified energy"]
    assert abs(report["order"].measured - 1) < 0.25
    assert abs(report["strong order"].measured - 1) < 0.25


def test_the_phase_volume_of_a_damped_system_is_a_fact():
    """Explicit friction multiplies it by (1 − hγ)^d, which no scheme claims not to do."""
    report = verify(bm.VariationalEuler(central(force=lambda q, v: -0.7 * 1.3 * v)), order=False)
    assert report.ok
    assert report["phase volume"].held is None
    np.testing.assert_allclose(report["phase volume"].measured, 1 - (1 - 0.7 * STEP) ** 2, rtol=1e-12)


def test_explain_claims_no_more_than_the_scheme():
    assert "symplectic" in bm.explain(bm.Midpoint(central()))
    assert "symplectic" not in bm.explain(bm.EulerMaruyama(central()))


def test_explain_says_where_a_force_acts():
    damped = central(force=lambda q, v: -v)
    assert "at the start of the step" in bm.explain(bm.VariationalEuler(damped))
    assert "with the velocity of the step" in bm.explain(bm.Verlet(damped))
    assert "symplectic" not in bm.explain(bm.Verlet(damped))


def test_explain_counts_the_freedom_that_constraints_leave():
    sphere = bm.mechanical(bm.Euclidean(3), mass=1.0, potential=lambda q: q[2], constraint=lambda q: jnp.array([q @ q - 1]))
    assert "2 degrees of freedom (3 less 1 constraint), 0 Wiener processes" in bm.explain(bm.VariationalEuler(sphere))
    assert ": 2 degrees of freedom, 2 Wiener processes" in bm.explain(bm.VariationalEuler(central()))
