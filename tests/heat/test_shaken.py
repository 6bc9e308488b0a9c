"""Stochastic potentials beside a bath: the whole noise kick in the middle of the word, and averages right to order 2.

Weak orders are measured by quadrature over the noise (`findings.convergence_study`): there is no chance in it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings.convergence_study import weak_convergence
from bismut.flows.splitting import WordSplitting
from bismut.programs.evaluation import evaluate, evaluator
from tests.systems import heavy_top, random_state

STEPS = (0.02, 0.01, 0.005)
slow = lambda *case: pytest.param(*case, marks=pytest.mark.slow)


@pytest.fixture(autouse=True)
def compiled_quickly():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def shaken() -> bm.System:
    return bm.mechanical(
        bm.Euclidean(2),
        mass=1.3,
        potential=lambda q: jnp.cos(q[0]) * q[1] + 0.3 * (q @ q) ** 2,
        noise=lambda q: jnp.array([q[0] * q[1], jnp.sin(q[0]) + q[1]]),
    )


def measured(scheme) -> float:
    start = scheme.start(jnp.array([0.3, 0.4]), velocity=jnp.array([0.5, -0.2]))
    return weak_convergence(scheme, start, STEPS, 0.0).order


WORDS = [
    (bm.BAOAB, 2),
    (bm.ABOBA, 2),
    (bm.OBABO, 2),
    slow(WordSplitting("AOBOA"), 2),
    slow(WordSplitting("BAOOAB"), 2),
    slow(WordSplitting("BAABO"), 1),
]


@pytest.mark.parametrize(("splitting", "order"), [*WORDS, slow(bm.GLA(bm.Verlet), 1), slow(bm.GLA(bm.Midpoint), 1)], ids=str)
def test_weak_orders_of_splittings(splitting, order):
    """Measured 2.005, 2.020, 1.995, 2.020, 2.005, 0.997, 0.997, 0.995; with ΔW/2 in both half kicks BAOAB measured 1.00."""
    scheme = bm.Langevin(shaken(), 1.0, 0.5, splitting)
    assert scheme.claims.weak_order == order
    assert abs(measured(scheme) - order) < 0.05


@pytest.mark.parametrize("splitting", [bm.BAOAB, slow(bm.ABOBA), slow(bm.OBABO)], ids=str)
def test_weak_orders_without_friction(splitting):
    """Measured 2.008, 1.999, 2.008: order 2 where the actions have order 1."""
    assert abs(measured(bm.Langevin(shaken(), 1.0, 0.0, splitting)) - 2) < 0.05


@pytest.mark.parametrize(
    "make", [bm.VariationalEuler, slow(bm.Midpoint), bm.Verlet, slow(bm.EulerMaruyama), slow(bm.ImplicitEulerMaruyama), slow(bm.RungeKutta4)]
)
def test_weak_orders_of_the_others(make):
    """Measured 1.001, 1.006, 1.027, 0.999, 0.998, 1.004."""
    scheme = make(shaken())
    assert scheme.claims.weak_order == 1
    assert abs(measured(scheme) - 1) < 0.05


def test_weak_order_on_a_group():
    """BAOAB with friction that depends on the rotation: measured 1.996."""
    scheme = bm.Langevin(heavy_top(), 0.7, lambda R: jnp.stack([R[2] + 0.3, R[0] * R[1, 1]], 1))
    assert abs(weak_convergence(scheme, random_state(scheme.system, 6), STEPS, 0.0).order - 2) < 0.05


@pytest.mark.parametrize(
    ("word", "whole"), [("BAOAB", "BAONOAB"), ("ABOBA", "ABONOBA"), ("OBABO", "OBANABO"), ("BAOOAB", "BAONOAB"), ("AB", "ANB"), ("ABO", "ABNBO")]
)
def test_where_the_noise_stands(word, whole):
    """In the middle, with the middle letter on both sides; and nowhere if there is none."""
    letters = WordSplitting(word)
    assert letters.sequence(shaken=True) == whole
    assert letters.sequence(shaken=False) == word
    assert letters.baths(shaken=True) == whole.count("O")


def test_the_middle_of_the_step():
    """BAOAB without friction, written out: B½ A½ N A½ B½, the noise at half time."""
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.cos(q[0]), noise=lambda q, t: jnp.sin(q + t))
    scheme = bm.Langevin(system, 1.0, 0.0)
    h, t, dW, q, p = 0.3, 0.7, 0.4, 0.2, 0.5
    new = evaluate(lambda z: scheme.advance(z, h, jnp.array([dW]), t)[0], bm.State(jnp.array([q]), jnp.array([p])))
    p += 0.5 * h * np.sin(q)
    q += 0.5 * h * p
    p += np.cos(q + t + 0.5 * h) * dW
    q += 0.5 * h * p
    p += 0.5 * h * np.sin(q)
    np.testing.assert_allclose([new.q[0], new.p[0]], [q, p], rtol=1e-14)


@pytest.mark.parametrize(("splitting", "order"), [(bm.BAOAB, 2), slow(bm.GLA(bm.Verlet), 1)], ids=str)
def test_verify_measures_the_weak_order(splitting, order):
    scheme = bm.Langevin(shaken(), 1.0, 0.5, splitting, own_noise="drives")
    report = bm.verify(scheme, scheme.start(jnp.array([0.3, 0.4]), velocity=jnp.array([0.5, -0.2])), step=0.02, integrity=False)
    assert report.ok
    assert abs(report["weak order"].measured - order) < 0.05
    assert f"weak order {order}" in bm.explain(scheme)


class Boaster(bm.VariationalEuler):
    """Says that its averages are of second order."""

    claims = bm.VariationalEuler.claims._replace(weak_order=2)


def test_a_false_weak_order_fails():
    scheme = Boaster(shaken())
    report = bm.verify(scheme, scheme.start(jnp.array([0.3, 0.4]), velocity=jnp.array([0.5, -0.2])), step=0.02, integrity=False)
    assert [finding.law for finding in report.findings if finding.held is False] == ["weak order"]


@pytest.mark.parametrize(("splitting", "piece"), [(bm.BAOAB, "drift"), (bm.OBABO, "bath")], ids=str)
def test_a_piece_that_occurs_twice_is_traced_once(splitting, piece):
    """Both equations of the step hold one and the same jaxpr."""
    scheme = bm.Langevin(bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 2.5]), 0.5, rate=1.0, splitting=splitting)
    state = bm.State(jnp.eye(3), jnp.array([0.3, 0.2, 0.1]))
    step = jax.make_jaxpr(lambda dW: scheme.advance(state, 0.1, dW, 0.0))(jnp.zeros(scheme.channels))
    first, second = (equation.params["jaxpr"] for equation in step.jaxpr.eqns if equation.params.get("name") == piece)
    assert first is second


def test_derivatives_go_through_pieces():
    """∂/∂parameter of a step by BAOAB against a difference, under vmap and jit."""
    system = bm.mechanical(
        bm.SO3(), mass=[1.0, 2.0, 2.5], potential=lambda R, parameters: parameters["a"] * R[2, 2], noise=lambda R: R[0, :1], parameters={"a": 0.7}
    )
    state = bm.State(jnp.eye(3), jnp.array([0.3, 0.2, 0.1]))

    def after(a, dW):
        scheme = bm.Langevin(system.with_parameters({"a": a}), 0.5, 1.0)
        new, _ = scheme.advance(state, 0.1, dW, 0.0)
        return new.p @ jnp.array([1.0, 2.0, 3.0]) + new.q[2, 1]

    dW = 0.3 * np.random.default_rng(0).normal(size=(3, bm.Langevin(system, 0.5, 1.0).channels))
    values = evaluator(jax.jit(jax.vmap(after, (None, 0))))
    slopes = evaluate(jax.jit(jax.vmap(jax.grad(after), (None, 0))), 0.7, dW)
    np.testing.assert_allclose(slopes, (np.asarray(values(0.7 + 1e-5, dW)) - np.asarray(values(0.7 - 1e-5, dW))) / 2e-5, rtol=1e-7)
