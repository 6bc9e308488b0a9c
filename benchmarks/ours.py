"""bismut's own contestants: real calls of `simulate`, statistics included."""

import resource
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import bismut as bm
from benchmarks.timing import BOND, BOX_CUTOFF, BOX_SPACING, Ready, coil, fcc, rods, timed, triangle
from bismut.body_loops import Bonds, Pair, pairs
from bismut.gallery.water import KT
from bismut.registry import GALLERY

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
    """Interacting magnetic bodies with soft cores in a bath; OBABO has one force and one drift a step, as LAMMPS has."""
    potential = bm.dipoles(jnp.array([0.0, 0.0, 1.0])) + bm.soft_spheres(strength=10.0)
    system = bm.rigid_bodies(mass=np.ones(count), inertia=np.tile([1.0, 1.5, 2.0], (count, 1)), potential=potential)
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0, splitting=bm.OBABO)
    return scheme, scheme.start((lattice(count), np.tile(np.eye(3), (count, 1, 1))), temperature=1.0), 0.005


def box(count: int) -> tuple:
    """The same in a periodic box, with a cutoff: one trajectory of many bodies, near ones from a cell list."""
    side = BOX_SPACING * np.ceil(count ** (1 / 3))
    potential = bm.dipoles(jnp.array([0.0, 0.0, 1.0]), cutoff=BOX_CUTOFF) + bm.soft_spheres(strength=10.0, cutoff=BOX_CUTOFF)
    inertia = np.tile([1.0, 1.5, 2.0], (count, 1))
    system = bm.rigid_bodies(mass=np.ones(count), inertia=inertia, potential=potential, box=bm.Box((side, side, side)))
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0, splitting=bm.OBABO)
    return scheme, scheme.start((lattice(count, BOX_SPACING), np.tile(np.eye(3), (count, 1, 1))), temperature=1.0), 0.005


def points(count: int) -> tuple:
    """Points with a pair energy of one's own, U = Σ_{i<j} exp(−r)/r + r⁻¹²."""

    def energy(a, b):
        r2 = (a.x - b.x) @ (a.x - b.x)
        r = jnp.sqrt(r2)
        return jnp.exp(-r) / r + r2**-6

    scheme = bm.Langevin(bm.mechanical(bm.Euclidean(3) ** count, potential=bm.pair_potential(energy)), temperature=1.0, friction=1.0)
    return scheme, scheme.start(lattice(count), temperature=1.0), 0.005


def fluid(count: int) -> tuple:
    """The Lennard-Jones liquid at ρ = 0.8442 and kT = 1, fading from 2 to 2.5; `count` is 4 n³."""
    x, side = fcc(count)
    potential = bm.lennard_jones(cutoff=(2.0, 2.5))
    system = bm.mechanical(bm.Euclidean(3) ** count, potential=potential, box=bm.Box((side, side, side)))
    scheme = bm.Langevin(system, temperature=1.0, friction=0.1)
    return scheme, scheme.start(x, temperature=1.0), 0.005


def gay_berne(count: int) -> tuple:
    """Gay–Berne rods of κ = 3, κ′ = 5, μ = 2, ν = 1, in a periodic box."""
    x, sides = rods(count)
    inertia = np.tile([2.0, 2.0, 0.4], (count, 1))
    system = bm.rigid_bodies(mass=np.ones(count), inertia=inertia, potential=bm.gay_berne(cutoff=(3.2, 4.0)), box=bm.Box(sides))
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0, splitting=bm.OBABO)
    return scheme, scheme.start((x, np.tile(np.eye(3), (count, 1, 1))), temperature=1.0), 0.002


def overdamped() -> tuple:
    """Independent rigid bodies without inertia, with three rotational frictions, in a trap: what fix brownian/asphere moves."""
    system = bm.mechanical(bm.Euclidean(3) * bm.SO3(), potential=lambda q: 0.5 * q[0] @ q[0])
    scheme = bm.Brownian(system, temperature=1.0, mobility=(1.0, [0.5, 1.0, 2.0]))
    return scheme, scheme.start((jnp.zeros(3), jnp.eye(3))), 0.02


def liquid_water(count: int) -> tuple:
    """SPC/E in a box with a reaction field, one force a step, at 2 fs."""
    entry = GALLERY["water"]
    system = entry.system({"molecules": count})
    scheme = bm.Langevin(system, temperature=KT, rate=5.0, splitting=bm.OBABO)
    return scheme, entry.start(scheme), 0.002


def trimer(count: int) -> tuple:
    """A molecule of three points with three fixed distances, by a Verlet step and then the bath, as LAMMPS does it."""
    assert count == 3

    def constraint(x):
        return jnp.stack([(x[i] - x[j]) @ (x[i] - x[j]) for i, j in ((0, 1), (0, 2), (1, 2))]) - squares

    start = triangle()
    squares = np.array([((start[i] - start[j]) ** 2).sum() for i, j in ((0, 1), (0, 2), (1, 2))])
    scheme = bm.Langevin(bm.mechanical(bm.Euclidean(3) ** 3, constraint=constraint), temperature=1.0, friction=1.0, splitting=bm.GLA(bm.Verlet))
    return scheme, scheme.start(start, temperature=1.0), 0.005


def chain(count: int) -> tuple:
    """A chain of `count` points on count − 1 rigid links, which begins as a coil, by a Verlet step and then the bath."""
    joined = Bonds(np.arange(count - 1), np.arange(1, count))
    constraint = lambda x: pairs(lambda a, b, _: Pair(own=(b - a) @ (b - a)), x, bonds=joined).own - BOND**2
    system = bm.mechanical(bm.Euclidean(3) ** count, constraint=constraint)
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0, splitting=bm.GLA(bm.Verlet))
    return scheme, scheme.start(coil(count), temperature=1.0), 0.005


def lattice(count: int, spacing: float = 1.5) -> np.ndarray:
    side = int(np.ceil(count ** (1 / 3)))
    return spacing * np.stack(np.unravel_index(np.arange(count), (side,) * 3), -1).astype(float)


SINGLE = {"euler": euler, "baoab": baoab, "bodies": bodies, "bodies, Verlet": bodies_verlet, "top": top, "overdamped": overdamped}
MANY = {
    "dipoles": dipoles,
    "box": box,
    "points": points,
    "fluid": fluid,
    "rods": gay_berne,
    "trimer": trimer,
    "chain": chain,
    "liquid water": liquid_water,
}

# At every step, of the last component of the momentum.
OBSERVERS = {
    "time average": lambda of: bm.time_average(of, every=1),
    "autocorrelation": lambda of: bm.autocorrelation(of, lags=16, every=1),
    "histogram": lambda of: bm.histogram(of, range=(-5.0, 5.0), every=1),
}


def last_momentum(state: bm.State) -> jax.Array:
    return jax.tree.leaves(state.p)[-1][-1]


def problem(name: str, count: int) -> tuple:
    if name in GALLERY:
        entry = GALLERY[name]
        scheme = entry.scheme(entry.build())
        return scheme, entry.start(scheme), entry.step
    return MANY[name](count) if name in MANY else SINGLE[name]()


def ready(
    name: str,
    trajectories: int = 10_000,
    steps: int = 0,
    mode: str = "auto",
    count: int = 0,
    seconds: float = 1.0,
    observers: tuple[str, ...] = (),
) -> Ready:
    """Path-steps per second of one system, body-steps for many bodies; `steps` of a run, 0 for as many as take about so many seconds."""
    scheme, start, step = problem(name, count)
    observe = {"temperature": bm.temperature} if scheme.system.has_lagrangian else {}
    observe |= {word: OBSERVERS[word](last_momentum) for word in observers}
    results = []

    def simulate(steps: int) -> float:
        settings = {"step": step, "steps": steps, "trajectories": trajectories, "every": max(steps // 4, 1), "seed": 1}
        results[:] = [bm.simulate(scheme, start, observe=observe, mode=mode, progress=False, **settings)]
        assert results[0].outcome.ok
        return float(trajectories) * steps * max(count, 1)

    clock = time.perf_counter()
    simulate(1)
    first = time.perf_counter() - clock
    simulate(1)
    taken = steps or _enough(simulate, seconds)
    runs = 50 if steps else 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    facts = {"first": first, "memory": memory, "steps": taken, "temperature": float(results[0].temperature.mean[-1])}
    return Ready(timed(lambda: sum(simulate(taken) for _ in range(runs))), facts)


def _enough(simulate: Callable[[int], float], seconds: float) -> int:
    """So many steps that they take about so long, beside what a run of one step takes."""

    def taken(steps: int) -> float:
        clock = time.perf_counter()
        simulate(steps)
        return time.perf_counter() - clock

    idle, steps = min(taken(1), taken(1)), 4
    while (took := taken(steps) - idle) < seconds / 8:
        steps *= 4
    return max(1, int(steps * seconds / took))


def contestant(name: str) -> Callable[..., Ready]:
    return lambda **settings: ready(name, **settings)


CONTESTANTS = {f"bismut {name}": contestant(name) for name in (*SINGLE, *MANY)}
