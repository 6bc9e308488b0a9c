"""How fast does the error fall with the step?

    deterministic order   |z_h(T) − z(T)| ~ h^r                                   noise switched off
    strong order          (E|q_h(T) − q(T)|²)^½ ~ h^r                             all steps on one Brownian path
    weak order            |E f(one step of h) − E f(two steps of h/2)| ~ h^{r+1}

The reference of the first two is another scheme on a finer grid, so that agreement means the right limit and not only a limit. The slope is that of a
least-squares line through the logarithms.

The weak order needs no sampling: E is a quadrature over the 2m normals of two half steps, exact for polynomials of degree 5. The sixth power of a
normal comes with √h⁶ = h³, so nothing is lost for orders up to 2, and a few hundred steps do where sampling would need millions. That averages tend
to the right limit follows from the order without noise and the strong order, which are measured against another method.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.compile_cache import compiled
from bismut.ensembles.checks import chosen_path
from bismut.ensembles.final_states import native_final_states
from bismut.errors import DomainError
from bismut.flows import kernel
from bismut.mechanics import Scheme, State
from bismut.noise import Path
from bismut.programs.evaluation import evaluate, evaluator
from bismut.spaces import Space
from bismut.tracing import traced

FINEST, TRAJECTORIES = 1024, 64  # of the studies that `verify` makes, so that they share a program
_LARGE = 100  # degrees of freedom from which on there are fewer of them
MOST_CHANNELS = 40  # of a weak order: 2 (2m)² + 1 points; with more the weights, which are not all positive, cost digits as well
_DIRECTIONS = 6  # in which averages are compared
_DRAWN = 200_000  # normals at a time, which take 0.3 GB


def trajectories_for(scheme: Scheme) -> int:
    """How many a study of a scheme has: fewer where states are large, so that memory stays bounded."""
    return int(np.clip(TRAJECTORIES * _LARGE // max(scheme.space.dim, 1), 4, TRAJECTORIES))


class Convergence(NamedTuple):
    """Steps, errors in (q, p) at the final time, and the slope of their logarithms with its standard error over trajectories.

    own           distances between neighbouring levels: the errors against the scheme's own limit, whatever that is
    trajectories  how many the errors are over
    """

    steps: np.ndarray
    errors: np.ndarray
    order: float
    error: float = 0.0
    own: np.ndarray | None = None
    trajectories: int = 1


def copies(state: State, count: int) -> State:
    """One state for each of many trajectories, without its ledger."""
    return jax.tree.map(lambda leaf: np.broadcast_to(np.asarray(leaf), (count, *np.shape(leaf))), State(state.q, state.p))


def final_states(scheme: Scheme, starts: State, h, dW: Any, steps, t0) -> State:
    """The states after a number of steps that is data, so that one program serves every step size; NaN where a step was not solved."""
    native = (
        None if traced((scheme, starts, h, dW, steps, t0)) else native_final_states(scheme, starts, float(h), float(t0), np.asarray(dW), int(steps))
    )
    return final_states_by_xla(scheme, starts, h, dW, steps, t0) if native is None else native


def final_states_by_xla(scheme: Scheme, starts: State, h, dW: Any, steps, t0) -> State:
    """The same, computed by XLA."""
    dtype = scheme.system.dtype
    return _walk(scheme, jax.device_put(starts), jnp.asarray(h, dtype), jnp.asarray(dW, dtype), jnp.asarray(steps), jnp.asarray(t0, dtype))


@compiled
def _walk(scheme: Scheme, starts: State, h, dW, steps, t0) -> State:
    return jax.vmap(lambda start, increments: kernel.walk(scheme, start, h, increments, steps, t0))(starts, dW)


def fine_increments(scheme: Scheme, path: Path, h: float, steps: int, trajectories: int, first: int = 0) -> np.ndarray:
    """ΔW of all steps of some trajectories.

    Drawn for a few trajectories at a time: each normal costs 1600 bytes while it is drawn.
    """
    dtype, out = scheme.system.dtype, np.empty((trajectories, steps, scheme.channels), scheme.system.dtype)
    few = max(1, _DRAWN // max(steps * scheme.channels, 1))
    for begin in range(0, trajectories, few):
        numbers = first + np.arange(begin, min(begin + few, trajectories))
        draw = lambda path, numbers=numbers: path.increments(numbers, steps, scheme.channels, h, dtype, clipped=scheme.path_channels)
        out[begin : begin + few] = np.moveaxis(np.asarray(evaluate(draw, path)), 0, 1)
    return out


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
    t0: float,
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
    """Errors of a scheme with `levels` steps from t0 up to t0 + time against a reference with `finest` steps, on one Brownian path.

    `finest` must be a multiple of every level; `noise` scales the increments, 0 switches them off; a `path` other than Wiener(seed) is evaluated with
    the finest step. Further rounds of as many trajectories are added until the standard error of the slope is at most `error`.
    """
    if any(finest % n for n in levels):
        raise DomainError(f"finest = {finest} must be a multiple of every level in {tuple(levels)}.")
    most = rounds * trajectories
    path = chosen_path(None if path is not None else seed, path, scheme, step=time / finest, steps=finest, trajectories=most)
    steps, squares_of = time / np.asarray(levels), evaluator(partial(_squares, scheme.space))
    starts, squares, own = copies(start, trajectories), np.zeros((len(levels), 0)), np.zeros((len(levels) - 1, 0))
    for number in range(rounds):
        dW = np.zeros((trajectories, finest, scheme.channels), scheme.system.dtype)
        if noise:
            dW = noise * fine_increments(scheme, path, time / finest, finest, trajectories, number * trajectories)

        def run(s: Scheme, n: int, dW=dW) -> State:
            return final_states(s, starts, np.asarray(time / n, s.system.dtype), coarsened(dW, n)[..., : s.channels], n, t0)

        exact, ends = run(reference, finest), [run(scheme, n) for n in levels]
        between = lambda a, b: np.asarray(squares_of(a, b), float)
        squares = np.append(squares, [between(end, exact) for end in ends], 1)
        own = np.append(own, [between(a, b) for a, b in pairwise(ends)], 1)
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


def normal_quadrature(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, d) and weights of a quadrature over d independent normals, exact to degree 5.

    The Smolyak rule of three points 0, ±√3 an axis: none of them away from 0, one, or two at a time.
    """
    one = np.sqrt(3) * np.concatenate([np.eye(d), -np.eye(d)])
    first, second = np.triu_indices(d, 1)
    signs = [(a, b) for a in (1, -1) for b in (1, -1)]
    two = np.sqrt(3) * np.concatenate([a * np.eye(d)[first] + b * np.eye(d)[second] for a, b in signs])
    weights = np.concatenate([[1 + (d * d - 7 * d) / 18], np.full(len(one), (4 - d) / 18), np.full(len(two), 1 / 36)])
    return np.concatenate([np.zeros((1, d)), one, two]), weights


def weak_convergence(scheme: Scheme, state: State, steps: tuple[float, ...], t0: float) -> Convergence:
    """Defects of averages for some steps from one state, and the order they show: the slope of their logarithms, less one."""
    m, space = scheme.channels, scheme.space
    normals, weights = normal_quadrature(2 * m)
    starts = copies(state, len(normals))
    size = space.dim + jax.eval_shape(space.gap, state.q, state.q).shape[0]
    directions = np.random.default_rng(0).normal(size=(size, _DIRECTIONS)) / np.sqrt(size)
    advance = lambda states, h, dW, t: final_states(scheme, states, h, dW[:, None], 1, t)

    def averages(end: State) -> np.ndarray:
        change = lambda z: jnp.concatenate([space.gap(z.q, state.q), space.flatten(z.p) - space.flatten(state.p)])
        projected = np.asarray(evaluate(jax.vmap(change), State(end.q, end.p)), float) @ directions
        return np.concatenate([weights @ projected**power for power in (1, 2, 3)])

    def defect(h: float) -> float:
        first, second = (np.sqrt(h / 2) * normals[:, half] for half in (slice(0, m), slice(m, None)))
        one, two = advance(starts, h, first + second, t0), advance(advance(starts, h / 2, first, t0), h / 2, second, t0 + h / 2)
        return float(np.linalg.norm(averages(one) - averages(two)))

    errors = np.array([defect(h) for h in steps])
    return Convergence(np.asarray(steps), errors, float(np.polyfit(np.log(steps), np.log(errors), 1)[0]) - 1)
