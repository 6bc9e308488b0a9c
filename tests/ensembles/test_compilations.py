"""Nothing is compiled again when only numbers change."""

import jax.numpy as jnp

import bismut as bm
from bismut.ensembles.task import compilations


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
