"""Langevin dynamics: a mechanical system in contact with a heat bath.

    dq = v dt,    dp = (ad*_v p + ∂L/∂q + F) dt + Σ dγ_i(q) ∘ dW_i  −  Γ(q) v dt + B(q) dW,      B Bᵀ = 2kT Γ

A step composes exact or variational substeps (`substeps`) in the order of a splitting. Two warnings belong to it:

    noise beside a bath       nothing balances it: the system is hotter than kT
    steps of γh > ½           without forces positions diffuse (γh/2) coth(γh/2) times too fast, and drift so under a constant force

The second is exact for BAOAB, ABOBA, OBABO and GLA, whose momenta are a chain p' = e^{−γh} p + …. Einstein's relation holds, so no test of
temperature sees it. transport="exact" (drifts and kicks of b h, b² = tanh(γh/2)/(γh/2)) and splitting=GJI remove it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.errors import BismutError, BismutWarning, DomainError
from bismut.flows import ledger
from bismut.flows.splitting import BAOAB, Splitting, StepOutcome, WordSplitting
from bismut.flows.substeps import Substeps
from bismut.flows.variational import Solve
from bismut.mechanics import Claims, State, System
from bismut.mechanics.friction import NoFriction, friction_of
from bismut.mechanics.function import user_function
from bismut.mechanics.heat import Drag, Temperature, check_quadratic
from bismut.precision import cast
from bismut.spaces import Velocity, scale
from bismut.tracing import traced
from bismut.user_errors import warn

_DRIVEN = "The system's own noise drives it beside the bath, and nothing balances it: the system is hotter than kT"
_FAST = 0.5  # γh from which free diffusion is off by more than 2 %
_TOLERATED = 0.02  # of free diffusion, no warning


class Langevin(Substeps):
    """A system in a bath.

    temperature  kT, a number ≥ 0 or a function of t
    friction     Γ in F = −Γ v: a number, numbers per coordinate, axis or body, matrices (may be singular); or a function B(q) of factors (n, r) with
                 Γ = BBᵀ/2kT. Without friction and rate the system's own stochastic potentials are the bath: B = dγ
    rate         Γ = rate · M instead: momenta decay at this rate, whatever the masses
    schedule     a function of t that multiplies the friction
    splitting    BAOAB, ABOBA, OBABO, GJI, GJII, GLA(action), Metropolised(action)
    transport    "exact": drifts and kicks of BAOAB, ABOBA or OBABO last h·√(tanh(γh/2)/(γh/2)), so that free motion diffuses and drifts as kT/Γ
                 and 1/Γ say, at any step. For one rate of all momenta; splitting=GJI does it for any friction
    retraction   "cayley" or "exp", by which every substep moves on a group; that of the space by default
    own_noise    "drives" if noise of the system beside a friction is meant to drive it. Nothing balances it: the system is hotter than the bath,
                 and without this word there is a warning, and `verify` and certificates fail the temperature

    friction=0 is the system without a bath.
    """

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
        transport: str | None = None,
    ):
        if not isinstance(system, System):
            raise BismutError(f"Langevin needs a System, got {type(system).__name__}.")
        if not isinstance(splitting, Splitting):
            raise BismutError(
                f"splitting must be bm.BAOAB, bm.ABOBA, bm.OBABO, bm.GJI, bm.GJII, bm.GLA(action) or bm.Metropolised(action), got {splitting!r}."
            )
        check_quadratic(system, "A heat bath")
        if system.dissipation is not None:
            raise BismutError("This system already has its own dissipation (thermalize). Give Langevin the original system.")
        self.system, self.splitting, self.retraction = system, splitting, retraction
        self.temperature = Temperature(temperature, system.dtype)
        self.friction = friction_of(system, friction, rate)
        if system.moving_constraint and not isinstance(self.friction, NoFriction):
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
        if transport not in (None, "exact"):
            raise DomainError(f'transport must be "exact", or be omitted, got {transport!r}.')
        if transport is not None:
            self.splitting = splitting = splitting.with_exact_transport()
        _ = self.space  # an unknown retraction is refused now
        splitting.check(self)
        if self.unbalanced and own_noise is None:
            advice = 'Omit friction and rate to have the bath balance the noise, remove the noise, or give own_noise="drives" if that is wanted.'
            warn(f"{_DRIVEN}. {advice}", BismutWarning)

    @property
    def claims(self) -> Claims:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.splitting.claims(self.system)

    @property
    def title(self) -> str:
        return f"Langevin({self.splitting})"

    def with_splitting(self, splitting: Splitting) -> Langevin:
        """The same bath with another splitting."""
        other = copy(self)
        object.__setattr__(other, "splitting", splitting)  # fields are frozen once `__init__` is over
        splitting.check(other)
        return other

    @property
    def channels(self) -> int:
        return self.moving.channels + self._baths * self.friction.rank + self.splitting.extra

    @property
    def path_channels(self) -> int:
        # The bath is exact and acceptance needs its exponential variable as it is: bounded normals would cool.
        return self.moving.channels

    @property
    def keeps_ledger(self) -> bool:
        return True

    @property
    def pathwise(self) -> bool:
        return self.splitting.pathwise

    @property
    def damped(self) -> System:
        """The system with the friction as a force and without noise: what is solved when all normals are 0."""
        if isinstance(self.friction, NoFriction):
            return self.moving
        drag, bath, strength = Drag(self.friction, self.temperature), self.system, self.strength
        return self.moving.with_dissipation(lambda system, q, v, t: scale(strength(t), drag(bath, q, v, t)))

    @property
    def _baths(self) -> int:
        return self.splitting.baths(shaken=self.moving.channels > 0)

    @property
    def unbalanced(self) -> bool:
        """Whether noise beside the bath makes the system hotter than the bath."""
        return self.moving.channels > 0 and not isinstance(self.friction, NoFriction) and not self.temperature.zero

    def remarks(self, step: float) -> tuple[str, ...]:
        """That noise drives the system beside the bath; and (γh/2) coth(γh/2) where it is more than a few hundredths."""
        return tuple(remark for remark in (_DRIVEN if self.unbalanced else "", self._fast_diffusion(step)) if remark)

    def check_step(self, step: float) -> None:
        if fast := self._fast_diffusion(step):
            remedy = 'transport="exact"' if self.friction.uniform and isinstance(self.splitting, WordSplitting) else "splitting=bm.GJI"
            warn(f"{fast}. Where motion matters, give {remedy}, or take a step below {_FAST:g}/γ.", BismutWarning)

    def _fast_diffusion(self, step: Any) -> str:
        """By how much free diffusion is too fast; empty where it is not, or where the rate is not known."""
        rate = None if self.schedule is not None else self.friction.fastest()
        if rate is None or traced((rate, step)) or not float(rate) * abs(step) > _FAST:
            return ""
        x = float(rate) * abs(step)
        claimed = self.splitting.free_diffusion(x)
        factor = 0.5 * x / math.tanh(0.5 * x) if claimed is None else float(claimed)
        if abs(factor - 1) < _TOLERATED:
            return ""
        return f"γh = {x:.3g}: without forces positions diffuse {factor:.3g} times too fast; averages are not affected"

    def phase_volume(self, h: float) -> float | None:
        """The factor by which a step changes phase volume, where it is the same everywhere: Π c(hλ), e^{−h tr ΓM⁻¹} for an exact bath."""
        loss = getattr(self.splitting, "loss", None)
        if loss is not None:
            volume = self.friction.volume(self.system, h, loss)
            return None if volume is None else float(volume)
        rate = self.friction.contraction(self.system)
        return None if rate is None else math.exp(-h * float(rate))

    def init_cache(self, state: State, t) -> tuple[Velocity, ...]:
        """The force of the kick that begins a step, where one ended the step before (first same as last, FSAL)."""
        return (self.force(state.q, jnp.asarray(t, self.system.dtype)),) if self.splitting.reuses_force else ()

    def step_with_cache(self, state: State, cache: tuple[Velocity, ...], h, dW: Float[Array, " m"], t) -> tuple[State, tuple[Velocity, ...], Solve]:
        dtype = self.system.dtype
        h, t = jnp.asarray(h, dtype), jnp.asarray(t, dtype)
        outcome = self.outcome(state, cache, h, dW, t)
        cache = (cast(outcome.force, dtype),) if cache else ()
        return self.recorded(state, outcome, h, t), cache, outcome.solve

    def recorded(self, state: State, outcome: StepOutcome, h, t) -> State:
        """The state after a step, with its ledger if that before has one."""
        new = outcome.state
        if state.ledger is not None:
            total = self.energy(new, t + h) - self.energy(state, t)
            # Substeps enter the work of moving surfaces, and nothing else.
            work = outcome.work
            if self.moving.moving_constraint and new.ledger is not None:
                work = work + new.ledger.work - state.ledger.work
            new = State(new.q, new.p, ledger.add_entry(state.ledger, outcome.heat, work, total - outcome.heat - work, outcome.accepted))
        return cast(new, self.system.dtype)

    def outcome(self, state: State, cache: tuple[Velocity, ...], h, dW: Float[Array, " m"], t) -> StepOutcome:
        """What the splitting makes of a state; its ledger is that of the beginning."""
        m, baths, r = self.moving.channels, self._baths, self.friction.rank
        z = dW[m:] / jnp.sqrt(h)
        return self.splitting.step(self, state, cache[0] if cache else None, h, dW[:m], z[: baths * r].reshape(baths, r), z[baths * r :], t)

    def details(self) -> list[str]:
        """Lines for `explain`."""
        drift = self.free_flow().structure()
        kT = "a function of time" if self.temperature.value is None else f"{float(self.temperature.value):.6g}"
        rate = None if getattr(self.splitting, "loss", None) else self.friction.contraction(self.system)
        return [
            f"  splitting    {self.splitting}: {self.splitting.letters}",
            f"  bath         kT = {kT}; {self.friction.description}; {self.friction.rank} normals for each O",
            f"  free motion  p0 = −D₁S_d(q0, q0 ⊕ h v) for L = T: {drift.describe()}",
            *([] if rate is None else [f"  phase volume shrinks at the rate tr ΓM⁻¹ = {float(rate):.6g}, exactly"]),
        ]
