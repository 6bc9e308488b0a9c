"""What NumPy carries out is what JAX computes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.body_loops import Pair, pairs
from bismut.flows import VariationalFlow
from bismut.programs import evaluation
from bismut.programs.evaluation import evaluate, evaluator
from bismut.programs.operations import body_loops


def test_what_is_traced_is_left_to_jax():
    """Derivatives go through, with respect to arguments and to what a function closes over."""
    assert jax.grad(lambda a: evaluate(lambda x: jnp.sin(a * x), 2.0))(0.5) == pytest.approx(2 * np.cos(1.0))
    assert jax.grad(lambda a: evaluate(lambda x: x**3, a))(2.0) == pytest.approx(12.0)


def test_single_precision_stays_single():
    x = np.float32([0.1, 0.2, 0.3])
    found = evaluate(lambda x: (x @ x + x**3, 1 / x, jnp.sum(x) * 2.0, x.astype(jnp.int32)), x)
    assert [leaf.dtype for leaf in found] == [np.float32, np.float32, np.float32, np.int32]


COMPILED: list[str] = []
jax.monitoring.register_event_duration_secs_listener(lambda name, seconds, **_: COMPILED.append(name) if "backend_compile" in name else None)


def test_asking_a_system_compiles_nothing():
    """Energy, momentum and velocity of a known state, and how its step is solved: nobody waits for a compiler."""
    system = bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 2.5], potential=lambda R: R[2, 2] ** 2, noise=lambda R: R[0, :2])
    state = bm.State(jax.device_put(np.eye(3)), jax.device_put(np.array([0.3, 0.2, 0.1])))
    COMPILED.clear()
    energy, v = system.energy(state), system.velocity(state.q, state.p)
    assert not VariationalFlow(bm.Midpoint(system)).structure().linear
    assert float(energy) == pytest.approx(0.5 * (0.09 + 0.02 + 0.004) + 1)
    np.testing.assert_allclose(v, [0.3, 0.1, 0.04], rtol=1e-14)
    assert not COMPILED


def test_a_function_that_is_asked_again_is_traced_once():
    traces = []
    square = evaluator(lambda x: traces.append(1) or x @ x)
    assert [float(square(np.full(3, k))) for k in (1.0, 2.0)] == [3.0, 12.0]
    assert len(traces) == 1
    assert float(square(np.ones(4))) == 4.0
    assert len(traces) == 2


def test_a_method_is_traced_once_for_all_numbers():
    """Parameters, points and momenta are what it is given; another function is another program."""
    spring = lambda q, parameters: 0.5 * parameters["k"] * q[0] ** 2
    system = bm.mechanical(bm.Euclidean(1), potential=spring, parameters={"k": 1.0})
    energy = lambda k, q: float(system.with_parameters({"k": k}).energy(bm.State(jnp.array([q]), jnp.array([0.0]))))
    assert energy(1.0, 1.0) == 0.5
    before = evaluation._METHODS.misses
    assert [energy(k, q) for k, q in ((1.0, 2.0), (3.0, 1.0), (4.0, 2.0))] == [2.0, 1.5, 8.0]
    assert evaluation._METHODS.misses == before
    other = [bm.mechanical(bm.Euclidean(1), potential=lambda q, a=a: a * q[0]) for a in (1.0, 2.0)]
    assert [float(one.energy(bm.State(jnp.array([3.0]), jnp.array([0.0])))) for one in other] == [3.0, 6.0]


def test_pairs_of_bodies_are_found_once(monkeypatch):
    """What is asked twice, such as an energy, is carried out without looking at the loop again."""

    def interpreted(*_):
        raise AssertionError("a loop was carried out equation by equation")

    monkeypatch.setattr(body_loops, "run_numpy", interpreted)
    x = np.random.default_rng(0).normal(size=(7, 3))
    energy = evaluator(lambda x: pairs(lambda a, b, own: Pair(total=(a - b) @ (a - b)), x).total)
    for scale in (1.0, 2.0):
        np.testing.assert_allclose(energy(scale * x), scale**2 * 7 * (x - x.mean(0)).ravel() @ (x - x.mean(0)).ravel(), rtol=1e-13)
