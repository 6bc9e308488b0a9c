"""What every way of stepping has in common: a system, claims about itself, and start states.

Claims are data. `verify` measures them, and the documentation quotes the measurement.
"""

import weakref
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import BismutError, DegenerateError, DomainError, ShapeError
from bismut.host import evaluate
from bismut.mechanics import constraint as holonomic
from bismut.mechanics import describing, small
from bismut.mechanics.commuting import commuting
from bismut.mechanics.state import Ledger, State, blank_ledger
from bismut.mechanics.system import System
from bismut.noise import Index, Path, Stream
from bismut.precision import cast
from bismut.showing import brief, table
from bismut.spaces import Point, Space, Velocity, add, scale
from bismut.tracing import traced


class Claims(NamedTuple):
    """What a scheme claims about itself; None where it claims nothing. `verify` measures it.

    order          of the error without noise
    strong_order   of the error on one Brownian path
    weak_order     of the error of averages over the noise
    symplectic     every step preserves the symplectic form, whatever the noise
    momentum_maps  those of symmetries of L and of every γ_i are conserved, whatever the noise
    self_adjoint   a step backwards, with −h and −ΔW, undoes a step
    casimirs       functions of the momentum that are constant on coadjoint orbits are conserved, whatever H and the noise
    """

    order: float | None
    strong_order: float | None = 1.0
    weak_order: float | None = 1.0
    symplectic: bool = False
    momentum_maps: bool = False
    self_adjoint: bool = False
    casimirs: bool = False

    def __str__(self) -> str:
        named = (("order", self.order), ("strong order", self.strong_order), ("weak order", self.weak_order))
        orders = [f"{name} {value:g}" for name, value in named if value is not None]
        kinds = {"symplectic": self.symplectic, "keeps momentum maps": self.momentum_maps, "its own adjoint": self.self_adjoint}
        kept = [words for words, flag in (kinds | {"keeps Casimirs": self.casimirs}).items() if flag]
        return ", ".join([*orders, *kept]) or "nothing"


class Scheme(eqx.Module):
    """A system and a rule to advance it. Concrete schemes are actions or flows."""

    system: System
    claims: ClassVar[Claims]
    phase_space: ClassVar[bool] = False  # whether it can step noise that sees the momentum, and a Hamiltonian in place of L

    def __check_init__(self):
        if isinstance(self.system, System) and self.system.in_phase_space and not self.phase_space:
            what = "noise that sees the momentum" if self.system.noise_hamiltonians else "a Hamiltonian in place of a Lagrangian"
            raise BismutError(
                f"{type(self).__name__} cannot step {what}. Use HamiltonianMidpoint, HamiltonianEuler or HamiltonianVerlet, where p is a variable."
            )

    @property
    def space(self) -> Space:
        """The space, with the retraction this scheme uses."""
        return self.system.space

    @property
    def channels(self) -> int:
        """How many normals a step needs."""
        return self.system.channels

    @property
    def forced(self) -> bool:
        """Whether anything acts that has no potential, so that steps are not symplectic."""
        return self.system.forced

    @property
    def promised(self) -> Claims:
        """The claims, as far as this system lets them hold: without Lévy areas, noises that do not commute allow strong order ½ and no more."""
        strong = self.claims.strong_order
        return self.claims if strong is None or strong <= 0.5 or commuting(self.system) else self.claims._replace(strong_order=0.5)

    @property
    def casimirs(self) -> dict[str, Callable[[State], Any]]:
        """The Casimirs that are known, by name: functions of a state. Whether a step keeps them is in the claims; `verify` measures it."""
        return {}

    @property
    def clipped(self) -> int:
        """How many of them, counted from the first, a bounded path bounds: those that an implicit step sees."""
        return self.channels

    @property
    def marcus(self) -> bool:
        """Whether a finite increment moves a state along the flow of its noise for unit time: so it is where kicks see q alone."""
        return not self.system.kick_sees_velocity

    @property
    def longest(self) -> int | None:
        """Operations of a step beyond which writing it out does not pay: products of large matrices, after reduction by symmetry."""
        return 40_000 if self.system.reduced else None

    @property
    def keeps_ledger(self) -> bool:
        """Whether its steps enter heat, work and error in the ledger of a start made with ledger=True."""
        return False

    @property
    def pathwise(self) -> bool:
        """Whether the derivative of an average is the average of derivatives along paths: not where steps are refused."""
        return True

    @property
    def title(self) -> str:
        """The name of the scheme with its options."""
        chosen = {field.name: getattr(self, field.name) for field in fields(self) if field.kw_only and getattr(self, field.name) != field.default}
        settings = ", ".join(f"{name}={value!r}" for name, value in chosen.items())
        return f"{type(self).__name__}({settings})" if settings else type(self).__name__

    def __repr__(self) -> str:
        return f"{self.title} of {self.system!r}"

    def _repr_html_(self) -> str:
        rows = [("claims", str(self.promised)), ("Wiener processes", str(self.channels))]
        named = {name for name, _ in rows}
        return table(f"{self.title} on {self.space}", [*rows, *(row for row in describing.rows(self.system) if row[0] not in named)])

    def start(
        self,
        q: Point = (),
        *,
        velocity: Velocity | None = None,
        momentum: Velocity | None = None,
        temperature: Any = None,
        t: Any = 0.0,
        project: bool = False,
        ledger: bool = False,
    ) -> "State | Maxwell":
        """A start state from a velocity or a momentum, or Maxwell momenta at kT = temperature, drawn afresh for each trajectory.

        On the dual of an algebra without advected quantities, no q is given. Leading axes of q and velocity or momentum are a batch: one start
        per trajectory. `t` is the time of the start, where L depends on it. Under constraints a start off the surface is rejected; `project` moves
        it there, point and momentum. With `ledger` the trajectory keeps account of heat, work and accepted steps, which `bm.heat`, `bm.work` and
        `bm.acceptance` read.
        """
        if ledger:
            self.check_ledger()
        given = {"velocity": velocity, "momentum": momentum, "temperature": temperature}
        chosen = [name for name, value in given.items() if value is not None]
        if len(chosen) != 1:
            raise BismutError(f"start needs one of velocity=, momentum=, temperature=, got {' and '.join(chosen) or 'none'}.")
        dtype = self.system.dtype
        like_q, like_v = jax.eval_shape(lambda: (self.space.origin(dtype), self.space.zero(dtype)))
        q = _arranged(q, like_q)
        batch = self.space.check(q, "start.q")
        if 0 in batch:
            raise ShapeError(f"start needs a point q of {self.space}, or several along a first axis; none was given.")
        q = self._onto_constraints(cast(q, dtype), batch, project, t)
        if temperature is not None:
            return Maxwell(self.system, q, temperature, ledger)
        vector = cast(_arranged(given[chosen[0]], like_v), dtype)
        batched = self.space.check_velocity(vector, f"start.{chosen[0]}")
        if batch and batched and batch != batched:
            raise BismutError(f"start.q has leading axes {batch}, but start.{chosen[0]} has {batched}.")
        full = batch or batched
        q, vector = _spread(q, full, batch), _spread(vector, full, batched)
        if momentum is not None:
            return self._along_constraints(State(q, vector, self._books(ledger, full)), full, project, t)
        legendre = lambda q, v: self.system.momentum(q, v, t)
        for _ in full:
            legendre = jax.vmap(legendre)
        p = cast(evaluate(legendre, q, vector), dtype)
        if not traced(p) and not all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(p)):
            raise DegenerateError("∂L/∂v is not finite at the start: the velocity lies outside the domain of the Lagrangian.")
        state = self._along_constraints(State(q, p, self._books(ledger, full)), full, project, t)
        _remember(state, {"q": q, "velocity": vector, "t": t, "project": project, "ledger": ledger})
        return state

    def check_ledger(self) -> None:
        """Refuse a ledger that nobody would write in."""
        if self.keeps_ledger:
            return
        why = "its steps make no entries" if self.system.moves else "no energy is known without a Lagrangian: give Discrete(..., system=system) one"
        raise BismutError(f"{self.title} keeps no ledger of heat and work, because {why}. Make the start without ledger=True.")

    def _books(self, wanted: bool, batch: tuple[int, ...]) -> Ledger | None:
        return blank_ledger(self.system.dtype, batch) if wanted else None

    def _onto_constraints(self, q: Point, batch: tuple[int, ...], wanted: bool, t) -> Point:
        system = self.system
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

    def _along_constraints(self, state: State, batch: tuple[int, ...], wanted: bool, t) -> State:
        system = self.system
        if not system.constraints:
            return state
        if wanted:
            along = lambda q, p: holonomic.project(system, q, p, t)[0]
            for _ in batch:
                along = jax.vmap(along)
            state = State(state.q, evaluate(along, state.q, state.p), state.ledger)
        holonomic.check_start(system, state, batch, t)
        return state


_MADE: dict[int, tuple[weakref.ref, dict[str, Any]]] = {}  # how starts that are still there were made; a state itself is nothing but its arrays


def _remember(start: State, made: dict[str, Any]) -> None:
    number = id(start)
    _MADE[number] = weakref.ref(start, lambda _: _MADE.pop(number, None)), made


def again(start: State, scheme: Scheme) -> "State | Maxwell":
    """The start made once more for another scheme, if it was made from a velocity; a momentum stays what it is."""
    known, made = _MADE.get(id(start), (lambda: None, {}))
    return scheme.start(**made) if known() is start else start


class Maxwell(eqx.Module):
    """Starts at points q with momenta from exp(−H/kT), one draw per trajectory: p = ∂L/∂v(q, 0) + √(kT M) z."""

    system: System
    q: Point
    temperature: Any
    ledger: bool = eqx.field(static=True)

    def __init__(self, system: System, q: Point, temperature, ledger: bool = False):
        if np.shape(temperature) != () or (not traced(temperature) and not 0 < temperature < np.inf):
            raise DomainError(f"temperature must be positive and finite, one number kT, got {temperature}.")
        if not system.quadratic:
            raise BismutError("Maxwell momenta need a kinetic energy that is quadratic in the velocity. Give momentum= instead.")
        if system.moving_constraint:
            raise BismutError("Maxwell momenta belong to a surface at rest, but the constraint moves. Give momentum= or velocity= with project=True.")
        self.system, self.q, self.ledger = system, q, ledger
        if system.constraints:
            holonomic.check_start(system, *_at_rest(system, q))
        self.temperature = jnp.asarray(temperature, system.dtype)

    def __repr__(self) -> str:
        return f"Maxwell(q={brief(self.q)}, temperature={brief(self.temperature)}{', ledger=True' if self.ledger else ''})"

    def draw(self, path: Path, trajectory: Index, q: Point) -> State:
        """The start of one trajectory at a point q."""
        system = self.system
        normals = system.space.unflatten(path.normals(trajectory, system.space.dim, Stream.start, system.dtype))
        spread = scale(jnp.sqrt(self.temperature), mass_root(system, q, normals))
        p = add(system.momentum(q, system.space.zero(system.dtype)), spread)
        # The projection of a Maxwell momentum is one for the motion on the surface.
        p = holonomic.project(system, q, p)[0] if system.constraints else p
        return State(q, p, self.books)

    @property
    def books(self) -> Ledger | None:
        return blank_ledger(self.system.dtype) if self.ledger else None


def _at_rest(system: System, q: Point) -> tuple[State, tuple[int, ...]]:
    """Points with the momentum of rest, and their batch axes."""
    batch = system.space.check(q, "start.q")
    rest = lambda q: system.momentum(q, system.space.zero(system.dtype))
    for _ in batch:
        rest = jax.vmap(rest)
    return State(q, evaluate(rest, q)), batch


def mass_root(system: System, q: Point, z: Velocity) -> Velocity:
    """C z with C Cᵀ = M(q), so that C z is a Maxwell momentum at kT = 1 for standard normal z; piece by piece where the masses fall apart."""
    if system.falls_apart:
        return system.apart(lambda piece, q, z: (mass_root(piece, q, z),), q, z)[0]
    parts, start, flat = [], 0, system.space.flatten(z)
    for matrix, (count, size) in zip(system.mass_cells(q), system.cells.runs, strict=True):
        part = flat[start : start + count * size].reshape(count, size)
        parts.append(jnp.ravel(jnp.einsum("cij,cj->ci", jax.vmap(small.cholesky)(matrix), part)))
        start += count * size
    return system.space.unflatten(jnp.concatenate(parts))


def _arranged(value, like):
    """Lists and arrays as the space holds them: one array, or a tuple of as many as it has."""
    if not isinstance(like, tuple):
        return np.asarray(value, float) if isinstance(value, list | tuple) else value
    if isinstance(value, list | tuple) and len(value) == len(like):
        return tuple(_arranged(part, shape) for part, shape in zip(value, like, strict=True))
    return value


def _spread(tree, full: tuple[int, ...], own: tuple[int, ...]):
    return tree if own == full else jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*full, *leaf.shape)), tree)
