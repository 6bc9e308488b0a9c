"""A scheme that is its own adjoint undoes its step; motion is reversible where the system is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings.path_checks import casimirs, reversal_at
from bismut.flows import flow
from bismut.mechanics import Claims
from bismut.programs.evaluation import evaluate as once
from tests.findings.studies import study

SEED, STEP = 3, 0.1


def judged(scheme, state):
    """At one state; a path would have to be compiled."""
    states = jax.tree.map(lambda leaf: leaf[None], state)
    return {finding.law: finding for finding in reversal_at(study(scheme, state, STEP, SEED), states)}


def top(**more):
    return bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 3.3], potential=lambda R: R[2, 2] + 0.3 * R[0, 1], noise=lambda R: jnp.array([R[1, 2]]), **more)


TOP = bm.State(jnp.eye(3), jnp.array([0.3, 0.2, 1.0]))


def test_verlet_on_a_group_with_noise():
    found = judged(bm.Verlet(top()), TOP)
    assert {law: finding.verdict.value for law, finding in found.items()} == {"own adjoint": "pass", "reversible": "pass"}


def test_verlet_under_constraints():
    sphere = bm.mechanical(bm.Euclidean(3), potential=lambda q: q[2], constraint=lambda q: jnp.array([q @ q - 1]))
    found = judged(bm.Verlet(sphere), bm.State(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 0.3, 0.2])))
    assert {finding.verdict.value for finding in found.values()} == {"pass"}


def test_euler_is_not_its_own_adjoint_and_does_not_say_so():
    found = judged(bm.VariationalEuler(top()), TOP)
    assert {finding.verdict.value for finding in found.values()} == {"fact"}
    assert found["own adjoint"].measured > 1e-4


def test_a_magnetic_field_is_not_reversible():
    """The scheme is its own adjoint all the same; the system is named."""
    lorentz = bm.System(bm.Euclidean(2), lambda q, v: 0.5 * v @ v + 0.7 * (q[0] * v[1] - q[1] * v[0]) - 0.25 * jnp.sum(q**4))
    found = judged(bm.Verlet(lorentz), bm.State(jnp.array([0.4, 0.1]), jnp.array([0.2, 1.0])))
    assert found["own adjoint"].verdict.value == "pass"
    assert found["reversible"].verdict.value == "fact"
    assert "not reversible" in found["reversible"].how
    assert found["reversible"].measured > 1e-3


def test_a_scheme_that_says_it_is_its_own_adjoint():
    """The saboteur: a claim that is not true, and a defect of h⁵ that must be seen."""

    class Liar(bm.RungeKutta4):
        claims = Claims(order=4, self_adjoint=True)

    found = judged(Liar(bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.cosh(q[0]))), bm.State(jnp.array([0.4]), jnp.array([1.0])))
    assert {finding.verdict.value for finding in found.values()} == {"fail"}


@pytest.mark.parametrize(("make", "held"), [(bm.VariationalEuler, "pass"), (bm.RungeKutta4, "fact")])
@pytest.mark.parametrize(("space", "names"), [(bm.SO3(), {"|m|²"}), (bm.SE3(), {"|P|²", "Π·P"}), (bm.SE2(), {"|P|²"})], ids=["SO3", "SE3", "SE2"])
def test_casimirs_of_reduced_motion(make, held, space, names):
    """Kept by coadjoint steps, lost by others, which do not claim them."""
    n = space.dim
    scheme = bm.Reduced(make(bm.mechanical(space, mass=np.linspace(1.0, 3.3, n))))
    start = scheme.start(space.origin(), momentum=jnp.linspace(0.5, -1.5, n))
    end = once(lambda state: flow(scheme).advance(state, jnp.asarray(0.4), jnp.zeros(0), 0.0)[0], start)
    found = casimirs(scheme, jax.tree.map(lambda a, b: jnp.stack([a, b]), start, end))
    assert {finding.law for finding in found} == {f"Casimir {name}" for name in names}
    assert {finding.verdict.value for finding in found} == {held}
    assert all(finding.measured > 1e-9 for finding in found) == (held == "fact")
