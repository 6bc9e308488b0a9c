"""How fast does the error fall with the step?

    deterministic order   |z_h(T) − z(T)| ~ h^r            noise switched off
    strong order          (E|q_h(T) − q(T)|²)^½ ~ h^r      all steps on one Brownian path

The reference is another scheme on a finer grid, so that agreement means the right limit and not only a limit. The slope is that of a least-squares
line through the logarithms.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.ensembles.arriving import arrive
from bismut.ensembles.checks import chosen_path
from bismut.errors import DomainError
from bismut.flows import kernel
from bismut.mechanics import Scheme, State
from bismut.noise import Path
from bismut.programs import compiled
from bismut.spaces import Space
from bismut.tracing import traced

FINEST, TRAJECTORIES = 1024, 64  # of the studies that `verify` makes, so that they share a program


class Convergence(NamedTuple):
    """Steps, errors in (q, p) at the final time, and the slope of their logarithms with its standard error over trajectories.

    own  distances between neighbouring levels: the errors against the scheme's own limit, whatever that is
    """

    steps: np.ndarray
    errors: np.ndarray
    order: float
    error: float = 0.0
    own: np.ndarray | None = None


def final_states(scheme: Scheme, start: State, h, dW: Float[Array, "paths most m"], steps) -> State:
    """The states after a number of steps that is data: one program serves every step size."""
    if not traced((scheme, start, h, dW, steps)):
        starts = jax.tree.map(lambda leaf: np.broadcast_to(np.asarray(leaf), (len(dW), *np.shape(leaf))), start)
        found = arrive(scheme, starts, float(h), 0.0, np.asarray(dW), int(steps))
        if found is not None:
            return found
    return by_xla(scheme, start, h, dW, steps)


@compiled
def by_xla(scheme: Scheme, start: State, h, dW: Float[Array, "paths most m"], steps) -> State:
    """The same as XLA computes it."""
    return jax.vmap(lambda increments: kernel.walk(scheme, start, h, increments, steps))(dW)


def fine_increments(scheme: Scheme, path: Path, h: float, steps: int, trajectories: int) -> np.ndarray:
    """ΔW of all steps of all trajectories."""
    dtype, numbers = scheme.system.dtype, np.arange(trajectories)
    return np.moveaxis(np.asarray(path.increments(numbers, steps, scheme.channels, h, dtype, clipped=scheme.clipped)), 0, 1)


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
) -> Convergence:
    """Errors of a scheme with `levels` steps up to a time against a reference with `finest` steps, on one Brownian path.

    `finest` must be a multiple of every level; `noise` scales the increments, 0 switches them off; a `path` other than Wiener(seed) is looked at with
    the finest step.
    """
    if any(finest % n for n in levels):
        raise DomainError(f"finest = {finest} must be a multiple of every level in {tuple(levels)}.")
    path = chosen_path(None if path is not None else seed, path, scheme, step=time / finest, steps=finest, trajectories=trajectories)
    dW = noise * fine_increments(scheme, path, time / finest, finest, trajectories)

    def run(s: Scheme, n: int) -> State:
        return final_states(s, start, jnp.asarray(time / n, s.system.dtype), jnp.asarray(coarsened(dW, n)[..., : s.channels]), jnp.asarray(n))

    exact, found = run(reference, finest), [run(scheme, n) for n in levels]
    squares = np.array([np.asarray(_squares(scheme.space, one, exact), float) for one in found])
    own = np.array([float(distance(scheme.space, a, b)) for a, b in pairwise(found)])
    steps = time / np.asarray(levels)
    slope = lambda part: float(np.polyfit(np.log(steps), 0.5 * np.log(part.mean(1)), 1)[0])
    return Convergence(steps, np.sqrt(squares.mean(1)), slope(squares), _jackknife(squares, slope), own)


def _jackknife(squares: np.ndarray, slope) -> float:
    """The standard error of a slope over trajectories: how much it changes when one of them is left out."""
    n = squares.shape[1]
    if n < 3 or not squares.min() > 0:
        return 0.0
    without = np.array([slope(np.delete(squares, i, 1)) for i in range(n)])
    return float(np.sqrt((n - 1) * without.var()))


@compiled
def _squares(space: Space, a: State, b: State):
    """The square of the distance in (q, p), for each trajectory."""

    def one(x: State, y: State):
        q = space.flatten(space.subtract(x.q, y.q))
        p = space.flatten(x.p) - space.flatten(y.p)
        return q @ q + p @ p

    return jax.vmap(one)(a, b)


@compiled
def distance(space: Space, a: State, b: State):
    """Root mean square distance of two batches of states in (q, p)."""
    return jnp.sqrt(jnp.mean(_squares(space, a, b)))
