"""Nothing is compiled again when only numbers change."""

import jax.numpy as jnp

import bismut as bm
from bismut.ensembles import checks
from bismut.ensembles.task import compilations
from bismut.programs.evaluation import evaluate


def test_numbers_compile_nothing():
    system = bm.mechanical(
        bm.Euclidean(1),
        potential=lambda q, parameters: 0.5 * parameters["k"] * jnp.sum(q**2),
        noise=lambda q, parameters: parameters["s"] * q,
        parameters={"k": 1.0, "s": 0.3},
    )
    observe = {"energy": bm.energy}

    def run(parameters, **settings):
        scheme = bm.VariationalEuler(system.with_parameters(parameters))
        start = scheme.start(jnp.ones(1), velocity=jnp.zeros(1))
        return bm.simulate(scheme, start, trajectories=4, observe=observe, **settings)

    first = run({"k": 1.0, "s": 0.3}, step=0.1, steps=20, seed=1, every=5)
    compiled = compilations()
    other = run({"k": 2.0, "s": 0.1}, step=0.05, steps=33, seed=2, every=7)
    assert compilations() == compiled
    assert float(first.energy.mean[-1]) != float(other.energy.mean[-1])


def test_going_on_compiles_nothing():
    """Also where the states it goes on from were drawn: they differ from a start in nothing but numbers."""
    scheme = bm.Langevin(bm.mechanical(bm.Euclidean(2), potential=lambda q: 0.25 * (q @ q) ** 2), temperature=1.0, friction=1.0)
    first = bm.simulate(scheme, scheme.start(jnp.zeros(2), temperature=1.0), step=0.1, steps=3, trajectories=4, seed=1)
    compiled = compilations()
    bm.simulate(scheme, continue_from=first, steps=3)
    assert compilations() == compiled


def test_a_start_is_tried_once(monkeypatch):
    """Whether ∂L/∂v = p can be solved at a start is found once for each start, not for each run."""
    system = bm.System(bm.SO3(), lambda R, w: 0.5 * w @ (jnp.array([1.0, 2.0, 3.0]) * w) - R[2, 2])
    scheme, tried = bm.VariationalEuler(system), []
    monkeypatch.setattr(checks, "evaluate", lambda function, *rest: tried.append(1) or evaluate(function, *rest))
    for spin in (1.0, 1.0, 2.0):
        start = scheme.start(jnp.eye(3), velocity=jnp.array([0.3, 0.2, spin]))
        bm.simulate(scheme, start, step=0.01, steps=2, trajectories=2, seed=1)
    assert len(tried) == 2
