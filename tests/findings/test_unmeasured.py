"""A law that cannot be measured says why; the others are measured."""

import jax
import jax.numpy as jnp
import pytest

import bismut as bm
from bismut.findings.integrity import integrity
from bismut.mechanics import State
from tests.findings.studies import study


@jax.custom_vjp
def quartic(q):
    return q @ q / 2 + jnp.sum(q**4) / 4


quartic.defvjp(lambda q: (quartic(q), q), lambda q, g: (g * (q + q**3),))

SCHEMES = {"Verlet": bm.Verlet, "Langevin": lambda system: bm.Langevin(system, temperature=1.0, friction=1.0)}


@pytest.mark.parametrize("name", SCHEMES)
def test_without_a_forward_derivative(name):
    scheme = SCHEMES[name](bm.mechanical(bm.Euclidean(2), mass=1.0, potential=quartic))
    start = scheme.start(jnp.array([0.3, 0.7]), momentum=jnp.zeros(2))
    report = bm.verify(scheme, start, step=0.1, order=False, budget=0.2)
    for law in ("symplectic defect", "phase volume", "derivatives of L"):
        assert not report[law].known
        assert "potential: quartic calls a function with a jax.custom_vjp, which has no forward derivative" in report[law].how
    assert report["solve"].held
    if name == "Langevin":
        assert not report["configurational temperature"].known
        assert report["temperature"].known
    else:
        assert report["own adjoint"].held


def test_one_engine_agrees_with_nobody():
    """Without machine code there is nothing to compare XLA with."""
    key = jax.random.key(3)
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), mass=1.0, potential=lambda q: q @ q * jax.random.uniform(key)))
    found = {finding.law: finding for finding in integrity(study(scheme, State(jnp.ones(1), jnp.zeros(1)), 0.1, 1))}
    assert not found["engines agree"].known
    assert "XLA is the only engine that runs this: there is no machine code for" in found["engines agree"].how
    assert found["a cut run goes on"].held
