"""bismut's own contestants: real calls of `simulate`, statistics included."""

import resource
import time

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from benchmarks.timing import best

jax.config.update("jax_enable_x64", True)

STEP = 0.05


def pendulum_system(forced: bool) -> bm.System:
    """U = 1 − cos q; the bath as a force and a noise for the paper's Euler scheme, and left to the scheme otherwise."""
    potential = lambda q: 1 - jnp.cos(q[0])
    if not forced:
        return bm.mechanical(bm.Euclidean(1), potential=potential)
    return bm.mechanical(bm.Euclidean(1), potential=potential, noise=lambda q: jnp.sqrt(2.0) * q, force=lambda q, v: -v)


def euler() -> tuple:
    """The scheme of the C program and of diffrax's Euler: explicit friction, one force a step."""
    scheme = bm.VariationalEuler(pendulum_system(forced=True))
    return scheme, scheme.start(jnp.zeros(1), velocity=jnp.zeros(1)), STEP


def baoab() -> tuple:
    scheme = bm.Langevin(pendulum_system(forced=False), temperature=1.0, friction=1.0)
    return scheme, scheme.start(jnp.zeros(1), velocity=jnp.zeros(1)), STEP


def bodies(splitting=bm.BAOAB) -> tuple:
    """Independent rigid bodies, rotation and translation, in a trap and a field, in a bath; BAOAB is the splitting of jax-md."""
    system = bm.mechanical(bm.Euclidean(3) * bm.SO3(), mass=(1.0, [1.0, 2.0, 2.5]), potential=lambda q: 0.5 * q[0] @ q[0] + q[1][2, 2])
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0, splitting=splitting)
    return scheme, scheme.start((jnp.zeros(3), jnp.eye(3)), velocity=(jnp.zeros(3), jnp.zeros(3))), 0.02


def bodies_verlet() -> tuple:
    """The same by a Verlet step and then the bath, as LAMMPS does it."""
    return bodies(bm.GLA(bm.Verlet))


def top() -> tuple:
    """The heavy top with two noises, everything by autodiff from the scalar action."""
    system = bm.System(
        bm.SO3(),
        lambda R, w: 0.5 * w @ (jnp.array([1.0, 2.0, 3.0]) * w) - 3.0 * R[2, 2],
        lambda R: jnp.array([0.5 * R[2, 2], 0.3 * R[2, 2] ** 2]),
    )
    scheme = bm.VariationalEuler(system)
    return scheme, scheme.start(jnp.eye(3), velocity=jnp.array([0.3, 0.2, 1.0])), 0.02


def dipoles(count: int) -> tuple:
    """K interacting magnetic bodies in a bath."""
    potential = bm.dipoles(jnp.array([0.0, 0.0, 1.0])) + bm.soft_spheres(strength=10.0)
    system = bm.rigid_bodies(mass=np.ones(count), inertia=np.tile([1.0, 1.5, 2.0], (count, 1)), potential=potential)
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0)
    side = int(np.ceil(count ** (1 / 3)))
    places = 1.5 * np.stack(np.unravel_index(np.arange(count), (side,) * 3), -1).astype(float)
    return scheme, scheme.start((places, np.tile(np.eye(3), (count, 1, 1))), temperature=1.0), 0.005


SYSTEMS = {"euler": euler, "baoab": baoab, "bodies": bodies, "bodies, Verlet": bodies_verlet, "top": top}


def run(
    name: str, rounds: int = 3, trajectories: int = 10_000, steps: int = 20_000, mode: str = "auto", count: int = 0, seconds: float = 2.0
) -> dict:
    """Path-steps per second of one system; also how long the first result took, and how long compiling alone."""
    scheme, start, step = dipoles(count) if name == "dipoles" else SYSTEMS[name]()
    observe = {"temperature": bm.temperature} if scheme.system.has_lagrangian else None

    def simulate(steps: int) -> float:
        settings = {"step": step, "steps": steps, "trajectories": trajectories, "every": max(steps // 4, 1), "seed": 1}
        result = bm.simulate(scheme, start, observe=observe, mode=mode, progress=False, **settings)
        assert result.outcome.ok
        simulate.temperature = float(result.temperature.mean[-1])
        return float(trajectories) * steps

    clock = time.perf_counter()
    simulate(1)
    first = time.perf_counter() - clock
    # Long enough that starting a run does not count, short enough that several rounds fit.
    clock, taken = time.perf_counter(), 1
    simulate(taken)
    idle = time.perf_counter() - clock
    while taken < steps:
        taken = min(4 * taken, steps)
        clock = time.perf_counter()
        simulate(taken)
        if time.perf_counter() - clock > max(seconds / 4, 10 * idle):
            break
    steps = taken
    speed = best(lambda: simulate(steps), rounds)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"speed": speed, "first": first, "memory": memory, "steps": steps, "temperature": simulate.temperature}


def contestant(name: str):
    return lambda **settings: run(name, **settings)


CONTESTANTS = {f"bismut {name}": contestant(name) for name in (*SYSTEMS, "dipoles")}
