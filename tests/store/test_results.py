"""What is saved comes back, labelled, and nothing is lost by accident."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray

import bismut as bm
from bismut.errors import BismutError
from bismut.figures.runs import pictures
from bismut.store import claim, open_run, read_run, verify_data
from tests import systems
from tests.store import writers


def test_saved_result_comes_back(tmp_path):
    """load(save(result)) holds the same numbers, labelled; an existing result is not overwritten by accident."""
    scheme = bm.VariationalEuler(systems.bodies(2))
    start = scheme.start((np.zeros((2, 3)) + np.eye(2, 3), np.stack([np.eye(3)] * 2)), velocity=(jnp.ones((2, 3)), jnp.ones((2, 3))))
    result = bm.simulate(scheme, start, step=0.01, steps=4, trajectories=3, observe={"energy": bm.energy, "P": bm.momentum("momentum")})
    tree = bm.load(bm.save(result, tmp_path / "a.run"))
    assert np.array_equal(tree["energy"]["mean"], result.energy.mean)
    assert tree["P"]["mean"].dims == ("time", "P_0")
    assert np.array_equal(tree["final"]["p1"], result.final.p[1])
    assert tree.attrs["outcome"] == "all 3 trajectories finished"
    with pytest.raises(BismutError, match="exists already"):
        bm.save(result, tmp_path / "a.run")
    bm.save(result, tmp_path / "a.run", overwrite=True)
    with pytest.raises(BismutError, match="no result"):
        bm.load(tmp_path / "b.run")


def test_a_sweep_comes_back_with_its_failures(tmp_path):
    """Swept axes come first and keep their values, and what failed is listed."""
    hill = bm.mechanical(bm.Euclidean(1), potential=lambda q, parameters: -parameters["k"] * jnp.sum(q**4), parameters={"k": 0.0})
    scheme = bm.VariationalEuler(hill)
    start = scheme.start(jnp.ones(1), velocity=jnp.ones(1))
    result = bm.simulate(scheme, start, step=0.5, steps=30, trajectories=3, observe={"q": lambda s: s.q[0]}, sweep={"k": [0.0, 1.0]})
    tree = bm.load(bm.save(result, tmp_path / "a"))
    assert tree["q"]["mean"].dims == ("k", "time")
    assert tree["final"]["q0"].dims == ("k", "trajectory", "q0_0")
    np.testing.assert_array_equal(tree["final"]["k"], [0.0, 1.0])
    assert tree["outcome"]["trajectory"].values.tolist() == [failure.trajectory for failure in result.outcome.failures] == [0, 1, 2]
    assert list(tree["final"].data_vars) == ["q0", "p0"]


def test_large_parameters_are_told_by_their_hash(tmp_path):
    """Whatever is saved can be read: an array of 1.1 million numbers is written as shape, dtype and SHA-256, a short one as it is."""
    table = np.linspace(0.0, 1.0, 1_100_000)
    tabulated = lambda q, parameters: parameters["k"][1] * parameters["table"][-1] * q @ q
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=tabulated, parameters={"table": table, "k": np.array([1.0, 2.0])}))
    result = bm.simulate(scheme, scheme.start(jnp.ones(1), velocity=jnp.ones(1)), step=0.1, steps=2, trajectories=1)
    made = read_run(bm.save(result, tmp_path / "a")).full_provenance["run"]["parameters"]
    assert made["table"] == {"shape": [1_100_000], "dtype": "float64", "sha256": hashlib.sha256(table.tobytes()).hexdigest()}
    assert made["k"] == [1.0, 2.0]


def test_portraits_pair_each_position_with_its_own_momentum():
    """Whatever the order of the arrays: with p = 10 q every point of every panel lies on that line."""
    q = {"q0": np.arange(4.0)[:, None], "q1": np.arange(4.0)[:, None] + 100}
    arrays = {"q1": q["q1"], "p0": 10 * q["q0"], "q0": q["q0"], "p1": 10 * q["q1"]}
    data = xarray.Dataset({name: (("trajectory", f"{name}_0"), values) for name, values in arrays.items()})
    how = {"scheme": "", "space": "", "trajectories": 4, "steps": 1, "step": 1.0, "seed": 0}
    figure = plt.figure()
    pictures(xarray.DataTree.from_dict({"/final": data}), how)["final-portrait"].draw(figure)
    points = np.concatenate([panel.collections[0].get_offsets() for panel in figure.axes[:2]])
    plt.close(figure)
    assert len(points) == 8
    np.testing.assert_array_equal(points[:, 1], 10 * points[:, 0])


def test_threads_may_commit_at_once(tmp_path):
    """Forty blocks from eight threads: each is there, and the manifest is whole."""
    with claim(tmp_path / "a") as run, ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda block: run.commit(0, block, writers.arrays(block), {"block": block}), range(40)))
    stored = open_run(tmp_path / "a")
    assert list(stored.blocks) == [(0, block) for block in range(40)]
    assert verify_data(tmp_path / "a").ok
    for block in range(40):
        np.testing.assert_equal(stored.block(0, block), writers.arrays(block))
