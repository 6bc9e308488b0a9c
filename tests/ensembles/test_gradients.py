"""Derivatives of ensemble averages by parameters are those of the average at fixed noise: they agree with finite differences."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.errors import BismutError
from bismut.programs.evaluation import evaluate, evaluator
from tests.engines.test_split import cosine


@functools.cache
def top() -> bm.System:
    return bm.mechanical(
        bm.SO3(),
        mass=[1.0, 2.0, 2.5],
        potential=lambda R, parameters: parameters["weight"] * R[2, 2] + 0.4 * R[2, 0],
        noise=lambda R, parameters: parameters["s"] * jnp.array([R[2, 2], R[2, 1] ** 2]),
        parameters={"weight": 3.0, "s": 0.4},
    )


def tilt(state: bm.State):
    return state.q[2, 2] ** 2 + state.p[0]


@pytest.mark.parametrize("over", ["end", pytest.param("time", marks=pytest.mark.slow)])
def test_gradient_is_the_slope_on_common_noise(over):
    system = top()  # made outside of what is traced

    def mean(weight, s):
        scheme = bm.VariationalEuler(system.with_parameters({"weight": weight, "s": s}))
        start = bm.State(jnp.eye(3), jnp.array([0.3, 0.2, 1.0]))
        return bm.average(tilt, scheme, start, step=0.05, steps=23, trajectories=5, seed=4, over=over)

    slopes = evaluate(jax.grad(mean, (0, 1)), 3.0, 0.4)
    fast, e = evaluator(mean), 1e-5
    by_weight = (float(fast(3.0 + e, 0.4)) - float(fast(3.0 - e, 0.4))) / (2 * e)
    by_noise = (float(fast(3.0, 0.4 + e)) - float(fast(3.0, 0.4 - e))) / (2 * e)
    np.testing.assert_allclose(np.asarray(slopes), (by_weight, by_noise), rtol=1e-7)
    assert min(abs(float(s)) for s in slopes) > 1e-3


def test_average_is_that_of_simulate():
    scheme = bm.VariationalEuler(top())
    start = scheme.start(jnp.eye(3), velocity=jnp.array([0.3, 0.1, 0.4]))
    result = bm.simulate(scheme, start, step=0.05, steps=23, trajectories=5, seed=4, observe={"tilt": tilt})
    mean = bm.average(tilt, scheme, start, step=0.05, steps=23, trajectories=5, seed=4)
    assert float(mean) == pytest.approx(float(result.tilt.mean[-1]), rel=1e-12)


def test_memory_grows_with_the_root_of_the_steps():
    """What the way back has to keep, counted in the compiled program: sixteen times the steps, four times the states."""

    def kept(steps: int) -> int:
        system = bm.mechanical(
            bm.Euclidean(2), potential=lambda q, parameters: parameters["k"] * jnp.sum(q**4), noise=lambda q: q, parameters={"k": 1.0}
        )

        def mean(k):
            scheme = bm.VariationalEuler(system.with_parameters({"k": k}))
            return bm.average(lambda s: s.q[0], scheme, bm.State(jnp.ones(2), jnp.zeros(2)), step=0.01, steps=steps, trajectories=64)

        return jax.jit(jax.grad(mean)).lower(1.0).compile().memory_analysis().temp_size_in_bytes

    assert kept(16 * 256) < 8 * kept(256)


def test_the_gradient_of_an_average_over_accepted_steps_is_refused():
    """Acceptance depends on the parameter too: along paths d⟨q²⟩/dk of a spring at h = 1.2 is −0.34 instead of −1. The average itself is given."""
    spring = bm.mechanical(bm.Euclidean(1), potential=lambda q, parameters: 0.5 * parameters["k"] * q @ q, parameters={"k": 1.0})

    def mean(k, start=1.0, step=1.2):
        scheme = bm.Langevin(spring.with_parameters({"k": k}), 1.0, 1.0, bm.Metropolised())
        begin = bm.State(start * jnp.ones(1), jnp.zeros(1))
        return bm.average(lambda state: state.q[0] ** 2, scheme, begin, step=step, steps=4, trajectories=8)

    for which in (0, 1):
        with pytest.raises(bm.errors.BismutError, match="acceptance depends on the parameters"):
            jax.grad(mean, which)(1.0, 1.0)
    assert float(evaluate(mean, 1.0)) == pytest.approx(float(mean(1.0)), rel=1e-12)


def test_nothing_is_averaged_over_the_burn_in():
    """Σ over m + n steps = Σ over the first m + Σ over the n after a burn-in of m; at the end both arrive at one state."""
    scheme = lambda k: bm.Verlet(
        bm.mechanical(bm.Euclidean(1), potential=lambda q, parameters: parameters * jnp.sum(q**4), noise=lambda q: q, parameters=k)
    )
    start = scheme(1.0).start(np.ones(1), velocity=np.ones(1))
    mean = lambda k, m, n, over="time": bm.average(
        lambda state: state.q[0], scheme(k), start, step=0.1, steps=n, burn_in=m, over=over, seed=3, trajectories=2
    )
    m, n = 5, 7
    np.testing.assert_allclose(m * mean(1.0, 0, m) + n * mean(1.0, m, n), (m + n) * mean(1.0, 0, m + n), rtol=1e-12)
    np.testing.assert_allclose(mean(1.0, m, n, "end"), mean(1.0, 0, m + n, "end"), rtol=1e-12)


def test_a_trajectory_is_computed_by_the_engine_that_was_asked_for():
    scheme = bm.Verlet(bm.mechanical(bm.Circle(), potential=jnp.cos))
    odd = bm.Verlet(bm.mechanical(bm.Circle(), potential=cosine))
    run = lambda scheme, mode: bm.trajectory(scheme, scheme.start(0.3, velocity=0.1), step=0.1, steps=4, mode=mode)
    for mode in ("native", "xla"):
        np.testing.assert_allclose(run(scheme, mode).q, run(scheme, "auto").q, rtol=1e-13)
    with pytest.raises(BismutError, match='mode="native" cannot run this'):
        run(odd, "native")
    np.testing.assert_allclose(run(odd, "auto").q, run(scheme, "auto").q, rtol=1e-13)
    with pytest.raises(BismutError, match="cannot be differentiated"):
        jax.grad(lambda v: bm.trajectory(scheme, scheme.start(0.3, velocity=v), step=0.1, steps=1, mode="native").q[-1])(0.1)
