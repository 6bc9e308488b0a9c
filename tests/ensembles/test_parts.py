"""A run in parts is the whole run: by trajectories, put together with merge; by steps, gone on with continue_from."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import DomainError
from tests.ensembles import test_failures
from tests.ensembles.test_run import scheme, start

X = lambda state: state.q[0]
OBSERVED = {
    "x": X,
    "levels": bm.quantiles(X, levels=(0.25, 0.75)),
    "where": bm.histogram(X, range=(-2, 2), bins=5),
    "mean": bm.time_average(X),
    "memory": bm.autocorrelation(X, lags=4),
    "far": bm.maximum_excursion(),
    "some": bm.paths([1, 6]),
    "all": bm.values(X, every=30),
    "late": bm.first_passage(lambda s: s.q[0] - 0.6),
}
RUN = {"step": 0.05, "steps": 30, "seed": 2, "every": 10, "observe": OBSERVED}


@functools.cache
def whole() -> bm.Result:
    return bm.simulate(scheme(), start(), trajectories=10, block=3, **RUN)


def part(first: int, number: int, **other) -> bm.Result:
    return bm.simulate(scheme(), start(), trajectories=number, first_trajectory=first, **(RUN | other))


def test_parts_make_the_whole():
    """Given in any order. Trajectories are the same to the bit, statistics to round-off, counts exactly."""
    both = bm.merge(part(4, 6), part(0, 4))
    assert jax.tree.all(jax.tree.map(np.array_equal, both.final, whole().final))
    assert both.provenance.trajectories == 10
    for name, report in whole().observables.items():
        for kind, (axes, values) in report.variables.items():
            other_axes, other = both[name].variables[kind]
            assert axes == other_axes
            exact = np.asarray(values).dtype.kind in "iu" or (name in ("levels", "some", "all") and kind not in ("stderr",))
            np.testing.assert_allclose(other, values, rtol=0 if exact else 1e-9, atol=0 if exact else 1e-12, err_msg=f"{name}.{kind}")


def test_a_part_is_told_by_its_numbers():
    np.testing.assert_array_equal(part(4, 6).final.q, whole().final.q[4:])
    assert part(4, 6)["all"].value.coords["trajectory"].values.tolist() == [4, 5, 6, 7, 8, 9]
    assert part(4, 6).some.q.coords["trajectory"].values.tolist() == [6]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bm.merge(part(0, 4)), "two or more results"),
        (lambda: bm.merge(part(0, 4), part(5, 5)), "the next begins with 5"),
        (lambda: bm.merge(part(0, 4), part(4, 6, seed=3)), "differ in scheme, observers or seed"),
        (lambda: bm.merge(part(0, 4), part(4, 6, steps=20)), "differ in steps"),
    ],
)
def test_what_is_no_part_is_refused(make, words):
    with pytest.raises(DomainError, match=words):
        make()


def test_failures_are_merged_too():
    run = lambda first, number: bm.simulate(
        test_failures.scheme(), test_failures.start(), trajectories=number, first_trajectory=first, every=7, **test_failures.RUN
    )
    assert bm.merge(run(0, 3), run(3, 5)).outcome == run(0, 8).outcome


def test_a_run_goes_on_where_it_ended():
    """Bit for bit, whatever the step, since the clock goes on counting steps; of a driven system, with random starts."""
    driven = bm.VariationalEuler(
        bm.mechanical(bm.Euclidean(1), potential=lambda q, t: q[0] ** 4 * jnp.cos(3 * t), noise=lambda q, t: jnp.array([q[0] * jnp.sin(t)]))
    )
    begin = driven.start(jnp.ones(1), temperature=0.3)
    common = {"step": 0.02, "trajectories": 5, "seed": 4, "t0": 0.3, "observe": {"x": X}}
    whole = bm.simulate(driven, begin, steps=17, every=1, **common)
    first = bm.simulate(driven, begin, steps=4, burn_in=3, every=1, **common)
    assert first.steps_done == 7
    rest = bm.simulate(driven, continue_from=first, steps=10, every=1, observe={"x": X})
    assert rest.steps_done == 17
    assert jax.tree.all(jax.tree.map(np.array_equal, rest.final, whole.final))
    np.testing.assert_array_equal(rest.x.mean.values, whole.x.mean.values[7:])
    np.testing.assert_allclose(rest.times, whole.times[7:], rtol=1e-14)
    with pytest.raises(DomainError, match="takes seed from the result"):
        bm.simulate(driven, continue_from=first, steps=1, seed=4)


def test_who_failed_stays_away_when_a_run_goes_on():
    first = test_failures.whole()
    rest = bm.simulate(test_failures.scheme(), continue_from=first, steps=2, every=1, observe={"x": X})
    left = test_failures.N - len(first.outcome.failures)
    assert (rest.x.count.values[0], rest.x.population.run) == (left, test_failures.N)
    assert np.isfinite(rest.x.mean.values[0])
    assert rest.x.population.failed >= len(first.outcome.failures)
