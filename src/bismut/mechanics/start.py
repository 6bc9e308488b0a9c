"""Where motion begins: a start is data, and every scheme makes its own states of it.

    (q, v)  ↦  p = ∂L/∂v(q, v, t)            (q, p)  ↦  p            (q, kT)  ↦  p = ∂L/∂v(q, 0, t) + √(kT M) z

each at the time t of the start and, under constraints, projected onto them if that was asked for. A start holds what it was made from (velocity or
temperature, time, projection), so a value of a sweep, a run that begins at another time and a run that keeps a ledger make it again by `start_on`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import BismutError, DegenerateError, DomainError, ShapeError
from bismut.host import evaluate
from bismut.mechanics import constraint as holonomic
from bismut.mechanics import small
from bismut.mechanics.state import Ledger, State, blank_ledger
from bismut.mechanics.system import System
from bismut.noise import Index, Path, Stream
from bismut.precision import cast
from bismut.showing import brief
from bismut.spaces import Point, Space, Velocity, add, scale
from bismut.tracing import traced

if TYPE_CHECKING:
    from bismut.mechanics.scheme import Scheme

MOTIONS = ("velocity", "momentum", "temperature")  # of which a start has one


class Start(State):
    """A state of a system with parameters or a clock, and what it was made from. `start.state` is the state alone, as steps return it.

    velocity  that p was made from; None if p itself was given
    made      the p that came of it: where p is another one now, it counts as given, also under jit, vmap and grad
    t         the time of the start; None for that of the run
    project   whether it was moved onto the constraints
    """

    velocity: Any = None
    made: Any = None
    t: float | None = eqx.field(static=True, default=None)
    project: bool = eqx.field(static=True, default=False)

    @property
    def motion(self) -> dict[str, Any]:
        """How it moves, as `scheme.start` takes it. A velocity under a transformation, where nobody can say yet whether p was changed."""
        if self.velocity is None or not (self.undecided or _same(self.p, self.made)):
            return {"momentum": self.p}
        return {"velocity": self.velocity}

    @property
    def undecided(self) -> bool:
        """Whether only the numbers can tell if p is the one that came of the velocity, and they are not known: JAX traces them apart."""
        pairs = zip(jax.tree.leaves(self.p), jax.tree.leaves(self.made), strict=True)
        return self.velocity is not None and any(x is not y and traced(x, y) for x, y in pairs)

    def __repr__(self) -> str:
        return repr(self.state)


class Maxwell(eqx.Module):
    """Starts at points q with momenta from exp(−H/kT), one draw per trajectory: p = ∂L/∂v(q, 0, t) + √(kT M) z.

    t is the time of the start; None for that of the run. `project` says whether the points were moved onto the constraints.
    """

    system: System
    q: Point
    temperature: Any
    ledger: bool = eqx.field(static=True)
    t: Any = None
    project: bool = eqx.field(static=True, default=False)

    def __init__(self, system: System, q: Point, temperature, ledger: bool = False, t: Any = None, project: bool = False):
        if isinstance(temperature, str):
            raise DomainError(f"temperature must be one number kT, got {temperature!r}. Convert it: bm.units.molecular.kT('300 K').")
        if np.shape(temperature) != () or (not traced(temperature) and not 0 < temperature < np.inf):
            raise DomainError(f"temperature must be positive and finite, one number kT, got {temperature}.")
        if not system.quadratic:
            raise BismutError("Maxwell momenta need a kinetic energy that is quadratic in the velocity. Give momentum= instead.")
        if system.moving_constraint:
            raise BismutError("Maxwell momenta belong to a surface at rest, but the constraint moves. Give momentum= or velocity= with project=True.")
        self.system, self.q, self.ledger, self.t, self.project = system, q, ledger, t, project
        if system.constraints:
            now = 0.0 if t is None else t
            holonomic.check_start(system, *_at_rest(system, q, now), now)
        self.temperature = jnp.asarray(temperature, system.dtype)

    def __repr__(self) -> str:
        return f"Maxwell(q={brief(self.q)}, temperature={brief(self.temperature)}{', ledger=True' if self.ledger else ''})"

    @property
    def motion(self) -> dict[str, Any]:
        """How it moves, as `scheme.start` takes it."""
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
        return State(q, p, self.books)

    @property
    def books(self) -> Ledger | None:
        return blank_ledger(self.system.dtype) if self.ledger else None


def make(
    space: Space, system: System, q: Point, motion: dict[str, Any], *, t: Any = None, project: bool = False, ledger: bool = False
) -> State | Maxwell:
    """The start at a point with one of the motions; `scheme.start` describes the arguments. It is made for t = 0 where no time is named."""
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
    vector = cast(_arranged(motion[kind], like_v), dtype)
    batched = space.check_velocity(vector, f"start.{kind}")
    if batch and batched and batch != batched:
        raise BismutError(f"start.q has leading axes {batch}, but start.{kind} has {batched}.")
    full = batch or batched
    q, vector = _spread(q, full, batch), _spread(vector, full, batched)
    p = vector if kind == "momentum" else _legendre(system, q, vector, full, now)
    state = _along_constraints(system, State(q, p, blank_ledger(dtype, full) if ledger else None), full, project, now)
    varies = bool(jax.tree.leaves(system.parameters)) or system.time_dependent
    if not varies or traced(t) or (kind == "momentum" and not (project and system.constraints)):
        return state  # whoever makes it again, it is the same
    velocity = {"velocity": vector, "made": state.p} if kind == "velocity" else {}
    return Start(state.q, state.p, state.ledger, t=None if t is None else float(t), project=project, **velocity)


def start_on(scheme: Scheme, start: State | Maxwell, t: Any, ledger: bool | None = None) -> State | Maxwell:
    """The start as a scheme makes it: a velocity or a temperature stays what it is and momenta follow, a momentum stays.

    t       the time of the run, for a start that names none
    ledger  whether it keeps one; by default as before
    """
    before = start.ledger if isinstance(start.ledger, Ledger) else None
    keeps = bool(start.ledger) if isinstance(start, Maxwell) else before is not None
    keeps = keeps if ledger is None else ledger
    if isinstance(start, Start | Maxwell):
        again = partial(scheme.start, start.q, t=t if start.t is None else start.t, project=start.project, ledger=keeps)
        made = again(**start.motion)
        if isinstance(start, Start) and start.undecided:
            made = _decided(start, made, again(momentum=start.p))
    else:
        batch = scheme.space.check_velocity(start.p, "start.p")
        made = State(start.q, start.p, blank_ledger(scheme.system.dtype, batch) if keeps else None)
        if scheme.system.constraints:
            holonomic.check_start(scheme.system, made, batch, t)
    return replace(made, ledger=before) if keeps and before is not None else made  # what was entered before stays


def time_of(start: State | Maxwell) -> Any:
    """The time for which a start was made, where no run says when it begins."""
    t = start.t if isinstance(start, Start | Maxwell) else None
    return 0.0 if t is None else t


def mass_root(system: System, q: Point, z: Velocity, t: Any) -> Velocity:
    """C z with C Cᵀ = M(q, t), so that C z is a Maxwell momentum at kT = 1 for standard normal z; piece by piece where the masses fall apart."""
    if system.falls_apart:
        return system.apart(lambda piece, q, z: (mass_root(piece, q, z, t),), q, z)[0]
    parts, start, flat = [], 0, system.space.flatten(z)
    for matrix, (count, size) in zip(system.mass_cells(q, t), system.cells.runs, strict=True):
        part = flat[start : start + count * size].reshape(count, size)
        parts.append(jnp.ravel(jnp.einsum("cij,cj->ci", jax.vmap(small.cholesky)(matrix), part)))
        start += count * size
    return system.space.unflatten(jnp.concatenate(parts))


def _same(a: Any, b: Any) -> bool:
    """Whether two trees hold the same numbers."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(x is y or np.array_equal(x, y) for x, y in pairs)


def _decided(start: Start, moving: Any, given: Any) -> State:
    """The state of the velocity, or that of the momentum if p was changed: chosen where the numbers are known, in the program.

    p − made is zero in the first one, and there for its derivative: the end of a run follows a change of p as well as one of the velocity.
    """
    same = jnp.all(jnp.array([jnp.all(x == y) for x, y in zip(jax.tree.leaves(start.p), jax.tree.leaves(start.made), strict=True)]))

    def choose(along, momentum, p, made):
        return jnp.where(same, along + jnp.asarray(p - made, along.dtype), momentum)

    return State(moving.q, jax.tree.map(choose, moving.p, given.p, start.p, start.made), moving.ledger)


def _legendre(system: System, q: Point, v: Velocity, batch: tuple[int, ...], t: Any) -> Velocity:
    momentum = lambda q, v: system.momentum(q, v, t)
    for _ in batch:
        momentum = jax.vmap(momentum)
    p = cast(evaluate(momentum, q, v), system.dtype)
    if not traced(p) and not all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(p)):
        raise DegenerateError("∂L/∂v is not finite at the start: the velocity lies outside the domain of the Lagrangian.")
    return p


def _onto_constraints(system: System, q: Point, batch: tuple[int, ...], wanted: bool, t: Any) -> Point:
    if not system.constraints or not wanted:
        return q
    holonomic.check_independent(system, jax.tree.map(lambda leaf: leaf[(0,) * len(batch)], q), t)

    def find(q):
        point, root = holonomic.nearest_point(system, q, t)
        return jax.tree.map(lambda leaf: jnp.where(root.converged, leaf, jnp.nan), point), root.converged

    for _ in batch:
        find = jax.vmap(find)
    point, converged = evaluate(find, q)
    if not traced(converged) and not np.asarray(converged).all():
        raise DomainError("No point with g = 0 was found near start.q. Give one that is closer to the constraints.")
    return point


def _along_constraints(system: System, state: State, batch: tuple[int, ...], wanted: bool, t: Any) -> State:
    if not system.constraints:
        return state
    if wanted:
        along = lambda q, p: holonomic.project(system, q, p, t)[0]
        for _ in batch:
            along = jax.vmap(along)
        state = State(state.q, evaluate(along, state.q, state.p), state.ledger)
    holonomic.check_start(system, state, batch, t)
    return state


def _at_rest(system: System, q: Point, t: Any) -> tuple[State, tuple[int, ...]]:
    """Points with the momentum of rest, and their batch axes."""
    batch = system.space.check(q, "start.q")
    rest = lambda q: system.momentum(q, system.space.zero(system.dtype), t)
    for _ in batch:
        rest = jax.vmap(rest)
    return State(q, evaluate(rest, q)), batch


def _arranged(value, like):
    """Lists and arrays as the space holds them: one array, or a tuple of as many as it has."""
    if not isinstance(like, tuple):
        return np.asarray(value, float) if isinstance(value, list | tuple) else value
    if isinstance(value, list | tuple) and len(value) == len(like):
        return tuple(_arranged(part, shape) for part, shape in zip(value, like, strict=True))
    return value


def _spread(tree, full: tuple[int, ...], own: tuple[int, ...]):
    return tree if own == full else jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*full, *leaf.shape)), tree)
