"""One trajectory, kept whole, and differentiable.

    φ_{t,s}(θ_s ω) ∘ φ_{s,r}(ω) = φ_{t,r}(ω)

Cutting a run at step s, shifting the path by s and going on gives the same bits as not cutting it.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.ensembles.checks import check_start, check_step, count, one_start
from bismut.errors import DomainError
from bismut.flows import Solve, flow
from bismut.mechanics import Scheme, State
from bismut.noise import Wiener, advance, words
from bismut.spaces import Point


class Trajectory(NamedTuple):
    """Times, states along the first axis, and how each recorded interval was solved (worst residual, all converged, iterations)."""

    times: Float[Array, " records"]
    states: State
    solve: Solve

    @property
    def q(self) -> Point:
        return self.states.q

    @property
    def p(self):
        return self.states.p

    @property
    def final(self) -> State:
        return jax.tree.map(lambda leaf: leaf[-1], self.states)


def trajectory(
    scheme: Scheme,
    start,
    *,
    step: float,
    steps: int,
    every: int = 1,
    seed: int = 0,
    trajectory: int = 0,
    path: Wiener | None = None,
    t0: float = 0.0,
) -> Trajectory:
    """The states of one trajectory at every `every` steps. jax.grad and jax.jvp go through it, by implicit differentiation of each step."""
    check_step(step)
    steps, every = count(steps, "steps"), count(every, "every")
    if steps % every:
        raise DomainError(f"steps must be a multiple of every so that the last state is kept, but steps = {steps} and every = {every} came.")
    path = Wiener(seed) if path is None else path
    state = one_start(start, path, trajectory, check_start(scheme, start))
    states, solve = _run(scheme, state, path, words(trajectory), jnp.asarray(step, scheme.system.dtype), t0, records=steps // every, every=every)
    times = t0 + step * every * jnp.arange(steps // every + 1)
    return Trajectory(times, states, solve)


@eqx.filter_jit
def _run(scheme: Scheme, state: State, path: Wiener, index, h, t0, *, records: int, every: int):
    stepper, system = flow(scheme), scheme.system

    def one(carry, _):
        state, k, worst, solved, total = carry
        dW = path.increment(index, k, system.channels, h, system.dtype)
        t = t0 + h * (k[0].astype(system.dtype) + 2.0**32 * k[1].astype(system.dtype))
        state, solve = stepper.advance(state, h, dW, t)
        return (state, advance(k, 1), jnp.maximum(worst, solve.residual), solved & solve.converged, total + solve.iterations), None

    def record(carry, _):
        state, k = carry
        fresh = (state, k, jnp.zeros((), system.dtype), jnp.array(True), jnp.zeros((), int))
        (state, k, worst, solved, total), _ = jax.lax.scan(one, fresh, length=every)
        return (state, k), (state, Solve(worst, solved, total))

    _, (states, solve) = jax.lax.scan(record, (state, words(0)), length=records)
    return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), state, states), solve
