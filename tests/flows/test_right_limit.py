"""On ℝⁿ the limit is the Stratonovich solution, and errors fall like h: judged by diffrax on the same Brownian path.

The judge solves the ODE driven by the piecewise linear path through W at the finest grid points (Wong–Zakai), with a tight adaptive solver. Its
own distance to the limit is 1/16 of that of the coarsest step here.
"""

import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings.convergence_study import coarsened, fine_increments
from bismut.flows import flow
from bismut.noise import Wiener
from tests.flows.catalogue import once, system
from tests.systems import random_state

TIME, FINEST, LEVELS, PATHS = 1.0, 1024, (16, 32, 64), 16
MASS = jnp.array([1.0, 2.0, 0.5])


def potential(q):
    return jnp.cos(q[0] - 2 * q[1]) + 0.1 * jnp.sum(q**4) + q[0] * q[2]


def noise(q):
    return jnp.array([jnp.sin(q[0] * q[1]), q[2] ** 2])


@functools.cache
def increments() -> np.ndarray:
    return fine_increments(bm.Verlet(system("separable")), Wiener(5), TIME / FINEST, FINEST, PATHS)


@functools.cache
def judged() -> np.ndarray:
    """(q, p) at the final time of every path, by diffrax and from the formulas above alone."""
    start = random_state(system("separable"), 6)
    W = np.concatenate([np.zeros((PATHS, 1, 2)), np.cumsum(increments(), 1)], 1)
    times = jnp.linspace(0, TIME, FINEST + 1)

    def solve(w):
        control = diffrax.LinearInterpolation(times, w)

        def field(t, z, _):
            q, p = z
            return p / MASS, -jax.grad(potential)(q) + jax.grad(lambda x: noise(x) @ control.derivative(t))(q)

        # The path has a kink at every grid point: a step never crosses one.
        steps = diffrax.StepTo(times)
        q, p = diffrax.diffeqsolve(diffrax.ODETerm(field), diffrax.Tsit5(), 0, TIME, None, (start.q, start.p), stepsize_controller=steps).ys
        return jnp.concatenate([q[-1], p[-1]])

    return np.asarray(jax.jit(jax.vmap(solve))(jnp.asarray(W)))


def errors(make) -> np.ndarray:
    """Root mean square over paths of the distance to the judge, for each level."""
    scheme = make(system("separable"))
    start = random_state(scheme.system, 6)

    def final(h, dW, steps):
        return jax.lax.fori_loop(0, steps, lambda k, z: flow(scheme).advance(z, h, dW[k], h * k)[0], start)

    run = once(jax.vmap(final, (None, 0, None)))
    found = [run(TIME / n, jnp.asarray(coarsened(increments(), n)), n) for n in LEVELS]
    return np.array([np.sqrt(np.mean(np.sum((np.concatenate([z.q, z.p], 1) - judged()) ** 2, 1))) for z in found])


@pytest.mark.parametrize("make", [bm.VariationalEuler, bm.Verlet])
def test_the_error_to_the_judge_halves_with_the_step(make):
    """Slope 1 ± 0.15 over 16 fixed paths. A scheme with another limit would stop at its distance from it: slope 0."""
    found = errors(make)
    slope = np.polyfit(np.log(TIME / np.array(LEVELS)), np.log(found), 1)[0]
    assert abs(slope - 1) < 0.15
