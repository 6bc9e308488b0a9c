"""Langevin trajectories with one acceptance at their end.

    O (B½ A B½ O)ⁿ⁻¹ B½ A B½,    accepted with probability min(1, e^{−Δ}),    Δ = H(end) − H(begin) − heat,    else (q, −p) of its beginning

B kicks by d log ρ, A is free motion on the space and its constraints, O relaxes momenta at the rate γ; between trajectories momenta are drawn
afresh. The baths leave Maxwell's law as it is in either direction, so a path and the reversed one differ in probability by e^{−Δ}, the errors of
the steps alone: ρ is sampled exactly at any step.

    n steps, γ > 0                            MALT, Metropolis-adjusted Langevin trajectories (Riou-Durand & Vogrinc, 2022)
    n steps, γ = 0                            HMC
    1 step, momenta relaxed and not renewed   `metropolised`: generalised HMC, which turns back when it is refused

All three are one program: n, γ, the step and the scales of the target are numbers, and no value compiles anything. Masses would be constants of the
program, so they are 1. A step of the scheme is one kick, drift and kick; how far a trajectory is on its way, and where it began, is part of the state
(`Proposal`), so a run can be cut anywhere. A step that is not solved, that is not its own reverse (an implicit one may have several solutions) or
that ends where ρ is 0 or not a number refuses its whole trajectory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from bismut.compile_cache import LRUCache
from bismut.flows import OBABO, Langevin
from bismut.flows.metropolised import leads_back
from bismut.flows.variational import Solve
from bismut.mechanics import State, mechanical
from bismut.mechanics.state import Ledger
from bismut.samplers.domain import Domain
from bismut.samplers.target import Target
from bismut.spaces import Point, Velocity, scale
from bismut.tracing import nothing_traced

DIVERGED = 1000.0  # Δ from which a trajectory counts as one that did not follow the motion, as in Stan
AFRESH = 1e9  # time in contact with a bath of rate 1 after which nothing is left of a momentum


class Proposal(Ledger):
    """A ledger, and the trajectory that a chain is on.

    q, p       where it began; U: −log ρ there, force: its negative differential
    kinetic    the kinetic energy at its beginning, and the heat since
    passed     steps since
    sound      1 if all of them can be taken back, 0 if not, −1 if one led where ρ is not a number, −2 if one led where it is 0
    diverged   how many trajectories did not follow the motion: Δ > 1000 or not a number, but for those refused because ρ is 0
    unsolved   how many had a step that was not solved, or does not lead back
    rise       Δ of the last trajectory, accepted or not; the largest number there is where it has none, because a state is finite
    level      of the density ρ(x; level) that the chain is in; rival: the level at which U is asked for as well (`exchange`)
    pace       of the level: its steps are pace × h
    """

    q: Point
    p: Velocity
    U: Float[Array, ...]
    force: Velocity
    kinetic: Float[Array, ...]
    passed: Float[Array, ...]
    sound: Float[Array, ...]
    diverged: Float[Array, ...]
    unsolved: Float[Array, ...]
    rise: Float[Array, ...]
    level: Float[Array, ...]
    rival: Float[Array, ...]
    pace: Float[Array, ...]


@dataclass(frozen=True)
class Tuning:
    """What adaptation chooses beside the scales of the target; numbers, so that no value compiles anything.

    step, leapfrogs   of a trajectory
    friction          γ, at which momenta relax within one
    renewal           γ between trajectories, times the length of one; None draws momenta afresh
    """

    step: Any
    leapfrogs: int
    friction: Any
    renewal: float | None = None

    def __repr__(self):
        between = "" if self.renewal is None else f", momenta relaxed by {self.renewal:.3g} between them"
        return f"{self.leapfrogs} {'step' if self.leapfrogs == 1 else 'steps'} of {self.step:.4g}, friction {self.friction:.3g}{between}"


class Trajectories(Langevin):
    """The scheme of a target; see above."""

    target: Target
    length: Float[Array, ""]  # n
    relaxation: Float[Array, ""]  # γ
    renewal: Float[Array, ""]
    tuned: Float[Array, ""]  # h, for who steps it; the scheme itself is given one

    def __init__(self, target: Target, tuning: Tuning):
        domain, free = _free(target.domain)
        for name, value in vars(free).items():
            setattr(self, name, value)
        number = lambda value: jnp.asarray(value, self.system.dtype)
        self.target, self.tuned = replace(target, domain=domain), number(tuning.step)
        self.length, self.relaxation = number(tuning.leapfrogs), number(tuning.friction)
        self.renewal = number(AFRESH if tuning.renewal is None else tuning.renewal)

    @property
    def title(self) -> str:
        return "Trajectories"

    @property
    def channels(self) -> int:
        return self.friction.rank + 2  # (z₁² + z₂²)/2 is exponentially distributed: minus the logarithm of a uniform number

    @property
    def pathwise(self) -> bool:
        return False

    def check_step(self, step):
        del step

    def begin(self, q: Point, level=None) -> State:
        """The state of a chain that begins at q, with a momentum still to be drawn: its first trajectory starts from rest and is not counted."""
        dtype, zero = self.system.dtype, self.system.space.zero(self.system.dtype)
        number, level = jnp.zeros((), dtype), jnp.asarray(self.target.level if level is None else level, dtype)
        U, force = self.target.potential(q, level)
        one = number + 1
        trial = Proposal(number, number, number, number, number, q, zero, U, force, number, number, one, number, number, number, level, level, one)
        return State(q, zero, trial)

    def init_cache(self, state, t):
        del t
        assert isinstance(state.ledger, Proposal)
        return self.target.potential(state.q, state.ledger.level)

    def step_with_cache(self, state, cache, h, dW, t):
        dtype, space, trial = self.system.dtype, self.system.space, state.ledger
        assert isinstance(trial, Proposal)
        h, t = jnp.asarray(h, dtype), jnp.asarray(t, dtype)
        z, dice = dW[:-2] / jnp.sqrt(h), dW[-2:] / jnp.sqrt(h)
        choose = lambda mask, new, old: jax.tree.map(lambda a, b: jnp.where(mask, a, b), new, old)
        contact, U_begun, force_begun = self.relaxation * h, trial.U, trial.force
        if self.target.laddered:  # the level may be another one than when the last trajectory ended
            h = h * trial.pace
            U_begun, force_begun = choose(trial.passed == 0, cache, (U_begun, force_begun))
        bare = State(state.q, state.p)
        kinetic = lambda s: self.system.kinetic_energy(s, t)

        begun, pushed = self.kick(bare, cache[1], 0.5 * h, t)
        moved, sound = self._drift(begun, h, t)
        U, force = self.target.potential(moved.q, trial.level)
        moved, pulled = self.kick(moved, force, 0.5 * h, t)
        kinetic_after = kinetic(moved)
        finite = jnp.isfinite(U + kinetic_after) & jnp.isfinite(space.flatten(force)).all() & _finite(moved.q)
        solved = sound & pushed.converged & pulled.converged
        outside = jnp.where(jnp.isposinf(U), -2.0, -1.0)
        state_of = jnp.where(trial.sound > 0, jnp.where(solved, jnp.where(finite, 1.0, outside), 0.0), trial.sound)
        sound = state_of > 0

        start = State(trial.q, scale(-1.0, trial.p))
        now = choose(sound, (moved, U, force), (start, U_begun, force_begun))  # what fails waits at the beginning for the end of its trajectory
        passed = trial.passed + 1
        ended = passed >= self.length
        rise = (U - U_begun) + (kinetic_after - trial.kinetic)
        accepted = sound & (rise <= 0.5 * (dice @ dice))  # false for a rise that is NaN
        (here, U, force) = choose(ended & ~accepted, (start, U_begun, force_begun), now)

        contact = jnp.where(ended, self.renewal, contact)
        before = kinetic(here)
        new = State(here.q, self.friction.relax(self.system, here.q, here.p, contact, t, jnp.ones_like(h), z))
        after = kinetic(new)
        count, most = lambda mask: mask.astype(dtype), jnp.finfo(dtype).max
        next_begin = choose(
            ended,
            (new.q, new.p, U, force, after, jnp.ones_like(h)),
            (trial.q, trial.p, U_begun, force_begun, trial.kinetic + after - before, state_of),
        )
        ledger = Proposal(
            heat=trial.heat + after - before,
            work=trial.work,
            error=trial.error + jnp.where(ended & accepted, rise, 0.0),
            accepted=trial.accepted + count(ended & accepted),
            steps=trial.steps + count(ended),
            q=next_begin[0],
            p=next_begin[1],
            U=next_begin[2],
            force=next_begin[3],
            kinetic=next_begin[4],
            passed=jnp.where(ended, 0.0, passed),
            sound=next_begin[5],
            diverged=trial.diverged + count(ended & ((state_of == -1) | (sound & ~(rise < DIVERGED)))),
            unsolved=trial.unsolved + count(ended & (state_of == 0)),
            rise=jnp.where(ended, jnp.where(sound & (rise < most), rise, most), trial.rise),
            level=trial.level,
            rival=trial.rival,
            pace=trial.pace,
        )
        return State(new.q, new.p, ledger), (U, force), Solve.explicit(dtype)

    def _drift(self, state: State, h, t) -> tuple[State, Bool[Array, ""]]:
        """Free motion, and whether it leads back where that is not given by its form. With p = v/σ it is that of momenta σ p and masses 1, because
        motion on a geodesic is as fast as its momentum is large."""
        fast = State(state.q, self.target.stretched(state.p))
        moved, solve = self.drift(fast, h, t)
        slowed = State(moved.q, self.target.stretched(moved.p, -1))
        if self.free_flow().structure().linear and not self.system.constraints:
            return slowed, solve.converged
        back, returned = self.drift(State(moved.q, scale(-1.0, moved.p)), h, t)
        return slowed, solve.converged & returned.converged & leads_back(self.system.space, back, fast)


def rise_of(trial: Proposal) -> Float[Array, ...]:
    """Δ of the last trajectory; ∞ where it has none."""
    return jnp.where(trial.rise < jnp.finfo(trial.rise.dtype).max, trial.rise, jnp.inf)


_BATHS = LRUCache(16)


def _free(domain: Domain) -> tuple[Domain, Langevin]:
    """Motion in a bath without a potential, which is the target's: it is evaluated once a step, with its derivative. It takes a while to analyse.
    With the domain it was made of, the first of all that are equal: the key of a program tells one thing in two places from two that are equal."""

    def make() -> tuple[Domain, Langevin]:
        return domain, Langevin(mechanical(domain.space, constraint=domain.constraint), temperature=1.0, rate=1.0, splitting=OBABO)

    return _BATHS.get(domain, make) if nothing_traced() else make()  # what is made in a trace would belong to it


def _finite(q: Any) -> Bool[Array, ""]:
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(q)]).all()
