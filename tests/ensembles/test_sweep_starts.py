"""Every value of a sweep starts as a run with that value would: velocities and temperatures are kept, momenta follow."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm


def moving(m: float = 1.0) -> bm.Action:
    system = bm.System(bm.Euclidean(1), lambda q, v, parameters: 0.5 * parameters["m"] * v[0] ** 2 - 0.5 * q[0] ** 2, parameters={"m": m})
    return bm.VariationalEuler(system)


MASSES = [1.0, 2.0, 5.0]


@pytest.mark.parametrize(
    "motion", [{"velocity": jnp.array([0.7])}, {"temperature": 0.6}, {"momentum": jnp.array([0.7])}], ids=lambda m: next(iter(m))
)
def test_starts_are_made_for_each_value(motion):
    """With velocity and temperature momenta grow with the mass; a momentum that was given stays."""
    run = lambda scheme, **other: bm.simulate(
        scheme, scheme.start(jnp.ones(1), **motion), step=0.01, steps=3, trajectories=4, seed=1, observe={"p": lambda s: s.p[0]}, **other
    )
    swept = run(moving(), sweep={"m": MASSES})
    for i, m in enumerate(MASSES):
        alone = run(moving(m))
        np.testing.assert_array_equal(swept.p.mean.values[i], alone.p.mean.values)
        np.testing.assert_array_equal(swept.final.p[i], alone.final.p)
    first = swept.p.mean.values[:, 0]
    assert len(set(first)) == (1 if "momentum" in motion else 3)
