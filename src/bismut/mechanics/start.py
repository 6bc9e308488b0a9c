"""Start states: a start is data, from which every scheme computes its own states.

    (q, v)  ↦  p = ∂L/∂v(q, v, t)            (q, p)  ↦  p            (q, kT)  ↦  p = ∂L/∂v(q, 0, t) + √(kT M) z

each at the time t of the start and, under constraints, projected onto them if that was asked for. A start holds its own arguments (velocity or
temperature, time, projection), so a value of a sweep, a run that begins at another time and a run with a ledger compute it anew by `start_on`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import MOTIONS
from bismut.errors import BismutError, DegenerateError, DomainError, ShapeError
from bismut.formatting import brief
from bismut.mechanics import constraint as holonomic
from bismut.mechanics import small_linalg
from bismut.mechanics.state import Ledger, State, blank_ledger, over_batch
from bismut.mechanics.subsystems import map_subsystems
from bismut.mechanics.system import System
from bismut.noise import Index, Path, Stream
from bismut.precision import cast
from bismut.programs.evaluation import evaluate
from bismut.spaces import Point, Space, Velocity, add, scale
from bismut.tracing import traced

if TYPE_CHECKING:
    from bismut.mechanics.scheme import Scheme


class Start(State):
    """A state of a system with parameters or a clock, and the arguments it follows from. `start.state` is the state alone, as steps return it.

    velocity   of which p is the momentum; None if p itself was given
    implied_p  the momentum of that velocity: where p differs from it now, p counts as given, also under jit, vmap and grad
    t          the time of the start; None for that of the run
    project    whether it was moved onto the constraints
    """

    velocity: Any = None
    implied_p: Any = None
    t: float | None = eqx.field(static=True, default=None)
    project: bool = eqx.field(static=True, default=False)

    @property
    def motion(self) -> dict[str, Any]:
        """The argument of `scheme.start`; the velocity under a transformation, where it is not known yet whether p was changed."""
        if self.velocity is None:
            return {"momentum": self.p}
        same = all(x is y or np.array_equal(x, y) for x, y in self._momenta()) if not self.undecided else True
        return {"velocity": self.velocity} if same else {"momentum": self.p}

    @property
    def undecided(self) -> bool:
        """Whether only the numbers can tell if p is the momentum of the velocity, and they are not known: JAX traces them separately."""
        return self.velocity is not None and any(x is not y and traced(x, y) for x, y in self._momenta())

    def _momenta(self) -> list[tuple[Any, Any]]:
        return list(zip(jax.tree.leaves(self.p), jax.tree.leaves(self.implied_p), strict=True))

    def __repr__(self) -> str:
        return repr(self.state)


class Maxwell(eqx.Module):
    """Starts at points q with momenta from exp(−H/kT), one draw per trajectory: p = ∂L/∂v(q, 0, t) + √(kT M) z.

    t is the time of the start; None for that of the run. `project` says whether the points were moved onto the constraints. `blank` is the ledger to
    begin with, where the scheme keeps one of its own kind.
    """

    system: System
    q: Point
    temperature: Any
    ledger: bool = eqx.field(static=True)
    t: Any = None
    project: bool = eqx.field(static=True, default=False)
    blank: Ledger | None = None

    def __init__(self, system: System, q: Point, temperature, ledger: bool = False, t: Any = None, project: bool = False):
        if isinstance(temperature, str):
            raise DomainError(f"temperature must be one number kT, got {temperature!r}. Convert it: bm.units.molecular.kT('300 K').")
        if np.shape(temperature) != () or (not traced(temperature) and not 0 < temperature < np.inf):
            raise DomainError(f"temperature must be positive and finite, one number kT, got {temperature}.")
        if not system.quadratic:
            raise BismutError("Maxwell momenta need a kinetic energy that is quadratic in the velocity. Give momentum= instead.")
        if system.moving_constraint:
            raise BismutError("Maxwell momenta belong to a surface at rest, but the constraint moves. Give momentum= or velocity= with project=True.")
        self.system, self.q, self.ledger, self.t, self.project, self.blank = system, q, ledger, t, project, None
        if system.constraints:
            batch, now = system.space.check(q, "start.q"), 0.0 if t is None else t
            rest = over_batch(lambda q: system.momentum(q, system.space.zero(system.dtype), now), batch)
            holonomic.check_start(system, State(q, evaluate(rest, q)), batch, now)
        self.temperature = jnp.asarray(temperature, system.dtype)

    def __repr__(self) -> str:
        return f"Maxwell(q={brief(self.q)}, temperature={brief(self.temperature)}{', ledger=True' if self.ledger else ''})"

    @property
    def motion(self) -> dict[str, Any]:
        """The argument of `scheme.start`."""
        return {"temperature": self.temperature}

    @property
    def state(self) -> Maxwell:
        """What steps begin with: states that are still to be drawn."""
        return self

    def draw(self, path: Path, trajectory: Index, q: Point, t: Any) -> State:
        """The start of one trajectory at a point q and a time t."""
        system = self.system
        normals = system.space.unflatten(path.normals(trajectory, system.space.dim, Stream.start, system.dtype))
        spread = scale(jnp.sqrt(self.temperature), mass_root(system, q, normals, t))
        p = add(system.momentum(q, system.space.zero(system.dtype), t), spread)
        # The projection of a Maxwell momentum is one for the motion on the surface.
        p = holonomic.project(system, q, p, t)[0] if system.constraints else p
        return State(q, p, self.blank_ledger)

    @property
    def blank_ledger(self) -> Ledger | None:
        return self.blank if self.blank is not None else blank_ledger(self.system.dtype) if self.ledger else None


def make_start(
    space: Space, system: System, q: Point, motion: dict[str, Any], *, t: Any = None, project: bool = False, ledger: bool = False
) -> State | Maxwell:
    """The start at a point with one of the motions; `scheme.start` describes the arguments. Without a time it is computed for t = 0, and anew by
    `start_on` for that of a run."""
    chosen = [name for name in MOTIONS if motion.get(name) is not None]
    if len(chosen) != 1:
        raise BismutError(f"start needs one of velocity=, momentum=, temperature=, got {' and '.join(chosen) or 'none'}.")
    kind, now, dtype = chosen[0], 0.0 if t is None else t, system.dtype
    like_q, like_v = jax.eval_shape(lambda: (space.origin(dtype), space.zero(dtype)))
    q = _arranged(q, like_q)
    batch = space.check(q, "start.q")
    if 0 in batch:
        raise ShapeError(f"start needs a point q of {space}, or several along a first axis; none was given.")
    q = _onto_constraints(system, cast(q, dtype), batch, project, now)
    if kind == "temperature":
        return Maxwell(system, q, motion[kind], ledger, t, project)
    vector = _arranged(motion[kind], like_v)
    for leaf in jax.tree.leaves(vector):
        if isinstance(leaf, str | bytes):
            raise DomainError(f"start.{kind} must be numbers, got {leaf!r}.")
    vector = cast(vector, dtype)
    batched = space.check_velocity(vector, f"start.{kind}")
    if batch and batched and batch != batched:
        raise BismutError(f"start.q has leading axes {batch}, but start.{kind} has {batched}.")
    full = batch or batched
    q, vector = _spread(q, full, batch), _spread(vector, full, batched)
    p = vector if kind == "momentum" else _legendre(system, q, vector, full, now)
    if system.constraints and project:
        p = evaluate(over_batch(lambda q, p: holonomic.project(system, q, p, now)[0], full), q, p)
    state = State(q, p, blank_ledger(dtype, full) if ledger else None)
    if system.constraints:
        holonomic.check_start(system, state, full, now)
    varies = bool(jax.tree.leaves(system.parameters)) or system.time_dependent
    if not varies or traced(t) or (kind == "momentum" and not (project and system.constraints)):
        return state  # the same for every scheme, time and value of a sweep
    velocity = {"velocity": vector, "implied_p": state.p} if kind == "velocity" else {}
    return Start(state.q, state.p, state.ledger, t=None if t is None else float(t), project=project, **velocity)


def start_on(scheme: Scheme, start: State | Maxwell, t: Any, ledger: bool | None = None) -> State | Maxwell:
    """The start of a scheme: a velocity or a temperature stays what it is and momenta follow, a momentum stays.

    t       the time of the run, for a start that names none
    ledger  whether it has one; by default as before
    """
    entries = start.ledger if isinstance(start.ledger, Ledger) else None
    with_ledger = bool(start.ledger) if ledger is None else ledger
    if isinstance(start, Start | Maxwell):
        restart = partial(scheme.start, start.q, t=t if start.t is None else start.t, project=start.project, ledger=with_ledger)
        new = restart(**start.motion)
        if isinstance(start, Start) and start.undecided:
            new = _select(start, new, restart(momentum=start.p))
    else:
        batch = scheme.space.check_velocity(start.p, "start.p")
        new = State(start.q, start.p, blank_ledger(scheme.system.dtype, batch) if with_ledger else None)
        if scheme.system.constraints:
            holonomic.check_start(scheme.system, new, batch, t)
    return replace(new, ledger=entries) if with_ledger and entries is not None else new  # earlier entries stay


def time_of(start: State | Maxwell) -> Any:
    """The time for which a start was computed, where no run says when it begins."""
    t = start.t if isinstance(start, Start | Maxwell) else None
    return 0.0 if t is None else t


def mass_root(system: System, q: Point, z: Velocity, t: Any) -> Velocity:
    """C z with the Cholesky factor C Cᵀ = M(q, t), so that C z is a Maxwell momentum at kT = 1 for standard normal z; for each subsystem by itself
    where the masses decouple."""
    if system.decouples:
        return map_subsystems(system, lambda one, q, z: (mass_root(one, q, z, t),), q, z)[0]
    cells = zip(system.mass_cells(q, t), system.cells.split(system.space.flatten(z)), strict=True)
    parts = [jnp.ravel(jnp.einsum("cij,cj->ci", jax.vmap(small_linalg.cholesky)(matrix), part)) for matrix, part in cells]
    return system.space.unflatten(jnp.concatenate(parts))


def _select(start: Start, of_velocity: Any, of_momentum: Any) -> State:
    """The state of the velocity, or that of the momentum if p was changed: selected in the program, where the numbers are known.

    p − implied_p is zero in the first one, and there for its derivative: the end of a run follows a change of p as well as one of the velocity.
    """
    same = jnp.all(jnp.array([jnp.all(x == y) for x, y in start._momenta()]))

    def choose(first, second, p, implied):
        return jnp.where(same, first + jnp.asarray(p - implied, first.dtype), second)

    return State(of_velocity.q, jax.tree.map(choose, of_velocity.p, of_momentum.p, start.p, start.implied_p), of_velocity.ledger)


def _legendre(system: System, q: Point, v: Velocity, batch: tuple[int, ...], t: Any) -> Velocity:
    p = cast(evaluate(over_batch(lambda q, v: system.momentum(q, v, t), batch), q, v), system.dtype)
    if not traced(p) and not all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(p)):
        raise DegenerateError("∂L/∂v is not finite at the start: the velocity lies outside the domain of the Lagrangian.")
    return p


def _onto_constraints(system: System, q: Point, batch: tuple[int, ...], wanted: bool, t: Any) -> Point:
    if not system.constraints or not wanted:
        return q
    holonomic.check_independent(system, jax.tree.map(lambda leaf: leaf[(0,) * len(batch)], q), t)

    def nearest(q):
        point, root = holonomic.nearest_point(system, q, t)
        return jax.tree.map(lambda leaf: jnp.where(root.converged, leaf, jnp.nan), point), root.converged

    point, converged = evaluate(over_batch(nearest, batch), q)
    if not traced(converged) and not np.asarray(converged).all():
        raise DomainError("No point with g = 0 was found near start.q. Give one that is closer to the constraints.")
    return point


def _arranged(value, like):
    """Lists and arrays in the structure of the space: one array, or a tuple of as many as it has."""
    if not isinstance(like, tuple):
        return np.asarray(value, float) if isinstance(value, list | tuple) else value
    if isinstance(value, list | tuple) and len(value) == len(like):
        return tuple(_arranged(part, shape) for part, shape in zip(value, like, strict=True))
    return value


def _spread(tree, full: tuple[int, ...], own: tuple[int, ...]):
    return tree if own == full else jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*full, *leaf.shape)), tree)
