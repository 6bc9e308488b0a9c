"""Whatever makes states, systems and schemes can be traced: under jit, vmap and grad it gives what it gives without."""

import functools
import os
import pickle
import signal
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.programs.evaluation import evaluate

LINE = bm.Euclidean(1)


def potential(q, parameters):
    return parameters["k"] * q[0] ** 4


def noise(q):
    return jnp.array([jnp.sin(q[0])])


def lagrangian(q, v, parameters):
    return 0.5 * parameters["k"] * (1 + q[0] ** 2) * v @ v - q[0] ** 4


def heavy(q, parameters):
    return parameters["k"] * jnp.eye(1) * (1 + q @ q)


def circle(q, parameters):
    return jnp.array([q @ q - parameters["k"]])


def axes(q):
    return jnp.array([[1.0], [0.5 + q[0] ** 2]])[:1]


STATE = bm.State(jnp.array([0.7]), jnp.array([-0.4]))
made = {
    "mechanical": lambda k: bm.mechanical(LINE, mass=2.0, potential=potential, noise=noise, parameters={"k": k}).energy(STATE),
    "any Lagrangian": lambda k: bm.System(LINE, lagrangian, parameters={"k": k}).energy(STATE),
    "mass(q)": lambda k: bm.mechanical(LINE, mass=heavy, parameters={"k": k}).energy(STATE),
    "closed over": lambda k: bm.mechanical(LINE, potential=lambda q: k * q[0] ** 4).energy(STATE),
    "constraint": lambda k: bm.mechanical(bm.Euclidean(2), constraint=circle, parameters={"k": k}).constraint(jnp.ones(2))[0],
    "closed-over constraint": lambda k: bm.mechanical(bm.Euclidean(2), constraint=lambda q: jnp.array([q @ q - k])).constraint(jnp.ones(2))[0],
    "start": lambda k: bm.VariationalEuler(bm.System(LINE, lagrangian, parameters={"k": k})).start(k * jnp.ones(1), velocity=[0.5]).p[0],
    "start on a group": lambda k: bm.Midpoint(bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 2.5])).start(jnp.eye(3), velocity=k * jnp.ones(3)).p[1],
    "start by momentum": lambda k: bm.Verlet(bm.mechanical(LINE)).start([0.0], momentum=k * jnp.ones(1)).p[0],
    "projected start": lambda k: (
        bm.Verlet(bm.mechanical(bm.Euclidean(2), constraint=circle, parameters={"k": k})).start([2.0, 0.5], velocity=[0.0, 1.0], project=True).q[0]
    ),
    "Maxwell": lambda k: bm.Verlet(bm.mechanical(LINE)).start([0.0], temperature=k).temperature,
    "average from a Maxwell start": lambda k: bm.average(
        bm.energy, bm.Verlet(oscillator()), oscillator_start(k), step=0.1, steps=3, trajectories=3, seed=1
    ),
    "bath": lambda k: bm.average(
        bm.energy, bm.Langevin(oscillator(), k, friction=k), bm.Verlet(oscillator()).start([1.0], velocity=[0.0]), step=0.1, steps=3, seed=1
    ),
}


@functools.cache
def oscillator() -> bm.System:
    return bm.mechanical(LINE, potential=potential, parameters={"k": 0.5})


def oscillator_start(kT):
    return bm.Verlet(oscillator()).start(jnp.array([0.3]) * kT, temperature=kT)


@pytest.mark.parametrize("name", made)
def test_jit_vmap_and_grad_give_what_plain_calls_give(name):
    """The derivative agrees with a symmetric difference, whose error is h²/6 f‴ = 1e−8 f‴ at h = 2.4e−4, and round-off 1e−12."""
    f, k, h = made[name], 1.3, 2.4e-4
    plain, other, above, below = (float(f(x)) for x in (k, 0.9, k + h, k - h))
    jitted, mapped, slope = evaluate(lambda x, xs: (jax.jit(f)(x), jax.vmap(f)(xs), jax.grad(f)(x)), k, np.array([k, 0.9]))
    assert np.isclose(float(jitted), plain, rtol=1e-13)
    assert np.allclose(mapped, [plain, other], rtol=1e-13)
    assert np.isclose(float(slope), (above - below) / (2 * h), rtol=1e-6, atol=1e-8)


def test_shifts_and_trajectory_numbers_may_be_traced():
    path = bm.Wiener(5, substeps=2).shift(3)
    far = 2**32 - 2  # the carry into the high word
    shifted = jax.jit(lambda n: path.shift(n).increments(4, 3, 2, 0.1))
    for shift in (0, 9, far):
        assert np.array_equal(shifted(shift), path.shift(shift).increments(4, 3, 2, 0.1))
    numbers = np.array([0, 7, 2**33])
    each = np.stack([path.increments(int(n), 3, 2, 0.1) for n in numbers])
    assert np.array_equal(jax.jit(jax.vmap(lambda n: path.increments(n, 3, 2, 0.1)))(numbers), each)
    scheme = bm.Langevin(oscillator(), 1.0, friction=1.0)
    final = lambda n: bm.trajectory(scheme, scheme.start([1.0], temperature=1.0), step=0.1, steps=3, trajectory=n, seed=2).final.q
    assert np.allclose(evaluate(jax.vmap(final), np.arange(3)), np.stack([final(n) for n in range(3)]), rtol=1e-14)


def test_a_mapped_trajectory_shows_itself():
    scheme = bm.Verlet(oscillator())
    many = evaluate(jax.vmap(lambda x: bm.trajectory(scheme, scheme.start(x, velocity=[0.0]), step=0.1, steps=3)), np.ones((5, 1)))
    assert repr(many) == "Trajectory(5 trajectories of 4 states, 0 failed; q=f64[5,4,1], p=f64[5,4,1])"


SYSTEMS = {
    "mechanical": lambda: bm.mechanical(LINE, mass=2.0, potential=potential, noise=noise, parameters={"k": 1.0}),
    "any Lagrangian": lambda: bm.System(LINE, lagrangian, noise, parameters={"k": 1.0}),
    "symmetric": lambda: bm.mechanical(bm.SO3(), symmetries={"a": bm.left_rotation((0.0, 0.0, 1.0)), "b": bm.left_rotations()}),
    "bodies": lambda: bm.rigid_bodies(mass=[1.0], inertia=[[1.0, 1.0, 1.0]], potential=np_free),
    "free": lambda: bm.mechanical(bm.Euclidean(2) * bm.SO2()),
}
SCHEMES = {
    "Midpoint": bm.Midpoint,
    "adjoint": lambda system: bm.VariationalEuler(system).adjoint(),
    "bath": lambda system: bm.Langevin(system, 1.0, friction=1.0),
    "GLA": lambda system: bm.Langevin(system, 1.0, rate=1.0, splitting=bm.GLA(bm.Verlet)),
    "RungeKutta4": bm.RungeKutta4,
}


def np_free(x, R):
    return jnp.sum(x**2) + R[0, 2, 2]


@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_and_schemes_can_be_pickled_when_their_functions_can(name):
    system = SYSTEMS[name]()
    state = bm.State(*evaluate(lambda x: (system.space.origin(), system.space.unflatten(x)), np.linspace(0.1, 0.5, system.space.dim)))
    assert float(pickle.loads(pickle.dumps(system)).energy(state)) == float(system.energy(state))
    for make in SCHEMES.values():
        scheme = make(system)
        again = pickle.loads(pickle.dumps(scheme))
        assert (again.title, again.channels, str(again.claims)) == (scheme.title, scheme.channels, str(scheme.claims))


def test_baths_of_functions_and_of_noise_can_be_pickled():
    system = SYSTEMS["mechanical"]()
    for bath in (bm.Langevin(system, 1.0), bm.Langevin(system, 1.0, friction=axes)):
        again = pickle.loads(pickle.dumps(bath))
        drag = lambda bath: evaluate(lambda z, v: bath.friction.drag(system, z.q, v, 0.0, 1.0), STATE, np.ones(1))
        assert np.array_equal(drag(again), drag(bath))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
@pytest.mark.filterwarnings("ignore")
def test_a_forked_process_refuses_instead_of_hanging():
    """Whatever computes, as soon as anything was computed before the fork: a scheme and a start were made, nothing was run."""
    scheme = bm.Langevin(oscillator(), temperature=1.0, friction=1.0)
    start = scheme.start([1.0], velocity=[0.0])
    computing = [
        lambda: bm.trajectory(scheme, start, step=0.1, steps=1),
        lambda: bm.average(bm.energy, scheme, start, step=0.1, steps=1, trajectories=2),
        lambda: bm.simulate(scheme, start, step=0.1, steps=1),
        lambda: bm.verify(scheme, start, step=0.1),
        lambda: bm.explain(scheme),
        lambda: bm.advise_step(scheme, start, step=0.1),
        lambda: bm.check_space(bm.SO3()),
        lambda: bm.mechanical(bm.Euclidean(1), potential=lambda q: q @ q),
    ]
    child = os.fork()
    if child == 0:
        refused = 0
        for compute in computing:
            try:
                compute()
            except RuntimeError as problem:
                refused += "spawn" in str(problem)
        os._exit(refused)
    for _ in range(100):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == len(computing)
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the child hangs")
