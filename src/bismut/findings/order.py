"""How fast does the error fall with the step?

    deterministic order   |z_h(T) − z(T)| ~ h^r            noise switched off
    strong order          (E|q_h(T) − q(T)|²)^½ ~ h^r      all steps on one Brownian path

The reference is another scheme on a finer grid, so that agreement means the right limit and not only a limit. The slope is that of a least-squares
line through the logarithms.
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.compile_cache import compiled
from bismut.ensembles.arriving import arrive
from bismut.ensembles.checks import chosen_path
from bismut.errors import DomainError
from bismut.flows import kernel
from bismut.host import evaluate, repeated
from bismut.mechanics import Scheme, State
from bismut.noise import Path
from bismut.spaces import Space
from bismut.tracing import traced

FINEST, TRAJECTORIES = 1024, 64  # of the studies that `verify` makes, so that they share a program
_LARGE = 100  # degrees of freedom from which on there are fewer of them


def trajectories_for(scheme: Scheme) -> int:
    """How many a study of a scheme has: fewer where states are large, so that memory stays bounded."""
    return int(np.clip(TRAJECTORIES * _LARGE // max(scheme.space.dim, 1), 4, TRAJECTORIES))


class Convergence(NamedTuple):
    """Steps, errors in (q, p) at the final time, and the slope of their logarithms with its standard error over trajectories.

    own  distances between neighbouring levels: the errors against the scheme's own limit, whatever that is
    trajectories  how many the errors are over
    """

    steps: np.ndarray
    errors: np.ndarray
    order: float
    error: float = 0.0
    own: np.ndarray | None = None
    trajectories: int = 1


def final_states(scheme: Scheme, start: State, h, dW: Float[Array, "paths most m"], steps) -> State:
    """The states after a number of steps that is data: one program serves every step size."""
    if not traced((scheme, start, h, dW, steps)):
        starts = jax.tree.map(lambda leaf: np.broadcast_to(np.asarray(leaf), (len(dW), *np.shape(leaf))), start)
        found = arrive(scheme, starts, float(h), 0.0, np.asarray(dW), int(steps))
        if found is not None:
            return found
    return by_xla(scheme, start, h, dW, steps, jnp.zeros_like(h))


@compiled
def by_xla(scheme: Scheme, start: State, h, dW: Float[Array, "paths most m"], steps, t0) -> State:
    """The same as XLA computes it."""
    return jax.vmap(lambda increments: kernel.walk(scheme, start, h, increments, steps, t0))(dW)


def fine_increments(scheme: Scheme, path: Path, h: float, steps: int, trajectories: int, first: int = 0) -> np.ndarray:
    """ΔW of all steps of some trajectories."""
    dtype, numbers = scheme.system.dtype, first + np.arange(trajectories)
    drawn = evaluate(lambda path: path.increments(numbers, steps, scheme.channels, h, dtype, clipped=scheme.clipped), path)
    return np.moveaxis(np.asarray(drawn), 0, 1)


def coarsened(dW: np.ndarray, n: int) -> np.ndarray:
    """The same Brownian path in n steps; padded so that the shape stays."""
    paths, most, m = dW.shape
    out = np.zeros_like(dW)
    out[:, :n] = dW.reshape(paths, n, most // n, m).sum(2)
    return out


def convergence(
    scheme: Scheme,
    reference: Scheme,
    start: State,
    *,
    time: float,
    levels: Sequence[int],
    finest: int,
    trajectories: int = 1,
    seed: int = 0,
    noise: float = 1.0,
    path: Path | None = None,
    error: float = 0.0,
    rounds: int = 1,
) -> Convergence:
    """Errors of a scheme with `levels` steps up to a time against a reference with `finest` steps, on one Brownian path.

    `finest` must be a multiple of every level; `noise` scales the increments, 0 switches them off; a `path` other than Wiener(seed) is looked at with
    the finest step. Further rounds of as many trajectories are added until the standard error of the slope is at most `error`.
    """
    if any(finest % n for n in levels):
        raise DomainError(f"finest = {finest} must be a multiple of every level in {tuple(levels)}.")
    most = rounds * trajectories
    path = chosen_path(None if path is not None else seed, path, scheme, step=time / finest, steps=finest, trajectories=most)
    steps, squares_of = time / np.asarray(levels), repeated(partial(_squares, scheme.space))
    squares, own = np.zeros((len(levels), 0)), np.zeros((len(levels) - 1, 0))
    for number in range(rounds):
        dW = noise * fine_increments(scheme, path, time / finest, finest, trajectories, number * trajectories)

        def run(s: Scheme, n: int, dW=dW) -> State:
            return final_states(s, start, jnp.asarray(time / n, s.system.dtype), jnp.asarray(coarsened(dW, n)[..., : s.channels]), jnp.asarray(n))

        exact, found = run(reference, finest), [run(scheme, n) for n in levels]
        apart = lambda a, b: np.asarray(squares_of(a, b), float)
        squares = np.append(squares, [apart(one, exact) for one in found], 1)
        own = np.append(own, [apart(a, b) for a, b in pairwise(found)], 1)
        if not slope_of(steps, squares)[1] > error:
            break
    return Convergence(steps, np.sqrt(squares.mean(1)), *slope_of(steps, squares), np.sqrt(own.mean(1)), squares.shape[1])


def slope_of(steps: np.ndarray, squares: np.ndarray) -> tuple[float, float]:
    """The slope of the logarithms of root mean squares, and its standard error: how much it changes when a trajectory is left out."""
    n = squares.shape[1]
    x = np.log(steps) - np.log(steps).mean()
    of = lambda means: (x / (x @ x)) @ (0.5 * np.log(means))
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = float(of(squares.mean(1)))
        if n < 3 or not squares.min() > 0:
            return slope, 0.0
        without = of((squares.sum(1, keepdims=True) - squares) / (n - 1))
    return slope, float(np.sqrt((n - 1) * without.var()))


def _squares(space: Space, a: State, b: State):
    """The square of the distance in (q, p), for each trajectory."""

    def one(x: State, y: State):
        q = space.gap(x.q, y.q)
        p = space.flatten(x.p) - space.flatten(y.p)
        return q @ q + p @ p

    return jax.vmap(one)(a, b)


@compiled
def distance(space: Space, a: State, b: State):
    """Root mean square distance of two batches of states in (q, p)."""
    return jnp.sqrt(jnp.mean(_squares(space, a, b)))
