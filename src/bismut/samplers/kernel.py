"""A kernel that others can call: `init(position)` and `step(key, state) → (state, info)`, pure functions of arrays and a key.

    step:   momenta drawn afresh,  n steps,  one acceptance          ρ is invariant, whatever the state was made from

Both can be jitted, mapped and scanned, with the key as data; a state has a `position`, as the adaptation and sequential Monte Carlo of BlackJAX
expect it. XLA computes them. `sample` makes the same steps by the native engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from bismut.arguments import checked
from bismut.errors import BismutError, DomainError, ShapeError
from bismut.flows import Langevin
from bismut.mechanics import State
from bismut.mechanics.state import blank_ledger
from bismut.samplers.domain import checked_point, domain_of
from bismut.samplers.scheme import AFRESH, Proposal, Trajectories, Tuning, rise_of
from bismut.samplers.surface import surface_of
from bismut.samplers.target import unit_target
from bismut.spaces import Velocity


class KernelState(NamedTuple):
    """Where a chain is, as log_density is given it, log ρ there, and a momentum, which only `Metropolised` hands on to the next step."""

    position: Any
    logdensity: Float[Array, ""]
    momentum: Velocity


class KernelInfo(NamedTuple):
    """How a step went.

    is_accepted             whether it was; is_divergent: whether it diverged
    energy_error            Δ of what was tried, accepted or not; ∞ where it failed
    num_integration_steps   the gradients it took
    acceptance_rate         min(1, e^{−Δ/kT}), its probability to be accepted, by which BlackJAX adapts steps; 1 for schemes that refuse nothing
    """

    is_accepted: Bool[Array, ""]
    is_divergent: Bool[Array, ""]
    energy_error: Float[Array, ""]
    num_integration_steps: Array
    acceptance_rate: Float[Array, ""]


class Kernel(NamedTuple):
    """Two functions."""

    init: Callable[..., KernelState]
    step: Callable[[Any, KernelState], tuple[KernelState, KernelInfo]]


def kernel(scheme: Langevin, step: Any = None) -> Kernel:
    """The kernel of a scheme.

    scheme  `draws.scheme` of `bm.sample`, or Langevin(..., splitting=bm.Metropolised()); other splittings refuse no step, and are exact only as h → 0
    step    the time step, which may be traced; that of `draws.tuning` if omitted. A Langevin scheme has none of its own and needs it

    Of Langevin schemes `init(position, key)` draws the momentum; without a key it is 0, and the first steps are not yet those of equilibrium. The
    kernel of draws.scheme draws momenta afresh in every step, also where `sample` was run with kernel="metropolised", whose momenta persist: ρ is
    invariant exactly, but it is not that chain.
    """
    if isinstance(scheme, Trajectories):
        return _trajectories(scheme, scheme.tuned if step is None else step)
    if isinstance(scheme, Langevin):
        if step is None:
            raise BismutError("A Langevin scheme has no time step of its own, as draws.scheme has: give kernel(scheme, step=...).")
        return _langevin(scheme, step)
    raise BismutError(f"kernel needs a scheme such as draws.scheme or bm.Langevin(..., splitting=bm.Metropolised()), got {type(scheme).__name__}.")


@checked()
def malt(
    space: Any,
    log_density: Callable,
    *,
    step: Any,
    leapfrogs: int = 8,
    friction: Any = 1.0,
    constraint: Callable | None = None,
    measure: str = "surface",
) -> Kernel:
    """The kernel of whole Langevin trajectories with one acceptance each, for a density on a space, group or surface; friction=0 is HMC.

    space, log_density, constraint, measure  as for `sample`
    step, leapfrogs, friction                of a trajectory; step and friction may be traced
    """
    domain, extra = domain_of(space), None
    if constraint is not None:
        domain, extra = surface_of(domain, constraint, measure)
    if not isinstance(leapfrogs, int) or leapfrogs < 1:
        raise DomainError(f"leapfrogs must be a whole number ≥ 1, got {leapfrogs!r}.")
    return _trajectories(Trajectories(unit_target(log_density, domain, extra, scaled=False), Tuning(step, leapfrogs, friction)), step)


def _trajectories(scheme: Trajectories, h: Any) -> Kernel:
    target, space, dtype = scheme.target, scheme.system.space, scheme.system.dtype

    def init(position, key=None):
        del key
        if batch := checked_point(target.domain, position, "position"):
            raise ShapeError(f"init takes one point, got {batch} of them. jax.vmap(kernel.init)(positions) begins as many chains.")
        q = target.coordinates(position)
        return KernelState(position, -target.potential(q)[0], space.zero(dtype))

    def step(key, state):
        first, later = jax.random.split(key)
        begun = scheme.begin(target.coordinates(state.position))
        normals = jax.random.normal(first, (scheme.friction.rank,), dtype)
        zero = jnp.zeros((), dtype)
        p = scheme.friction.relax(scheme.system, begun.q, begun.p, AFRESH + zero, zero, zero + 1, normals)
        begun = State(begun.q, p, _with(begun.ledger, p=p, kinetic=scheme.system.kinetic_energy(State(begun.q, p), zero)))

        def leap(k, carry):
            now, cache = carry
            dW = jnp.sqrt(jnp.asarray(h, dtype)) * jax.random.normal(jax.random.fold_in(later, k), (scheme.channels,), dtype)
            new, cache, _ = scheme.step_with_cache(now, cache, h, dW, zero)
            return new, cache

        count = scheme.length.astype(jnp.int32)
        ended, _ = jax.lax.fori_loop(0, count, leap, (begun, scheme.init_cache(begun, zero)))
        trial = ended.ledger
        rise = rise_of(trial)
        info = KernelInfo(trial.accepted > 0, trial.diverged > 0, rise, count, _chance(rise))
        return KernelState(target.point(ended.q), -trial.U, ended.p), info

    return Kernel(init, step)


def _chance(rise):
    return jnp.exp(-jnp.maximum(rise, 0.0))


def _with(trial: Any, **changed: Any) -> Proposal:
    return Proposal(**{name: changed.get(name, getattr(trial, name)) for name in Proposal.__dataclass_fields__})


def _langevin(scheme: Langevin, h: Any) -> Kernel:
    system, space = scheme.system, scheme.system.space
    dtype, zero = system.dtype, jnp.zeros((), system.dtype)
    logdensity = lambda q: -system.potential(q, zero) / scheme.kT(zero)

    def init(position, key=None):
        p = space.zero(dtype)
        if key is not None:
            normals = jax.random.normal(key, (scheme.friction.rank,), dtype)
            p = scheme.friction.relax(system, position, p, AFRESH + zero, zero, scheme.kT(zero), normals)
        return KernelState(position, logdensity(position), p)

    def step(key, state):
        dW = jnp.sqrt(jnp.asarray(h, dtype)) * jax.random.normal(key, (scheme.channels,), dtype)
        begun = State(state.position, state.momentum, blank_ledger(dtype))
        outcome = scheme.outcome(begun, scheme.init_cache(begun, zero), jnp.asarray(h, dtype), dW, zero)
        new = scheme.recorded(begun, outcome, jnp.asarray(h, dtype), zero)
        new = jax.tree.map(lambda leaf: jnp.where(outcome.solve.converged, leaf, jnp.nan), new)
        ledger, rise = new.ledger, outcome.rise
        assert ledger is not None
        divergent = ~jnp.isfinite(space.flatten(new.p)).all()
        rise, chance = (ledger.error, jnp.ones((), dtype)) if rise is None else (rise, _chance(rise / scheme.kT(zero)))
        info = KernelInfo(outcome.accepted > 0, divergent, rise, jnp.ones((), jnp.int32), chance)
        return KernelState(new.q, logdensity(new.q), new.p), info

    return Kernel(init, step)
