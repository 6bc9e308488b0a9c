"""Averages over an ensemble that can be differentiated.

    A(θ) = (1/n) Σ_i f(z_i(T; θ)),        dA/dθ = (1/n) Σ_i ∂f/∂z · ∂z_i(T)/∂θ        (pathwise, at fixed noise)

    jax.grad(lambda k: bm.average(bm.energy, bm.Midpoint(system.with_parameters({"k": k})), start, step=h, steps=1000, trajectories=100))(1.0)

Where steps are accepted or refused the two sides differ, because acceptance depends on θ as well: there the derivative is refused.

The path is not stored: states are kept at about √steps places and the steps between are made again on the way back, so memory grows with the square
root of the number of steps, and blocks of trajectories come one after the other. A trajectory that fails makes the average NaN.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.arguments import checked
from bismut.compile_cache import compiled
from bismut.ensembles.checks import RUN, check_time, chosen_path
from bismut.ensembles.observable import measure, value_of
from bismut.ensembles.starts import start_at
from bismut.errors import BismutError, DomainError
from bismut.flows import kernel
from bismut.mechanics import Scheme, State
from bismut.noise import Index, Path, advance, counter
from bismut.process import check_process
from bismut.tracing import traced

_BLOCK = 256  # trajectories differentiated together


@checked(**RUN)
def average(
    of: Any,
    scheme: Scheme,
    start,
    *,
    step: Any,
    steps: int,
    trajectories: int = 1,
    seed: Any = None,
    path: Path | None = None,
    t0: float = 0.0,
    over: str = "end",
    burn_in: int = 0,
) -> Float[Array, "..."]:
    """The mean over trajectories of a function of a State, at the end of the run or, with over="time", over the states after every step.

    jax.grad, jax.jacobian and jax.value_and_grad differentiate through it, with respect to parameters, start and step, at fixed noise. Arguments as
    for simulate: `burn_in` steps are made first, over which nothing is averaged. A `seed` may be traced, so that one program serves all seeds.
    """
    check_process()
    check_time(t0, step, scheme.system.dtype)
    path = chosen_path(seed, path, scheme, step=step, steps=burn_in + steps, trajectories=trajectories)
    if not scheme.pathwise:
        scheme, start, step = jax.tree.map(_undifferentiated, (scheme, start, step))
    starts = start_at(scheme, start, t0)
    if starts.batch and starts.batch != (trajectories,):
        raise DomainError(f"start holds {starts.batch} states, but trajectories = {trajectories}. Give one start, or one for each trajectory.")
    dtype, size = scheme.system.dtype, min(_BLOCK, trajectories)
    measure(of, scheme, "of", starts.example)
    h, begin = jnp.asarray(step, dtype), jnp.asarray(t0, dtype)
    total: Any = 0.0
    for first in range(0, trajectories, size):
        numbers = np.arange(first, first + size)
        weight = jnp.asarray(numbers < trajectories, dtype)
        states = starts.many(path, np.minimum(numbers, trajectories - 1))
        total = total + _block(scheme, of, path, states, counter(numbers), weight, h, begin, burn_in, steps, over == "time")
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
    return _fixed(leaf) if traced(leaf) else leaf


@compiled
def _block(scheme: Scheme, of: Callable, path: Path, states: State, index: Index, weight, h, t0, burn_in: int, steps: int, summed: bool):
    """The sum over the trajectories of one block."""
    dtype = scheme.system.dtype
    observed = lambda carry, t: _weighted(jax.vmap(lambda state: value_of(of, scheme, state, t))(carry.state), weight)

    def one(now, _, summed=summed):
        carry, k, total = now
        dW = path.increment(index, k, scheme.channels, h, dtype, clipped=scheme.path_channels)
        t = kernel.time(t0, h, k)
        carry = jax.vmap(lambda c, w: kernel.step(scheme, c, h, w, t)[0])(carry, dW)
        k = advance(k, 1)
        return (carry, k, total + observed(carry, kernel.time(t0, h, k)) if summed else total), None

    def walked(now, one, steps: int):
        inner = max(1, int(np.sqrt(steps)))
        stretch = jax.checkpoint(lambda now, _: jax.lax.scan(one, now, length=inner))
        now, _ = jax.lax.scan(stretch, now, length=steps // inner)
        return jax.lax.scan(one, now, length=steps % inner)[0] if steps % inner else now

    carry = jax.vmap(lambda state: kernel.begin(scheme, state, t0))(states)
    blank = jnp.zeros(jax.eval_shape(lambda: observed(carry, t0)).shape, dtype)
    now = (carry, counter(0), blank)
    now = walked(now, partial(one, summed=False), burn_in) if burn_in else now
    carry, k, total = walked(now, one, steps)
    return total / steps if summed else observed(carry, kernel.time(t0, h, k))


def _weighted(values: Float[Array, "n ..."], weight: Float[Array, " n"]) -> Float[Array, "..."]:
    return jnp.tensordot(weight, values, axes=1)
