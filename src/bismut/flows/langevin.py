"""Langevin dynamics: a mechanical system in contact with a heat bath.

    dq = v dt,    dp = (ad*_v p + ∂L/∂q + F) dt + Σ dγ_i(q) ∘ dW_i  −  Γ(q) v dt + B(q) dW,      B Bᵀ = 2kT Γ

A step is put together from exact or variational pieces (`splitting`): free motion is the variational flow of the kinetic energy, on any space and
under constraints; the bath is relaxed exactly at fixed q (`mechanics.friction`). The pieces are here.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.actions.action import Action
from bismut.actions.verlet import Verlet
from bismut.compile_cache import compiled
from bismut.errors import BismutError, DomainError
from bismut.flows import books
from bismut.flows.cautions import DRIVEN, too_fast, warn_of_noise, warn_of_step
from bismut.flows.flow import Flow
from bismut.flows.metropolised import Frozen
from bismut.flows.splitting import BAOAB, Splitting
from bismut.flows.variational import Solve, Variational
from bismut.mechanics import Claims, Scheme, State, System
from bismut.mechanics.constraint import project, work
from bismut.mechanics.friction import Friction, Nothing, friction_of
from bismut.mechanics.function import UserFunction, user_function
from bismut.mechanics.heat import Drag, Temperature, check_quadratic
from bismut.precision import cast
from bismut.spaces import Point, Space, Velocity, add, scale


class Langevin(Flow):
    """A system in a bath.

    temperature  kT, a number ≥ 0 or a function of t
    friction     Γ in F = −Γ v: a number, numbers per coordinate, axis or body, matrices (may be singular); or a function B(q) of factors (n, r) with
                 Γ = BBᵀ/2kT. Without friction and rate the system's own stochastic potentials are the bath: B = dγ
    rate         Γ = rate · M instead: momenta decay at this rate, whatever the masses
    schedule     a function of t that multiplies the friction
    splitting    BAOAB, ABOBA, OBABO, GLA(action), Metropolised(action)
    retraction   "cayley" or "exp", by which every piece moves on a group; that of the space by default
    own_noise    "drives" if noise of the system beside a friction is meant to drive it. Nothing balances it: the system is hotter than the bath,
                 and without this word there is a warning, and `verify` and certificates fail the temperature

    friction=0 is the system without a bath.
    """

    temperature: Temperature
    friction: Friction
    splitting: Splitting = eqx.field(static=True)
    schedule: UserFunction | None = eqx.field(static=True)
    retraction: str | None = eqx.field(static=True)
    balanced: bool = eqx.field(static=True)  # the system's own γ_i are the bath
    own_noise: str | None = eqx.field(static=True)
    constrained = True

    def __init__(
        self,
        system: System,
        temperature: Any,
        friction: Any = None,
        splitting: Splitting = BAOAB,
        *,
        rate: Any = None,
        schedule: Callable | None = None,
        retraction: str | None = None,
        own_noise: str | None = None,
    ):
        if not isinstance(system, System):
            raise BismutError(f"Langevin needs a System, got {type(system).__name__}.")
        if not isinstance(splitting, Splitting):
            raise BismutError(f"splitting must be bm.BAOAB, bm.ABOBA, bm.OBABO, bm.GLA(action) or bm.Metropolised(action), got {splitting!r}.")
        check_quadratic(system, "A heat bath")
        if system.dissipation is not None:
            raise BismutError("This system already has its own dissipation (thermalize). Give Langevin the original system.")
        self.system, self.splitting, self.retraction = system, splitting, retraction
        self.temperature = Temperature(temperature, system.dtype)
        self.friction = friction_of(system, friction, rate)
        if system.moving_constraint and not isinstance(self.friction, Nothing):
            raise BismutError(
                "A bath relaxes momenta on a surface at rest, but the constraint moves. Use friction=0, or an action such as Verlet with a force."
            )
        self.balanced = friction is None and rate is None
        self.schedule = user_function("schedule", schedule, ())
        if self.temperature.zero and (self.balanced or callable(friction)):
            raise DomainError("temperature must be positive when noise is given and friction follows: at kT = 0 no friction balances noise.")
        if own_noise not in (None, "drives"):
            raise DomainError(f'own_noise must be "drives", or be omitted, got {own_noise!r}.')
        self.own_noise = own_noise
        _ = self.space  # an unknown retraction is refused now
        splitting.check(self)
        if self.unbalanced and own_noise is None:
            warn_of_noise()

    @property
    def space(self) -> Space:
        return self.system.space if self.retraction is None else self.system.space.using(self.retraction)

    @property
    def claims(self) -> Claims:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.splitting.claims(self.system)

    @property
    def title(self) -> str:
        return f"Langevin({self.splitting})"

    @property
    def channels(self) -> int:
        return self.moving.channels + self._baths * self.friction.rank + self.splitting.extra

    @property
    def clipped(self) -> int:
        # The bath is exact and acceptance needs its exponential variable as it is: bounded normals would cool.
        return self.moving.channels

    @property
    def keeps_ledger(self) -> bool:
        return True

    @property
    def pathwise(self) -> bool:
        return self.splitting.pathwise

    @property
    def moving(self) -> System:
        """The system apart from the bath."""
        return self.system.without_noise() if self.balanced else self.system

    @property
    def damped(self) -> System:
        """The system with the friction as a force and without noise: what is solved when all normals are 0."""
        if isinstance(self.friction, Nothing):
            return self.moving
        drag, bath, strength = Drag(self.friction, self.temperature), self.system, self.strength
        return self.moving.with_dissipation(lambda system, q, v, t: scale(strength(t), drag(bath, q, v, t)))

    @property
    def _baths(self) -> int:
        return self.splitting.baths(shaken=self.moving.channels > 0)

    @property
    def unbalanced(self) -> bool:
        """Whether noise beside the bath makes the system hotter than the bath."""
        return self.moving.channels > 0 and not isinstance(self.friction, Nothing) and not self.temperature.zero

    def remarks(self, step: float) -> tuple[str, ...]:
        """That noise drives the system beside the bath; and (γh/2) coth(γh/2) where it is more than a few hundredths."""
        fast = too_fast(self.friction, step) if self.schedule is None else ""
        return (*((DRIVEN,) if self.unbalanced else ()), *((fast,) if fast else ()))

    def check_step(self, step: float) -> None:
        if self.schedule is None:
            warn_of_step(self.friction, step)

    def split(self, splitting: Splitting) -> Langevin:
        """The same bath, with a step put together in another way."""
        made = copy(self)
        object.__setattr__(made, "splitting", splitting)  # fields are frozen once `__init__` is over
        splitting.check(made)
        return made

    def advance(self, state: State, h, dW: Float[Array, " m"], t) -> tuple[State, Solve]:
        new, _, solve = self.resume(state, self.remember(state, t), h, dW, t)
        return new, solve

    def remember(self, state: State, t) -> tuple[Velocity, ...]:
        """The impulse per time of the kick that begins a step, where one ended the step before."""
        return (self.slope(state.q, jnp.asarray(t, self.system.dtype)),) if self.splitting.resumes else ()

    def resume(self, state: State, found: tuple[Velocity, ...], h, dW: Float[Array, " m"], t) -> tuple[State, tuple[Velocity, ...], Solve]:
        dtype, m, baths, r = self.system.dtype, self.moving.channels, self._baths, self.friction.rank
        h, t = jnp.asarray(h, dtype), jnp.asarray(t, dtype)
        z = dW[m:] / jnp.sqrt(h)
        made = self.splitting.step(self, state, found[0] if found else None, h, dW[:m], z[: baths * r].reshape(baths, r), z[baths * r :], t)
        new = made.state
        if state.ledger is not None:
            total = self.energy(new, t + h) - self.energy(state, t)
            # Pieces enter the work of surfaces that move, and nothing else.
            work = made.work
            if self.moving.moving_constraint and new.ledger is not None:
                work = work + new.ledger.work - state.ledger.work
            new = State(new.q, new.p, books.entered(state.ledger, made.heat, work, total - made.heat - work, made.accepted))
        found = (cast(made.slope, dtype),) if found else ()
        return cast(new, dtype), found, made.solve

    # The pieces. Each is a program of its own, so that one which occurs several times in a step is traced once.

    def kT(self, t) -> Float[Array, ""]:
        return self.temperature(t, self.system.parameters)

    def strength(self, t) -> Float[Array, ""] | float:
        """The factor on the friction."""
        return 1.0 if self.schedule is None else self.schedule(t=t, parameters=self.system.parameters)

    @compiled
    def energy(self, state: State, t) -> Float[Array, ""]:
        return self.system.energy(state, t)

    @compiled
    def drift(self, state: State, h, t) -> tuple[State, Solve]:
        """A: free motion. Its action is the trapezoid one, because kick, drift and kick together are the step of that action."""
        return Variational(self._free()).advance(state, h, jnp.zeros(0, self.system.dtype), t)

    def _free(self) -> Action:
        return Verlet(self.moving.without_potential(), retraction=self.retraction)

    @compiled
    def slope(self, q: Point, t) -> Velocity:
        """−dU + F."""
        system, space, zero = self.moving, self.system.space, self.system.space.zero(self.system.dtype)
        slope = space.differential(lambda q: -system.potential(q, t), q)
        return add(slope, system.force(q, zero, t)) if system.pushed else slope

    def kick(self, state: State, slope: Velocity, h, t) -> tuple[State, Solve]:
        """B: p ← p + h (−dU + F), along the constraints."""
        return self._push(state, scale(h, slope), t)

    def shake(self, state: State, dW: Float[Array, " m"], t) -> tuple[State, Solve, Float[Array, ""]]:
        """N: p ← p + Σ dγ_i ΔW_i + Σ F_j ΔW_j, along the constraints; and the work that they did."""
        space, system = self.system.space, self.moving
        if system.random_forces:
            impulse = system.kick(state.q, space.zero(system.dtype), dW, t)
        else:
            impulse = space.differential(lambda q: system.noise(q, t) @ dW, state.q)
        new, solve = self._push(state, impulse, t)
        return new, solve, self._kinetic_gain(state, new, t)

    def _push(self, state: State, impulse: Velocity, t) -> tuple[State, Solve]:
        system, p, ledger = self.moving, add(state.p, impulse), state.ledger
        solve = Solve(jnp.zeros((), system.dtype), jnp.array(True), jnp.zeros((), int))
        if system.constraints:
            p, root = project(system, state.q, p, t)
            solve = solve._replace(converged=root.converged)
            if system.moving_constraint and ledger is not None:
                done = work(system, state.q, root.x[system.space.dim :], t)
                ledger = eqx.tree_at(lambda ledger: ledger.work, ledger, ledger.work + done)
        return State(state.q, p, ledger), solve

    @compiled
    def bath(self, state: State, h, z: Float[Array, " r"], t) -> tuple[State, Float[Array, ""]]:
        """O: exact contact with the bath at fixed q, and the heat that came in."""
        system = self.system
        new = State(state.q, self.friction.relax(system, state.q, state.p, self.strength(t) * h, t, self.kT(t), z), state.ledger)
        return new, self._kinetic_gain(state, new, t)

    def scheme_of(self, action: Callable[[System], Action]) -> Action:
        """The scheme that an action makes of the system apart from the bath; it moves by the retraction given here, if one was."""
        system = self.moving if self.retraction is None else self.moving.using(self.retraction)
        if isinstance(action, Scheme):
            raise BismutError(f"{self.splitting} needs an action such as bm.Verlet, not yet given a system, got the scheme {action.title}.")
        scheme = action(system)
        if not isinstance(scheme, Action):
            raise BismutError(f"{self.splitting} needs an action such as bm.Verlet, but it made a {type(scheme).__name__}.")
        if self.retraction is not None and scheme.space != self.space:
            raise BismutError(
                f"retraction={self.retraction!r} does not belong to {scheme.title}, which moves on {scheme.space}. Omit one of the two."
            )
        return scheme

    @compiled
    def variational(
        self, action: Callable[[System], Action], state: State, h, dW, t, frozen: bool = False, books: bool = False
    ) -> tuple[State, Solve]:
        """V: the step of an action; with time standing still if `frozen`, and with its own entries in the ledger if `books`."""
        scheme = self.scheme_of(action)
        if frozen:
            scheme = Frozen(scheme.system, scheme, t, retraction=scheme.retraction)
        return Variational(scheme, books=books).advance(state, h, dW, t)

    # The books: 0 where none are kept.

    def _kinetic_gain(self, old: State, new: State, t) -> Float[Array, ""]:
        if old.ledger is None:
            return jnp.zeros((), self.system.dtype)
        return self.system.kinetic_energy(new, t) - self.system.kinetic_energy(old, t)

    def work(self, old: State, new: State, h, t) -> Float[Array, ""]:
        """Work of a potential that changes in time, and of forces, over a step."""
        if old.ledger is None:
            return jnp.zeros((), self.system.dtype)
        return books.work_of_time(self.moving, old, new, h, t) + books.work_of_force(self.moving, old, new, h, t)

    def work_of_time(self, state: State, h, t) -> Float[Array, ""]:
        """H(q, p, t + h) − H(q, p, t): the work of a clock that moves on while the state stands still."""
        if state.ledger is None:
            return jnp.zeros((), self.system.dtype)
        return self.energy(state, t + h) - self.energy(state, t)

    # Refusals.

    def check_kicks(self) -> None:
        """Kick and drift need L = T(q, v) − U(q) and forces that do not see the velocity."""
        system = self.moving
        if system.force_sees_velocity:
            raise BismutError(
                f"The force depends on the velocity, which is not known in a kick at fixed q, so {self.splitting} cannot include it: "
                "use splitting=GLA(bm.Midpoint), or friction= if the force is a friction."
            )

    def details(self) -> list[str]:
        """What `explain` says of it."""
        drift = Variational(self._free()).structure()
        kT = "a function of time" if self.temperature.value is None else f"{float(self.temperature.value):.6g}"
        rate = self.friction.contraction(self.system)
        return [
            f"  splitting    {self.splitting}: {self.splitting.letters}",
            f"  bath         kT = {kT}; {self.friction.words}; {self.friction.rank} normals for each O",
            f"  free motion  p0 = −D₁S_d(q0, q0 ⊕ h v) for L = T: {drift.words}",
            *([] if rate is None else [f"  phase volume shrinks at the rate tr ΓM⁻¹ = {float(rate):.6g}, exactly"]),
        ]
