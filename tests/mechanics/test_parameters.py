"""Parameters are given to functions as what they are: indices stay integers, numbers take the precision of the system."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm

GIVEN = {"order": np.array([2, 0, 1]), "power": np.int64(2), "held": np.array([True, False, True]), "k": 1}


def springs() -> bm.System:
    def potential(q, parameters):
        chosen = q[parameters["order"]] * jnp.where(parameters["held"], 1.0, 2.0)
        return 0.5 * parameters["k"] * chosen @ chosen + jnp.sum(q ** parameters["power"])

    return bm.mechanical(bm.Euclidean(3), potential=potential, parameters=GIVEN)


def test_integers_stay_integers():
    kinds = {name: leaf.dtype.kind for name, leaf in springs().parameters.items()}
    assert kinds == {"order": "i", "power": "i", "held": "b", "k": "f"}
    assert jax.tree.map(lambda leaf: leaf.dtype, springs().with_parameters(GIVEN).parameters) == jax.tree.map(
        lambda leaf: leaf.dtype, springs().parameters
    )


def test_they_run_and_are_swept():
    """Energies at the start, in closed form; a power stays an integer where integers are swept."""
    scheme, q = bm.Verlet(springs()), np.array([0.1, 0.2, 0.3])
    start = scheme.start(q, velocity=np.zeros(3))
    run = bm.simulate(scheme, start, step=0.1, steps=2, sweep={"power": [2, 4], "k": [1.0, 2.5]})
    springy = 0.5 * np.sum((q[GIVEN["order"]] * np.where(GIVEN["held"], 1.0, 2.0)) ** 2)
    exact = [[k * springy + np.sum(q**n) for k in (1.0, 2.5)] for n in (2, 4)]
    np.testing.assert_allclose(run.energy.mean.values[..., 0], exact, rtol=1e-12)
    slope = jax.grad(lambda k: bm.average(bm.energy, bm.Verlet(springs().with_parameters(GIVEN | {"k": k})), start, step=1e-6, steps=1))(1.0)
    assert float(slope) == pytest.approx(springy, rel=1e-4)
