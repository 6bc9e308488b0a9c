"""The exact likelihood of an observed path under Langevin steps O½ B½ A B½ O½.

Points determine the momenta of the free motion between them, by the discrete Legendre transform: p⁻ = −D₁S_d(q_k, q_{k+1}) before it and
p⁺ = D₂S_d(q_k, q_{k+1}) after it. What is left is the bath, whose transition is Gaussian,

    with momenta     p⁻_k − ½h F_k  ~  O½(p_k),             p_{k+1}  ~  O½(p⁺_k + ½h F_{k+1})                    (OBABO)
    points alone     p⁻_{k+1} − ½h F_{k+1}  ~  O(p⁺_k + ½h F_{k+1})          two halves of the bath are one, and momenta are integrated out exactly

    O(p) = N(mean, G Gᵀ),     mean = relax(p, z = 0),   G = ∂relax/∂z,           and |det ∂p⁻/∂q_{k+1}| makes densities of momenta those of points

so the likelihood of a path is a product over its steps, on any space, whatever the force, with nothing approximated: it is that of the scheme at its
step. A path of points needs noise in every direction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.compile_cache import compiled
from bismut.errors import BismutError, DomainError, ShapeError
from bismut.flows import OBABO, Langevin
from bismut.flows.legendre import momenta
from bismut.flows.metropolised import drift_action
from bismut.mechanics import State
from bismut.response.parameters import Parameters
from bismut.spaces import add, scale

_TRIES = 5  # moves of parameters that are tried until they fit their standard errors


class ObservedPath(NamedTuple):
    """Points along a first axis and, if they were observed, momenta; the step between them, and the time of the first."""

    q: Any
    p: Any
    step: float
    t0: float

    @property
    def points(self) -> int:
        return int(np.shape(jax.tree.leaves(self.q)[0])[0])

    @property
    def terms(self) -> int:
        """Factors of the likelihood."""
        return self.points - 1 if self.p is not None else self.points - 2


def observed_path(scheme: Langevin, observed: Any, step: float, t0: float) -> ObservedPath:
    """A path from a Trajectory, a State with time along its first axis, or points alone."""
    q, p = (observed.q, observed.p) if hasattr(observed, "q") and hasattr(observed, "p") else (observed, None)
    dtype = scheme.system.dtype
    q, p = (jax.tree.map(lambda leaf: np.asarray(leaf, dtype), part) for part in (q, p))
    batch = scheme.space.check(q, "the observed path")
    if len(batch) != 1 or (p is not None and scheme.space.check_velocity(p, "the observed momenta") != batch):
        raise ShapeError(f"The observed path must have points of {scheme.space} along one first axis, time, and as many momenta, got axes {batch}.")
    if batch[0] < 16:
        raise ShapeError(f"The observed path has {batch[0]} points; a fit needs at least 16.")
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((q, p))):
        raise DomainError("The observed path has numbers that are not finite. Cut it before them.")
    return ObservedPath(q, p, float(step), float(t0))


def check_scheme(scheme: Any) -> None:
    """Refuse what has no such likelihood."""
    if not isinstance(scheme, Langevin):
        raise BismutError(f"fit needs Langevin motion, got {type(scheme).__name__}.")
    if scheme.splitting is not OBABO:
        raise BismutError(
            f"fit needs splitting=bm.OBABO, got {scheme.splitting}: with two baths in a step a path has a density. scheme.with_splitting(bm.OBABO) "
            "is the same motion."
        )
    system = scheme.system
    if system.constraints or scheme.moving.channels:
        raise BismutError("fit needs a system without constraints and without noise of its own beside the bath.")
    if scheme.temperature.zero or scheme.friction.rank < system.space.dim:
        raise BismutError("fit needs noise in every direction: a positive temperature and a friction of full rank.")


def log_likelihood(scheme: Langevin, path: ObservedPath) -> Any:
    """ln p of the path, given its first state; of points alone, given the first two."""
    return jnp.sum(_terms(scheme, path)[0])


def residuals(scheme: Langevin, path: ObservedPath) -> Any:
    """Standard normals (terms, n or 2n), if the path is one of this scheme."""
    return _terms(scheme, path)[1]


def _terms(scheme: Langevin, path: ObservedPath) -> tuple[Any, Any]:
    dtype = scheme.system.dtype
    h = jnp.asarray(path.step, dtype)
    here, there = (jax.tree.map(lambda leaf, s=s: jnp.asarray(leaf)[s], path.q) for s in (slice(None, -1), slice(1, None)))
    count = path.points - 1
    times = path.t0 + h * jnp.arange(count, dtype=dtype)
    before, after, volume = jax.vmap(lambda a, b, t: _free_motion(scheme, a, b, h, t))(here, there, times)
    force = jax.vmap(scheme.force)(jax.tree.map(jnp.asarray, path.q), path.t0 + h * jnp.arange(count + 1, dtype=dtype))
    half = lambda p, f, sign: add(p, scale(sign * 0.5 * h, f))
    pick = lambda tree, s: jax.tree.map(lambda leaf: leaf[s], tree)
    q = jax.tree.map(jnp.asarray, path.q)
    if path.p is not None:
        # Both halves of the bath in one program: it is long where Γ depends on q.
        p, inner, outer = jax.tree.map(jnp.asarray, path.p), slice(None, -1), slice(1, None)
        kicked = jax.vmap(half, (0, 0, None))
        one = (here, pick(p, inner), kicked(before, pick(force, inner), -1), times)
        two = (there, kicked(after, pick(force, outer), 1), pick(p, outer), times + h)
        both = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), one, two)
        value, z = jax.vmap(lambda q, p0, p1, t: _bath(scheme, q, p0, p1, 0.5 * h, t))(*both)
        return value[:count] + value[count:] + volume, jnp.concatenate([z[:count], z[count:]], 1)
    middle = slice(1, -1)
    joined = lambda q, a, f, b, t: _bath(scheme, q, half(a, f, 1), half(b, f, -1), h, t)
    inner = (
        pick(q, middle),
        pick(after, slice(None, -1)),
        pick(force, middle),
        pick(before, slice(1, None)),
        times[1:],
    )
    value, z = jax.vmap(joined)(*inner)
    return value + volume[1:], z


def _free_motion(scheme: Langevin, q0, q1, h, t) -> tuple[Any, Any, Any]:
    """p⁻, p⁺ and ln |det ∂p⁻/∂q1| of free motion between two points."""
    action = drift_action(scheme.moving, scheme.retraction)
    space, dtype = action.space, scheme.system.dtype

    def between(q1):
        v = scale(1 / h, space.subtract(q1, q0))
        return momenta(action, q0, q1, v, h, jnp.zeros(0, dtype), t)

    before, after = between(q1)
    slope = jax.jacfwd(lambda e: space.flatten(between(space.nudge(q1, space.unflatten(e)))[0]))(jnp.zeros(space.dim, dtype))
    return before, after, jnp.linalg.slogdet(slope)[1]


def _bath(scheme: Langevin, q, p0, p1, h, t) -> tuple[Any, Any]:
    """ln of the density of p1 after a time h in the bath, and the normals that led there."""
    system, space = scheme.system, scheme.system.space
    relax = lambda z: space.flatten(scheme.friction.relax(system, q, p0, scheme.strength(t) * h, t, scheme.kT(t), z))
    rank = scheme.friction.rank
    mean, spread = jax.linearize(relax, jnp.zeros(rank, system.dtype))  # affine in z
    G = jax.vmap(spread, out_axes=1)(jnp.eye(rank, dtype=system.dtype))
    z = jnp.linalg.solve(G, space.flatten(p1) - mean)
    return -0.5 * z @ z - jnp.linalg.slogdet(G)[1] - 0.5 * len(z) * jnp.log(2 * jnp.pi), z


def _with(scheme: Langevin, parameters: Parameters, theta) -> Langevin:
    new = parameters.put(scheme, theta)
    assert isinstance(new, Langevin)
    return new


@compiled
def value_and_slope(scheme: Langevin, parameters: Parameters, theta, path: ObservedPath) -> tuple[Any, Any]:
    """−ln p per term and its gradient."""
    return jax.value_and_grad(lambda theta: -log_likelihood(_with(scheme, parameters, theta), path) / path.terms)(theta)


def information(scheme: Langevin, parameters: Parameters, theta: np.ndarray, path: ObservedPath, moves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The observed information, the Hessian of −ln p, and by how much each parameter is best moved to measure it.

    Central differences of the compiled gradient: of a friction that depends on q a program of second derivatives takes XLA minutes and more. A
    parameter moves by a hundredth of its standard error, where ln p is a parabola and round-off, ε √N, is small as well.
    """
    H = np.full((len(theta), len(theta)), np.nan)
    for _ in range(_TRIES):
        H = np.stack([_slope_change(scheme, parameters, theta, path, i, move) for i, move in enumerate(moves)])
        H = 0.5 * (H + H.T)
        curvature = np.abs(np.diag(H))
        best = np.where(np.isfinite(curvature) & (curvature > 0), 0.01 / np.sqrt(np.where(curvature > 0, curvature, 1.0)), moves)
        best = np.where(np.isfinite(curvature), best, 0.1 * moves)  # beyond what the parameter may be
        near = np.isfinite(H).all() and np.all((moves < 2 * best) & (moves > 0.01 * best))
        moves = best
        if near:
            return H, moves
    return H, moves


def _slope_change(scheme: Langevin, parameters: Parameters, theta: np.ndarray, path: ObservedPath, i: int, move: float) -> np.ndarray:
    e = np.zeros_like(theta)
    e[i] = move
    after, before = (np.asarray(value_and_slope(scheme, parameters, jnp.asarray(x), path)[1], float) for x in (theta + e, theta - e))
    return (after - before) * (path.terms / (2 * move))


@compiled
def normals_of(scheme: Langevin, parameters: Parameters, theta, path: ObservedPath) -> Any:
    return residuals(_with(scheme, parameters, theta), path)


def state_at(path: ObservedPath, k: Any) -> State:
    """The states observed at some times; momenta are None if there are none."""
    rows = lambda tree: jax.tree.map(lambda leaf: leaf[k], tree)
    return State(rows(path.q), None if path.p is None else rows(path.p))
