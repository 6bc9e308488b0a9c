"""Trajectories are added until errors are small enough: zero is small enough, few are not believed, and sweeps may end with different numbers."""

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import DomainError
from tests.ensembles.test_run import RUN, scheme, start

X = lambda state: state.q[0]


def test_an_error_of_zero_is_small_enough():
    """A constant has no error; it stopped nothing, because zero counted as infinite."""
    result = bm.simulate(scheme(), start(), trajectories=400, until={"one": 0.1}, observe={"one": lambda s: jnp.ones(())}, **RUN)
    assert result.outcome.trajectories == 128
    assert float(result.one.stderr[-1]) == 0.0


def test_few_trajectories_are_not_believed():
    """The first block of four happens to have a small spread; 128 are wanted before an error is believed."""
    result = bm.simulate(scheme(), start(), trajectories=400, until={"x": 10.0}, observe={"x": X}, **RUN)
    assert result.outcome.trajectories == 128


@pytest.mark.parametrize(
    "observer", [bm.histogram(X, range=(-1, 1)), bm.paths([0]), bm.section(X, at=X), bm.quantiles(X), bm.autocorrelation(X, lags=2)]
)
def test_an_observer_without_error_is_refused(observer):
    with pytest.raises(DomainError, match="has no standard error"):
        bm.simulate(scheme(), start(), trajectories=40, until={"it": 1.0}, observe={"it": observer}, **RUN)


def test_values_of_a_sweep_end_with_different_numbers():
    """Also with a section and last states, whose arrays have a row for each trajectory."""
    observe = {"x": X, "cross": bm.section(X, at=X, capacity=3), "kept": bm.values(X, every=30)}
    swept = bm.simulate(scheme(), start(), trajectories=400, sweep={"s": [0.05, 2.0]}, until={"x": 0.05}, observe=observe, **RUN)
    few, many = swept.trajectories_run
    assert few < many
    assert swept.provenance.trajectories == 400
    assert swept.provenance.trajectories_run == [few, many]
    assert swept.final.q.shape == (2, many, 1)
    assert np.isnan(swept.final.q[0, few:]).all()
    assert np.isfinite(swept.final.q[1]).all()
    assert np.isnan(swept.kept.value.values[0, few:]).all()
    assert swept.cross.count.shape == (2, many)
    assert f"{few}–{many} trajectories of 400 asked for" in repr(swept)
    alone = bm.simulate(scheme(s=0.05), start(), trajectories=few, observe=observe, **RUN)
    assert np.array_equal(swept.x.mean.values[0], alone.x.mean.values)


def test_what_is_said_is_what_was_run():
    stopped = bm.simulate(scheme(), start(), trajectories=400, until={"x": 10.0}, observe={"x": X}, **RUN)
    assert repr(stopped).startswith("VariationalEuler on Euclidean(1): 128 trajectories of 400 asked for, 30 steps")
    assert stopped.provenance.trajectories_run == 128
    assert stopped.x.population.asked == 400
