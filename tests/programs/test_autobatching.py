"""A loop written in Python is the same function rolled up: values and derivatives to round-off, in few equations however long it is.

n = 10, 20, 30 points, every pair in a Python loop: the native engine, prepared within seconds of processor time
"""

import logging
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.engines import choice
from bismut.programs import autobatching
from bismut.programs.autobatching import rolled_up
from bismut.programs.evaluation import evaluate

N = 9
RANDOM = np.random.default_rng(7)
WEIGHTS, START = RANDOM.uniform(0.5, 2, size=(N, N)), RANDOM.normal(size=(N, 3))


def _pairs():
    return [(i, j) for i in range(N) for j in range(i)]


def plainly(x):
    total = 0.0
    for i, j in _pairs():
        d = x[i] - x[j]
        total += 1 / (0.1 + d @ d)
    return total


def weighted_and_hoisted(x):
    """Strengths of their own, x_i read before the inner loop, calls inside, subtraction."""
    total = jnp.sum(x**2)
    for i in range(N):
        here = x[i]
        for j in range(i + 1, N):
            r = jnp.linalg.norm(here - 2 * x[j] + 0.1)
            total -= WEIGHTS[i, j] * jnp.where(r < 2, jnp.exp(-r) * here[1], r)
    return total


def by_components(x):
    total = x[0, 0]
    for i, j in _pairs():
        dx, dy, dz = x[i, 0] - x[j, 0], x[i, 1] - 2 * x[j, 1], x[i, 2] * x[j, 2]
        total = jnp.sin(dx) * dy + (dx * dx + dy * dy + dz * dz) ** 1.5 + total
    return total


def of_densities(x):
    """Sums of different lengths, of which another is taken: half lists, and a chain."""
    total = 0.0
    for i in range(1, N):
        density = 0.0
        for j in range(i):
            density += jnp.exp(-jnp.sum((x[i] - x[j]) ** 2)) * (1 + x[j, 0])
        total += jnp.sqrt(density + 0.3) + jnp.sum((x[i] - x[i - 1]) ** 4)
    return total


def differences_of_terms(x):
    """The first term is made as the others are, and stays whole."""
    total = x[0] @ x[1] - x[2] @ x[3]
    for i, j in _pairs():
        total += x[i] @ x[j] - jnp.cos(x[i, 0]) * x[j, 2]
    return total


def added_forces(x):
    forces = jnp.zeros_like(x)
    for i, j in _pairs():
        f = (x[i] - x[j]) * jnp.exp(-jnp.sum((x[i] + 0.5 * x[j]) ** 2))
        forces = forces.at[i].add(f)
        forces = forces.at[j].add(-2 * f)
    return forces


def stacked_forces(x):
    forces = []
    for i in range(N):
        f = x[i] ** 2
        for j in range(N):
            if i != j:
                f = f + WEIGHTS[i, j] * jnp.sin(x[i] * x[j])
        forces.append(f)
    return jnp.stack(forces)


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    """Functions of a few hundred equations, of which XLA makes code in a bearable time, are rolled up."""
    monkeypatch.setattr(autobatching, "LONG", 150)
    autobatching._READ._values.clear()


LOOPS = (plainly, weighted_and_hoisted, by_components, of_densities, differences_of_terms, added_forces, stacked_forces, jax.grad(plainly))


def _ids(function):
    return getattr(function, "__name__", "?") if function is not LOOPS[-1] else "a gradient inside"


@pytest.mark.parametrize("function", LOOPS, ids=_ids)
def test_a_loop_rolled_up_is_the_same_function(function):
    """Relative to the largest entry, 1e−12: values, and the derivative of Σ cos(f) entry by entry."""
    probe = RANDOM.normal(size=jax.eval_shape(function, START).shape)

    def probed(value):
        return jnp.sum(jnp.cos(value) * probe), value

    both = lambda f: jax.value_and_grad(lambda x: probed(f(x)), has_aux=True)
    rolled = both(lambda x: rolled_up(function, x))
    assert len(jax.make_jaxpr(rolled)(START).jaxpr.eqns) < 250
    assert len(jax.make_jaxpr(both(function))(START).jaxpr.eqns) > 400
    (_, value), slope = evaluate(rolled, START)
    (_, expected), expected_slope = evaluate(both(function), START)
    for a, b in ((value, expected), (slope, expected_slope)):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.abs(b).max())


def test_parameters_and_forward_derivatives_go_through():
    def function(x, parameters, t):
        total = 0.0
        for i, j in _pairs():
            total += parameters["strength"] * jnp.tanh(x[i] @ x[j] * t)
        return {"U": total, "same": x}

    given, more = (START, {"strength": 0.7}, 1.3), (0.1 * START[::-1], {"strength": 0.2}, 0.5)
    ours, plain = (jax.jvp(f, given, more) for f in (lambda *a: rolled_up(function, *a), function))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), ours, plain)


@pytest.mark.parametrize("length", [20, 400])
def test_what_does_not_get_shorter_stays_as_it_is(length):
    """A short function, and one that goes on from what it had: equal jaxprs."""

    def function(x):
        for k in range(length):
            x = jnp.sin(x) + 0.1 * k
        return jnp.sum(x)

    plain, ours = (str(jax.make_jaxpr(f)(START)) for f in (function, lambda x: rolled_up(function, x)))
    assert plain == ours


def test_numbers_that_jax_traces_may_be_closed_over():
    def outer(strength):
        def function(x):
            return sum(strength * jnp.tanh(x[i] @ x[j]) for i, j in _pairs())

        return jax.grad(lambda x: rolled_up(function, x))(START)

    np.testing.assert_allclose(jax.jit(outer)(2.0), 2 * jax.jit(outer)(1.0), rtol=1e-12)


def _scheme(n, potential):
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(3 * n), mass=1.0, potential=potential))
    q = 2 * np.random.default_rng(n).normal(size=3 * n)
    return scheme, scheme.start(q, velocity=np.zeros(3 * n))


@pytest.mark.parametrize("n", [10, 20, pytest.param(30, marks=pytest.mark.slow)])
def test_a_sum_over_pairs_in_a_python_loop_is_prepared_at_once(n):
    """By the native engine, and what arrays give to 1e−11; it takes 1 to 3 s of processor time, where 14 points took 12 and 30 never ended."""

    def loop(q):
        x, total = q.reshape(n, 3), 0.0
        for i in range(n):
            for j in range(i):
                d = x[i] - x[j]
                total += 1 / (0.1 + d @ d)
        return total

    def arrays(q):
        i, j = np.tril_indices(n, -1)
        d = q.reshape(n, 3)[i] - q.reshape(n, 3)[j]
        return jnp.sum(1 / (0.1 + jnp.sum(d**2, 1)))

    run = {"step": 0.01, "steps": 20, "trajectories": 2, "seed": 1, "every": 20}
    began = time.process_time()
    scheme, start = _scheme(n, loop)
    ours = bm.simulate(scheme, start, observe={"q": lambda s: s.q, "U": lambda s: loop(s.q)}, **run)
    assert time.process_time() - began < 15
    assert ours.provenance.mode == "native"
    scheme, start = _scheme(n, arrays)
    expected = bm.simulate(scheme, start, observe={"q": lambda s: s.q, "U": lambda s: arrays(s.q)}, **run)
    assert np.abs(expected.q.mean[-1] - expected.q.mean[0]).max() > 1e-3
    for name in ("q", "U"):
        np.testing.assert_allclose(ours[name].mean, expected[name].mean, rtol=1e-11, atol=1e-11)


def test_a_step_that_stays_long_is_refused_before_it_is_written(monkeypatch, caplog):
    """With what to write instead."""
    choice._warn.cache_clear()
    monkeypatch.setattr("bismut.engines.native.engine.LONG_PROGRAM", 20)

    def potential(q):
        for k in range(5):
            q = jnp.sin(q) + 0.1 * k
        return jnp.sum(q)

    scheme, start = _scheme(1, potential)
    run = {"step": 0.01, "steps": 2, "trajectories": 2, "seed": 1}
    with caplog.at_level(logging.WARNING):
        result = bm.simulate(scheme, start, **run)
    assert result.provenance.mode == "xla"
    for text in (result.provenance.note, caplog.text):
        assert "take minutes to compile, with XLA too; sums over pairs or items are short where they are written with arrays" in text


@pytest.mark.parametrize("part", ["_Graph", "_BatchPlan"])
def test_what_rolling_up_does_not_foresee_leaves_the_function_as_it_is(part, monkeypatch, caplog):
    """A new release of JAX, say: the function is right as it is, only long."""

    def unforeseen(*arguments):
        raise KeyError("num_consts")

    monkeypatch.setattr(autobatching, part, unforeseen)
    monkeypatch.setattr(autobatching, "_READ", autobatching.LRUCache(4))
    with caplog.at_level(logging.WARNING, "bismut"):
        gradient = jax.grad(lambda x: rolled_up(plainly, x))(START)
    assert np.allclose(gradient, jax.grad(plainly)(START), rtol=1e-12)
    assert ["num_consts" in record.message for record in caplog.records].count(True) == 1
