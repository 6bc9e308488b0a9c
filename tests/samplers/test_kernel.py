"""A kernel is a pure function of key and state, and leaves its density as it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.samplers.diagnostics import ess_mean
from bismut.samplers.domain import domain_of
from bismut.samplers.scheme import Trajectories, Tuning
from bismut.samplers.target import unit_target


def walked(kernel, positions, steps, seed=0):
    """Positions (chain, ...) after some steps of each chain, jitted, mapped and scanned; and how the steps went."""

    def chain(key, position):
        def one(state, key):
            state, info = kernel.step(key, state)
            return state, info

        state, infos = jax.lax.scan(one, kernel.init(position), jax.random.split(key, steps))
        return state.position, infos

    return jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(seed), len(positions)), positions)


@pytest.mark.long
def test_a_density_is_invariant_from_the_first_step():
    """Exact draws of exp(2 cos θ) on S² stay that after 3 trajectories; 4 standard errors of 4000 independent chains, twice: 1 in 8000."""
    rng = np.random.default_rng(5)
    u = rng.uniform(size=4000)
    z = 1 + np.log(u + (1 - u) * np.exp(-4.0)) / 2  # the inverse distribution function of cos θ
    angle = rng.uniform(0, 2 * np.pi, 4000)
    r = np.sqrt(1 - z**2)
    start = jnp.asarray(np.stack([r * np.cos(angle), r * np.sin(angle), z], 1))
    kernel = bm.malt(bm.Sphere(2), lambda x: 2 * x[2], step=0.35, leapfrogs=3, friction=1.0)
    end, infos = walked(kernel, start, 3)
    z = np.asarray(end[:, 2])
    assert 0.5 < np.asarray(infos.is_accepted).mean() < 0.99
    assert not np.asarray(infos.is_divergent).any()
    assert np.abs(np.linalg.norm(end, axis=1) - 1).max() < 1e-12
    for values, exact in ((z, 1 / np.tanh(2) - 0.5), (z**2, 1 - (1 / np.tanh(2) - 0.5))):
        assert abs(values.mean() - exact) < 4 * values.std() / np.sqrt(len(values))
    assert np.std(z - start[:, 2]) > 0.1  # it moved


def test_a_refused_trajectory_stays():
    kernel = bm.malt(bm.Euclidean(2), lambda x: -0.5 * x @ x, step=3.0, leapfrogs=4, friction=0.0)
    start = jnp.asarray(np.random.default_rng(0).normal(size=(64, 2)))
    end, infos = walked(kernel, start, 1)
    refused = ~np.asarray(infos.is_accepted)[:, 0]
    assert refused.any()
    assert (np.asarray(end)[refused] == np.asarray(start)[refused]).all()


def test_one_trajectory_without_friction_is_the_trapezoid_action():
    """n steps of the kernel with γ = 0, accepted, are n steps of Verlet from the same momentum."""
    potential = lambda q: jnp.sum(q**4) / 4 + q[0] * q[1]
    scheme = bm.malt(bm.Euclidean(2), lambda q: -potential(q), step=0.05, leapfrogs=5, friction=0.0)
    verlet = bm.Verlet(bm.mechanical(bm.Euclidean(2), potential=potential))
    q = jnp.array([0.3, -0.8])
    key = jax.random.key(3)
    p = jax.random.normal(jax.random.split(key)[0], (2,))
    state, info = jax.jit(scheme.step)(key, scheme.init(q))
    path = bm.trajectory(verlet, verlet.start(q, momentum=p), step=0.05, steps=5)
    assert bool(info.is_accepted)
    assert np.abs(state.position - path.q[-1]).max() < 1e-13


@pytest.mark.long
def test_blackjax_adapts_the_step():
    """Its dual averaging brings the acceptance to 0.8, by `acceptance_rate` and with a step that is traced; then measured on 2000 trajectories."""
    adaptation = pytest.importorskip("blackjax.adaptation.step_size")
    begin, update, final = adaptation.dual_averaging_adaptation(0.8)
    kernel = lambda step: bm.malt(bm.Euclidean(2), lambda x: -jnp.sum(x**4) + x[0] * x[1], step=step, leapfrogs=3)

    def tried(key, positions, step):
        one = kernel(step)
        states, info = jax.vmap(one.step)(jax.random.split(key, len(positions)), jax.vmap(one.init)(positions))
        return states.position, info

    def adapted(carry, key):
        positions, averages = carry
        positions, info = tried(key, positions, jnp.exp(averages.log_step_size))
        return (positions, update(averages, info.acceptance_rate.mean())), None

    @jax.jit
    def run(key, positions):
        first, second = jax.random.split(key)
        (positions, averages), _ = jax.lax.scan(adapted, (positions, begin(0.05)), jax.random.split(first, 100))
        return final(averages), tried(second, positions, final(averages))[1]

    step, info = run(jax.random.key(4), jax.random.normal(jax.random.key(0), (2000, 2)))
    accepted, rate = np.asarray(info.is_accepted), np.asarray(info.acceptance_rate)
    assert 0.2 < float(step) < 2
    assert abs(rate.mean() - 0.8) < 0.03
    assert abs((accepted - rate).mean()) < 4 * np.std(accepted - rate) / np.sqrt(2000)
    assert np.allclose(rate, np.minimum(1, np.exp(-np.asarray(info.energy_error))))
    assert np.asarray(info.energy_error)[~accepted].min() > 0


@pytest.mark.long
def test_a_trajectory_that_fails_has_no_chance():
    """Where ρ is 0 or no number Δ is ∞, of one step or many."""
    half = lambda outside: lambda x: jnp.where(x[0] > 0, -0.5 * x[0] ** 2, outside)
    for outside in (-jnp.inf, jnp.nan):
        kernel = bm.malt(bm.Euclidean(1), half(outside), step=5.0, leapfrogs=2)
        _, info = walked(kernel, jnp.full((32, 1), 0.1), 1)
        failed = ~np.isfinite(np.asarray(info.energy_error))
        assert failed.any()
        assert not np.asarray(info.is_accepted)[failed].any()
        assert (np.asarray(info.acceptance_rate)[failed] == 0).all()
        assert (np.asarray(info.energy_error)[failed] == np.inf).all()


def test_metropolised_langevin_is_a_kernel():
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q)
    kernel = bm.kernel(bm.Langevin(system, temperature=1.0, rate=1.0, splitting=bm.Metropolised()), step=1.2)
    keys = jax.random.split(jax.random.key(1), 2000)
    start = jax.random.normal(jax.random.key(2), (2000, 1))
    states = jax.vmap(kernel.init)(start, keys)
    states, info = jax.jit(jax.vmap(kernel.step))(jax.random.split(jax.random.key(3), 2000), states)
    square = np.asarray(states.position) ** 2
    accepted, rate = np.asarray(info.is_accepted), np.asarray(info.acceptance_rate)
    assert 0.5 < accepted.mean() < 0.999
    assert np.asarray(info.energy_error)[~accepted].min() > 0
    assert abs((accepted - rate).mean()) < 4 * np.std(accepted - rate) / np.sqrt(2000)
    assert abs(square.mean() - 1) < 4 * square.std() / np.sqrt(2000)


@pytest.mark.long
def test_the_tuned_step_is_that_of_the_kernel():
    """kernel(scheme) steps as kernel(scheme, step of its tuning), to the bit."""
    scheme = Trajectories(unit_target(lambda x: -0.5 * x @ x, domain_of(bm.Euclidean(2))), Tuning(0.7, 2, 1.0))
    ends = [kernel.step(jax.random.key(2), kernel.init(jnp.ones(2)))[0].position for kernel in (bm.kernel(scheme), bm.kernel(scheme, 0.7))]
    assert (ends[0] == ends[1]).all()
    assert np.abs(np.asarray(ends[0]) - 1).max() > 0.1


def test_what_is_no_scheme_is_refused():
    with pytest.raises(bm.errors.BismutError, match="kernel needs a scheme"):
        bm.kernel(bm.Euclidean(1), step=0.1)
    with pytest.raises(bm.errors.BismutError, match="no time step of its own"):
        bm.kernel(bm.Langevin(bm.mechanical(bm.Euclidean(1)), temperature=1.0, rate=1.0, splitting=bm.Metropolised()))


def test_a_density_of_less_precision_is_one_all_the_same():
    """A value of float32 is taken as a number of the precision of the point, by `sample` and by kernels."""
    density = lambda x: jnp.asarray(-0.5 * x @ x, jnp.float32)
    state, _ = (kernel := bm.malt(bm.Euclidean(2), density, step=0.3)).step(jax.random.key(0), kernel.init(jnp.ones(2)))
    assert state.position.dtype == state.logdensity.dtype == jnp.float64
    draws = bm.sample(bm.Euclidean(2), density, chains=16, draws=8, burn_in=40, progress=False)
    assert draws["x"].dtype == np.float64
    assert draws.acceptance > 0.5


@pytest.mark.long
def test_where_a_density_is_zero_trajectories_are_refused_and_do_not_diverge():
    """Half of a normal density: ⟨x⟩ = √(2/π), at 4 standard errors, a false alarm in 16 000. NaN is no density, and diverges."""
    half = lambda outside: lambda x: jnp.where(x[0] > 0, -0.5 * x[0] ** 2, outside)
    draws = bm.sample(bm.Euclidean(1), half(-jnp.inf), chains=64, draws=100, burn_in=60, progress=False)
    x = draws["x"][..., 0]
    assert x.min() > 0
    assert abs(x.mean() - np.sqrt(2 / np.pi)) < 4 * x.std() / np.sqrt(ess_mean(x))
    assert draws.divergences == 0
    assert draws.trusted
    assert bm.sample(bm.Euclidean(1), half(jnp.nan), chains=64, draws=10, burn_in=40, progress=False).divergences > 0
