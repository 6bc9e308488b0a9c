"""Noise that sees the momentum: steps from a discrete Hamiltonian are symplectic, keep momentum maps, and have Stratonovich's limit."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError, ShapeError
from bismut.findings import convergence, symplectic_defect
from bismut.findings.noether import momentum_maps
from bismut.flows import flow
from bismut.flows.hamiltonian_step import HamiltonianFlow
from bismut.mechanics.hamiltonian import bracket
from tests.flows.catalogue import increments, once, path
from tests.systems import random_state

SCHEMES = {
    "euler left": bm.HamiltonianEuler,
    "euler right": partial(bm.HamiltonianEuler, end="right"),
    "midpoint": bm.HamiltonianMidpoint,
    "verlet": bm.HamiltonianVerlet,
}
ENERGY = lambda q, p: 0.5 * (q @ q + p @ p)


@cache
def mixed() -> bm.System:
    """One noise that sees both, on ℝ."""
    return bm.System(bm.Euclidean(1), hamiltonian=ENERGY, noise_hamiltonian=lambda q, p: 0.6 * (0.5 * q**2 * p + jnp.cos(p)))


@cache
def top() -> bm.System:
    """A heavy top with potentials and with noises that see its angular momentum; symmetric about the vertical."""
    inertia = jnp.array([1.0, 2.0, 2.5])
    return bm.System(
        bm.SO3(),
        noise=lambda R: jnp.array([0.5 * R[2, 2]]),
        hamiltonian=lambda R, m: 0.5 * m @ (m / inertia) + 3.0 * R[2, 2],
        noise_hamiltonian=lambda R, m: jnp.array([0.3 * m[0] * R[2, 1], 0.1 * m @ m]),
        symmetries={"vertical": bm.left_rotation((0.0, 0.0, 1.0))},
    )


@cache
def kubo(noise: float = 0.6) -> bm.System:
    return bm.System(bm.Euclidean(1), hamiltonian=ENERGY, noise_hamiltonian=lambda q, p: noise * ENERGY(q, p)[None])


some = pytest.mark.parametrize(
    ("system", "name"),
    [
        *((mixed, name) for name in SCHEMES),
        (top, "midpoint"),
        *(pytest.param(top, name, marks=pytest.mark.slow) for name in SCHEMES if name != "midpoint"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)


@some
def test_steps_are_symplectic_under_strong_noise(system, name):
    """max |TᵀΩT − Ω| ≤ 1e−11 with increments of 3√h."""
    scheme, h = SCHEMES[name](system()), 0.05
    dW = 3 * np.sqrt(h) * jnp.array([1.0, -1.0, 1.0])[: scheme.channels]
    assert float(once(lambda z: symplectic_defect(scheme, z, h, dW))(random_state(system(), 5))) < 1e-11


@some
def test_the_adjoint_undoes_a_step(system, name):
    scheme = SCHEMES[name](system())
    state, dW = random_state(system(), 5), jnp.array([0.3, -0.2, 0.4])[: scheme.channels]
    there = lambda z: flow(scheme).advance(z, 0.05, dW, 0.0)[0]
    back = lambda z: flow(scheme.adjoint()).advance(z, -0.05, -dW, 0.05)[0]
    again = once(lambda z: back(there(z)))(state)
    for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def test_the_ends_of_the_euler_scheme_are_adjoint():
    left, right = bm.HamiltonianEuler(mixed()).adjoint(), bm.HamiltonianEuler(mixed(), end="right")
    step = lambda s: once(lambda z: flow(s).advance(z, 0.1, jnp.array([0.4]), 0.0)[0])(random_state(mixed(), 2))
    a, b = step(left), step(right)
    np.testing.assert_allclose([a.q, a.p], [b.q, b.p], rtol=0, atol=1e-14)


def walked(scheme) -> bm.State:
    """Twelve noisy steps."""
    states, solved = once(lambda z, dW: path(flow(scheme), z, 0.05, dW))(
        random_state(scheme.system, 3), increments(scheme.system, 0.05, 12, size=1.0)
    )
    assert solved
    return states


def test_momentum_maps_are_kept_where_the_symmetry_is_one():
    """e₃·J of the noisy top, whose noises see its angular momentum; verify finds that the symmetry is one, and that it is kept to round-off."""
    scheme = bm.HamiltonianMidpoint(top())
    (found,) = momentum_maps(scheme, walked(scheme), 0.0, claimed=True)
    assert found.held, found
    turn = bm.symmetry(lambda q: jnp.array([-q[1], q[0]]))
    broken = bm.System(bm.Euclidean(2), hamiltonian=ENERGY, noise_hamiltonian=lambda q, p: p[:1], symmetries={"r": turn})
    scheme = bm.HamiltonianVerlet(broken)
    (found,) = momentum_maps(scheme, walked(scheme), 0.0, claimed=True)
    assert "changes the noise" in found.how


@pytest.mark.parametrize("name", SCHEMES)
def test_the_limit_is_stratonovichs(name):
    """Strong order 1 against Runge–Kutta with the noise as a slope, where one noise sees q and p; a wrong correction would leave a slope near 0."""
    scheme = SCHEMES[name](mixed())
    start = bm.State(jnp.array([0.3]), jnp.array([0.5]))
    found = convergence(scheme, bm.RungeKutta4(mixed()), start, t0=0.0, time=0.64, levels=(16, 32, 64), finest=512, trajectories=64, seed=3)
    assert found.order == pytest.approx(1.0, abs=0.2)
    assert found.errors[0] < 0.05


@pytest.mark.parametrize("noises", ["commuting", "not"])
def test_the_claimed_strong_order_follows_the_measured_commutator(noises):
    """L₁ and L₂ on ℝ³ do not commute, L₃ and |L|² do; the slope of the midpoint rule is the one claimed, within 0.2, and below 0.75 where ½ is."""
    L = jnp.cross
    both = (lambda q, p: 0.7 * L(q, p)[:2]) if noises == "not" else (lambda q, p: jnp.array([0.7 * L(q, p)[2], 0.2 * L(q, p) @ L(q, p)]))
    system = bm.System(bm.Euclidean(3), hamiltonian=lambda q, p: 0.5 * p @ p + 0.1 * jnp.sum(q**4), noise_hamiltonian=both)
    scheme = bm.HamiltonianMidpoint(system)
    claimed = scheme.effective_claims.strong_order
    assert claimed == (0.5 if noises == "not" else 1.0)
    start = bm.State(jnp.array([1.0, 0.0, 0.2]), jnp.array([0.1, 0.8, 0.3]))
    found = convergence(scheme, bm.RungeKutta4(system), start, t0=0.0, time=0.32, levels=(8, 16, 32), finest=1024, trajectories=128, seed=3)
    assert found.order == pytest.approx(claimed, abs=0.2)


def test_a_constant_bracket_moves_nothing():
    """{q, p} = 1, and yet shifts of q and of p commute."""
    system = bm.System(bm.Euclidean(1), hamiltonian=ENERGY, noise_hamiltonian=lambda q, p: jnp.concatenate([q, p]))
    q = p = jnp.array([0.3])
    assert float(bracket(system.space, lambda q, p: q[0], lambda q, p: p[0], q, p)) == 1.0
    assert bm.HamiltonianMidpoint(system).effective_claims.strong_order == 1.0


def test_brackets_on_a_group():
    """On SO(3) with body momentum: {m₁, m₂} = −m₃, and {f(R), m·η} = df·η."""
    space, state = bm.SO3(), random_state(top(), 4)
    one = lambda i: lambda R, m: m[i]
    assert float(bracket(space, one(0), one(1), state.q, state.p)) == pytest.approx(-float(state.p[2]), abs=1e-14)
    slope = float(jax.grad(lambda e: space.nudge(state.q, e)[2, 1])(jnp.zeros(3))[0])
    assert float(bracket(space, lambda R, m: R[2, 1], one(0), state.q, state.p)) == pytest.approx(slope, abs=1e-14)


def test_the_kubo_oscillator_keeps_its_energy():
    """1e5 steps of the midpoint rule, with σ = 0.6 and h = 0.1: 1e−13."""
    scheme = bm.HamiltonianMidpoint(kubo())
    start = scheme.start(jnp.array([0.8]), momentum=jnp.array([0.6]))
    run = bm.simulate(
        scheme, start, step=0.1, steps=100_000, trajectories=8, seed=1, observe={"H": bm.energy}, every=1000, mode="native", progress=False
    )
    assert max(float(run["H"].max.max()) - 0.5, 0.5 - float(run["H"].min.min())) < 1e-13


def test_the_kubo_oscillator_forgets_its_phase():
    """⟨q + ip⟩ = e^{−it − σ²t/2}, 4000 trajectories, t = 2; five standard errors: a false alarm in 8e5. The bias of h = 0.02 is 1e−4."""
    scheme = bm.HamiltonianMidpoint(kubo())
    start = scheme.start(jnp.array([1.0]), momentum=jnp.array([0.0]))
    observe = {"z": lambda s: jnp.concatenate([s.q, s.p])}
    run = bm.simulate(scheme, start, step=0.02, steps=100, trajectories=4000, seed=2, observe=observe, every=50, progress=False)
    for record, t in ((1, 1.0), (2, 2.0)):
        want = np.exp(-0.18 * t) * np.array([np.cos(t), -np.sin(t)])
        gap = np.abs(np.asarray(run["z"].mean[record]) - want) / np.asarray(run["z"].stderr[record])
        assert gap.max() < 5


def test_a_hamiltonian_and_its_lagrangian_give_the_same_steps():
    """H = p²/2 + U and L = v²/2 − U, γ(q): the schemes of phase space are VariationalEuler, Midpoint and Verlet there."""
    U, gamma = lambda q: jnp.cos(q[0] - 2 * q[1]) + 0.1 * jnp.sum(q**4), lambda q: jnp.array([jnp.sin(q[0] * q[1]), q[0]])
    system = bm.mechanical(bm.Euclidean(2), potential=U, noise=gamma)
    given = bm.System(bm.Euclidean(2), noise=gamma, hamiltonian=lambda q, p: 0.5 * p @ p + U(q))
    state, dW = random_state(system, 3), jnp.array([0.2, -0.3])
    pairs = [(bm.HamiltonianEuler, bm.VariationalEuler), (bm.HamiltonianMidpoint, bm.Midpoint), (bm.HamiltonianVerlet, bm.Verlet)]
    for phase, action in pairs:
        a, b = (once(lambda z, s=s: flow(s).advance(z, 0.1, dW, 0.0)[0])(state) for s in (phase(given), action(system)))
        np.testing.assert_allclose([a.q, a.p], [b.q, b.p], rtol=0, atol=1e-14)


def test_a_lagrangian_beside_noise_that_sees_the_momentum():
    """H is found from L = ½v·M(q)v + a(q)·v − U: the steps are those of the H worked out by hand."""
    mass = lambda q: jnp.array([[1 + q[0] ** 2, 0.3 * jnp.cos(q[1])], [0.3 * jnp.cos(q[1]), 1.0]])
    L = lambda q, v: 0.5 * v @ mass(q) @ v + q[0] * v[1] - jnp.cos(q[0] + 2 * q[1])
    relative = lambda q, p: p - jnp.array([0.0, q[0]])
    H = lambda q, p: 0.5 * relative(q, p) @ jnp.linalg.solve(mass(q), relative(q, p)) + jnp.cos(q[0] + 2 * q[1])
    noise = lambda q, p: jnp.array([jnp.sin(q[0] * p[1])])
    one, other = bm.System(bm.Euclidean(2), L, noise_hamiltonian=noise), bm.System(bm.Euclidean(2), hamiltonian=H, noise_hamiltonian=noise)
    state, dW = bm.State(jnp.array([0.3, -0.2]), jnp.array([0.5, 0.1])), jnp.array([0.2])
    a, b = (once(lambda z, s=s: flow(bm.HamiltonianMidpoint(s)).advance(z, 0.1, dW, 0.0)[0])(state) for s in (one, other))
    np.testing.assert_allclose([a.q, a.p], [b.q, b.p], rtol=0, atol=1e-13)


def test_what_is_explicit_is_found_to_be():
    apart = bm.System(bm.Euclidean(2), hamiltonian=lambda q, p: jnp.sum(jnp.cosh(p)) + jnp.sum(q**4), noise_hamiltonian=lambda q, p: q + 0)
    for make in (bm.HamiltonianEuler, bm.HamiltonianVerlet):
        shape = HamiltonianFlow(make(apart)).unknowns()
        assert shape.x_follows
        assert shape.linear
        assert not make(apart).implicit_noise
    assert bm.HamiltonianMidpoint(mixed()).implicit_noise
    assert "native" in bm.explain(bm.HamiltonianMidpoint(mixed()))


def test_point_vortices_have_no_lagrangian_of_their_own():
    """Two vortices, q = x and p = y, stay at their distance r and turn about each other at the rate 1/πr²."""
    H = lambda q, p: -jnp.log((q[0] - q[1]) ** 2 + (p[0] - p[1]) ** 2) / (4 * np.pi)
    scheme = bm.HamiltonianMidpoint(bm.System(bm.Euclidean(2), hamiltonian=H))
    run = bm.trajectory(scheme, scheme.start(jnp.array([1.0, -1.0]), momentum=jnp.array([0.0, 0.0])), step=0.1, steps=200)
    distance = np.hypot(run.q[:, 0] - run.q[:, 1], run.p[:, 0] - run.p[:, 1])
    np.testing.assert_allclose(distance, 2.0, rtol=1e-12)
    angle = np.unwrap(np.arctan2(run.p[:, 0], run.q[:, 0]))[-1]
    assert abs(angle) == pytest.approx(20 / (4 * np.pi), rel=1e-3)


def test_a_start_from_a_velocity_inverts_the_hamiltonian():
    scheme = bm.HamiltonianVerlet(bm.System(bm.Euclidean(2), hamiltonian=lambda q, p: jnp.sum(jnp.sqrt(1 + p**2))))
    np.testing.assert_allclose(scheme.start(jnp.zeros(2), velocity=jnp.array([0.6, -0.8])).p, [0.75, -4 / 3], rtol=1e-12)


def test_refusals():
    with pytest.raises(BismutError, match="HamiltonianMidpoint"):
        bm.VariationalEuler(mixed())
    with pytest.raises(BismutError, match="HamiltonianMidpoint"):
        bm.EulerMaruyama(mixed())
    with pytest.raises(BismutError, match="not both"):
        bm.System(bm.Euclidean(1), lambda q, v: 0.5 * v @ v, hamiltonian=ENERGY)
    with pytest.raises(ShapeError, match="noise_hamiltonian must return one array"):
        bm.System(bm.Euclidean(1), hamiltonian=ENERGY, noise_hamiltonian=ENERGY)
    with pytest.raises(ShapeError, match="hamiltonian must return one number"):
        bm.System(bm.Euclidean(1), hamiltonian=lambda q, p: q)
    with pytest.raises(BismutError, match="Constraints need a Lagrangian"):
        bm.System(bm.Euclidean(2), hamiltonian=ENERGY, constraint=lambda q: q[:1])
    with pytest.raises(BismutError, match="does not support constraints"):
        bm.HamiltonianMidpoint(bm.mechanical(bm.Euclidean(2), constraint=lambda q: q[:1]))
    with pytest.raises(BismutError, match="one end of a step"):
        bm.HamiltonianEuler(bm.System(bm.Euclidean(1), hamiltonian=ENERGY, random_force=lambda q, v: v[None]))


def test_forces_beside_a_hamiltonian_do_their_work_at_the_nodes():
    """One noisy step of H = p²/2 + U with F(q, v) and F_j(q, v) ∘ dW_j, by the trapezoid, is that of Verlet with L = v²/2 − U; both have
    p0 + f⁻ = −D₁S and p1 − f⁺ = D₂S with the same impulses."""
    U, F = lambda q: jnp.cos(q[0] - 2 * q[1]) + 0.1 * jnp.sum(q**4), lambda q, v: -0.3 * v + jnp.array([q[1], -q[0]])
    random = lambda q, v: jnp.stack([jnp.array([q[1], 0.2]), 0.3 * v])
    action = bm.mechanical(bm.Euclidean(2), potential=U, force=F, random_force=random, noise=lambda q: jnp.sin(q[:1]))
    H = lambda q, p: 0.5 * p @ p + U(q)
    given = bm.System(bm.Euclidean(2), noise=lambda q: jnp.sin(q[:1]), hamiltonian=H, force=F, random_force=random)
    state, dW = random_state(action, 3), jnp.array([0.2, -0.3, 0.25])
    a, b = (once(lambda z, s=s: flow(s).advance(z, 0.1, dW, 0.0)[0])(state) for s in (bm.HamiltonianVerlet(given), bm.Verlet(action)))
    np.testing.assert_allclose([a.q, a.p], [b.q, b.p], rtol=0, atol=1e-13)


def test_a_forced_hamiltonian_system_has_the_right_limit():
    """Friction, a random force that sees the velocity and a noise Hamiltonian that sees q and p at once, against Runge–Kutta: 1, for one noise at a
    time
    would give it, and not below ½ where they do not commute."""
    system = bm.System(
        bm.Euclidean(1),
        hamiltonian=lambda q, p: 0.5 * p @ p + jnp.sum(jnp.cos(q)),
        noise_hamiltonian=lambda q, p: 0.5 * q * p,
        force=lambda q, v: -0.4 * v,
        random_force=lambda q, v: 0.5 * v[None] + 0.3,
    )
    scheme = bm.HamiltonianMidpoint(system)
    assert scheme.effective_claims.strong_order == 0.5
    start = bm.State(jnp.array([0.3]), jnp.array([0.5]))
    found = convergence(scheme, bm.RungeKutta4(system), start, t0=0.0, time=0.64, levels=(16, 32, 64), finest=512, trajectories=64, seed=3)
    assert found.order == pytest.approx(0.5, abs=0.25)
    assert found.errors[-1] < 0.03


def test_balanced_noise_hamiltonians_keep_the_gibbs_measure_at_the_level_of_the_generator():
    """thermalize moves Wiener processes by −{H, H_i}/2kT: for γ(q) that is the friction −(1/2kT) dγ dγ·v of the Lagrangian form."""
    gamma, U = lambda q: jnp.array([jnp.sin(q[0] + q[1]), q[0] * q[1]]), lambda q: jnp.sum(q**4)
    given = bm.thermalize(bm.System(bm.Euclidean(2), noise=gamma, hamiltonian=lambda q, p: 0.5 * p @ p + U(q)), temperature=0.7)
    q, p = jnp.array([0.3, -0.4]), jnp.array([0.5, 1.1])
    rates = once(lambda q, p: given.dissipation.rates(given, q, p, 0.0))(q, p)
    slopes = np.asarray(jax.jacfwd(gamma)(q))
    np.testing.assert_allclose(rates, -slopes @ np.asarray(p) / 1.4, atol=1e-14)
