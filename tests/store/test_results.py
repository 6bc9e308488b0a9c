"""What is saved comes back, labelled, and nothing is lost by accident."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError
from tests import systems


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
