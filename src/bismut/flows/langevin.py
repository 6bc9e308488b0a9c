"""Langevin dynamics: a mechanical system in contact with a heat bath.

    dq = v dt,    dp = (ad*_v p + ∂L/∂q + F) dt + Σ dγ_i(q) ∘ dW_i  −  Γ(q) v dt + B(q) dW,      B Bᵀ = 2kT Γ

A step is put together from exact or variational pieces (`splitting`): free motion is the variational flow of the kinetic energy, on any space and
under constraints; the bath is relaxed exactly at fixed q (`mechanics.friction`). The pieces are here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.actions import Action, Verlet
from bismut.errors import BismutError, DomainError
from bismut.flows.flow import Flow
from bismut.flows.splitting import BAOAB, Splitting, reversed_gap
from bismut.flows.variational import Solve, Variational
from bismut.mechanics import Claims, Ledger, State, System
from bismut.mechanics.constraint import project
from bismut.mechanics.dependence import depends
from bismut.mechanics.friction import Friction, Nothing, friction_of
from bismut.mechanics.heat import Drag, Temperature, check_quadratic
from bismut.mechanics.law import Law, law
from bismut.precision import cast
from bismut.spaces import Point, Space, Velocity, add, pair, scale


class Langevin(Flow):
    """A system in a bath.

    temperature  kT, a number ≥ 0 or a function of t
    friction     Γ in F = −Γ v: a number, numbers per coordinate, axis or body, matrices (may be singular); or a function B(q) of factors (n, r) with
                 Γ = BBᵀ/2kT. Without friction and rate the system's own stochastic potentials are the bath: B = dγ
    rate         Γ = rate · M instead: momenta forget at this rate, whatever the masses
    schedule     a function of t that multiplies the friction
    splitting    BAOAB, ABOBA, OBABO, GLA(action), Metropolised(action)

    Stochastic potentials beside a friction drive the system on their own account; nothing balances them. friction=0 is the system without a bath.
    """

    temperature: Temperature
    friction: Friction
    splitting: Splitting = eqx.field(static=True)
    schedule: Law | None = eqx.field(static=True)
    retraction: str | None = eqx.field(static=True)
    balanced: bool = eqx.field(static=True)  # the system's own γ_i are the bath
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
    ):
        if not isinstance(system, System):
            raise BismutError(f"Langevin needs a System, but {type(system).__name__} came.")
        if not isinstance(splitting, Splitting):
            raise BismutError(f"splitting must be BAOAB, ABOBA, OBABO, GLA(action) or Metropolised(action), but {splitting!r} came.")
        check_quadratic(system, "A heat bath")
        if system.dissipation is not None:
            raise BismutError("This system has its own dissipation already (thermalize). Give Langevin the system from before.")
        self.system, self.splitting, self.retraction = system, splitting, retraction
        self.temperature = Temperature(temperature, system.dtype)
        self.friction = friction_of(system, friction, rate)
        self.balanced = friction is None and rate is None
        self.schedule = law("schedule", schedule, ())
        if self.temperature.zero and (self.balanced or callable(friction)):
            raise DomainError("temperature must be positive when noise is given and friction follows: at kT = 0 no friction balances noise.")
        _ = self.space  # an unknown retraction is refused now
        splitting.check(self)

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
        return self.moving.channels + self.splitting.baths * self.friction.rank + self.splitting.extra

    @property
    def moving(self) -> System:
        """The system apart from the bath."""
        return self.system.without_noise() if self.balanced else self.system

    @property
    def damped(self) -> System:
        """The system with the friction as a force and without noise: what is solved when all normals are 0."""
        if isinstance(self.friction, Nothing) or self.schedule is not None:
            return self.moving
        drag = Drag(self.friction, self.temperature)
        bath = self.system
        return self.moving.with_dissipation(lambda system, q, v, t: drag(bath, q, v, t))

    def advance(self, state: State, h, dW: Float[Array, " m"], t) -> tuple[State, Solve]:
        new, _, solve = self.resume(state, self.remember(state, t), h, dW, t)
        return new, solve

    def remember(self, state: State, t) -> tuple[Velocity, ...]:
        """The impulse per time of the kick that begins a step, where one ended the step before. (With noises a kick is one derivative as well, but of
        another function each time.)"""
        return (self.slope(state.q, t),) if self.splitting.resumes and not self.moving.channels else ()

    def resume(self, state: State, found: tuple[Velocity, ...], h, dW: Float[Array, " m"], t) -> tuple[State, tuple[Velocity, ...], Solve]:
        m, baths, r = self.moving.channels, self.splitting.baths, self.friction.rank
        z = dW[m:] / jnp.sqrt(h)
        made = self.splitting.step(self, state, found[0] if found else None, h, dW[:m], z[: baths * r].reshape(baths, r), z[baths * r :], t)
        new = made.state
        if state.ledger is not None:
            work = self.work(state, new, h, dW[:m], t)
            total = self.energy(new, t + h) - self.energy(state, t)
            rows = (made.heat, work, total - made.heat - work, made.accepted, jnp.ones_like(made.accepted))
            new = State(new.q, new.p, Ledger(*(old + row for old, row in zip(jax.tree.leaves(state.ledger), rows, strict=True))))
        found = (cast(made.slope, self.system.dtype),) if found else ()
        return cast(new, self.system.dtype), found, made.solve

    # The pieces.

    def kT(self, t) -> Float[Array, ""]:
        return self.temperature(t, self.system.parameters)

    def energy(self, state: State, t) -> Float[Array, ""]:
        return self.system.energy(state, t)

    def drift(self, state: State, h, t) -> tuple[State, Solve]:
        """A: free motion. Its action is the trapezoid one, because kick, drift and kick together are the step of that action."""
        free = Verlet(self.moving.without_potential(), retraction=self.retraction)
        return Variational(free).advance(state, h, jnp.zeros(0, self.system.dtype), t)

    def slope(self, q: Point, t) -> Velocity:
        """−dU + F."""
        system, space, zero = self.moving, self.system.space, self.system.space.zero(self.system.dtype)
        slope = space.differential(lambda q: -system.potential(q, t), q)
        return add(slope, system.force(q, zero, t)) if system.forced else slope

    def kick(self, state: State, slope: Velocity | None, h, dW: Float[Array, " m"], t) -> tuple[State, Velocity, Solve]:
        """B: p ← p + h (−dU + F) + Σ dγ_i ΔW_i, along the constraints; and the slope, if it was not known."""
        system, space = self.moving, self.system.space
        slope = self.slope(state.q, t) if slope is None else slope
        p = add(state.p, scale(h, slope))
        if system.channels:
            zero = space.zero(system.dtype)
            p = add(p, jax.grad(lambda e: system.noise(space.nudge(state.q, e), t) @ dW)(zero))
        solve = Solve(jnp.zeros((), system.dtype), jnp.array(True), jnp.zeros((), int))
        if system.constraints:
            p, root = project(system, state.q, p, t)
            solve = solve._replace(converged=root.converged)
        return State(state.q, p, state.ledger), slope, solve

    def bath(self, state: State, h, z: Float[Array, " r"], t) -> tuple[State, Float[Array, ""]]:
        """O: exact contact with the bath at fixed q, and the heat that came in."""
        system = self.system
        strength = 1.0 if self.schedule is None else self.schedule(t=t, parameters=system.parameters)
        new = State(state.q, self.friction.relax(system, state.q, state.p, strength * h, t, self.kT(t), z), state.ledger)
        if state.ledger is None:
            return new, jnp.zeros((), system.dtype)
        return new, system.kinetic_energy(new, t) - system.kinetic_energy(state, t)

    def variational(self, action: Callable[[System], Action], state: State, h, dW, t, frozen: bool = False) -> tuple[State, Solve]:
        """V: the step of an action; with time standing still if `frozen`."""
        scheme = action(self.moving)
        if frozen:
            scheme = _Frozen(scheme.system, scheme, t, retraction=scheme.retraction)
        return Variational(scheme).advance(state, h, dW, t)

    def work(self, old: State, new: State, h, dW: Float[Array, " m"], t) -> Float[Array, ""]:
        """Work of a potential that changes in time, of forces and of stochastic potentials over a step, by the trapezoidal rule."""
        system, space = self.moving, self.system.space
        U = system.potential
        done = 0.5 * (U(old.q, t + h) - U(old.q, t) + U(new.q, t + h) - U(new.q, t))
        done = done + (system.noise(new.q, t + h) - system.noise(old.q, t)) @ dW / h
        if system.forced:
            zero = space.zero(system.dtype)
            mean = scale(0.5, add(system.force(old.q, zero, t), system.force(new.q, zero, t + h)))
            done = done + pair(mean, space.subtract(new.q, old.q))
        return done

    # Refusals.

    def check_kicks(self) -> None:
        """Kick and drift need L = T(q, v) − U(q) and forces that do not see the velocity."""
        system = self.moving
        q, zero = system.space.origin(system.dtype), system.space.zero(system.dtype)
        if system.forced and depends(lambda v: system.force(q, v), zero):
            raise BismutError(
                f"The force depends on the velocity, and a kick at fixed q does not know it. {self.splitting} cannot place it: "
                "use splitting=GLA(bm.Midpoint), or friction= if the force is a friction."
            )

    def check_reversible(self, action: Callable[[System], Action]) -> None:
        """Acceptance gives the Gibbs measure only for a step that, turned around, leads back, and with noise that friction balances."""
        system = self.moving
        if system.channels:
            raise BismutError("A Metropolised step cannot have noise that no friction balances. Leave friction= away to balance the system's γ_i.")
        if self.temperature.zero:
            raise DomainError("temperature must be positive for a Metropolised step.")
        if system.forced:
            raise BismutError("A Metropolised step samples exp(−H/kT); a force that is not −dU has no place in it.")
        q = system.space.move(system.space.origin(system.dtype), system.space.unflatten(jnp.linspace(0.1, 0.3, system.space.dim, dtype=system.dtype)))
        if np.abs(np.asarray(system.space.flatten(system.momentum(q, system.space.zero(system.dtype))))).max() > 0:
            raise BismutError("A Metropolised step needs L(q, −v) = L(q, v), but this Lagrangian has a term linear in the velocity.")
        scheme = action(system)
        if not isinstance(scheme, Action):
            raise BismutError(f"Metropolised needs an action such as bm.Verlet, but it made a {type(scheme).__name__}.")
        if not isinstance(scheme, Verlet) and not system.constraints:
            state = State(q, system.space.unflatten(jnp.linspace(0.5, 1.0, system.space.dim, dtype=system.dtype)))
            gap = float(jax.jit(lambda s: reversed_gap(scheme, s, 0.1, jnp.zeros(0, system.dtype)))(state))
            if not gap < 1e-9:
                raise BismutError(
                    f"A Metropolised step must be its own reverse, but {scheme.title} turned around misses its start by {gap:.2g} (step 0.1). "
                    "Use bm.Verlet, or a midpoint action with the exponential retraction."
                )

    def details(self) -> list[str]:
        """What `explain` says of it."""
        drift = Variational(Verlet(self.moving.without_potential(), retraction=self.retraction)).structure()
        kT = "a function of time" if self.temperature.value is None else f"{float(self.temperature.value):.6g}"
        rate = self.friction.contraction(self.system)
        return [
            f"  splitting    {self.splitting}: A free motion, B kick, O bath, V variational step",
            f"  bath         kT = {kT}; {self.friction.words}; {self.friction.rank} normals for each O",
            f"  free motion  p0 = −D₁S_d(q0, q0 ⊕ h v) for L = T: {drift.words}",
            *([] if rate is None else [f"  phase volume shrinks at the rate tr ΓM⁻¹ = {float(rate):.6g}, exactly"]),
        ]


class _Frozen(Action):
    """An action with time standing still."""

    of: Action
    now: Any

    def on(self, system):
        return replace(self, system=system, of=self.of.on(system))

    @property
    def claims(self) -> Claims:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.of.claims

    @property
    def explicit_force(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.of.explicit_force

    def __call__(self, L, gamma, q0, q1, v, h, dW, t):
        still = lambda f: lambda *arguments: f(*arguments[:-1], self.now)
        return self.of(still(L), still(gamma), q0, q1, v, h, dW, t)
