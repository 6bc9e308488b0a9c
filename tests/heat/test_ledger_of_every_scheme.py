"""Every scheme that keeps a ledger books the Stratonovich work of what drives it: what is left of ΔH vanishes with the step."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut import registry
from bismut.errors import BismutError
from bismut.flows import Flow, flow
from bismut.mechanics import Scheme
from bismut.programs.evaluation import evaluator

slow = lambda *case: pytest.param(*case, marks=pytest.mark.slow)
U = lambda q: jnp.cos(q[0]) + 0.1 * q[0] ** 4
gamma = lambda q: jnp.array([0.7 * q[0] + 0.3 * jnp.sin(2 * q[0])])
line = partial(bm.mechanical, bm.Euclidean(1))
SYSTEMS: dict[str, Callable[[], bm.System]] = {
    "γ(q)": lambda: line(potential=U, noise=gamma),
    "γ(q, t)": lambda: line(potential=lambda q, t: (1 + t) * U(q), noise=lambda q, t: (1 + jnp.sin(3 * t)) * gamma(q)),
    "random force": lambda: line(potential=U, force=lambda q, v: jnp.cos(q), random_force=lambda q, v: 0.5 + 0.3 * jnp.sin(q)[None]),
    "force and random force of v": lambda: line(
        potential=U, force=lambda q, v: -0.3 * v, random_force=lambda q, v: 0.5 + 0.3 * jnp.sin(q)[None] + 0.2 * v
    ),
    "thermalize": lambda: bm.thermalize(line(potential=U, noise=gamma), 0.5),
    "U(q, t)": lambda: line(potential=lambda q, t: (1 + t) * U(q)),
    "H_j(q, p)": lambda: bm.System(
        bm.Euclidean(1), lambda q, v: 0.5 * v @ v - U(q), gamma, noise_hamiltonian=lambda q, p: jnp.array([0.3 * q[0] * p[0]])
    ),
}


def one_sided(system: bm.System) -> bm.Action:
    """The left-end action on Q × Q, which does not say where it looks at L and γ."""
    S_d = lambda q0, q1, h, dW, t: h * system.lagrangian(q0, (q1 - q0) / h, t) + system.noise(q0, t) @ dW
    return bm.Discrete(system.space, S_d, system=system)


bath = lambda splitting, **more: partial(bm.Langevin, temperature=0.5, friction=0.6, splitting=splitting, **more)
SCHEMES: dict[str, Callable[[bm.System], Scheme]] = {
    "euler left": bm.VariationalEuler,
    "euler right": partial(bm.VariationalEuler, end="right"),
    "midpoint": bm.Midpoint,
    "verlet": bm.Verlet,
    "one-sided Discrete": one_sided,
    "HamiltonianEuler": bm.HamiltonianEuler,
    "HamiltonianMidpoint": bm.HamiltonianMidpoint,
    "HamiltonianVerlet": bm.HamiltonianVerlet,
    "EulerMaruyama": bm.EulerMaruyama,
    "ImplicitEulerMaruyama": bm.ImplicitEulerMaruyama,
    "RungeKutta4": bm.RungeKutta4,
    "BAOAB": bath(bm.BAOAB),
    "ABOBA": bath(bm.ABOBA),
    "OBABO": bath(bm.OBABO),
    "GJI": bath(bm.GJI),
    "GJII": bath(bm.GJII),
    "BAOAB, transport exact": bath(bm.BAOAB, transport="exact"),
    "GLA(VariationalEuler)": bath(bm.GLA(bm.VariationalEuler)),
    "GLA(Verlet)": bath(bm.GLA(bm.Verlet)),
}
SPLIT, BATHS_ALONE = ("BAOAB", "ABOBA", "OBABO"), ("GJI", "GJII", "BAOAB, transport exact")
GLA, ALL = ("GLA(VariationalEuler)", "GLA(Verlet)"), tuple(SCHEMES)
SEES_P = ("HamiltonianEuler", "HamiltonianMidpoint", "HamiltonianVerlet", "RungeKutta4")  # schemes in which noise may see the momentum
REFUSED = {
    **{("one-sided Discrete", driven): "where a force acts" for driven in ("random force", "force and random force of v", "thermalize")},
    ("HamiltonianEuler", "force and random force of v"): "not the Stratonovich limit",
    **{(name, "force and random force of v"): "depends on the velocity" for name in SPLIT},
    **{(name, "thermalize"): "its own dissipation" for name in (*SPLIT, *GLA)},
    **{(name, "H_j(q, p)"): "noise that sees the momentum" for name in ALL if name not in (*SEES_P, *BATHS_ALONE)},
    **{(name, driven): "A loss φ|got other noise" for name in BATHS_ALONE for driven in ("γ(q)", "γ(q, t)", "random force", "H_j(q, p)")},
    **{(name, "force and random force of v"): "depends on the velocity" for name in BATHS_ALONE},
    **{(name, "thermalize"): "its own dissipation" for name in BATHS_ALONE},
}
# Where only U(q, t) does work there is little to book: it is for baths that take nothing else.
CASES = [(name, driven) for name in SCHEMES for driven in SYSTEMS if (name, driven) not in REFUSED and (driven != "U(q, t)" or name in BATHS_ALONE)]
QUICK = {
    ("euler left", "γ(q, t)"),
    ("euler left", "thermalize"),
    ("one-sided Discrete", "γ(q)"),
    ("HamiltonianMidpoint", "H_j(q, p)"),
    ("RungeKutta4", "random force"),
    ("GLA(VariationalEuler)", "γ(q)"),
    ("BAOAB", "random force"),
    ("GJI", "U(q, t)"),
    ("GJII", "U(q, t)"),
}
REDUCED: dict[str, Callable[[bm.System], Scheme]] = {"HamiltonianMidpoint": bm.HamiltonianMidpoint, "SphericalMidpoint": bm.SphericalMidpoint}
OTHERS = {"GLA", "Metropolised"}  # baths over a scheme: GLA is in the table with two; a Metropolised step ends where it began, or where GLA's does
MANY, FINE = 400, 32


def final(scheme: Scheme, start: bm.State, dW: np.ndarray) -> bm.State:
    """Where many trajectories are at time 1, each with its own increments, one row for each step."""
    h, many = 1 / dW.shape[0], dW.shape[1]
    step = evaluator(lambda state, dW, t: jax.vmap(lambda state, dW: flow(scheme).advance(state, h, dW, t)[0])(state, dW))
    state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (many, *leaf.shape)), start)
    for k, row in enumerate(dW):
        state = step(state, row, h * k)
    return state


@pytest.mark.parametrize(("name", "driven"), REFUSED)
def test_what_a_scheme_cannot_step_is_refused(name, driven):
    with pytest.raises(BismutError, match=REFUSED[name, driven]):
        SCHEMES[name](SYSTEMS[driven]())


@pytest.mark.parametrize(("name", "driven"), [case if case in QUICK else slow(*case) for case in CASES])
def test_the_error_of_the_integrator_vanishes(name, driven):
    """E|ΔH − heat − work| falls by 4 or more when the step is divided by 4 on the same paths, and is small beside the work that was done."""
    system = SYSTEMS[driven]()
    scheme = SCHEMES[name](system)
    assert scheme.keeps_ledger
    start = scheme.start(jnp.array([0.3]), velocity=jnp.array([0.5]), ledger=True)
    fine = np.random.default_rng(8).normal(size=(FINE, MANY, scheme.channels)) / np.sqrt(FINE)
    errors = []
    for n in (FINE // 4, FINE):
        end = final(scheme, start, fine.reshape(n, -1, MANY, scheme.channels).sum(1))
        books, energy = end.ledger, evaluator(jax.vmap(lambda state: system.energy(state, 1.0)))(bm.State(end.q, end.p))
        gained = np.asarray(energy) - float(system.energy(bm.State(start.q, start.p), 0.0))
        np.testing.assert_allclose(books.heat + books.work + books.error, gained, atol=1e-12)
        errors.append(np.abs(books.error).mean())
        assert np.array_equal(books.steps, np.full(MANY, n))
    assert errors[0] / errors[1] > 2.8, errors
    assert errors[1] < 0.06 * np.abs(books.work).mean(), errors


def test_every_registered_scheme_is_looked_at():
    """One that is added is booked here, too."""
    first = {name: next(driven for one, driven in CASES if one == name) for name in SCHEMES}
    known = {type(make(SYSTEMS[first[name]]())).__name__ for name, make in SCHEMES.items()} | set(REDUCED)
    assert set(registry.SCHEMES.own) <= known
    assert set(registry.SPLITTINGS.own) <= set(SCHEMES) | OTHERS


@pytest.mark.parametrize("name", REDUCED)
def test_noise_after_reduction_does_the_work_that_is_booked(name):
    """A body with H_i(μ) on so(3)*: E|ΔH − work| falls by 4 or more when the step is divided by 4 on the same paths; noise on the clock of H does
    none."""
    energy = lambda mu: 0.5 * mu @ (mu / jnp.array([1.0, 2.0, 2.5]))
    for noise, works in ((lambda mu: 0.5 * mu[:2], True), (lambda mu: 0.3 * energy(mu)[None], False)):
        system = bm.LiePoisson(bm.SO3(), energy, noise=noise)
        scheme = REDUCED[name](system)
        start = scheme.start(momentum=jnp.array([0.5, 1.0, -0.7]), ledger=True)
        fine = np.random.default_rng(8).normal(size=(FINE, MANY, scheme.channels)) / np.sqrt(FINE)
        errors = []
        for n in (FINE // 4, FINE):
            end = final(scheme, start, fine.reshape(n, -1, MANY, scheme.channels).sum(1))
            books, energies = end.ledger, evaluator(jax.vmap(lambda p, system=system: system.energy(bm.State((), p), 1.0)))(end.p)
            assert books is not None
            gained = np.asarray(energies) - float(system.energy(bm.State((), start.p), 0.0))
            np.testing.assert_allclose(books.heat + books.work + books.error, gained, atol=1e-11)
            errors.append(np.abs(books.error).mean())
        if works:
            assert errors[0] / errors[1] > 2.8, errors
            assert errors[1] < 0.06 * np.abs(books.work).mean(), errors
        else:
            assert np.abs(books.work).max() < 1e-2


@pytest.mark.parametrize("name", ["euler left", *map(slow, ("euler right", "midpoint", "verlet", "one-sided Discrete", "GLA(VariationalEuler)"))])
def test_the_kicks_of_a_free_particle_are_booked_exactly(name):
    """Where nothing but γ(q) acts, ΔH is the work of the kicks to round-off, at any step; for γ = q it is s²t/2 on average."""
    make = partial(SCHEMES[name], friction=0.0) if name.startswith("GLA") else SCHEMES[name]
    dW = np.random.default_rng(8).normal(size=(4, MANY, 1)) / 2
    for noise in (gamma, lambda q: q):
        scheme = make(line(noise=noise))
        end = final(scheme, scheme.start(jnp.array([0.3]), velocity=jnp.array([0.5]), ledger=True), dW)
        assert end.ledger is not None
        assert np.abs(end.ledger.error).max() < 1e-13
        np.testing.assert_allclose(end.ledger.work, 0.5 * (end.p[:, 0] ** 2 - 0.25), atol=1e-13)
    assert abs(end.ledger.work.mean() - 0.5) < 4 * end.ledger.work.std() / np.sqrt(MANY)  # a false alarm in 16 000


def test_kicks_along_a_surface():
    """On a sphere the part of a kick across it does no work: without a potential RATTLE keeps H, and nothing is left of ΔH."""
    noise = lambda q: jnp.array([0.6 * q[2] + 0.4 * q[0] * q[1]])
    sphere = bm.mechanical(bm.Euclidean(3), noise=noise, constraint=lambda q: jnp.array([q @ q - 1.0]))
    scheme = bm.VariationalEuler(sphere)
    start = scheme.start(jnp.array([0.6, 0.0, 0.8]), velocity=jnp.array([0.0, 0.5, 0.0]), ledger=True)
    books = final(scheme, start, np.random.default_rng(8).normal(size=(8, 50, 1)) / np.sqrt(8)).ledger
    assert books is not None
    assert np.abs(books.error).max() < 1e-13
    assert np.abs(books.work).mean() > 0.01


@pytest.mark.slow
def test_reduced_steps_keep_the_books_of_the_whole():
    """Work and error of a body with random torques are the same whether its orientation is followed or not."""
    system = bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 2.5], force=lambda R, w: -0.2 * w, random_force=lambda R, w: 0.4 * jnp.eye(3) + 0.1 * w)
    whole = bm.Midpoint(system)
    dW = np.random.default_rng(8).normal(size=(3, 2, 3)) * 0.3
    ends = [final(scheme, scheme.start(jnp.eye(3), momentum=jnp.array([0.5, 1.0, -0.7]), ledger=True), dW) for scheme in (whole, bm.Reduced(whole))]
    for entry in ("work", "error", "steps"):
        np.testing.assert_allclose(getattr(ends[0].ledger, entry), getattr(ends[1].ledger, entry), atol=1e-12)
    assert np.abs(ends[0].ledger.work).min() > 1e-4


def test_who_keeps_no_ledger_says_so():
    """A ledger that nobody would write in is refused where the start is made and where a run begins."""

    class Own(Flow):
        claims = bm.Claims(order=None)

        def advance(self, state, h, dW, t):
            return state, None

    system = line(potential=U)
    start = bm.Verlet(system).start(jnp.zeros(1), velocity=jnp.ones(1), ledger=True)
    bare = bm.Discrete(bm.Euclidean(1), lambda q0, q1, h, dW: jnp.sum((q1 - q0) ** 2) / 2 / h)
    for scheme, why in ((Own(system), "make no entries"), (bare, "without a Lagrangian")):
        with pytest.raises(ValueError, match=f"keeps no ledger.*{why}"):
            scheme.start(jnp.zeros(1), momentum=jnp.ones(1), ledger=True)
        with pytest.raises(ValueError, match="keeps no ledger"):
            bm.simulate(scheme, start, step=0.1, steps=1)
