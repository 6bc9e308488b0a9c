"""d⟨O⟩/dθ by every estimator that applies is that of closed forms: of the discrete scheme at a time, of statistical mechanics in equilibrium."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ive

import bismut as bm
from bismut.engines.xla import XlaProgram
from bismut.ensembles.task import compilations
from bismut.errors import BismutError, DomainError
from bismut.noise import Wiener
from bismut.response.adjoint import SLOTS, STRETCH, backward, passes_for
from bismut.response.estimators import Question
from bismut.response.parameters import parameters_of
from bismut.response.sensitivity import Estimator, _eligible
from bismut.response.tangents import NoiseShift, follow
from tests.response.problems import oscillator

SURE = 4.5  # standard errors; a false alarm in 7e-6 of seeds, and seeds are fixed


def second_moment(k, kT, gamma, h, steps, mass=1.0, q0=1.0, v0=0.3):
    """⟨q²⟩ of BAOAB after so many steps from (q0, m v0): a linear recursion of mean and covariance."""
    E = jnp.exp(-gamma * h / mass)
    kick, drift = jnp.array([[1.0, 0.0], [-0.5 * h * k, 1.0]]), jnp.array([[1.0, 0.5 * h / mass], [0.0, 1.0]])
    before, after = drift @ kick, kick @ drift
    A = after @ jnp.diag(jnp.array([1.0, E])) @ before
    noise = after @ jnp.array([0.0, 1.0]) * jnp.sqrt(kT * mass * (1 - E**2))
    mean, cov = jnp.array([q0, mass * v0]), jnp.zeros((2, 2))
    for _ in range(steps):
        mean, cov = A @ mean, A @ cov @ A.T + jnp.outer(noise, noise)
    return cov[0, 0] + mean[0] ** 2


def spring(k=1.3, kT=0.8, gamma=0.7):
    scheme, _ = oscillator(k, gamma, kT)
    return scheme, scheme.start(jnp.ones(1), velocity=jnp.array([0.3]))


def square(state):
    return state.q[0] ** 2


@pytest.mark.parametrize("method", ["pathwise", "likelihood", "adjoint"])
def test_an_oscillator_at_a_time(method):
    """d⟨q²⟩/dk at t = 1 of the discrete scheme, exactly: no bias of the step, by each estimator."""
    scheme, start = spring()
    exact = float(jax.jacfwd(second_moment)(1.3, 0.8, 0.7, 0.1, 10))
    found = bm.sensitivity(scheme, start, of=square, parameters=["k"], step=0.1, time=1.0, trajectories=2000, seed=2, method=method)
    assert found.method == method
    assert found.estimators[method].engine == "native"
    assert abs(found.value["k"] - exact) < SURE * found.stderr["k"]
    assert found.stderr["k"] < (0.05 if method == "likelihood" else 0.01)


@pytest.mark.parametrize("method", ["pathwise", "adjoint"])
def test_what_xla_computes_is_compiled_once(method, monkeypatch):
    """A potential of complex numbers, which have no machine code: other parameters and seeds find XLA's program in the cache."""
    made = []
    compiled = XlaProgram.__init__
    monkeypatch.setattr(XlaProgram, "__init__", lambda self, *arguments: made.append(self) or compiled(self, *arguments))
    potential = lambda q, parameters: 0.5 * parameters["k"] * jnp.sum(jnp.real((q + 0j) * (q - 0j)))

    def run(k, seed):
        scheme = bm.Langevin(bm.mechanical(bm.Euclidean(1), potential=potential, parameters={"k": k}), temperature=0.8, friction=0.7)
        start = scheme.start(jnp.ones(1), momentum=jnp.zeros(1))
        settings = {"of": square, "parameters": ["k"], "step": 0.1, "time": 0.3, "trajectories": 8, "method": method}
        return bm.sensitivity(scheme, start, seed=seed, **settings).estimators[method].engine

    assert run(1.3, 1) == "xla"
    first, programs = len(made), compilations()
    assert first
    assert run(1.1, 2) == "xla"
    assert (len(made), compilations()) == (first, programs)


def test_temperature_friction_and_mass():
    """All three at once, the mass a parameter of the system and felt by the momentum of the start; and why no likelihood ratio is taken."""
    system = bm.mechanical(
        bm.Euclidean(1),
        mass=lambda q, parameters: parameters["m"] * jnp.eye(1),
        potential=lambda q, parameters: 0.5 * parameters["k"] * q @ q,
        parameters={"k": 1.3, "m": 1.5},
    )
    scheme = bm.Langevin(system, temperature=0.8, friction=0.7)
    start = scheme.start(jnp.ones(1), velocity=jnp.array([0.3]))
    exact = jax.jacfwd(lambda x: second_moment(x[0], x[2], x[3] * 0.7, 0.1, 10, mass=x[1]))(jnp.array([1.3, 1.5, 0.8, 1.0]))
    names = ["k", "m", "temperature", "friction"]
    found = bm.sensitivity(scheme, start, of=square, parameters=names, step=0.1, time=1.0, trajectories=2000, seed=3)
    assert "noise itself depends" in found.missing["likelihood"]
    for name, value in zip(names, exact, strict=True):
        assert abs(found.value[name] - float(value)) < SURE * found.stderr[name], name


def test_a_friction_of_ones_own():
    """Γ = c² by friction=lambda q, parameters: B with B Bᵀ = 2kT Γ: d⟨q²⟩/dc = 2c ∂⟨q²⟩/∂Γ of the discrete scheme."""
    potential = lambda q, parameters: 0.5 * parameters["k"] * q @ q
    system = bm.mechanical(bm.Euclidean(1), potential=potential, parameters={"k": 1.3, "c": 0.9})
    scheme = bm.Langevin(system, temperature=0.8, friction=lambda q, parameters: jnp.sqrt(1.6) * parameters["c"] * jnp.eye(1))
    exact = float(jax.jacfwd(lambda c: second_moment(1.3, 0.8, c**2, 0.1, 10))(0.9))
    start = scheme.start(jnp.ones(1), velocity=jnp.array([0.3]))
    found = bm.sensitivity(scheme, start, of=square, parameters=["c"], step=0.1, time=1.0, trajectories=2000, seed=3)
    assert "noise itself depends" in found.missing["likelihood"]
    assert found.estimators["pathwise"].engine == "native"
    assert abs(found.value["c"] - exact) < SURE * found.stderr["c"]
    assert found.stderr["c"] < 0.2 * abs(exact)


def rotor(splitting=bm.BAOAB):
    system = bm.mechanical(bm.Circle(), potential=lambda q, parameters: -parameters["g"] * jnp.cos(q), parameters={"g": 1.0})
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0, splitting=splitting)
    return scheme, scheme.start(system.space.origin(), temperature=1.0)


def test_a_rotor_in_equilibrium():
    """d⟨cos q⟩/dg = 0.3543460 at g = kT = 1, and by kT: −g/kT times that. The covariance is chosen."""
    A = ive(1, 1.0) / ive(0, 1.0)
    assert pytest.approx(0.3543460, abs=1e-7) == 1 - A - A**2
    settings = {"step": 0.1, "steps": 400, "burn_in": 100, "every": 2, "trajectories": 1000, "equilibrium": True, "seed": 5}
    found = bm.sensitivity(*rotor(), of=lambda s: jnp.cos(s.q), parameters=["g", "temperature"], method="covariance", **settings)
    for name, exact in (("g", 0.3543460), ("temperature", -0.3543460)):
        assert found.stderr[name] < 0.006
        assert abs(found.value[name] - exact) < SURE * found.stderr[name] + 5e-4  # the bias of h = 0.1


def test_a_dipole_in_equilibrium():
    """U = −a R₃₃ on SO(3): d⟨R₃₃⟩/da = 1/a² − 1/sinh² a = 0.2759383 at a = 1, by the covariance; Metropolised steps have no bias."""
    body = bm.mechanical(bm.SO3(), mass=jnp.array([1.0, 2.0, 3.0]), potential=lambda R, parameters: -parameters["a"] * R[2, 2], parameters={"a": 1.0})
    scheme = bm.Langevin(body, temperature=1.0, friction=1.0, splitting=bm.Metropolised())
    settings = {"step": 0.4, "steps": 200, "burn_in": 40, "every": 2, "trajectories": 500, "equilibrium": True, "seed": 5}
    found = bm.sensitivity(
        scheme, scheme.start(jnp.eye(3), temperature=1.0), of=lambda s: s.q[2, 2], parameters=["a"], method="covariance", **settings
    )
    assert found.stderr["a"] < 0.01
    assert abs(found.value["a"] - 0.2759383) < SURE * found.stderr["a"]


def test_refused_steps_have_a_covariance_and_nothing_else():
    scheme, start = rotor(bm.Metropolised())
    settings = {"of": lambda s: jnp.cos(s.q), "step": 0.5, "steps": 200, "burn_in": 50, "trajectories": 500, "seed": 5}
    found = bm.sensitivity(scheme, start, equilibrium=True, **settings)
    assert list(found.estimators) == ["covariance"]
    assert all("acceptance depends" in found.missing[name] for name in ("pathwise", "likelihood", "adjoint"))
    assert abs(found.value["g"] - 0.3543460) < SURE * found.stderr["g"]
    with pytest.raises(BismutError, match="No estimator applies"):
        bm.sensitivity(scheme, start, **settings)


def test_a_jump_is_seen_by_the_score_alone():
    """d P(q > c)/dk of a Gaussian in closed form: BAOAB has points that noise reaches, so the likelihood ratio is exact."""
    scheme, start = spring()
    found = bm.sensitivity(scheme, start, of=lambda s: jnp.where(s.q[0] > 0.5, 1.0, 0.0), step=0.1, time=1.0, trajectories=4000, seed=4)
    assert found.method == "likelihood"
    assert "may jump" in found.missing["pathwise"]

    def above(k):
        variance = second_moment(k, 0.8, 0.7, 0.1, 10, q0=0.0, v0=0.0)
        mean = jnp.sqrt(second_moment(k, 0.0, 0.7, 0.1, 10))
        return jax.scipy.special.ndtr((mean - 0.5) / jnp.sqrt(variance))

    exact = float(jax.grad(above)(1.3))
    assert abs(exact) > 20 * found.stderr["k"]
    assert abs(found.value["k"] - exact) < SURE * found.stderr["k"]


JUMPS = {
    "convert_element_type": lambda s: (2 * s.q[0]).astype(int).astype(float),
    "sort": lambda s: jnp.argsort(jnp.stack([s.q[0], 0.5 * jnp.ones(())]))[0].astype(float),
    "rem": lambda s: jax.lax.rem(2 * s.q[0], 1.0),
    "top_k": lambda s: jax.lax.top_k(jnp.stack([s.q[0], 0.5 * jnp.ones(())]), 1)[1][0].astype(float),
    "select_and_gather_add": lambda s: jax.jvp(  # the place of the largest
        lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2,), (1,), "VALID"), (jnp.stack([s.q[0], 0.5]),), (jnp.array([1.0, 2.0]),)
    )[1][0],
}


@pytest.mark.parametrize("name", JUMPS)
def test_what_may_jump_is_known(name):
    """Numbers made whole, places in an order, remainders: a derivative of them is 0 or that of one piece. Numbers in order do not jump."""
    scheme, start = spring()
    question = Question(scheme, start, JUMPS[name], parameters_of(scheme, ["k"]), Wiener(0), start, False, False, False, {})
    assert question.jumps == name
    for smooth in (lambda s: jnp.sort(s.q)[0], lambda s: s.q[0] ** 3, lambda s: jnp.arctan2(s.p[0], s.q[0])):
        assert replace(question, of=smooth).jumps == ""
    assert replace(question, of=lambda s: jnp.arctan2(s.p[0], s.q[0])).cut
    assert not replace(question, of=square).cut


def test_a_whole_number_is_not_constant():
    """d⟨⌊2q⌋⟩/dk is that of the probabilities to be beyond its steps, and not the 0 ± 0 of the paths."""
    scheme, start = spring()
    found = bm.sensitivity(scheme, start, of=JUMPS["convert_element_type"], parameters=["k"], step=0.1, time=1.0, trajectories=1000, seed=1)
    assert found.method == "likelihood"
    assert "may jump (convert_element_type)" in found.missing["pathwise"]
    assert found.value["k"] < -5 * found.stderr["k"]


def test_an_estimator_that_sees_nothing_is_not_chosen_where_others_disagree():
    way = lambda value, error: Estimator(np.array([[value]]), np.array([[error]]), 100, 0, 1.0, "native")
    ways = {"pathwise": way(0.0, 0.0), "likelihood": way(-0.5, 0.05)}
    assert _eligible(list(ways), ways) == ["likelihood"]
    assert _eligible(list(ways), ways | {"likelihood": way(0.1, 0.05)}) == ["pathwise", "likelihood"]


def test_the_way_back_is_the_way_there():
    """Backwards = forwards to 1e-8 on every trajectory over more stretches than there are slots, with looks on the way."""
    system = bm.mechanical(
        bm.Euclidean(1), potential=lambda q, parameters: parameters["a"] * q[0] ** 2 + parameters["b"] * q[0] ** 4, parameters={"a": 0.3, "b": 0.2}
    )
    scheme = bm.Langevin(system, temperature=1.0, friction=0.5)
    start = scheme.start(jnp.array([0.4]), velocity=jnp.array([0.5]))
    chosen = parameters_of(scheme, ["a", "b", "friction"])
    run = {"step": 0.05, "steps": 700, "every": 7, "burn_in": 50, "first": 3, "trajectories": 5, "t0": 0.0}
    there = follow(scheme, start, square, chosen, NoiseShift(), Wiener(8), **run)
    back = backward(scheme, start, square, chosen, Wiener(8), slots=3, **run)
    np.testing.assert_allclose(back.value, there.value, rtol=1e-10)
    np.testing.assert_allclose(back.gradient, there.tangent, rtol=1e-8, atol=1e-8)
    assert back.held <= 4
    assert back.passes == 3


def test_states_kept_do_not_grow_with_time():
    """(s + r)!/(s! r!) stretches by s slots and r passes: a hundred thousand steps take three passes, and no more states than 24."""
    assert passes_for(100_000 // STRETCH, SLOTS) == 3
    assert passes_for(2925, 24) == 3
    assert passes_for(2926, 24) == 4


def bead(friction=1.0):
    """A bead on a sphere |q| = l with U = z: ⟨z⟩ = −l L(l), L(x) = coth x − 1/x."""
    potential, sphere = (lambda q: q[2]), (lambda q, parameters: jnp.array([q @ q - parameters["l"] ** 2]))
    system = bm.mechanical(bm.Euclidean(3), potential=potential, constraint=sphere, parameters={"l": 1.0})
    scheme = bm.Langevin(system, temperature=1.0, friction=friction)
    return scheme, scheme.start(jnp.array([1.0, 0.0, 0.0]), temperature=1.0)


@pytest.mark.long
def test_what_moves_a_constraint_has_no_covariance():
    """∂u/∂l = 0, but the surface moves: refused where only the energy is differentiated, and at a time, for which the start says nothing."""
    settings = {"of": lambda s: s.q[2], "parameters": ["l"], "step": 0.1, "steps": 20}
    with pytest.raises(BismutError, match="moves the surface"):
        bm.sensitivity(*bead(), equilibrium=True, method="covariance", **settings)
    for method in ("pathwise", "likelihood", "adjoint"):
        with pytest.raises(BismutError, match="the constraint of one value alone"):
            bm.sensitivity(*bead(), method=method, **settings)
    with pytest.raises(BismutError, match="moves the surface"):
        bm.fit_averages(*bead(), averages={"z": (lambda s: s.q[2], -0.3)}, parameters=["l"], step=0.1, steps=20, burn_in=5)


@pytest.mark.slow
def test_a_sphere_that_grows():
    """d⟨z⟩/dl = −(coth 1 − 1/sinh² 1) = −0.5890 at l = 1 by what follows the paths, on the constraint all the way."""
    exact = -(1 / np.tanh(1.0) - 1 / np.sinh(1.0) ** 2)
    settings = {"of": lambda s: s.q[2], "parameters": ["l"], "equilibrium": True, "step": 0.1, "steps": 400, "burn_in": 50, "every": 2}
    found = bm.sensitivity(*bead(3.0), method="adjoint", trajectories=400, seed=1, **settings)
    print(found)
    assert found.stderr["l"] < 0.06
    assert abs(found.value["l"] - exact) < SURE * found.stderr["l"]


@pytest.mark.slow
def test_thousands_of_parameters_by_one_backward_pass():
    """A network as a potential: the gradient of ⟨q²⟩ along a random direction is the slope at fixed noise."""
    rng = np.random.default_rng(0)
    weights = {"net": {"in": 0.3 * rng.normal(size=(40, 2)), "mid": 0.1 * rng.normal(size=(40, 40)), "out": 0.3 * rng.normal(size=40)}}

    def potential(q, parameters):
        net = parameters["net"]
        return 0.5 * q @ q + net["out"] @ jnp.tanh(net["mid"] @ jnp.tanh(net["in"] @ q))

    system = bm.mechanical(bm.Euclidean(2), potential=potential, parameters=weights)
    scheme = bm.Langevin(system, temperature=1.0, friction=1.0)
    start = scheme.start(jnp.ones(2), velocity=jnp.zeros(2))
    found = bm.sensitivity(scheme, start, of=lambda s: s.q @ s.q, step=0.1, steps=8, trajectories=32, seed=1)
    assert found.method == "adjoint"
    assert "1720 parameters" in found.missing["pathwise"]
    direction = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), weights)
    slope = sum(float(np.sum(np.asarray(a) * b)) for a, b in zip(jax.tree.leaves(found.value), jax.tree.leaves(direction), strict=True))

    def mean(e):
        moved = jax.tree.map(lambda w, d: w + e * d, weights, direction)
        other = bm.Langevin(system.with_parameters(moved), temperature=1.0, friction=1.0)
        run = bm.simulate(other, start, step=0.1, steps=8, trajectories=32, seed=1, observe={"o": bm.values(lambda s: s.q @ s.q, every=8)})
        return np.asarray(run.o.value)[:, -1].mean()

    assert slope == pytest.approx((mean(1e-5) - mean(-1e-5)) / 2e-5, rel=1e-6)


def test_refusals():
    scheme, start = spring()
    with pytest.raises(DomainError, match="no parameter 'mass'"):
        bm.sensitivity(scheme, start, of=square, parameters=["mass"], step=0.1, steps=10)
    with pytest.raises(DomainError, match="steps= or time="):
        bm.sensitivity(scheme, start, of=square, step=0.1)
    with pytest.raises(DomainError, match="no multiple"):
        bm.sensitivity(scheme, start, of=square, step=0.3, time=1.0)
    with pytest.raises(BismutError, match="distribution is not known"):
        bm.sensitivity(scheme, start, of=square, step=0.1, steps=10, method="covariance")


@pytest.mark.slow
def test_estimators_agree_and_report():
    """All at once, on one question: they agree, the text and the plain data say so."""
    scheme, start = spring()
    found = bm.sensitivity(scheme, start, of=square, parameters=["k"], step=0.1, time=1.0, trajectories=2000, seed=6)
    assert set(found.estimators) == {"pathwise", "likelihood", "adjoint"}
    assert found.agree
    assert "the estimators agree" in repr(found)
    assert found.as_json()["estimators"]["pathwise"]["trajectories"] == 2000


@pytest.mark.slow
@pytest.mark.parametrize("splitting", [bm.BAOAB, bm.Metropolised()], ids=str)
def test_a_dipole_on_the_sphere(splitting):
    """U = −a cos θ on SO(3): d⟨cos⟩/da = 1/a² − 1/sinh² a = 0.2759383 at a = 1."""
    body = bm.mechanical(bm.SO3(), mass=jnp.array([1.0, 2.0, 3.0]), potential=lambda R, parameters: -parameters["a"] * R[2, 2], parameters={"a": 1.0})
    scheme = bm.Langevin(body, temperature=1.0, friction=1.0, splitting=splitting)
    found = bm.sensitivity(
        scheme,
        scheme.start(jnp.eye(3), temperature=1.0),
        of=lambda s: s.q[2, 2],
        step=0.1,
        steps=2000,
        burn_in=200,
        trajectories=2000,
        equilibrium=True,
        method="covariance",
    )
    print(found)
    assert found.stderr["a"] < 1.5e-3
    assert abs(found.value["a"] - 0.2759383) < SURE * found.stderr["a"] + (5e-4 if splitting is bm.BAOAB else 0.0)


@pytest.mark.slow
def test_singular_friction_on_a_group():
    """Noise about one axis alone: the likelihood ratio undoes what it reaches, and agrees with the pathwise derivative."""
    body = bm.mechanical(
        bm.SO3(), mass=jnp.array([1.0, 2.0, 3.0]), potential=lambda R, parameters: -parameters["a"] * R[2, 2] - 0.3 * R[0, 1], parameters={"a": 1.0}
    )
    scheme = bm.Langevin(body, temperature=1.0, friction=jnp.array([1.0, 0.0, 0.0]))
    start = scheme.start(jnp.eye(3), velocity=jnp.array([0.5, 0.2, 0.1]))
    found = bm.sensitivity(scheme, start, of=lambda s: s.q[2, 2], step=0.05, time=1.0, trajectories=4000, seed=3)
    print(found)
    assert "noise undoes momenta" in found.estimators["likelihood"].note
    assert found.agree


@pytest.mark.slow
def test_a_hundred_thousand_steps_backwards():
    """Forward and backward agree to 1e-8 after 10⁵ steps too, and no more than 24 states and one were ever kept."""
    scheme, start = spring()
    chosen = parameters_of(scheme, ["k"])
    run = {"step": 0.05, "steps": 100_000, "every": 100_000, "burn_in": 0, "first": 0, "trajectories": 4, "t0": 0.0}
    there = follow(scheme, start, square, chosen, NoiseShift(), Wiener(1), **run)
    back = backward(scheme, start, square, chosen, Wiener(1), **run)
    np.testing.assert_allclose(back.gradient, there.tangent, rtol=1e-8, atol=1e-8)
    assert back.held <= SLOTS + 1


@pytest.mark.parametrize("method", ["pathwise", "covariance"])
def test_a_function_that_is_no_number_is_named(method):
    """A smaller step would not help; nor would it with one trajectory, which has no error."""
    scheme, start = spring()
    settings = {"parameters": ["k"], "step": 0.1, "steps": 10, "method": method, "equilibrium": method == "covariance"}
    with pytest.raises(BismutError, match=r"O, the function `of`, is NaN or infinite"):
        bm.sensitivity(scheme, start, of=lambda s: jnp.sqrt(-1.0 - s.q[0] ** 2), trajectories=4, **settings)
    with pytest.raises(DomainError, match=r"trajectories must be a whole number ≥ 2, got 1. Errors"):
        bm.sensitivity(scheme, start, of=square, trajectories=1, **settings)
