"""A trajectory and its derivatives, side by side: one more kind of step for an engine.

    z' = φ(z, ΔW; θ),        δz' = ∂φ/∂z δz + ∂φ/∂θ + ∂φ/∂ΔW δW             one δz for each parameter

Pathwise δW = 0: the noise is fixed. With any δW that a step knows before its own noise,

    d⟨O⟩/dθ = ⟨δO⟩ − ⟨(O − ⟨O⟩) w⟩,        w = Σ_k ΔW_k·δW_k/h                                        (integration by parts)

exactly, of the discrete scheme. The likelihood ratio takes the δW that undoes what the parameter does to what the noise reaches,

    δW = −J⁺ T,      T what the parameter has done to c(z'), J = ∂c(z')/∂ΔW, both at ΔW = 0

so w is the score of the exact Gaussian transition, and ⟨δO⟩ is what noise does not reach, of order h. c is the point q' where the step is affine in
the noise, and noise reaches every direction of q': then no point moves at all, and O(q) may have jumps. Elsewhere it is the momentum.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.compile_cache import compiled, partition
from bismut.engines.engine import Course, Schedule, Task, Watch
from bismut.ensembles.observable import value_of
from bismut.ensembles.starts import start_at
from bismut.ensembles.task import build_task, increments_of, native_or_xla
from bismut.findings.cost import BY_XLA, operations_of
from bismut.flows import Brownian, Langevin, kernel
from bismut.mechanics import Maxwell, Scheme, State, small_linalg
from bismut.noise import Path, counter
from bismut.programs import trace
from bismut.programs.dependence import depends
from bismut.response.parameters import Parameters
from bismut.spaces import Euclidean

_BLOCK = 512  # trajectories of one call
_TRIED = 4  # states at which a step is tried


class NoiseShift(NamedTuple):
    """What the noise is to undo: "none", "q" or "p"."""

    kind: str = "none"


class Sums(NamedTuple):
    """Over looks: how many, O (M,), δO (P, M), w (P,), O w (P, M)."""

    count: Any
    value: Any
    tangent: Any
    weight: Any
    product: Any


class TangentMeans(NamedTuple):
    """Of every trajectory that finished: means over looks of O, δO, w and O w; how many failed; the engine."""

    value: np.ndarray
    tangent: np.ndarray
    weight: np.ndarray
    product: np.ndarray
    failed: int
    engine: str


class _Shared(NamedTuple):
    scheme: Scheme
    path: Path
    theta: Any
    of: Any
    parameters: Parameters
    control: NoiseShift


def tangent_step(scheme: Scheme, parameters: Parameters, theta, control: NoiseShift, carry, tangents, weight, h, dW, t):
    """One step of state, tangents (P, ...) and weights (P,)."""
    directions = jnp.eye(parameters.count, dtype=theta.dtype)
    step = lambda theta, carry, dW: kernel.step(parameters.put(scheme, theta), carry, h, dW, t)[0]
    if control.kind == "none":
        push = lambda e, d: jax.jvp(lambda theta, carry: step(theta, carry, dW), (theta, carry), (e, d))
        new, moved = jax.vmap(push, out_axes=(None, 0))(directions, tangents)
        return new, moved, weight
    seen = lambda theta, carry, dW: _part(scheme, control, step(theta, carry, dW).state)
    quiet = jnp.zeros_like(dW)
    J = jax.jacfwd(lambda dW: seen(theta, carry, dW))(quiet)
    T = jax.vmap(lambda e, d: jax.jvp(lambda theta, carry: seen(theta, carry, quiet), (theta, carry), (e, d))[1])(directions, tangents)
    square = J @ J.T
    square = square + 1e-12 * jnp.trace(square) / len(square) * jnp.eye(len(square), dtype=square.dtype)  # directions that noise does not reach
    undo = -jax.vmap(lambda one: J.T @ small_linalg.solve(square, one))(T)
    push = lambda e, d, w: jax.jvp(step, (theta, carry, dW), (e, d, w))
    new, moved = jax.vmap(push, out_axes=(None, 0))(directions, tangents, undo)
    return new, moved, weight + undo @ dW / h


def _part(scheme: Scheme, control: NoiseShift, state: State) -> Any:
    if control.kind == "q":
        return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(state.q)])
    return scheme.space.flatten(state.p)


def control_of(scheme: Scheme, state: State, h: float) -> NoiseShift:
    """The point where ∂q'/∂ΔW is the same everywhere and of full rank, measured at random states and noises; else the momentum."""
    if not isinstance(scheme.space, Euclidean):
        return NoiseShift("p")
    dtype = scheme.system.dtype
    zero = jnp.zeros((), dtype)

    def noise(q, p, dW):
        moved = lambda dW: kernel.one_step(scheme, State(q, p), jnp.asarray(h, dtype), dW, zero).q
        return jax.jacfwd(moved)(dW)

    draw = np.random.default_rng(0).normal
    n, m = scheme.space.dim, scheme.channels
    points = np.asarray(state.q) + draw(size=(_TRIED, n)), np.asarray(state.p) + draw(size=(_TRIED, n)), np.sqrt(h) * draw(size=(_TRIED, m))
    J = np.asarray(jax.jit(jax.vmap(noise))(*(jnp.asarray(part, dtype) for part in points)))
    if not np.abs(J - J[0]).max(initial=0.0) <= 1e-12 * np.abs(J[0]).max(initial=0.0):
        return NoiseShift("p")
    values = np.linalg.svd(J[0], compute_uv=False)
    full = m >= n and values.min(initial=np.inf) > 1e-9 * values.max(initial=0.0)
    return NoiseShift("q") if full else NoiseShift("p")


def noise_moves_with(scheme: Scheme, parameters: Parameters, state: State) -> bool:
    """Whether the noise itself can depend on a parameter, read off its program: temperature, friction and mass in a bath."""
    dtype, theta = scheme.system.dtype, parameters.vector(scheme)
    one = jnp.ones((), dtype)

    def noise(theta):
        new = parameters.put(scheme, theta)
        if isinstance(new, Langevin):
            kicked = new.noise_kick(state, jnp.ones(new.moving.channels, dtype), one)[0].p if new.moving.channels else ()
            return new.bath(state, one, jnp.ones(new.friction.rank, dtype), one)[0].p, kicked
        if isinstance(new, Brownian):
            z = new.system.space.unflatten(jnp.ones(new.system.space.dim, dtype))
            return new.kT(one), () if new.mobility is None else new._matrix(state.q, one), new._fresh(state.q, z, one)
        return new.system.kick(state.q, new.system.space.zero(dtype), jnp.ones(new.system.channels, dtype), one)

    return depends(noise, theta)


def follow(
    scheme: Scheme,
    start: Any,
    of: Any,
    parameters: Parameters,
    control: NoiseShift,
    path: Path,
    *,
    step: float,
    steps: int,
    every: int,
    burn_in: int,
    first: int,
    trajectories: int,
    t0: float,
) -> TangentMeans:
    """Trajectories with their tangents; looks every so many steps after the burn-in, the last at the end."""
    dtype = scheme.system.dtype
    theta = jnp.asarray(parameters.vector(scheme), dtype)
    shared = _Shared(scheme, path, theta, of, parameters, control)
    starts = start_at(scheme, start, t0)
    one = starts.example
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), one)
    example = (shapes, jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((parameters.count, *leaf.shape), leaf.dtype), shapes))
    program, engine = native_or_xla("tangents", shared, example, lambda: task_of(shared, example), min(_BLOCK, trajectories))
    course, (numbers, _) = Course(float(step), float(t0), path.phase), partition(shared)
    parts: list[Sums] = []
    failed = 0
    for begin in range(0, trajectories, _BLOCK):
        which = np.arange(begin, min(begin + _BLOCK, trajectories))
        states = _begun(scheme, start, parameters, theta, path, first + which, which, t0)
        batch = program.begin(course, numbers, (first + which).astype(np.uint64), states)
        if burn_in:
            batch, _ = program.advance(course, numbers, batch, Schedule(1, burn_in, (0,)))
        batch = program.watch(course, numbers, batch)
        batch, _ = program.advance(course, numbers, batch, Schedule(steps // every, every, (every,)))
        sums = jax.tree.map(np.asarray, program.memory(batch, 0))
        good = (np.asarray(batch.failed) < 0) & np.isfinite(sums.tangent).all((1, 2)) & np.isfinite(sums.product).all((1, 2))
        failed += int((~good).sum())
        parts.append(jax.tree.map(lambda leaf, good=good: leaf[good], sums))
    sums = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    mean = lambda x: x / np.maximum(sums.count, 1).reshape(-1, *[1] * (x.ndim - 1))
    return TangentMeans(mean(sums.value), mean(sums.tangent), mean(sums.weight), mean(sums.product), failed, engine)


def task_of(shared: _Shared, example: Any) -> Task:
    """The task of an engine: its state is (state, tangents), its carry that of a step, with tangents and weights."""
    dtype = shared.scheme.system.dtype

    def begin(both, t, shared):
        state, tangents = both
        start = lambda theta, state: kernel.begin(shared.parameters.put(shared.scheme, theta), state, t)
        directions = jnp.eye(shared.parameters.count, dtype=dtype)
        push = lambda e, d: jax.jvp(start, (shared.theta, state), (e, d))
        carry, moved = jax.vmap(push, out_axes=(None, 0))(directions, tangents)
        return carry, moved, jnp.zeros(shared.parameters.count, dtype)

    def step(carry, dW, h, t, shared):
        now, tangents, weight = carry
        return tangent_step(shared.scheme, shared.parameters, shared.theta, shared.control, now, tangents, weight, h, dW, t)

    def look(memory, both, t, shared):
        state, tangents, weight = both
        value = lambda theta, state: jnp.ravel(value_of(shared.of, shared.parameters.put(shared.scheme, theta), state, t))
        directions = jnp.eye(shared.parameters.count, dtype=dtype)
        O, dO = jax.vmap(lambda e, d: jax.jvp(value, (shared.theta, state), (e, d)), out_axes=(None, 0))(directions, tangents)
        new = Sums(memory.count + 1, memory.value + O, memory.tangent + dO, memory.weight + weight, memory.product + weight[:, None] * O[None, :])
        return new, ()

    def blank(both, t, shared):
        size = jax.eval_shape(lambda: jnp.ravel(value_of(shared.of, shared.scheme, both[0], t))).shape[0]
        P = shared.parameters.count
        return Sums(*(jnp.zeros(shape, dtype) for shape in ((), (size,), (P, size), (P,), (P, size))))

    full = (*example, jax.ShapeDtypeStruct((shared.parameters.count,), dtype))
    return build_task(
        shared,
        full,
        dtype,
        **increments_of(shared.path, dtype),
        begin=lambda both, t, shared: begin(both[:2], t, shared),
        step=step,
        state=lambda carry: (carry[0].state, carry[1].state, carry[2]),
        watches=(Watch(blank, look),),
    )


def step_cost(scheme: Scheme, parameters: Parameters, control: NoiseShift, state: State, engine: str) -> float:
    """Operations of a step with tangents."""
    dtype, P = scheme.system.dtype, parameters.count
    theta = jnp.asarray(parameters.vector(scheme), dtype)
    carry = jax.eval_shape(lambda: kernel.begin(scheme, state, jnp.zeros((), dtype)))
    tangents = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((P, *leaf.shape), leaf.dtype), carry)
    number, dW = jax.ShapeDtypeStruct((), dtype), jax.ShapeDtypeStruct((scheme.channels,), dtype)
    weight = jax.ShapeDtypeStruct((P,), dtype)
    stepped = lambda *arguments: tangent_step(scheme, parameters, theta, control, *arguments)
    return operations_of(trace(stepped, carry, tangents, weight, number, dW, number).program) * (BY_XLA if engine == "xla" else 1)


def _begun(scheme: Scheme, start: Any, parameters: Parameters, theta, path: Path, numbers: np.ndarray, places: np.ndarray, t0: float) -> tuple:
    """States and their tangents, of starts that follow from velocities or temperatures: a mass is felt there."""
    starts = start_at(scheme, start, t0)
    states = jax.tree.map(np.asarray, starts.many(path, numbers.astype(np.uint64), places))
    P = parameters.count
    tangents = jax.tree.map(lambda leaf: np.zeros((len(numbers), P, *leaf.shape[1:]), leaf.dtype), states)
    if mass_dependent_momenta(start):
        slopes = _start_tangents(scheme, start, parameters, theta, path, counter(numbers), t0)
        tangents = State(tangents.q, jax.tree.map(lambda leaf: np.moveaxis(np.asarray(leaf), 0, 1), slopes), tangents.ledger)
    return states, tangents, np.zeros((len(numbers), P), scheme.system.dtype)


def mass_dependent_momenta(start: Any) -> bool:
    """Whether the momenta of a start follow from a velocity or a temperature, so that masses are felt in them."""
    return isinstance(start, Maxwell) or getattr(start, "velocity", None) is not None


def start_momentum(scheme: Scheme, start: Any, path: Path, trajectory: Any, t0: float) -> Any:
    """The momentum in which a trajectory begins."""
    if isinstance(start, Maxwell):
        return Maxwell(scheme.system, start.q, start.temperature).draw(path, trajectory, start.q, t0).p
    return scheme.system.momentum(start.q, start.velocity, t0)


@compiled
def _start_tangents(scheme: Scheme, start: Any, parameters: Parameters, theta, path: Path, index: Any, t0: float) -> Any:
    """∂p/∂θ of the starts, (P, n, ...)."""

    def momenta(theta):
        return jax.vmap(lambda i: start_momentum(parameters.put(scheme, theta), start, path, i, t0))(index)

    return jax.vmap(lambda e: jax.jvp(momenta, (theta,), (e,))[1])(jnp.eye(parameters.count, dtype=scheme.system.dtype))
