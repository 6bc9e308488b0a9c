"""Replica exchange: oscillators swap as often as their law says, components are weighed right, and a run can be cut anywhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc, iv

import bismut as bm
from bismut.samplers import diagnostics
from bismut.samplers.domain import domain_of
from bismut.samplers.exchange import Ladder, equalised, first_ladder, swapped
from bismut.samplers.scheme import Trajectories, Tuning
from bismut.samplers.target import unit_target


def oscillators_swap(d, R, rounds, ladders=4096, seed=3):
    """Exact draws of d oscillators at 1/kT = 1 and 1/R, and how often they agree to swap; with its standard error."""
    rng = np.random.default_rng(seed)
    chances = []
    for k in range(rounds):
        ladder = first_ladder([1.0, 1 / R], ladders, True)
        energy = 0.5 * rng.chisquare(d, 2 * ladders) / ladder.levels[ladder.rung]
        other = ladder.levels[1 - ladder.rung]
        after = swapped(ladder, ladder.levels[ladder.rung] * energy, other * energy, (seed, k))
        assert (after.tried == ladders).all()
        chances.append((after.rung.reshape(-1, 2)[:, 0] == 1).mean())
    return np.mean(chances), np.sqrt(np.mean(chances) * (1 - np.mean(chances)) / (rounds * ladders))


@pytest.mark.parametrize(("d", "R", "exact"), [(4, 2.0, 0.5185185), (16, 1.5, 0.4262064)])
def test_oscillators_swap_as_often_as_their_energies_overlap(d, R, exact):
    """2 I_{1/(1+R)}(d/2, d/2), at 4 standard errors: a false alarm in 16 000."""
    assert 2 * betainc(d / 2, d / 2, 1 / (1 + R)) == pytest.approx(exact, abs=1e-7)
    rate, error = oscillators_swap(d, R, rounds=50)
    assert abs(rate - exact) < 4 * error
    assert error < 0.0012


@pytest.mark.slow
@pytest.mark.parametrize(("d", "R", "exact"), [(4, 2.0, 0.5185185)])
def test_the_same_by_chains(d, R, exact):
    """The chain's own swaps, in 20 parts whose scatter is the error: 4 standard errors, with 19 degrees of freedom 1 in 1300."""
    draws = bm.sample(bm.Euclidean(d), lambda x: -0.5 * x @ x, chains=256, draws=20, burn_in=100, ladder=[1.0, 1 / R], seed=1)
    parts, before = [], draws.ladder
    for _ in range(20):
        draws = draws.more(60)
        now = draws.ladder
        parts.append((now.agreed - before.agreed)[0] / (now.tried - before.tried)[0])
        before = now
    assert abs(np.mean(parts) - exact) < 4 * np.std(parts, ddof=1) / np.sqrt(20)
    assert np.std(parts, ddof=1) / np.sqrt(20) < 0.004
    assert draws.ladder.trips.sum() > 1000


def test_a_swap_is_a_permutation_of_every_ladder_and_pairs_alternate():
    ladder, rng = first_ladder([1.0, 0.7, 0.5, 0.3, 0.2], 40, True), np.random.default_rng(0)
    for k in range(7):
        before = ladder
        ladder = swapped(ladder, rng.normal(size=200), rng.normal(size=200), (1, k))
        change = ladder.rung - before.rung
        assert (np.sort(ladder.rung.reshape(40, 5), 1) == np.arange(5)).all()
        assert np.isin(change, (-1, 0, 1)).all()
        lower = before.rung[change == 1]
        assert (lower % 2 == k % 2).all()
        assert len(lower)
    assert (ladder.tried == [160, 120, 160, 120]).all()


def test_swaps_that_cannot_be_refused_carry_a_replica_around():
    """With Δ ≤ 0 always, a replica climbs K levels, turns, and is back: 2K rounds a trip."""
    ladder = first_ladder(np.linspace(1, 0.1, 6), 1, True)
    for k in range(48):
        ladder = swapped(ladder, np.zeros(6), np.zeros(6), (0, k))
    assert (ladder.acceptance == 1).all()
    assert ladder.trips.max() == 4  # 48/12
    assert ladder.trips.min() >= 2


def test_equal_refusals_stay_and_unequal_ones_are_evened_out():
    levels = np.array([1.0, 0.6, 0.3, 0.1])
    assert equalised(levels, np.full(3, 0.4)) == pytest.approx(levels)
    moved = equalised(levels, np.array([0.8, 0.2, 0.2]))
    assert moved[[0, -1]] == pytest.approx([1.0, 0.1])
    assert 0.6 < moved[1] < 1
    assert (np.diff(moved) < 0).all()


def two_wells(x):
    return jnp.logaddexp(-0.5 * (x[0] - 6) ** 2, -0.5 * (x[0] + 6) ** 2 + 1)


@pytest.fixture(scope="module")
def wells():
    return bm.sample(bm.Euclidean(1), two_wells, chains=64, draws=120, burn_in=120, ladder=np.geomspace(1, 0.03, 5), seed=5)


def test_wells_far_apart_have_their_weights(wells):
    """e : 1, at 4 standard errors of the chain's own size."""
    left = (wells["x"][..., 0] < 0).astype(float)
    error = left.std() / np.sqrt(diagnostics.ess_mean(left))
    assert abs(left.mean() - np.e / (1 + np.e)) < 4 * error
    assert error < 0.02
    assert wells.ladder.trips.sum() > 50
    assert wells.ladder.acceptance.min() > 0.2
    assert np.ptp(wells.ladder.acceptance) < 0.25  # the ladder was evened out
    assert "round trips" in repr(wells)


def test_a_run_that_is_cut_is_the_same_to_the_bit(wells):
    parts = bm.sample(bm.Euclidean(1), two_wells, chains=64, draws=50, burn_in=120, ladder=np.geomspace(1, 0.03, 5), seed=5).more(70)
    assert (parts["x"] == wells["x"]).all()
    assert all((parts.sample_stats[name] == values).all() for name, values in wells.sample_stats.items())
    assert isinstance(parts.ladder, Ladder)
    assert (parts.ladder.trips == wells.ladder.trips).all()
    assert parts.ladder.agreed == pytest.approx(wells.ladder.agreed, rel=1e-12)


@pytest.mark.slow
def test_two_poles_of_a_sphere_have_their_weights():
    """e^{15 z} against e^{1 − 15 z}, with nothing between them: e : 1, at 4 standard errors of the chain's own size."""
    density = lambda x: jnp.logaddexp(15 * x[2], 1 - 15 * x[2])
    draws = bm.sample(bm.Sphere(2), density, chains=48, draws=150, burn_in=120, ladder=np.geomspace(1, 0.03, 5), seed=4, progress=False)
    south = (draws["x"][..., 2] < 0).astype(float)
    error = south.std() / np.sqrt(diagnostics.ess_mean(south))
    assert abs(south.mean() - np.e / (1 + np.e)) < 4 * error, f"{south.mean()} ± {error}"
    assert error < 0.03
    assert draws.ladder.trips.sum() > 20


@pytest.mark.slow
def test_a_ladder_of_any_parameter():
    """ρ(x; l) = exp(−x²/2 − l x⁴), from l = 4 to 0: ⟨x²⟩ at l = 4."""
    draws = bm.sample(bm.Euclidean(1), lambda x, level: -0.5 * x @ x - level * jnp.sum(x**4), chains=256, draws=200, ladder=[4.0, 1.0, 0.0], seed=3)
    moment = lambda k: quad(lambda x: x**k * np.exp(-0.5 * x**2 - 4 * x**4), -5, 5)[0]
    assert float(draws.scheme.target.log_density(jnp.zeros(1) + 0.5 / draws.target.roots[0][0, 0])) == pytest.approx(-0.5 * 0.5**2 - 4 * 0.5**4)
    square = draws["x"][..., 0] ** 2
    assert abs(square.mean() - moment(2) / moment(0)) < 4 * square.std() / np.sqrt(diagnostics.ess_mean(square))


@pytest.mark.slow
def test_a_surface_in_pieces_held_softly():
    """Circles of radius 1 and 1.2 with ρ = e^{2 x₀ − g²/2ε²} and a ladder in ε, the first one 46 kT of barrier: the weight of the outer one by
    quadrature over the radius, r I₀(2r) e^{−g²/2ε²}, at 4 standard errors of the chain's own size."""
    g = lambda square: (square - 1) * (square - 1.44)
    soft = lambda x, level: 2 * x[0] - 0.5 * (g(x @ x) / level) ** 2
    draws = bm.sample(bm.Euclidean(2), soft, chains=48, draws=150, burn_in=150, ladder=np.geomspace(0.005, 0.08, 6), seed=6, progress=False)
    outer = (np.linalg.norm(draws["x"], axis=-1) > 1.1).astype(float)
    weight = lambda r: r * iv(0, 2 * r) * np.exp(-0.5 * (g(r * r) / 0.005) ** 2)
    inside, outside = (quad(weight, a, b, points=[at], limit=400)[0] for a, b, at in ((0.9, 1.1, 1.0), (1.1, 1.3, 1.2)))
    exact = outside / (inside + outside)
    assert exact == pytest.approx(0.5727, abs=2e-3)
    error = outer.std() / np.sqrt(diagnostics.ess_mean(outer))
    assert abs(outer.mean() - exact) < 4 * error, f"{outer.mean()} ± {error}, exact {exact}"
    assert error < 0.04
    assert (np.ptp(outer, axis=1) > 0).mean() > 0.8  # chains were on both
    assert draws.ladder.trips.sum() > 20


def test_the_kernel_of_a_ladder_is_that_of_its_first_level():
    """Its states carry log ρ(x; 4), and exact draws stay that: ⟨x²⟩ of 4000 chains after 2 trajectories, at 4 standard errors."""
    density = lambda x, level: -0.5 * x @ x - level * jnp.sum(x**4)
    target = unit_target(density, domain_of(bm.Euclidean(1)), level=4.0)
    kernel = bm.kernel(Trajectories(target, Tuning(0.2, 3, 1.0)), 0.2)
    grid = np.linspace(-3, 3, 20001)
    weight = np.exp(-0.5 * grid**2 - 4 * grid**4)
    start = np.interp(np.random.default_rng(0).uniform(size=4000), np.cumsum(weight) / weight.sum(), grid)[:, None]
    states = jax.vmap(kernel.init)(jnp.asarray(start))
    for key in jax.random.split(jax.random.key(1), 2):
        states, _ = jax.jit(jax.vmap(kernel.step))(jax.random.split(key, 4000), states)
    x = np.asarray(states.position)
    assert np.asarray(states.logdensity) == pytest.approx(-0.5 * x[:, 0] ** 2 - 4 * x[:, 0] ** 4, abs=1e-12)
    assert np.abs(x - start).mean() > 0.1
    assert abs((x**2).mean() - weight @ grid**2 / weight.sum()) < 4 * (x**2).std() / np.sqrt(4000)


@pytest.mark.parametrize(
    ("ladder", "message"),
    [([1.0], "two or more"), ([1.0, 0.5, 0.7], "rise or fall"), ([0.5, 0.1], "inverse temperatures"), ("hot", "array of levels")],
)
def test_ladders_that_make_no_sense(ladder, message):
    with pytest.raises(bm.errors.DomainError, match=message):
        bm.sample(bm.Euclidean(1), lambda x: -x @ x, chains=4, ladder=ladder)
