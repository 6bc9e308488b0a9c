"""Averages over an ensemble that can be differentiated.

    A(θ) = (1/n) Σ_i f(z_i(T; θ)),        dA/dθ = (1/n) Σ_i ∂f/∂z · ∂z_i(T)/∂θ        (pathwise, at fixed noise)

    jax.grad(lambda k: bm.average(bm.energy, bm.Midpoint(system.with_parameters({"k": k})), start, step=h, steps=1000, trajectories=100))(1.0)

Where steps are accepted or refused the two sides differ, because acceptance depends on θ as well: there the derivative is refused.

The path is not stored: states are kept at about √steps places and the steps between are made again on the way back, so memory grows with the square
root of the number of steps, and blocks of trajectories come one after the other. A trajectory that fails makes the average not a number.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from bismut.ensembles.block import step_of
from bismut.ensembles.checks import check_start, check_step, chosen_path, count, many_starts, one_start
from bismut.ensembles.observable import Measure, measure
from bismut.errors import BismutError, DomainError
from bismut.flows import flow, remember
from bismut.mechanics import Scheme, State
from bismut.noise import Index, Wiener, advance, words

_BLOCK = 256  # trajectories differentiated together


def average(
    of: Any,
    scheme: Scheme,
    start,
    *,
    step: Any,
    steps: int,
    trajectories: int = 1,
    seed: int | None = None,
    path: Wiener | None = None,
    t0: float = 0.0,
    over: str = "end",
) -> Float[Array, "..."]:
    """The mean over trajectories of a function of a State, at the end of the run or, with over="time", over the states after every step.

    jax.grad, jax.jacobian and jax.value_and_grad go through it, with respect to parameters, start and step, at fixed noise. Arguments as
    for simulate.
    """
    check_step(step)
    steps, trajectories = count(steps, "steps"), count(trajectories, "trajectories")
    if over not in ("end", "time"):
        raise DomainError(f'over must be "end" or "time", but {over!r} came.')
    path = chosen_path(seed, path)
    if not scheme.pathwise:
        scheme, start, step = jax.tree.map(_undifferentiated, (scheme, start, step))
    batch = check_start(scheme, start)
    if batch and batch != (trajectories,):
        raise DomainError(f"start holds {batch} states, but trajectories = {trajectories} came. Give one start, or one for each trajectory.")
    dtype, size = scheme.system.dtype, min(_BLOCK, trajectories)
    found = measure(of, scheme, "of", one_start(start, path, 0, batch))
    h, begin = jnp.asarray(step, dtype), jnp.asarray(t0, dtype)
    total: Any = 0.0
    for first in range(0, trajectories, size):
        numbers = np.arange(first, first + size)
        weight = jnp.asarray(numbers < trajectories, dtype)
        states = many_starts(start, path, np.minimum(numbers, trajectories - 1), batch)
        total = total + _block(scheme, found, path, states, words(numbers), weight, h, begin, steps, over == "time")
    return total / trajectories


@jax.custom_jvp
def _fixed(x):
    return x


@_fixed.defjvp
def _(primals, tangents):
    del primals, tangents
    raise BismutError(
        "The gradient of an average through Metropolised steps is not that of its paths, because acceptance depends on the parameters too. "
        "Use splitting=BAOAB, or differences of averages at two values."
    )


def _undifferentiated(leaf):
    return _fixed(leaf) if isinstance(leaf, Tracer) else leaf


@eqx.filter_jit
def _block(scheme: Scheme, found: Measure, path: Wiener, states: State, index: Index, weight, h, t0, steps: int, summed: bool):
    """The sum over the trajectories of one block."""
    step, stepper, dtype = step_of(scheme), flow(scheme), scheme.system.dtype
    time = lambda k: t0 + h * (k[0].astype(dtype) + jnp.asarray(2.0**32, dtype) * k[1].astype(dtype))

    def one(carry, _):
        states, found_before, k, total = carry
        dW = path.increment(index, k, scheme.channels, h, dtype, clipped=scheme.clipped)
        states, found_now = jax.vmap(lambda *now: step(now, h, time(k)))(states, found_before, dW)
        k = advance(k, 1)
        return (states, found_now, k, total + _weighted(found(states, time(k)), weight) if summed else total), None

    @jax.checkpoint
    def stretch(carry, _):
        return jax.lax.scan(one, carry, length=inner)

    inner = max(1, int(np.sqrt(steps)))
    blank = jnp.zeros(jax.eval_shape(lambda: _weighted(found(states, t0), weight)).shape, dtype)
    carry = (states, jax.vmap(lambda state: remember(stepper, state, t0))(states), words(0), blank)
    carry, _ = jax.lax.scan(stretch, carry, length=steps // inner)
    if steps % inner:
        carry, _ = jax.lax.scan(one, carry, length=steps % inner)
    states, _, k, total = carry
    return total / steps if summed else _weighted(found(states, time(k)), weight)


def _weighted(values: Float[Array, "n ..."], weight: Float[Array, " n"]) -> Float[Array, "..."]:
    return jnp.tensordot(weight, values, axes=1)
