"""How fast does the error of averages fall with the step?

    |E f(one step of h) − E f(two steps of h/2)| ~ h^{r+1}        weak order r

without sampling: E is a quadrature over the 2m normals of two half steps, exact for polynomials of degree 5. The sixth power of a normal comes with
√h⁶ = h³, so nothing is lost for orders up to 2, and a few hundred steps do where sampling would need millions. That averages tend to the right
limit is what the order without noise and the strong order say, which are measured against another method.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.compile_cache import compiled
from bismut.ensembles.arriving import arrive
from bismut.findings.order import Convergence
from bismut.flows import kernel
from bismut.host import evaluate
from bismut.mechanics import Scheme, State

MOST_CHANNELS = 40  # 2 (2m)² + 1 places; with more the weights, which are not all positive, cost digits as well
_DIRECTIONS = 6  # in which averages are looked at


def places(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Places (n, d) and weights of a quadrature over d independent normals, exact to degree 5.

    The Smolyak rule of three points 0, ±√3 an axis: none of them away from 0, one, or two at a time.
    """
    one = np.sqrt(3) * np.concatenate([np.eye(d), -np.eye(d)])
    first, second = np.triu_indices(d, 1)
    signs = [(a, b) for a in (1, -1) for b in (1, -1)]
    two = np.sqrt(3) * np.concatenate([a * np.eye(d)[first] + b * np.eye(d)[second] for a, b in signs])
    weights = np.concatenate([[1 + (d * d - 7 * d) / 18], np.full(len(one), (4 - d) / 18), np.full(len(two), 1 / 36)])
    return np.concatenate([np.zeros((1, d)), one, two]), weights


def _advance(scheme: Scheme, states: State, h: float, dW: np.ndarray, t: float) -> State:
    """One step of many states, each with increments of its own; NaN where it was not solved."""
    dtype = scheme.system.dtype
    found = arrive(scheme, states, h, t, dW[:, None], 1)
    return _by_xla(scheme, states, jnp.asarray(h, dtype), jnp.asarray(dW, dtype), jnp.asarray(t, dtype)) if found is None else found


@compiled
def _by_xla(scheme: Scheme, states: State, h, dW: Float[Array, "n m"], t) -> State:
    bare = lambda state: State(state.q, state.p)
    return jax.vmap(lambda state, increments: bare(kernel.one_step(scheme, state, h, increments, t)))(states, dW)


def weak_convergence(scheme: Scheme, state: State, steps: tuple[float, ...]) -> Convergence:
    """Defects of averages for some steps from one state, and the order they show: the slope of their logarithms, less one."""
    m, space = scheme.channels, scheme.space
    normals, weights = places(2 * m)
    start = jax.tree.map(lambda leaf: jax.device_put(np.broadcast_to(np.asarray(leaf), (len(normals), *leaf.shape))), State(state.q, state.p))
    size = space.dim + jax.eval_shape(space.gap, state.q, state.q).shape[0]
    directions = np.random.default_rng(0).normal(size=(size, _DIRECTIONS)) / np.sqrt(size)

    def averages(end: State) -> np.ndarray:
        gone = lambda z: jnp.concatenate([space.gap(z.q, state.q), space.flatten(z.p) - space.flatten(state.p)])
        along = np.asarray(evaluate(jax.vmap(gone), end), float) @ directions
        return np.concatenate([weights @ along**power for power in (1, 2, 3)])

    def defect(h: float) -> float:
        first, second = (np.sqrt(h / 2) * normals[:, half] for half in (slice(0, m), slice(m, None)))
        whole = _advance(scheme, start, h, first + second, 0.0)
        halves = _advance(scheme, _advance(scheme, start, h / 2, first, 0.0), h / 2, second, h / 2)
        return float(np.linalg.norm(averages(whole) - averages(halves)))

    errors = np.array([defect(h) for h in steps])
    return Convergence(np.asarray(steps), errors, float(np.polyfit(np.log(steps), np.log(errors), 1)[0]) - 1)
