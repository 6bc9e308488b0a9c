"""Random forces F_j(q, v) ∘ dW_j as virtual work: p0 = −D₁S_d − f⁻, p1 = D₂S_d + f⁺ with f from F_j ΔW_j where the action looks at the noise."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import DomainError, ShapeError
from bismut.findings.convergence_study import normal_quadrature
from bismut.findings.noether import momentum_maps
from bismut.flows import action_differential, flow
from tests.flows.catalogue import PLAIN, increments, once, path
from tests.systems import random_state

STRENGTH = np.array([0.3, 0.5, 0.7])
POTENTIAL = lambda R: 3.0 * R[2, 2] + 0.4 * R[2, 0]


@cache
def body(frame: str = "body") -> bm.System:
    """A heavy body with random torques about three axes fixed in it, or in space."""
    torques = lambda R, w: jnp.diag(STRENGTH)
    force = torques if frame == "body" else bm.in_space(bm.SO3(), torques)
    return bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 3.3], random_force=force, symmetries={"angular": bm.left_rotations()})


def advance(scheme: bm.Action, state: bm.State, h: float, dW) -> bm.State:
    return once(lambda z, w: flow(scheme).advance(z, h, w, 0.0)[0])(state, jnp.asarray(dW))


SOME = [pytest.param(name, marks=() if name in ("euler left", "midpoint") else pytest.mark.slow) for name in PLAIN]


@pytest.mark.parametrize("name", SOME)
def test_a_random_force_that_is_a_gradient_acts_like_a_stochastic_potential(name):
    """F = dγ gives the very steps of γ, in every action, and no other covector does."""
    space, gamma = bm.SO3(), lambda R: jnp.array([0.5 * R[2, 2], 0.3 * R[2, 1] ** 2])
    slopes = lambda R, w: jax.jacfwd(lambda e: gamma(space.nudge(R, e)))(jnp.zeros(3))
    make = partial(bm.mechanical, space, mass=[1.0, 2.0, 2.5], potential=POTENTIAL)
    forced, shaken = PLAIN[name](make(random_force=slopes)), PLAIN[name](make(noise=gamma))
    state, dW = random_state(shaken.system, 6), 3 * increments(shaken.system, 0.1)[0]
    a, b = advance(forced, state, 0.1, dW), advance(shaken, state, 0.1, dW)
    # Midpoint sees γ at R̄ and F where R̄ is held fixed: the same covector, to round-off.
    np.testing.assert_allclose(a.q, b.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(a.p, b.p, rtol=0, atol=1e-13)
    assert np.abs(np.asarray(a.p - state.p)).max() > 0.1


@cache
def squares(frame: str, end: str):
    """|p1|² of a step from a state, for many increments."""
    scheme = bm.VariationalEuler(body(frame), end=end)
    return once(jax.vmap(lambda z, h, w: jnp.sum(flow(scheme).advance(z, h, w, 0.0)[0].p ** 2), (None, None, 0)))


@pytest.mark.parametrize("frame", ["body", "space"])
@pytest.mark.parametrize("end", ["left", "right"])
@pytest.mark.parametrize("h", [0.1, 0.5])
def test_angular_momentum_grows_exactly(frame, end, h):
    """E|J|² grows by h Σs_i² in a step of any size: the expectation is a quadrature exact for quadratics, so no sampling error is in it."""
    state, (normals, weights) = random_state(body(frame), 3), normal_quadrature(3)
    after = squares(frame, end)(state, h, np.sqrt(h) * normals)
    growth = float(weights @ np.asarray(after)) - float(np.sum(np.square(state.p)))
    assert growth == pytest.approx(h * float(np.sum(np.square(STRENGTH))), rel=1e-12)


def test_an_ensemble_grows_as_it_should():
    """E|J|² = |J₀|² + t Σs_i², 4000 trajectories, 100 steps of 0.1; five standard errors: a false alarm in 2 million."""
    scheme = bm.VariationalEuler(body())
    start = scheme.start(jnp.eye(3), velocity=jnp.array([0.1, 1.0, 0.1]))
    square = lambda state: jnp.sum(state.p**2)
    found = bm.simulate(
        scheme, start, step=0.1, steps=100, trajectories=4000, seed=3, observe={"J2": square}, every=100, mode="native", progress=False
    )
    want = float(square(start)) + 10 * float(jnp.sum(STRENGTH**2))
    assert abs(float(found["J2"].mean[-1]) - want) < 5 * float(found["J2"].stderr[-1])


@pytest.mark.parametrize("name", PLAIN)
def test_a_force_that_sees_the_velocity_is_a_stratonovich_integral(name):
    """dv = s v ∘ dW on ℝ has v = v₀ e^{sW}; Itô's would have 20 % less at the end. Order 1: halving h halves the error, within a quarter."""
    s, T, paths = 0.8, 0.64, 64
    system = bm.mechanical(bm.Euclidean(1), random_force=lambda q, v: s * v[None])
    scheme = PLAIN[name](system)
    fine = np.asarray(bm.Wiener(5).increments(np.arange(paths), 128, 1, T / 128))

    def error(n):
        dW = jnp.asarray(fine.reshape(n, 128 // n, paths, 1).sum(1))
        one = lambda z, w: (jax.vmap(lambda z, w: flow(scheme).advance(z, T / n, w, 0.0)[0])(z, w), None)
        start = bm.State(jnp.zeros((paths, 1)), jnp.ones((paths, 1)))
        end = once(lambda: jax.lax.scan(one, start, dW)[0].p[:, 0])()
        return float(np.sqrt(np.mean((np.asarray(end) - np.exp(s * fine.sum((0, 2)))) ** 2)))

    coarse, half = error(32), error(64)
    assert coarse < 0.05
    assert 1.5 < coarse / half < 2.6


@pytest.mark.parametrize("name", ["euler left", pytest.param("midpoint", marks=pytest.mark.slow), pytest.param("verlet", marks=pytest.mark.slow)])
def test_constraints_hold_under_random_forces(name):
    """A spherical pendulum in a wind that no potential has: g and its rate at round-off, and the principle stationary along the surface."""
    system = bm.mechanical(
        bm.Euclidean(3),
        potential=lambda x: x[2],
        random_force=lambda x, v: jnp.array([[-x[1], x[0], 0.0], [0.3 * v[1], -0.3 * v[0], 0.2]]),
        constraint=lambda x: jnp.array([x @ x - 1.0]),
    )
    scheme = PLAIN[name](system)
    start = scheme.start(jnp.array([0.6, 0.0, -0.8]), velocity=jnp.array([0.0, 0.7, 0.0]))
    report = bm.verify(scheme, start, step=0.05, order=False)
    assert report.ok, report
    assert report["action stationary"].held


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "verlet" else pytest.mark.slow) for name in PLAIN])
def test_the_forced_principle_fails_off_a_solution(name):
    """d𝔊 + work vanishes along a computed path and, with the forces left out, does not."""
    scheme = PLAIN[name](body())
    dW = increments(scheme.system, 0.1, 20, size=1.0)
    states, solved = once(lambda z: path(flow(scheme), z, 0.1, dW))(random_state(scheme.system, 4))
    assert solved
    slope = lambda action: float(np.abs(once(lambda q: action_differential(action, q, 0.1, dW))(states.q)).max())
    quiet = PLAIN[name](bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 3.3], noise=lambda R: jnp.zeros(3)))
    assert slope(scheme) < 1e-11
    assert slope(quiet) > 0.05


def test_verify_measures_the_principle_with_the_explicit_friction_of_the_paper():
    """The ballistic pendulum's own scheme: stationary with the virtual work at the velocities of its momenta, not with any other."""
    friction = lambda q, v: -0.7 * v
    system = bm.mechanical(bm.Euclidean(2), potential=lambda q: jnp.cos(q[0] - 2 * q[1]), noise=lambda q: jnp.array([q[0] * q[1]]), force=friction)
    scheme = bm.VariationalEuler(system)
    start = scheme.start(jnp.array([0.3, 0.2]), velocity=jnp.array([1.0, -0.4]))
    found = bm.verify(scheme, start, step=0.05, order=False)["action stationary"]
    assert found.known
    assert found.held
    run = bm.trajectory(scheme, start, step=0.05, steps=20, seed=0)
    dW = bm.Wiener(0).increments(0, 20, 1, 0.05)
    wrong = once(lambda q, p: action_differential(scheme, q, 0.05, dW, p=p))(run.q, 1.01 * run.p)
    assert float(np.abs(wrong).max()) > 1e-4


def test_a_momentum_along_which_forces_do_no_work_is_kept():
    """Random torques about the vertical through a point do no work on the momentum along x; those along x do."""
    along = lambda row: bm.mechanical(bm.Euclidean(2), random_force=lambda q, v: row(q)[None], symmetries={"x": bm.translation((1.0, 0.0))})
    start = lambda scheme: scheme.start(jnp.array([0.3, 0.2]), velocity=jnp.array([1.0, -0.4]))
    kept = bm.Verlet(along(lambda q: jnp.array([0.0, jnp.sin(q[0])])))
    lost = bm.Verlet(along(lambda q: jnp.array([jnp.cos(q[1]), 0.0])))
    run = lambda s: bm.trajectory(s, start(s), step=0.1, steps=20, seed=0).states
    held, broken = (momentum_maps(s, run(s), 0.0, claimed=True)[0] for s in (kept, lost))
    assert held.held
    assert broken.held is None
    assert "do work" in broken.how


def test_noises_that_do_not_commute_claim_strong_order_one_half():
    """Kicks by v and by a rotation of v do not commute with a constant kick; kicks that see only q do."""
    both = bm.mechanical(bm.Euclidean(2), random_force=lambda q, v: jnp.stack([jnp.array([-v[1], v[0]]), jnp.array([1.0, 0.0])]))
    one = bm.mechanical(bm.Euclidean(2), random_force=lambda q, v: jnp.stack([v, 2 * v]))
    assert bm.Midpoint(both).effective_claims.strong_order == 0.5
    assert bm.Midpoint(one).effective_claims.strong_order == 1.0
    assert bm.Midpoint(body()).effective_claims.strong_order == 1.0


def test_impulses_of_ones_own_discrete_lagrangian():
    """S_d and (f⁻, f⁺) written out for the midpoint rule give the steps of Midpoint with that force, adjoint included."""
    space = bm.Euclidean(2)
    U, F = lambda q: jnp.cos(q[0] - 2 * q[1]), lambda q, v: jnp.array([-0.4 * v[1], 0.7 * v[0] * q[1]])
    G = lambda q, v: jnp.array([0.5 * q[1], jnp.sin(v[0])])
    system = bm.mechanical(space, potential=U, force=F, random_force=lambda q, v: G(q, v)[None])
    middle = lambda q0, q1, h: (0.5 * (q0 + q1), (q1 - q0) / h)
    S_d = lambda q0, q1, h, dW: 0.5 * jnp.sum((q1 - q0) ** 2) / h - h * U(0.5 * (q0 + q1))
    half = lambda q0, q1, h, dW: 0.5 * (h * F(*middle(q0, q1, h)) + dW[0] * G(*middle(q0, q1, h)))
    own = bm.Discrete(space, S_d, forces=(half, half), system=system)
    state, dW = random_state(system, 2), jnp.array([0.4])
    for a, b in ((own, bm.Midpoint(system)), (own.adjoint(), bm.Midpoint(system).adjoint())):
        x, y = advance(a, state, 0.1, dW), advance(b, state, 0.1, dW)
        np.testing.assert_allclose(np.stack([x.q, x.p]), np.stack([y.q, y.p]), rtol=0, atol=1e-13)
    assert own.forced
    assert own.adjoint().forced
    assert not bm.Discrete(space, S_d).forced


def test_the_gibbs_measure_of_body_torques():
    """Friction that balances torques fixed in the body: ⟨m_i²⟩ = kT I_i. 4000 trajectories, five standard errors: a false alarm in 600 000."""
    system, kT = (
        bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 3.0], potential=POTENTIAL, random_force=lambda R, w: jnp.diag(jnp.array([1.0, 1.5, 2.0]))),
        0.7,
    )
    scheme = bm.Langevin(system, temperature=kT)
    start = scheme.start(jnp.eye(3), temperature=0.2)
    found = bm.simulate(scheme, start, step=0.1, steps=100, trajectories=4000, seed=1, observe={"m2": lambda s: s.p**2}, every=100, progress=False)
    gap = np.abs(np.asarray(found["m2"].mean[-1]) - kT * np.array([1.0, 2.0, 3.0])) / np.asarray(found["m2"].stderr[-1])
    assert gap.max() < 5


def test_refusals():
    with pytest.raises(ShapeError, match="extra leading axis"):
        bm.mechanical(bm.SO3(), random_force=lambda R, w: w)
    with pytest.raises(DomainError, match="Only a group"):
        bm.in_space(bm.Space(), lambda q, v: v)
    with pytest.raises(ShapeError, match="f_minus, f_plus"):
        bm.Discrete(bm.Euclidean(1), lambda q0, q1, h, dW: jnp.sum((q1 - q0) ** 2) / h, forces=lambda q0, q1, h, dW: q0)
    with pytest.raises(ShapeError, match="impulse shaped like a velocity"):
        bm.Discrete(bm.Euclidean(1), lambda q0, q1, h, dW: jnp.sum((q1 - q0) ** 2) / h, forces=(lambda q0, q1, h, dW: h, lambda q0, q1, h, dW: h))
