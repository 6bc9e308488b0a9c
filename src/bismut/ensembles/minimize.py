"""`minimize`: from a start to a nearby minimum of the potential energy, by the loop of `flows.descent` as machine code.

U(q) → min,      max |F| ≤ tolerance
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import checked
from bismut.compile_cache import compiled, partition
from bismut.engines.engine import Course, Schedule
from bismut.ensembles.task import build_task, native
from bismut.errors import BismutError, DomainError
from bismut.flows import descent
from bismut.flows.descent import Descent
from bismut.formatting import counted
from bismut.mechanics import Scheme, System
from bismut.precision import cast
from bismut.programs.evaluation import evaluate

_CHUNK = 50  # steps between looks at the force


class Minimum(NamedTuple):
    """Where a descent ended.

    q          the point
    energy     U there
    force      the largest component of F = −dU, forces and torques, along constraints
    steps      how many were made
    converged  whether the force is within the tolerance
    """

    q: Any
    energy: float
    force: float
    steps: int
    converged: bool

    def __repr__(self) -> str:
        end = "" if self.converged else "; not converged"
        return f"Minimum(energy={self.energy:.9g}, largest force {self.force:.3g} after {counted(self.steps, 'step')}{end})"


@checked()
def minimize(system: System | Scheme, start: Any, *, tolerance: float = 1e-6, steps: int = 20_000, t0: float = 0.0) -> Minimum:
    """A nearby minimum of the potential energy, on any space, in boxes and under constraints.

    system     a System, or a scheme of it
    start      a point q, or a start of a scheme, of which the point is taken
    tolerance  the largest force and torque that may be left
    steps      at most; then the result says that it is not converged
    t0         the time at which a potential that changes is taken
    """
    system = system.system if isinstance(system, Scheme) else system
    if not isinstance(system, System) or not system.has_lagrangian or not system.quadratic:
        raise BismutError("minimize needs a system with T quadratic in velocities and U(q), such as mechanical(...) or rigid_bodies(...).")
    system = system.without_noise()
    q = cast(getattr(start, "q", start), system.dtype)
    if system.space.check(q, "start"):
        raise DomainError("minimize takes one point, got several along a first axis. Call it for each.")
    if system.constraints:
        q = evaluate(lambda q: descent.holonomic.nearest_point(system, q, t0)[0], q)
    h = float(evaluate(lambda q: descent.first_step(system, q, t0), q))
    first = evaluate(lambda q: descent.begin(system, q, h if np.isfinite(h) and h > 0 else 1e-3, t0), q)
    if not np.isfinite(float(first.energy)) or not np.isfinite(_largest(first)):
        raise DomainError(
            f"The energy at the start is {float(first.energy):g} with a force of {_largest(first):g}: nothing leads downhill from there."
        )
    advance, done, now = _advance(system, first, float(t0)), 0, first
    while done < steps and _largest(now) > tolerance:
        count = min(_CHUNK, steps - done)
        now, done = advance(now, count), done + count
    if not np.isfinite(float(now.energy)):
        raise DomainError("The energy has no lower bound where the descent went. Give the potential a repulsion.")
    force = _largest(now)
    return Minimum(jax.device_put(now.q), float(now.energy), force, done, bool(force <= tolerance))


def _largest(now: Descent) -> float:
    return max(float(np.abs(np.asarray(leaf)).max(initial=0.0)) for leaf in jax.tree.leaves(now.force))


def _advance(system: System, first: Descent, t0: float):
    """(descent, steps) ↦ descent, by machine code, or by XLA where that is refused."""
    shared, dtype = (system,), system.dtype
    make = lambda: build_task(
        shared,
        first,
        dtype,
        draw=lambda trajectory, k, h, shared: jnp.zeros((1, 0), dtype),
        begin=lambda now, t, shared: now,
        step=lambda now, dW, h, t, shared: descent.step(shared[0].at(t), now, t),
        state=lambda now: now,
    )
    program = native("minimize", shared, first, make)  # however many operations: they are many because pairs are, whose code is short
    if program is None:
        return lambda now, count: _by_xla(system, now, np.asarray(t0, dtype), np.asarray(count, np.int32))
    course, (numbers, _) = Course(0.0, t0), partition(shared)

    def advance(now: Descent, count: int) -> Descent:
        one = jax.tree.map(lambda leaf: np.asarray(leaf)[None], now)
        batch = program.begin(course, numbers, np.zeros(1, np.uint64), one)
        batch, _ = program.advance(course, numbers, batch, Schedule(1, count))
        return jax.tree.map(lambda leaf: np.asarray(leaf)[0], program.states(batch))

    return advance


@compiled
def _by_xla(system: System, now: Descent, t, count) -> Descent:
    return jax.lax.fori_loop(0, count, lambda _, now: descent.step(system.at(t), now, t), now)
