"""No trajectory knows of the others: an ensemble is its trajectories, whatever the blocks, the order and the kind of program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.programs.evaluation import evaluate
from tests import systems

RUN = {"step": 0.02, "steps": 10, "seed": 3, "trajectories": 6}


@pytest.fixture(scope="module", params=["separable", pytest.param("heavy_top", marks=pytest.mark.slow)])
def scheme(request):
    return bm.VariationalEuler(systems.ALL[request.param]())


@pytest.fixture(scope="module")
def whole(scheme):
    return bm.simulate(scheme, systems.random_state(scheme.system), **RUN)


def close(a, b, tolerance):
    return all(np.allclose(x, y, rtol=tolerance, atol=tolerance) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_same_seed_same_bits(scheme, whole):
    again = bm.simulate(scheme, systems.random_state(scheme.system), **RUN)
    assert jax.tree.all(jax.tree.map(np.array_equal, again.final, whole.final))
    assert np.array_equal(again.energy.mean, whole.energy.mean)


def test_blocks_do_not_matter(scheme, whole):
    """To round-off: a block of another size is another program, which may contract a multiplication and an addition differently."""
    cut = bm.simulate(scheme, systems.random_state(scheme.system), block=4, **RUN)
    assert close(cut.final, whole.final, 1e-13)
    assert np.allclose(cut.energy.mean, whole.energy.mean, rtol=1e-13)
    assert np.allclose(cut.energy.std, whole.energy.std, rtol=1e-9, atol=1e-12)


def test_the_engine_does_not_matter(scheme, whole):
    other = bm.simulate(scheme, systems.random_state(scheme.system), mode="xla", **RUN)
    assert close(other.final, whole.final, 1e-12)


def test_one_trajectory_of_many(scheme, whole):
    alone = bm.trajectory(scheme, systems.random_state(scheme.system), step=0.02, steps=10, seed=3, trajectory=4).final
    assert close(alone, jax.tree.map(lambda leaf: leaf[4], whole.final), 1e-12)


def test_statistics_are_those_of_the_trajectories(scheme, whole):
    energies = np.asarray(evaluate(jax.vmap(scheme.system.energy), whole.final))
    last = {kind: float(getattr(whole.energy, kind)[-1]) for kind in ("mean", "std", "stderr", "min", "max", "count")}
    expected = (energies.mean(), energies.std(ddof=1), energies.std(ddof=1) / 6**0.5, energies.min(), energies.max(), 6)
    assert np.allclose(list(last.values()), expected, rtol=1e-12)


def test_records_are_multiples_of_every_and_the_end(scheme):
    result = bm.simulate(scheme, systems.random_state(scheme.system), every=4, **RUN)
    assert np.allclose(result.times, [0.0, 0.08, 0.16, 0.2])
    assert result.energy.mean.dims == ("time",)


def test_starts_of_a_batch_belong_to_their_trajectories(scheme):
    states = [systems.random_state(scheme.system, seed) for seed in range(6)]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    result = bm.simulate(scheme, batch, **RUN)
    alone = bm.trajectory(scheme, states[2], step=0.02, steps=10, seed=3, trajectory=2).final
    assert close(alone, jax.tree.map(lambda leaf: leaf[2], result.final), 1e-12)
