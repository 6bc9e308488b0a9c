"""What observers report in one pass is what the whole trajectories say: every statistic, worked out again from stored paths."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError

N, STEPS, BURN, EVERY, H = 7, 120, 9, 3, 0.05
X, P = (lambda state: state.q[0]), (lambda state: state.p[0])
LAGS = 6


@functools.cache
def scheme() -> bm.Action:
    """A tilted double well with friction and noise that depends on position."""
    return bm.VariationalEuler(
        bm.mechanical(
            bm.Euclidean(1),
            potential=lambda q: jnp.sum(q**4 / 4 - q**2 / 2 + 0.1 * q),
            noise=lambda q: jnp.array([1.5 * jnp.sin(q[0]) + q[0]]),
            force=lambda q, v: -0.5 * v,
        )
    )


@functools.cache
def result(block: int = 3) -> bm.Result:
    start = scheme().start(jnp.array([0.3]), temperature=1.0)
    observe = {
        "whole": bm.paths(range(N), every=1),
        "T": bm.temperature,
        "ends": bm.extremes(X, every=EVERY),
        "one": bm.histogram(X, range=(-1.0, 1.5), bins=10, every=EVERY),
        "two": bm.histogram((X, P), range=((-1.0, 1.5), (-2.0, 2.0)), bins=(4, 5), every=EVERY),
        "levels": bm.quantiles(lambda s: jnp.array([s.q[0], s.p[0] + 100]), levels=(0.1, 0.5, 0.9), every=EVERY),
        "mean": bm.time_average(X, every=EVERY),
        "memory": bm.autocorrelation(X, lags=LAGS, every=EVERY),
        "spread": bm.mean_squared_displacement(lags=LAGS, every=EVERY),
        "far": bm.maximum_excursion(every=EVERY),
        "upward": bm.section(X, at=lambda s: jnp.array([s.q[0], s.p[0]]), capacity=4),
        "own": bm.Observer(init=lambda s: 0.0, update=lambda m, s, t: m + s.q[0] ** 2 * t, finish=lambda m: m / 10, every=EVERY),
    }
    return bm.simulate(scheme(), start, step=H, steps=STEPS, trajectories=N, block=block, seed=5, burn_in=BURN, every=20, observe=observe)


@functools.cache
def paths() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    whole = result().whole
    return whole.q.values[..., 0], whole.p.values[..., 0], whole.q.coords["time"].values


def looks() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, p, t = paths()
    return q[:, ::EVERY], p[:, ::EVERY], t[::EVERY]


def test_paths_are_the_trajectories():
    """Also past a burn-in, and with their times."""
    q, _, times = paths()
    start = scheme().start(jnp.array([0.3]), temperature=1.0)
    alone = bm.trajectory(scheme(), start, step=H, steps=BURN + STEPS, seed=5, trajectory=4)
    np.testing.assert_allclose(q[4], alone.q[BURN:, 0], rtol=1e-11)
    np.testing.assert_allclose(times, H * np.arange(BURN, BURN + STEPS + 1))


def test_records_are_over_trajectories():
    _, p, times = paths()
    T = result().T
    np.testing.assert_allclose(T.mean.values, (p[:, ::20] ** 2).mean(0), rtol=1e-12)
    np.testing.assert_allclose(T.std.values, (p[:, ::20] ** 2).std(0, ddof=1), rtol=1e-10)
    np.testing.assert_allclose(T.mean.coords["time"].values, times[::20])


def test_extremes():
    q, *_ = looks()
    ends = result().ends
    assert (float(ends.min), float(ends.max)) == (q.min(), q.max())
    assert float(ends.mean_max) == pytest.approx(q.max(1).mean(), rel=1e-12)


def test_histograms_count_everything():
    q, p, _ = looks()
    one, two = result().one, result().two
    inside = q[(q >= -1.0) & (q <= 1.5)]
    np.testing.assert_array_equal(one.counts.values, np.histogram(inside, bins=10, range=(-1.0, 1.5))[0])
    assert (int(one.below), int(one.above)) == ((q < -1.0).sum(), (q > 1.5).sum())
    assert int(one.counts.sum() + one.below + one.above) == q.size
    grid = np.histogram2d(q.ravel(), p.ravel(), bins=(4, 5), range=((-1.0, 1.5), (-2.0, 2.0)))[0]
    np.testing.assert_array_equal(two.counts.values, grid)
    assert int(two.counts.sum() + two.below + two.above) == q.size


def test_quantiles_to_a_bin():
    """Within 1/1024 of the range, whatever the offset."""
    q, p, _ = looks()
    for i, values in enumerate((q, p + 100)):
        width = np.ptp(values) / 1024
        got = result().levels.quantile.values[:, i]
        below = [(values < x - width).mean() for x in got]
        above = [(values <= x + width).mean() for x in got]
        assert all(low <= level <= high for low, level, high in zip(below, (0.1, 0.5, 0.9), above, strict=True))


def test_time_average_and_its_blocks():
    """Mean, variance, and the error of block means at every level of every trajectory."""
    q, *_ = looks()
    mean = result().mean
    assert float(mean.mean) == pytest.approx(q.mean(), rel=1e-12)
    assert float(mean.stderr_between) == pytest.approx(q.mean(1).std(ddof=1) / N**0.5, rel=1e-9)
    for level, error in enumerate(mean.block_stderr.values):
        size = 2**level
        number = q.shape[1] // size
        blocks = q[:, : number * size].reshape(N, number, size).mean(2)
        assert error == pytest.approx(np.sqrt(blocks.var(1).mean() / (number - 1) / N), rel=1e-6)


def test_autocorrelation_uses_every_origin():
    q, *_ = looks()
    memory = result().memory
    number = q.shape[1]
    for lag in range(LAGS):
        product = ((q[:, lag:] - q.mean()) * (q[:, : number - lag] - q.mean())).mean()
        assert float(memory.covariance[lag]) == pytest.approx(product, abs=1e-12)
    assert float(memory.correlation[0]) == 1.0


def test_displacement_uses_every_origin():
    q, *_ = looks()
    number = q.shape[1]
    expected = [((q[:, lag:] - q[:, : number - lag]) ** 2).mean() for lag in range(LAGS)]
    np.testing.assert_allclose(result().spread.mean.values, expected, rtol=1e-10, atol=1e-15)


def test_excursions_are_from_the_first_look():
    q, *_ = looks()
    largest, far = np.abs(q - q[:, :1]).max(1), result().far
    assert float(far.mean) == pytest.approx(largest.mean(), rel=1e-12)
    assert float(far.stderr) == pytest.approx(largest.std(ddof=1) / N**0.5, rel=1e-9)
    assert (float(far.min), float(far.max)) == pytest.approx((largest.min(), largest.max()), rel=1e-12)


def test_crossings_lie_on_the_section():
    """As many as the path has sign changes from below, in their order, each within its step and on the section to round-off."""
    q, _, times = paths()
    upward = result().upward
    for i in range(N):
        at = np.flatnonzero((q[i, :-1] < 0) & (q[i, 1:] >= 0))
        assert int(upward.count[i]) == len(at)
        kept = at[:4]
        found = upward.time.values[i, : len(kept)]
        assert ((times[kept] <= found) & (found <= times[kept + 1])).all()
        assert np.abs(upward.value.values[i, : len(kept), 0]).max(initial=0.0) < 1e-13
        assert np.isnan(upward.time.values[i, len(kept) :]).all()
    assert int(upward.missed) == int(np.maximum(upward.count.values - 4, 0).sum())
    assert upward.count.shape == (N,)


def test_own_observer():
    q, _, t = looks()
    expected = (q**2 * t)[:, 1:].sum(1) / 10  # the start is seen by init alone
    own = result().own
    assert float(own.mean) == pytest.approx(expected.mean(), rel=1e-12)
    assert float(own.max) == pytest.approx(expected.max(), rel=1e-12)


@pytest.mark.parametrize("name", ["one", "two"])
def test_counts_do_not_depend_on_blocks(name):
    np.testing.assert_array_equal(result(3)[name].counts.values, result(7)[name].counts.values)


def test_saved_and_loaded(tmp_path):
    tree = bm.load(bm.save(result(), tmp_path / "a.run"))
    for name in ("ends", "one", "two", "levels", "mean", "memory", "spread", "far", "upward", "own", "whole"):
        assert set(tree[name].data_vars) == set(result()[name].variables)
        for kind, (_, values) in result()[name].variables.items():
            np.testing.assert_array_equal(tree[name][kind].values, values)


def test_positions_and_rotations_are_not_added_up_in_silence():
    """|ΔX|² of a rigid body is that of its place and that of its turns; a part of it is one of them, by number or by function."""
    system = bm.rigid_bodies(mass=[1.0], inertia=[[1.0, 2.0, 2.5]], potential=bm.harmonic_trap(1.0))
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0)
    msd = bm.mean_squared_displacement
    observe = {"all": msd(lags=3), "place": msd(0, lags=3), "same": msd(lambda v: v[0][0], lags=3), "turns": msd(1, lags=3)}
    start = scheme.start((jnp.zeros((1, 3)), jnp.eye(3)[None]), temperature=1.0)
    result = bm.simulate(scheme, start, step=0.05, steps=20, trajectories=8, seed=1, observe=observe)
    np.testing.assert_allclose(result["all"].mean, result.place.mean + result.turns.mean, rtol=1e-12)
    assert np.array_equal(result.place.mean, result.same.mean)
    assert "added up" in result["all"].text
    assert "added up" not in result.place.text
    with pytest.raises(bm.errors.DomainError, match="part must be a function"):
        msd("x")


def test_displacements_of_bodies_are_summed_or_averaged_as_asked():
    """|X|² of K free bodies: the sum, K times the mean over bodies, 3K times that over components; the report says which."""
    system = bm.mechanical(bm.Euclidean(3) ** 4, mass=1.0)
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0)
    observe = {str(per): bm.mean_squared_displacement(lags=5, per=per) for per in (None, "body", "component")}
    result = bm.simulate(scheme, scheme.start(jnp.zeros((4, 3)), temperature=1.0), step=0.1, steps=10, trajectories=8, every=1, observe=observe)
    total, body, component = (result[name] for name in observe)
    for kind in ("mean", "stderr"):
        np.testing.assert_allclose(getattr(total, kind), 4 * getattr(body, kind), rtol=1e-12)
        np.testing.assert_allclose(getattr(total, kind), 12 * getattr(component, kind), rtol=1e-12)
    assert "summed over 12 components of 4 bodies" in str(result)
    assert "the mean over 4 bodies" in str(result)
    single = bm.Verlet(bm.mechanical(bm.Euclidean(3)))
    start = single.start(jnp.zeros(3), velocity=jnp.ones(3))
    with pytest.raises(BismutError, match="several bodies"):
        bm.simulate(single, start, step=0.1, steps=2, observe={"x": bm.mean_squared_displacement(per="body")})


def test_the_potential_energy_is_that_of_the_system_in_its_box():
    """Two bodies that are neighbours across the wall: what the system sees, and a function of one's own does not."""
    pair = lambda a, b: 1.0 / jnp.sum((a.x - b.x) ** 2)
    system = bm.rigid_bodies(
        mass=jnp.ones(2), inertia=jnp.ones((2, 3)), potential=bm.pair_potential(pair, cutoff=3.0), box=bm.Box((10.0, 10.0, 10.0))
    )
    scheme = bm.Verlet(system)
    far = jnp.array([[0.5, 0.0, 0.0], [9.5, 0.0, 0.0]])
    velocity = (jnp.ones((2, 3)), jnp.ones((2, 3)))
    state = scheme.start((far, jnp.broadcast_to(jnp.eye(3), (2, 3, 3))), velocity=velocity)
    near = scheme.start((far.at[1, 0].set(1.5), jnp.broadcast_to(jnp.eye(3), (2, 3, 3))), velocity=velocity)
    states = [bm.trajectory(scheme, start, step=1e-9, steps=1).states for start in (state, near)]
    across, inside = (bm.State(*(tuple(leaf[0] for leaf in part) for part in (one.q, one.p))) for one in states)
    assert float(bm.potential_energy(scheme, across)) > 0.1
    np.testing.assert_allclose(bm.potential_energy(scheme, across), bm.potential_energy(scheme, inside), rtol=1e-12)
    both = bm.potential_energy(scheme, across) + bm.kinetic_energy(scheme, across)
    np.testing.assert_allclose(both, bm.energy(scheme, across), rtol=1e-12)


@pytest.mark.parametrize("magnetic", [0.0, 3.0])
def test_the_potential_energy_keeps_its_digits_beside_a_large_kinetic_energy(magnetic):
    """U = 1e−3 at T = 5e11, of which H − T has left two digits; also where L has a part linear in v."""
    lagrangian = lambda q, v: 0.5 * v @ v + magnetic * (q[0] * v[1] - q[1] * v[0]) - 1e-3
    for system in (bm.System(bm.Euclidean(2), lagrangian), bm.mechanical(bm.Euclidean(2), potential=lambda q: 1e-3 + 0.0 * q[0])):
        scheme = bm.Midpoint(system)
        state = scheme.start(jnp.array([1.0, 2.0]), velocity=jnp.array([1e6, 0.0]))
        assert float(bm.potential_energy(scheme, state)) == 1e-3
