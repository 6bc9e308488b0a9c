"""Maxwell momenta: p ~ N(0, kT M), drawn afresh for each trajectory and the same for the same seed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.engines.native import engine
from bismut.ensembles import task
from bismut.ensembles.starts import StartStates
from tests import systems

KT, N = 0.7, 4000


def test_momenta_have_covariance_kT_M():
    """False-alarm rate below 1e−4: six covariances and three variances, each within 4.5 standard errors."""
    scheme = bm.VariationalEuler(systems.vehicle())
    start = scheme.start((jnp.eye(3), jnp.zeros(3)), temperature=KT)
    run = lambda seed: bm.simulate(scheme, start, step=1e-9, steps=1, trajectories=N, seed=seed)
    p = np.asarray(run(1).final.p)
    mass = np.asarray(scheme.system.mass((jnp.eye(3), jnp.zeros(3))))
    spread = np.sqrt((mass**2 + np.outer(np.diag(mass), np.diag(mass))) / N)
    assert (np.abs(p.T @ p / N / KT - mass) < 4.5 * spread).all()
    assert np.array_equal(p, run(1).final.p)
    assert not np.allclose(p, run(2).final.p)
    assert len(np.unique(p[:, 0])) == N


def test_refinement_and_shift_leave_the_start_alone():
    scheme = bm.VariationalEuler(systems.separable())
    start = scheme.start(jnp.zeros(3), temperature=KT)
    first = [
        bm.trajectory(scheme, start, step=0.01, steps=1, path=path).p[0] for path in (bm.Wiener(3), bm.Wiener(3, substeps=2), bm.Wiener(3).shift(9))
    ]
    assert np.array_equal(first[0], first[1])
    assert np.array_equal(first[0], first[2])


def pairs() -> bm.System:
    return bm.rigid_bodies(mass=[1.0, 2.0, 3.0], inertia=[[1.0, 2.0, 2.5]] * 3, potential=bm.dipoles((0.0, 0.0, 1.0)))


def sphere() -> bm.System:
    return bm.mechanical(bm.Euclidean(3), mass=[1.0, 2.0, 3.0], potential=lambda q: q[2], constraint=lambda q: jnp.array([q @ q - 1.0]))


def _others(system, one):
    """Two other points."""
    if system.constraints:
        return jnp.array([0.0, 1.0, 0.0]), jnp.array([0.0, 0.6, -0.8])
    return tuple(system.space.random(jax.random.key(seed)) for seed in (3, 4))


@pytest.mark.parametrize("make", [systems.separable, systems.vehicle, systems.heavy_top, sphere, pairs])
@pytest.mark.parametrize("apart", [False, True], ids=["one point", "points"])
def test_engines_draw_the_same_starts(make, apart):
    """To round-off, whatever the number of trajectories; a start does not depend on those beside it."""
    system = make()
    one = system.space.random(jax.random.key(2)) if not system.constraints else jnp.array([0.6, 0.0, 0.8])
    q = jax.tree.map(lambda *leaves: jnp.stack(leaves * 100), *[one, *_others(system, one)]) if apart else one
    start = bm.Verlet(system).start(q, temperature=KT)
    numbers = np.arange(300, dtype=np.uint64) + 2**33
    made = task._PROGRAMS.misses
    native, xla = (StartStates(start, (300,) if apart else (), 0.0).sampler(bm.Wiener(5), mark)(numbers, np.arange(300)) for mark in (True, False))
    for a, b in zip(jax.tree.leaves(native), jax.tree.leaves(xla), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
    assert task._PROGRAMS.misses <= made + 1
    assert next(reversed(task._PROGRAMS._values.values())) is not None, "native code was refused"
    few = StartStates(start, (300,) if apart else (), 0.0).sampler(bm.Wiener(5))(numbers[7:10], np.arange(7, 10))
    for a, b in zip(jax.tree.leaves(native), jax.tree.leaves(few), strict=True):
        assert np.array_equal(a[7:10], b)


def test_another_number_of_starts_compiles_nothing():
    """Beyond the few that get narrow code."""
    events: list[str] = []
    scheme = bm.Langevin(pairs(), temperature=KT, friction=1.0)
    start = scheme.start((2.0 * jnp.eye(3), jnp.tile(jnp.eye(3), (3, 1, 1))), temperature=KT)
    go = lambda n: bm.simulate(scheme, start, step=0.01, steps=1, trajectories=n, seed=1)
    go(engine.FEW + 1)
    made = task._PROGRAMS.misses
    jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: events.append(name))
    go(700)
    assert not [name for name in events if "backend_compile" in name]
    assert task._PROGRAMS.misses == made
    many = lambda n: bm.simulate(scheme, scheme.start(jax.tree.map(lambda x: jnp.stack([x] * n), start.q), temperature=KT), step=0.01, steps=1)
    many(engine.FEW + 1)
    made = task._PROGRAMS.misses
    many(engine.FEW + 3)
    assert task._PROGRAMS.misses == made


@pytest.mark.parametrize("what", ["average", "trajectory"])
def test_gradients_through_a_mass_in_a_closure(what):
    """∂/∂m of what depends on m through the start alone, m being no field of anything: p = √(kT m) z, and its derivative is p/2m."""

    def squared(m):
        scheme = bm.Verlet(bm.System(bm.Euclidean(1), lambda q, v: 0.5 * m * v @ v))
        start, of = scheme.start(jnp.ones(1), temperature=KT), lambda state: state.p[0] ** 2
        if what == "average":
            return bm.average(of, scheme, start, step=0.1, steps=2, trajectories=5, seed=3)
        return of(bm.trajectory(scheme, start, step=0.1, steps=2, seed=3).final)

    m = 1.7
    np.testing.assert_allclose(jax.grad(squared)(m), squared(m) / m, rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(squared)(jnp.array([m, 2 * m])), [squared(m), squared(2 * m)], rtol=1e-12)


@pytest.mark.parametrize("motion", [{"temperature": KT}, {"velocity": jnp.zeros((5, 3))}], ids=["drawn", "given"])
def test_as_many_trajectories_as_starts(motion):
    """Unless another number is asked for, which is refused."""
    scheme = bm.VariationalEuler(systems.separable())
    start = scheme.start(jnp.arange(15.0).reshape(5, 3) / 15, **motion)
    result = bm.simulate(scheme, start, step=0.01, steps=2)
    assert result.trajectories_run == len(result.final.q) == 5
    with pytest.raises(bm.errors.DomainError, match="start holds"):
        bm.simulate(scheme, start, step=0.01, steps=2, trajectories=4)
