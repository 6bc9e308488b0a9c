"""Diffusion, drift and configurations of linear systems, exactly in h: derivatives of a step give its recursion, and nothing is sampled."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

import bismut as bm
from bismut.errors import BismutError, BismutWarning, DomainError
from bismut.findings.checks import Study
from bismut.findings.free_motion import transport_of_free_motion
from bismut.programs.evaluation import evaluate

kT, m, k = 0.7, 1.7, 1.3
spring = bm.mechanical(bm.Euclidean(1), mass=m, potential=lambda q: 0.5 * k * q @ q)
unequal = bm.mechanical(bm.Euclidean(2), mass=jnp.array([1.7, 0.6]), potential=lambda q: jnp.sum(jnp.cos(q)))
body = bm.mechanical(bm.SO3(), mass=jnp.array([1.0, 2.0, 2.5]), potential=lambda R: R[2, 2])
backward = bm.WordSplitting("backward", word="BAOAB", loss=lambda x: 1 / (1 + x), rescaled=True)  # c = 1/(1 + x)


def recursion(scheme, h):
    """A and B of (q', p') = A (q, p) + B z."""

    def step(x):
        new, _ = scheme.advance(bm.State(x[:1], x[1:2]), h, jnp.sqrt(h) * x[2:], 0.0)
        return jnp.concatenate([new.q, new.p])

    J = np.asarray(evaluate(jax.jacfwd(step), jnp.zeros(2 + scheme.channels)))
    return J[:, :2], J[:, 2:]


def factors(scheme, start, h):
    """What `verify` measures of free motion: diffusion and drift, and whether the claims hold."""
    findings = transport_of_free_motion(Study(scheme, start, h, bm.Wiener(0), 0.0))
    return [finding.measured for finding in findings], [finding.held for finding in findings]


def x_coth(x):
    return 0.5 * x / np.tanh(0.5 * x)


@pytest.mark.parametrize("splitting", [bm.BAOAB, bm.ABOBA, bm.OBABO, bm.GJI, bm.GJII, backward], ids=str)
@pytest.mark.parametrize("x", [2.0])
def test_free_motion_diffuses_and_drifts_by_the_factor_of_its_splitting(splitting, x):
    """(γh/2) coth(γh/2) for BAOAB, ABOBA and OBABO, 1.3130 at γh = 2; 1 for the GJ set. To 10 digits."""
    scheme = bm.Langevin(spring, kT, rate=2.0, splitting=splitting)
    measured, held = factors(scheme, scheme.start(jnp.ones(1), velocity=jnp.ones(1)), x / 2)
    exact = x_coth(x) if splitting in (bm.BAOAB, bm.ABOBA, bm.OBABO) else 1.0
    assert np.allclose(measured, exact, rtol=1e-10)
    assert held == [True, True]


mover = bm.mechanical(bm.SE3(), mass=m, potential=lambda q: q[1][2])
GROUPS = {
    "SO3": (body, bm.SO3(), [bm.BAOAB, bm.ABOBA, bm.OBABO]),
    "SE3": (mover, bm.SE3(), [bm.BAOAB]),
}


@pytest.mark.parametrize(("name", "splitting"), [(name, one) for name, (_, _, words) in GROUPS.items() for one in words], ids=str)
def test_free_bodies_have_the_factor_of_the_splitting(name, splitting):
    """(γh/2) coth(γh/2) in every direction of the group, 1.3130 at γh = 2, for slow motion: to 10 digits, wherever the body is."""
    system, space, _ = GROUPS[name]
    scheme = bm.Langevin(system, kT, rate=2.0, splitting=splitting)
    v = space.unflatten(jnp.linspace(0.4, -0.3, space.dim))
    measured, held = factors(scheme, scheme.start(space.move(space.origin(), v), velocity=v), 1.0)
    assert np.allclose(measured, x_coth(2.0), rtol=1e-10)
    assert held == [True, True]


@pytest.mark.parametrize("word", [bm.BAOAB, bm.ABOBA, bm.OBABO], ids=str)
def test_rescaled_drifts_and_kicks_are_exact(word):
    scheme = bm.Langevin(spring, kT, friction=2 * m, splitting=word, transport="exact")
    measured, held = factors(scheme, scheme.start(jnp.ones(1), velocity=jnp.ones(1)), 1.0)
    assert np.allclose(measured, 1.0, rtol=1e-12)
    assert held == [True, True]
    assert "transport exact" in scheme.title


STATIONARY = {
    "GJI": (lambda **o: bm.Langevin(spring, kT, splitting=bm.GJI, **o), lambda u, b2: (1, 1 - u / 4)),
    "GJII": (lambda **o: bm.Langevin(spring, kT, splitting=bm.GJII, **o), lambda u, b2: (1, 1 - b2 * u / 4)),
    "BAOAB": (lambda **o: bm.Langevin(spring, kT, transport="exact", **o), lambda u, b2: (1, 1 - b2 * u / 4)),
    "ABOBA": (lambda **o: bm.Langevin(spring, kT, splitting=bm.ABOBA, transport="exact", **o), lambda u, b2: (1, 1 / (1 - b2 * u / 4))),
    "OBABO": (lambda **o: bm.Langevin(spring, kT, splitting=bm.OBABO, transport="exact", **o), lambda u, b2: (1 / (1 - b2 * u / 4), 1)),
}


@pytest.mark.parametrize("name", STATIONARY)
def test_stationary_variances_of_the_oscillator(name):
    """⟨q²⟩k/kT and ⟨p²⟩/m kT at u = h²ω², b² = tanh(x/2)/(x/2), x = γh: from the recursion, exactly in h."""
    make, exact = STATIONARY[name]
    for h, rate in ((0.3, 0.5), (0.9, 4.0)):
        A, B = recursion(make(rate=rate), h)
        S = solve_discrete_lyapunov(A, B @ B.T)
        expected = exact(h * h * k / m, 1 / x_coth(rate * h))
        assert np.allclose([S[0, 0] * k / kT, S[1, 1] / (m * kT)], expected, rtol=1e-11), (h, rate)
        assert abs(S[0, 1]) < 1e-12


@pytest.mark.parametrize(("splitting", "c2"), [(bm.GJI, lambda x: (1 - x / 2) / (1 + x / 2)), (bm.GJII, lambda x: np.exp(-x))], ids=["GJI", "GJII"])
def test_positions_obey_the_published_recursion(splitting, c2):
    """r'' − 2c₁r' + c₂r = c₃h²f'/m + c₃h(β' + β'')/2m with c₁ = (1 + c₂)/2, c₃ = (1 − c₂)/γh (Grønbech-Jensen 2020), along a path of the pendulum."""
    pendulum = bm.mechanical(bm.Euclidean(1), mass=m, potential=lambda q: -jnp.sum(jnp.cos(q)))
    rate, h = 1.5, 0.4
    scheme = bm.Langevin(pendulum, kT, rate=rate, splitting=splitting)
    normals = np.random.default_rng(5).normal(size=(3, 1))
    state, r = bm.State(jnp.ones(1), 0.3 * m * jnp.ones(1)), [1.0]
    for z in normals:
        state, _ = scheme.advance(state, h, jnp.sqrt(h) * jnp.asarray(z), 0.0)
        r.append(float(state.q[0]))
    c = c2(rate * h)
    c3, beta = (1 - c) / (rate * h), np.sqrt(2 * rate * m * kT * h) * normals[:, 0]
    for n in (1, 2):
        left = r[n + 1] - (1 + c) * r[n] + c * r[n - 1]
        assert left == pytest.approx(c3 * h * h / m * -np.sin(r[n]) + c3 * h / (2 * m) * (beta[n - 1] + beta[n]), abs=1e-13)


def test_several_rates_of_a_tensor_are_exact_in_GJI_and_refused_in_rescaling():
    scheme = bm.Langevin(unequal, kT, friction=jnp.array([[2.0, 0.3], [0.3, 1.0]]), splitting=bm.GJI)
    measured, held = factors(scheme, scheme.start(jnp.ones(2), velocity=jnp.ones(2)), 1.5)
    assert np.allclose(measured, 1.0, rtol=1e-12)
    assert held == [True, True]
    with pytest.raises(BismutError, match=r"one rate of all momenta.*GJI"):
        bm.Langevin(unequal, kT, friction=2.0, transport="exact")
    with pytest.raises(BismutError, match="one rate"):
        bm.Langevin(body, kT, friction=2.0, transport="exact")


@pytest.mark.parametrize("friction", [{"friction": jnp.array([1.0, 2.0, 3.0])}, {"friction": lambda R: 0.5 * R[:, :2]}], ids=["axes", "factors"])
def test_momenta_of_the_bath_stay_Maxwellian_whatever_is_left_of_them(friction):
    """E M Eᵀ + S Sᵀ = M for the bath of GJI, for constant friction and for factors B(q) that do not reach all directions."""
    scheme, h = bm.Langevin(body, kT, splitting=bm.GJI, **friction), 0.9
    q = bm.SO3().move(jnp.eye(3), jnp.array([0.3, -0.2, 0.5]))
    n, r = 3, scheme.friction.rank
    contact = lambda x: scheme.bath(bm.State(q, x[:n]), h, x[n:], 0.0, bm.GJI.loss)[0].p
    J = np.asarray(evaluate(jax.jacfwd(contact), jnp.zeros(n + r)))
    E, S = J[:, :n], J[:, n:]
    M = np.diag([1.0, 2.0, 2.5])
    assert np.allclose(E @ M @ E.T + S @ S.T / kT, M, atol=1e-12)
    Gamma = np.asarray(jax.vmap(lambda v: scheme.friction.drag(body, q, v, 0.0, kT))(jnp.eye(3)))
    X = h * Gamma @ np.linalg.inv(M) / 2
    assert np.allclose(E, np.linalg.solve(np.eye(3) + X, np.eye(3) - X), atol=1e-12)


@pytest.mark.parametrize("splitting", [bm.GJI, bm.GJII], ids=str)
def test_on_a_group_and_on_a_surface(splitting):
    """A free body, slow motion: exact. On a sphere the constraint holds, and momenta are tangent."""
    scheme = bm.Langevin(body, kT, rate=1.5, splitting=splitting)
    measured, _ = factors(scheme, scheme.start(jnp.eye(3), velocity=jnp.ones(3)), 1.0)
    assert np.allclose(measured, 1.0, rtol=1e-12)
    sphere = bm.mechanical(bm.Euclidean(3), mass=m, potential=lambda q: q[2], constraint=lambda q: jnp.array([q @ q - 1]))
    scheme = bm.Langevin(sphere, kT, rate=1.5, splitting=splitting)
    run = bm.simulate(scheme, scheme.start(jnp.array([0.0, 0.6, 0.8]), temperature=kT), step=0.2, steps=20, trajectories=3, seed=1)
    q, p = np.asarray(run.final.q), np.asarray(run.final.p)
    assert np.abs(np.sum(q * q, 1) - 1).max() < 1e-12
    assert np.abs(np.sum(q * p, 1)).max() < 1e-12


def test_the_warning_names_the_remedy_and_exact_transport_needs_none():
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.0 * q @ q)
    with pytest.warns(BismutWarning, match=r'1\.31 times too fast.*give transport="exact"'):
        bm.Langevin(system, 1.0, rate=2.0).check_step(1.0)
    with pytest.warns(BismutWarning, match=r"give splitting=bm\.GJI"):
        bm.Langevin(unequal, 1.0, 2.0).check_step(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scheme in (bm.Langevin(system, 1.0, rate=2.0, splitting=bm.GJI), bm.Langevin(system, 1.0, rate=2.0, transport="exact")):
            scheme.check_step(1.0)
            assert scheme.remarks(1.0) == ()


def test_what_cannot_be_exact_is_refused():
    shaken = bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q, noise=lambda q: q)
    with pytest.raises(DomainError, match='transport must be "exact"'):
        bm.Langevin(spring, kT, 1.0, transport="fast")
    with pytest.raises(BismutError, match="BAOAB, ABOBA and OBABO"):
        bm.Langevin(spring, kT, 1.0, bm.GLA(bm.Verlet), transport="exact")
    with pytest.raises(BismutError, match="a schedule"):
        bm.Langevin(spring, kT, 1.0, schedule=lambda t: 1 + t, transport="exact")
    with pytest.raises(BismutError, match="other noise"):
        bm.Langevin(shaken, kT, 1.0, own_noise="drives", transport="exact")
    with pytest.raises(BismutError, match="separated by the bath"):
        bm.Langevin(spring, kT, 1.0, bm.WordSplitting("AOBOA"), transport="exact")
    with pytest.raises(BismutError, match="one contact"):
        bm.Langevin(spring, kT, 1.0, bm.WordSplitting("halves", word="OBABO", loss=bm.GJI.loss))
    with pytest.raises(BismutError, match="Expected a word in A, B and O"):
        bm.WordSplitting("BAXAB")


def test_averages_of_a_pendulum_are_those_of_BAOAB_or_better():
    """⟨cos⟩ = 0.446390 at h = 0.5, γh = 1, within 4 standard errors (false alarms 6e-5 each) and the bias of BAOAB there, 2e-3."""
    pendulum = bm.mechanical(bm.Circle(), potential=lambda q: -jnp.sum(jnp.cos(q)))
    for scheme in (bm.Langevin(pendulum, 1.0, 2.0, bm.GJI), bm.Langevin(pendulum, 1.0, 2.0, transport="exact")):
        start = scheme.start(bm.Circle().origin(), temperature=1.0)
        observe = {"cos": bm.time_average(lambda s: jnp.sum(jnp.cos(s.q)))}
        run = bm.simulate(scheme, start, step=0.5, steps=1000, burn_in=50, trajectories=512, seed=3, observe=observe)
        assert abs(float(run["cos"].mean) - 0.446390) < 4 * float(run["cos"].stderr) + 2e-3


@pytest.mark.slow
@pytest.mark.parametrize("splitting", [bm.GJI, bm.GJII], ids=str)
def test_verify_measures_the_claims(splitting):
    scheme = bm.Langevin(bm.mechanical(bm.Circle(), potential=lambda q: -jnp.sum(jnp.cos(q))), 1.0, rate=1.0, splitting=splitting)
    report = bm.verify(scheme, scheme.start(jnp.ones(()), temperature=1.0), step=0.2)
    print(report)
    held = {finding.law: finding.held for finding in report.findings}
    assert all(held[law] for law in ("free diffusion", "free drift", "phase volume", "order"))
    assert False not in held.values()
