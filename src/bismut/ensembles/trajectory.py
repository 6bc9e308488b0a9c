"""One trajectory, kept whole, and differentiable.

    φ_{t,s}(θ_s ω) ∘ φ_{s,r}(ω) = φ_{t,r}(ω)

Cutting a run at step s, shifting the path by s and going on gives the same bits as not cutting it. (Where L or γ depend on time, give t0 = s h for
the second part; the times, and so the states, then agree to round-off.)
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from bismut.arguments import Rule, checked, is_index
from bismut.compile_cache import compiled, partition
from bismut.engines.engine import Course, Schedule, Task, Watch
from bismut.ensembles.checks import RUN, check_time, chosen_path
from bismut.ensembles.result import Failure, Outcome
from bismut.ensembles.starts import start_at
from bismut.ensembles.task import build_task, bytes_of, increments_of, native
from bismut.errors import BismutError, DomainError
from bismut.flows import Solve, kernel
from bismut.formatting import brief
from bismut.mechanics import Scheme, State
from bismut.noise import Path, advance, counter
from bismut.process import check_process
from bismut.spaces import Point
from bismut.tracing import traced

MAX_OPERATIONS = 15_000  # of a step, beyond which XLA, for one trajectory, has its code sooner
_ROWS = 2**22  # bytes of steps that are handed over at a time


class Trajectory(NamedTuple):
    """Times, states along the first axis, and how each recorded interval was solved (worst residual, all converged, iterations).

    From the first step that cannot be solved, states are NaN, and `outcome` reports that step.
    """

    times: Float[Array, " records"]
    states: State
    solve: Solve
    number: Any
    h: Float[Array, ""]
    failed: Int[Array, ""]

    def __repr__(self) -> str:
        shown = f"q={brief(self.q)}, p={brief(self.p)})"
        if traced(self.times):
            return f"Trajectory({self.times.shape[-1]} states; {shown}"
        if self.times.ndim > 1:  # mapped over
            *many, states = self.times.shape
            failed = int(np.sum(np.asarray(self.failed) >= 0))
            return f"Trajectory({' × '.join(map(str, many))} trajectories of {states} states, {failed} failed; {shown}"
        return f"Trajectory({len(self.times)} states, t = {float(self.times[0]):g} to {float(self.times[-1]):g}, {self.outcome!r}; {shown}"

    @property
    def q(self) -> Point:
        """Points, time along the first axis."""
        return self.states.q

    @property
    def p(self):
        """Momenta, time along the first axis."""
        return self.states.p

    @property
    def outcome(self) -> Outcome:
        """Whether every step was solved and every state is finite; otherwise the first step that was not."""
        step = int(self.failed)
        if step < 0:
            return Outcome(1)
        record = int(np.argmax(~np.asarray(self.solve.converged))) if not np.all(self.solve.converged) else -1
        residual = float(self.solve.residual[record]) if record >= 0 else float("nan")
        return Outcome(1, (Failure(self.number, step, float(self.times[0] + step * self.h), residual),))

    @property
    def final(self) -> State:
        """The last state."""
        if traced(self.states):
            return jax.tree.map(lambda leaf: leaf[-1], self.states)
        return jax.device_put(jax.tree.map(lambda leaf: np.asarray(leaf)[-1], self.states))  # an index into an array of JAX would be compiled


@checked(**RUN, trajectory=Rule("a whole number ≥ 0", is_index))
def trajectory(
    scheme: Scheme,
    start,
    *,
    step: Any,
    steps: int,
    every: int = 1,
    seed: Any = None,
    trajectory: Any = 0,
    path: Path | None = None,
    t0: float = 0.0,
    mode: str = "auto",
    arithmetic: str | None = None,
) -> Trajectory:
    """One trajectory, kept whole. jax.grad and jax.jvp differentiate through it, by implicit differentiation of each step.

    start       from scheme.start(...)
    every       steps between kept states
    seed, path  of the noise; one of the two
    trajectory  which one, by its number: the same as that of a run of many
    t0          the time at the start
    mode        "native" for machine code, "xla" for JAX's compiler, "auto" to choose. What is differentiated or mapped over is computed by XLA
    arithmetic  "fused" or "plain", as in `simulate`
    """
    check_process()
    check_time(t0, step, scheme.system.dtype)
    if steps % every:
        raise DomainError(f"steps must be a multiple of every so that the last state is kept, got steps = {steps} and every = {every}.")
    path = chosen_path(seed, path, scheme, step=step, steps=steps, trajectories=1 if traced(trajectory) else trajectory + 1)
    state = start_at(scheme, start, t0).one(path, trajectory, arithmetic)
    dtype = scheme.system.dtype
    known = not traced((scheme, state, path, trajectory, step, t0))
    if mode == "native" and not known:
        raise BismutError('mode="native" cannot be differentiated or mapped over by JAX. Omit mode=, and XLA computes it.')
    if mode != "xla" and known:
        h, begin = np.asarray(step, dtype), np.asarray(t0, dtype)
        run = _native_run(scheme, state, path, int(trajectory), float(h), float(begin), steps // every, every, mode, arithmetic)
        if run is not None:  # by NumPy, because every jnp operation on arrays of another length is compiled
            later, solve, failed = run
            times = begin + h * every * np.arange(steps // every + 1, dtype=dtype)
            states = jax.tree.map(lambda a, b: np.concatenate([np.asarray(a)[None], b]), state, later)
            times, states, solve, h, failed = jax.device_put((times, states, solve, h, np.asarray(failed)))
            return Trajectory(times, states, solve, trajectory, h, failed)
    h, begin = jnp.asarray(step, dtype), jnp.asarray(t0, dtype)
    times = begin + h * every * jnp.arange(steps // every + 1)
    states, solve, failed = _run(scheme, state, path, counter(trajectory), h, begin, steps // every, every)
    return Trajectory(times, states, solve, trajectory, h, failed)


def _native_run(
    scheme: Scheme, state: State, path: Path, number: int, h: float, t0: float, records: int, every: int, mode: str, arithmetic: str | None
) -> tuple[State, Solve, int] | None:
    """The states after every `every` steps, how these were solved, and the step that failed (−1: none); None if only XLA can compute them.

    The state that the engine sees is (state, how the step before was solved), and a watch hands both over after every step.
    """
    shared, dtype = (scheme, path), scheme.system.dtype
    both = (state, Solve(*jax.device_put((np.zeros((), dtype), np.array(True), np.zeros((), int)))))

    def make() -> Task:
        return build_task(
            shared,
            jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), both),
            dtype,
            **increments_of(path, dtype),
            begin=lambda both, t, shared: (kernel.begin(shared[0], both[0], t), both[1]),
            step=lambda carry, dW, h, t, shared: kernel.step(shared[0], carry[0], h, dW, t),
            state=lambda carry: (carry[0].state, carry[1]),
            watches=(Watch(lambda both, t, shared: (), lambda memory, both, t, shared: ((), both)),),
        )

    program = native("trajectory", shared, state, make, MAX_OPERATIONS, mode, arithmetic, few=True)
    if program is None:
        return None
    course, (numbers, _) = Course(h, t0, path.phase), partition(shared)
    one = jax.tree.map(lambda leaf: np.asarray(leaf)[None], both)
    batch = program.watch(course, numbers, program.begin(course, numbers, np.array([number], np.uint64), one))
    chunk = max(1, _ROWS // (bytes_of(one) * every)) * every
    parts, done = [], 0
    while done < records * every:
        steps = min(chunk, records * every - done)
        batch, (rows,) = program.advance(course, numbers, batch, Schedule(steps, 1, (1,), done))
        parts.append(_recorded(jax.tree.map(lambda leaf: leaf[:, 0], rows), every, done, int(batch.failed[0])))
        done += steps
    return *jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts), int(batch.failed[0])


def _recorded(rows: Any, every: int, done: int, failed: int) -> tuple[State, Solve]:
    """The last state of each interval, and the worst of how its steps were solved; what comes after a failure counts no more."""
    states, solve = rows
    after = (failed >= 0) & (done + np.arange(len(solve.residual)) > failed)
    interval = lambda x: x.reshape(-1, every)
    worst = interval(np.where(after, 0, solve.residual)).max(1)
    summary = Solve(worst, interval(solve.converged).all(1), interval(solve.iterations).sum(1))
    return jax.tree.map(lambda leaf: leaf[every - 1 :: every], states), summary


@compiled
def _run(scheme: Scheme, state: State, path: Path, index, h, t0, records: int, every: int):
    dtype = scheme.system.dtype

    def one(now, _):
        carry, k, failed, worst, solved, total = now
        dW = path.increment(index, k, scheme.channels, h, dtype, clipped=scheme.path_channels)
        carry, solve = kernel.step(scheme, carry, h, dW, kernel.time(t0, h, k))
        lost = (failed < 0) & ~kernel.finite(carry.state)
        failed = jnp.where(lost, k[0].astype(failed.dtype), failed)
        worst = jnp.where(lost | (failed < 0), jnp.maximum(worst, solve.residual), worst)
        return (carry, advance(k, 1), failed, worst, solved & solve.converged, total + solve.iterations), None

    def record(now, _):
        fresh = (*now, jnp.zeros((), dtype), jnp.array(True), jnp.zeros((), int))
        (carry, k, failed, worst, solved, total), _ = jax.lax.scan(one, fresh, length=every)
        return (carry, k, failed), (carry.state, Solve(worst, solved, total))

    begin = (kernel.begin(scheme, state, t0), counter(0), jnp.full((), -1, int))
    (_, _, failed), (states, solve) = jax.lax.scan(record, begin, length=records)
    return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), state, states), solve, failed
