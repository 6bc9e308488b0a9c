"""The likelihood of a path is exact, its maximum is where the truth is, within stated errors, and a wrong model is noticed."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom, multivariate_normal

import bismut as bm
from bismut.errors import BismutError, DomainError, ShapeError
from bismut.response.parameters import parameters_of
from bismut.response.path_likelihood import ObservedPath, information, log_likelihood

SURE = 4.5  # standard errors; a false alarm in 7e-6 of seeds, and seeds are fixed


def spring(k=1.0, kT=1.0, friction=1.0):
    system = bm.mechanical(bm.Euclidean(1), mass=1.3, potential=lambda q, parameters: 0.5 * parameters["k"] * q @ q, parameters={"k": k})
    return bm.Langevin(system, temperature=kT, friction=friction, splitting=bm.OBABO)


def path_of(scheme, steps, seed, step=0.1, **options):
    start = scheme.start(jnp.full(scheme.space.dim, 0.3), temperature=float(scheme.temperature.value))
    return bm.trajectory(scheme, start, step=step, steps=steps, seed=seed, **options)


def gaussian(k, kT, friction, h, steps, mass=1.3):
    """Mean and covariance of (q_1, p_1, ..., q_N, p_N) from (q_0, p_0), as a linear map of normals: A_k x_0 and Σ."""
    E = np.exp(-0.5 * friction * h / mass)
    S = np.sqrt(kT * mass * (1 - E**2))
    O, B, A = np.diag([1.0, E]), np.array([[1.0, 0.0], [-0.5 * h * k, 1.0]]), np.array([[1.0, h / mass], [0.0, 1.0]])
    M = O @ B @ A @ B @ O
    G = np.stack([O @ B @ A @ B @ np.array([0.0, S]), np.array([0.0, S])], 1)
    rows, maps, power = [], [], np.eye(2)
    for i in range(steps):
        power = M @ power
        maps.append(power)
        rows.append(np.concatenate([np.linalg.matrix_power(M, i - j) @ G if j <= i else np.zeros((2, 2)) for j in range(steps)], 1))
    L = np.concatenate(rows)
    return np.concatenate(maps), L @ L.T


@pytest.mark.parametrize("momenta", [True, False], ids=["points and momenta", "points alone"])
def test_the_likelihood_is_that_of_the_joint_gaussian(momenta):
    """Of 6 steps of an oscillator, against the whole covariance matrix; of points alone, momenta at the start integrated out."""
    k, kT, friction, h, steps = 1.7, 0.6, 0.9, 0.3, 6
    scheme = spring(k, kT, friction)
    run = path_of(scheme, steps, 4, h)
    q, p = np.asarray(run.q), np.asarray(run.p)
    maps, cov = gaussian(k, kT, friction, h, steps)
    own = float(jax.jit(lambda: log_likelihood(scheme, ObservedPath(q, p if momenta else None, h, 0.0)))())
    if momenta:
        x = np.stack([q[1:, 0], p[1:, 0]], 1).ravel()
        exact = multivariate_normal.logpdf(x, maps @ np.array([q[0, 0], p[0, 0]]), cov)
    else:
        points = slice(0, None, 2)
        spread = cov[points, points] + 2.0 * np.outer(maps[points, 1], maps[points, 1])  # p_0 ~ N(0, 2): given q_1 it does not matter
        mean = maps[points, 0] * q[0, 0]
        exact = multivariate_normal.logpdf(q[1:, 0], mean, spread) - multivariate_normal.logpdf(q[1, 0], mean[0], spread[0, 0])
    assert own == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("first", [1e-9, 1e-4, 3.0])
def test_the_information_is_the_second_derivative(first):
    """By differences of the gradient, wherever they begin: the Hessian of JAX to 1e-5, also for a parameter of size 1e-6."""
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q, parameters: 0.5e6 * parameters["k"] * q @ q, parameters={"k": 1.7e-6})
    scheme = bm.Langevin(system, temperature=0.6, friction=0.9, splitting=bm.OBABO)
    run = path_of(scheme, 400, 4, 0.3)
    path, chosen = ObservedPath(np.asarray(run.q), np.asarray(run.p), 0.3, 0.0), parameters_of(scheme, ["k", "temperature", "friction"])
    theta = chosen.vector(scheme)
    exact = jax.jit(jax.hessian(lambda theta: -log_likelihood(chosen.put(scheme, theta), path)))(jnp.asarray(theta))
    own, _ = information(scheme, chosen, theta, path, first * np.array([1e-6, 1.0, 1.0]))
    scale = np.sqrt(np.diag(exact))
    np.testing.assert_allclose(own / np.outer(scale, scale), exact / np.outer(scale, scale), atol=1e-5)


@pytest.mark.slow
def test_a_friction_that_depends_on_the_place():
    """SO(3), B(R; a, b, c) of full rank, nonlinear in c: three coefficients from 3000 points with momenta, each within 4.5 standard errors."""
    body = bm.mechanical(
        bm.SO3(),
        mass=jnp.array([1.0, 2.0, 3.0]),
        potential=lambda R: -R[2, 2] - 0.4 * R[0, 1],
        parameters={"a": jnp.array(0.7), "b": jnp.array(1.1), "c": jnp.array(0.0)},
    )

    def B(R, parameters):
        a, b, c = parameters["a"], parameters["b"], parameters["c"]
        return jnp.sqrt(2.0) * jnp.array([[a, 0.0, 0.0], [c * (1 + 0.5 * R[2, 2]), b, 0.0], [0.0, jnp.tanh(c), 1.0]])

    guess = bm.Langevin(body, temperature=1.0, friction=B, splitting=bm.OBABO)
    exact = {"a": 1.0, "b": 0.8, "c": 0.5}
    true = bm.Langevin(body.with_parameters(exact), temperature=1.0, friction=B, splitting=bm.OBABO)
    run = bm.trajectory(true, true.start(jnp.eye(3), temperature=1.0), step=0.1, steps=3000, seed=2)
    found = bm.fit(guess, run, step=0.1, check=False)
    assert found.good
    for name, value in exact.items():
        assert abs(found.value[name] - value) < SURE * found.stderr[name], name
        assert found.stderr[name] < 0.1, name


@pytest.mark.slow
def test_a_friction_tensor_of_a_rotating_body():
    """Γ = BBᵀ/2kT constant in the body, all six components unequal: from 3000 points with momenta each within 4.5 standard errors, those of Γ by
    δΓ = (δB Bᵀ + B δBᵀ)/2kT."""
    body = bm.mechanical(bm.SO3(), mass=jnp.array([1.0, 2.0, 3.0]), potential=lambda R: -R[2, 2] - 0.4 * R[0, 1], parameters={"b": jnp.zeros(6)})
    rows, columns = np.array([0, 1, 2, 1, 2, 2]), np.array([0, 1, 2, 0, 0, 1])
    lower = jnp.zeros((3, 3)).at[rows, columns].set
    tensor = lambda b: (lower(b) @ lower(b).T / 2)[rows, columns]
    exact = jnp.array([1.5, 1.1, 1.3, 0.5, -0.3, 0.4])
    scheme = lambda b: bm.Langevin(
        body.with_parameters({"b": b}), temperature=1.0, friction=lambda R, parameters: lower(parameters["b"]), splitting=bm.OBABO
    )
    run = bm.trajectory(scheme(exact), scheme(exact).start(jnp.eye(3), temperature=1.0), step=0.1, steps=3000, seed=2)
    found = bm.fit(scheme(jnp.array([1.2, 1.2, 1.2, 0.0, 0.0, 0.0])), run, step=0.1, parameters=["b"], check=False)
    assert found.good
    b = jnp.asarray(found.value["b"])
    assert np.all(np.abs(b - exact) < SURE * np.asarray(found.stderr["b"]))
    J = np.asarray(jax.jacfwd(tensor)(b))
    error = np.sqrt(np.diag(J @ np.asarray(found.covariance) @ J.T))
    print(tensor(b), error, tensor(exact))
    assert np.all(np.abs(tensor(b) - tensor(exact)) < SURE * error)
    assert np.all(error < 0.1)


@pytest.mark.parametrize("momenta", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_well_of_two_minima(momenta):
    """Nonlinear: both coefficients, temperature and friction from 5000 points; simulations from the fit look like the path."""
    potential = lambda q, parameters: parameters["b"] * q[0] ** 4 - parameters["a"] * q[0] ** 2 + 0.3 * q[0]
    system = lambda a, b: bm.mechanical(bm.Euclidean(1), potential=potential, parameters={"a": a, "b": b})
    true = bm.Langevin(system(1.0, 0.5), temperature=0.7, friction=1.2, splitting=bm.OBABO)
    run = path_of(true, 5000, 3, 0.2)
    guess = bm.Langevin(system(0.6, 0.8), temperature=1.0, friction=1.0, splitting=bm.OBABO)
    found = bm.fit(guess, run if momenta else run.q, step=0.2, parameters=["a", "b", "temperature", "friction"])
    exact = {"a": 1.0, "b": 0.5, "temperature": 0.7, "friction": 1.2}
    assert found.good
    for name, value in exact.items():
        assert abs(found.value[name] - value) < SURE * found.stderr[name], name
        assert found.stderr[name] < 0.25 * value, name
    assert "the checks hold" in repr(found)
    assert found.as_json()["good"]


class _Momentum(NamedTuple):
    """Gradient descent with a memory, in the form of optax."""

    rate: float

    def init(self, theta):
        return jnp.zeros_like(theta)

    def update(self, slope, state, theta):
        del theta
        state = 0.8 * state + slope
        return -self.rate * state, state


def test_descent_goes_where_newton_goes():
    run = path_of(spring(1.5, 0.8, 1.0), 2000, 2)
    guess = spring(1.2, 0.9, 1.0)
    newton = bm.fit(guess, run, step=0.1, parameters=["k", "temperature"], check=False)
    descent = bm.fit(guess, run, step=0.1, parameters=["k", "temperature"], check=False, optimiser=_Momentum(0.1), iterations=300)
    assert descent.value["temperature"] == pytest.approx(newton.value["temperature"], abs=0.1 * newton.stderr["temperature"])
    assert descent.good


def test_an_optimiser_that_has_not_arrived_is_noticed():
    """By optax: after few steps the fit is many standard errors from the maximum, although residuals look well; after many it is there."""
    optax = pytest.importorskip("optax")
    run, guess = path_of(spring(1.5, 0.8, 1.0), 1000, 2), spring(1.0, 0.8, 1.0)
    newton = bm.fit(guess, run, step=0.1, parameters=["k"], check=False)
    optimiser = optax.adam(0.1)
    early, late = (bm.fit(guess, run, step=0.1, parameters=["k"], check=False, optimiser=optimiser, iterations=n) for n in (3, 100))
    off = (early.value["k"] - newton.value["k"]) / newton.stderr["k"]
    (check,) = (one for one in early.checks if one.name == "gradient of ln p")
    assert abs(off) > 0.5
    assert check.off == pytest.approx(abs(off), rel=0.2)  # exactly, if ln p were a parabola
    assert not early.good
    assert late.good
    assert late.value["k"] == pytest.approx(newton.value["k"], abs=0.1 * newton.stderr["k"])


def test_a_descent_that_has_not_arrived_is_noticed():
    """Forty small steps leave k where it was: residuals cannot tell, the gradient does. Also of more parameters than Newton takes."""
    run = path_of(spring(1.5, 0.8, 1.0), 1000, 2)
    slow, arrived = (
        bm.fit(spring(1.2, 0.8), run, step=0.1, parameters=["k"], check=False, optimiser=_Momentum(rate), iterations=40) for rate in (1e-3, 1.0)
    )
    assert not slow.good
    assert "THE CHECKS DO NOT HOLD" in repr(slow)
    assert arrived.good

    many = bm.mechanical(
        bm.Euclidean(1), mass=1.3, potential=lambda q, parameters: jnp.sum(parameters["k"]) * q @ q / 140, parameters={"k": jnp.ones(70)}
    )
    guess = bm.Langevin(many, temperature=0.8, friction=1.0, splitting=bm.OBABO)
    slow, arrived = (bm.fit(guess, run, step=0.1, parameters=["k"], check=False, optimiser=_Momentum(rate), iterations=40) for rate in (0.01, 70.0))
    assert not slow.good
    (check,) = (one for one in arrived.checks if one.name == "gradient of ln p")
    assert check.off < check.most
    assert float(np.mean(arrived.value["k"])) == pytest.approx(1.5, abs=0.4)


def test_a_potential_that_depends_on_time_is_no_wrong_model():
    """U(q, t): the path of the model itself is believed, and what is not checked is said."""
    system = bm.mechanical(
        bm.Euclidean(1), potential=lambda q, t, parameters: 0.5 * parameters["k"] * (q[0] - 2 * jnp.sin(0.3 * t)) ** 2, parameters={"k": 1.5}
    )
    scheme = bm.Langevin(system, temperature=0.8, friction=1.0, splitting=bm.OBABO)
    run = bm.trajectory(scheme, scheme.start(jnp.zeros(1), temperature=0.8), step=0.1, steps=4000, seed=2)
    found = bm.fit(scheme, run, step=0.1, parameters=["k"])
    assert found.good
    assert abs(found.value["k"] - 1.5) < SURE * found.stderr["k"]
    assert "depends on time" in repr(found)


def test_a_fitted_friction_is_shown_as_the_factor_that_it_is():
    run = path_of(spring(1.5, 0.8, 1.0), 4000, 2)
    found = bm.fit(spring(1.5, 0.8, 1.5), run, step=0.1, parameters=["friction"], check=False)
    assert abs(found.value["friction"] * 1.5 - 1.0) < SURE * 1.5 * found.stderr["friction"]
    assert "\n  friction × " in repr(found)
    assert parameters_of(spring(), ["k", "temperature"]).written(np.array([1.25, 0.5])) == "k = 1.25, temperature = 0.5"


def test_a_path_of_another_step_is_noticed():
    """Points alone, every tenth step of a finer path: friction would come out too small, and residuals are correlated."""
    run = path_of(spring(1.5, 0.8, 1.0), 100_000, 2, step=0.01, every=10)
    found = bm.fit(spring(1.5, 0.8, 1.0), run.q, step=0.1, parameters=["k", "temperature", "friction"], check=False)
    assert not found.good
    assert "THE CHECKS DO NOT HOLD" in repr(found)
    assert found.value["friction"] < 0.8


def test_refusals():
    scheme = spring()
    points = np.zeros((40, 1))
    with pytest.raises(BismutError, match="splitting=bm"):
        bm.fit(scheme.with_splitting(bm.BAOAB), points, step=0.1, parameters=["k"])
    with pytest.raises(ShapeError, match="at least 16"):
        bm.fit(scheme, points[:8], step=0.1, parameters=["k"])
    with pytest.raises(DomainError, match="not finite"):
        bm.fit(scheme, np.full((40, 1), np.nan), step=0.1, parameters=["k"])
    with pytest.raises(DomainError, match="one of optax"):
        bm.fit(scheme, points, step=0.1, parameters=["k"], optimiser="adam")
    with pytest.raises(BismutError, match="noise in every direction"):
        bm.fit(bm.Langevin(scheme.system, temperature=1.0, friction=0.0, splitting=bm.OBABO), points, step=0.1, parameters=["k"])


@pytest.mark.slow
def test_errors_cover():
    """100 paths of 10⁵ points: spring, temperature and friction within 1.96 standard errors, together in at least 93 %.

    95 of 100 are expected of each, with a standard deviation of 2.2; fewer than 86 have a probability of 3e-4. These seeds give 92, 96 and 94, so the
    three are not each asserted to be at least 93: where errors are right, one of three is below it in a third of such studies."""
    exact = {"k": 1.5, "temperature": 0.8, "friction": 1.0}
    scheme = spring(1.5, 0.8, 1.0)
    fits = [bm.fit(scheme, path_of(scheme, 100_000, seed), step=0.1, parameters=list(exact), check=False) for seed in range(100)]
    hits = {name: sum(abs(one.value[name] - value) < 1.96 * one.stderr[name] for one in fits) for name, value in exact.items()}
    print(hits, {name: np.std([(one.value[name] - value) / one.stderr[name] for one in fits]) for name, value in exact.items()})
    assert min(hits.values()) >= binom.ppf(3e-4, 100, 0.95)
    assert sum(hits.values()) >= 0.93 * 300


def test_averages_are_matched():
    """⟨x²⟩ = kT/k and ⟨x⁴⟩ = 3(kT/k)²: k and kT are not both in them, and k alone is found; a third that contradicts them is noticed."""
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q, parameters: 0.5 * parameters["k"] * q @ q, parameters={"k": 1.0})
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0)
    square, fourth = (lambda s: s.q[0] ** 2), (lambda s: s.q[0] ** 4)
    run = {"step": 0.2, "steps": 400, "burn_in": 50, "trajectories": 300, "every": 2, "parameters": ["k"]}
    start = scheme.start(jnp.zeros(1), temperature=1.0)
    found = bm.fit_averages(scheme, start, averages={"x²": (square, 0.4), "x⁴": (fourth, 0.48, 0.001)}, **run)
    assert found.good
    assert abs(found.value["k"] - 2.5) < SURE * found.stderr["k"]
    assert found.stderr["k"] < 0.1
    assert "the averages fit" in repr(found)
    wrong = bm.fit_averages(scheme, start, averages={"x²": (square, 0.4), "x⁴": (fourth, 1.0)}, **run)
    assert not wrong.good
    with pytest.raises(DomainError, match="cannot follow from"):
        bm.fit_averages(scheme, start, averages={"x²": (square, 0.4)}, **(run | {"parameters": ["k", "temperature"]}))
