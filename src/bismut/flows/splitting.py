"""How drift, kick and bath are put together in one step.

    A  free motion on the space (and on the constraints)      B  kick by −dU, by the noises dγ_i and by forces      O  exact contact with the bath

    BAOAB   B½ A½ O A½ B½      configurations right to order 4 at high friction, and for the oscillator exactly
    ABOBA   A½ B½ O B½ A½      for the oscillator positions right exactly
    OBABO   O½ B½ A B½ O½      the trapezoid action between two halves of the bath
    GLA     V then O           over any variational step V
    Metropolised               O½ [V accepted with min(1, e^{−ΔH/kT}), or (q, −p)] O½:   exp(−H/kT) exactly, whatever the step

All sample exp(−H/kT): the first four up to an error of the order of the deterministic part, the last one exactly.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.actions.action import Action
from bismut.actions.verlet import Verlet
from bismut.flows.variational import Solve, Variational
from bismut.mechanics import Claims, State, System
from bismut.spaces import Velocity, scale

if TYPE_CHECKING:
    from bismut.flows.langevin import Langevin


class Made(NamedTuple):
    """What one step made: the state, how it was solved, the heat taken from the bath, whether the step was accepted (1 or 0), and the impulse per
    time at its end, if it is known."""

    state: State
    solve: Solve
    heat: Float[Array, ""]
    accepted: Float[Array, ""]
    slope: Velocity | None = None


@dataclass(frozen=True)
class Splitting:
    """An order of the pieces of one step."""

    @property
    def baths(self) -> int:
        """How often the bath is met in a step."""
        return 1

    @property
    def extra(self) -> int:
        """Normals needed beside those of the baths."""
        return 0

    @property
    def resumes(self) -> bool:
        """Whether a step ends at a kick and the next one begins there, so that one force serves both."""
        return False

    @abstractmethod
    def claims(self, system: System) -> Claims: ...

    @abstractmethod
    def step(
        self,
        pieces: Langevin,
        state: State,
        slope: Velocity | None,
        h,
        dW: Float[Array, " m"],
        z: Float[Array, "baths r"],
        extra: Float[Array, " e"],
        t,
    ) -> Made:
        """One step; `slope` is the impulse per time at its beginning, if it is known."""

    def check(self, pieces: Langevin) -> None:
        """Refuse what this splitting cannot do."""


@dataclass(frozen=True)
class Letters(Splitting):
    """A word in A, B and O; a letter that occurs n times acts for h/n each time. The clock runs with the drift."""

    word: str
    words: str = ""

    @property
    def baths(self) -> int:
        return self.word.count("O")

    @property
    def resumes(self) -> bool:
        moving = self.word.strip("O")  # the bath leaves q where it is
        return moving.startswith("B") and moving.endswith("B")

    def claims(self, system):
        return Claims(order=2 if self.word == self.word[::-1] else 1, strong_order=None)

    def check(self, pieces):
        pieces.check_kicks()

    def step(self, pieces, state, slope, h, dW, z, extra, t):
        share = {letter: 1 / self.word.count(letter) for letter in self.word}
        solves, heat, clock, bath = [], jnp.zeros((), state_type(h)), t, 0
        for letter in self.word:
            part = share[letter] * h
            if letter == "A":
                state, solve = pieces.drift(state, part, clock)
                solves.append(solve)
                clock, slope = clock + part, None
            elif letter == "B":
                state, slope, solve = pieces.kick(state, slope, part, share[letter] * dW, clock)
                solves.append(solve)
            else:
                state, gained = pieces.bath(state, part, z[bath], clock)
                heat, bath = heat + gained, bath + 1
        return Made(state, together(solves), heat, jnp.ones((), state_type(h)), slope)

    def __repr__(self):
        return self.word


BAOAB = Letters("BAOAB", "B½ A½ O A½ B½. Configurations are right to order 4 at high friction, and for the oscillator exactly. The default.")
ABOBA = Letters("ABOBA", "A½ B½ O B½ A½. One evaluation of the force a step.")
OBABO = Letters("OBABO", "O½ B½ A B½ O½. The trapezoid action between two halves of the bath.")


@dataclass(frozen=True)
class GLA(Splitting):
    """Geometric Langevin: a variational step, then the bath.

    action  what makes the scheme from the system: bm.Verlet, bm.Midpoint, ...
    """

    action: Callable[[System], Action]

    def claims(self, system):
        return Claims(order=1, strong_order=None)

    def step(self, pieces, state, slope, h, dW, z, extra, t):
        state, solve = pieces.variational(self.action, state, h, dW, t)
        state, heat = pieces.bath(state, h, z[0], t + h)
        return Made(state, solve, heat, jnp.ones((), state_type(h)))

    def __repr__(self):
        return f"GLA({getattr(self.action, '__name__', 'own action')})"


@dataclass(frozen=True)
class Metropolised(Splitting):
    """A variational step that is its own reverse, accepted or refused, between two halves of the bath: exp(−H/kT) exactly, whatever the step.

    action  what makes the scheme from the system: bm.Verlet, bm.Midpoint, ...

    Refused steps leave q and turn p around. A step whose equation is not solved is refused, and under constraints also one that does not lead back:
    (q1, −p1) must go to (q0, −p0), because there the equation can have several solutions.
    """

    action: Callable[[System], Action] = Verlet

    @property
    def baths(self) -> int:
        return 2

    @property
    def extra(self) -> int:
        return 2  # (z₁² + z₂²)/2 is exponentially distributed: minus the logarithm of a uniform number

    def claims(self, system):
        return Claims(order=None, strong_order=None)

    def check(self, pieces):
        pieces.check_reversible(self.action)

    def step(self, pieces, state, slope, h, dW, z, extra, t):
        state, first = pieces.bath(state, 0.5 * h, z[0], t)
        tried, solve = pieces.variational(self.action, state, h, dW, t, frozen=True)
        rise = pieces.energy(tried, t) - pieces.energy(state, t)
        good = solve.converged & (rise <= pieces.kT(t) * 0.5 * (extra @ extra))  # false for a rise that is not a number
        if pieces.system.constraints:
            good = good & self._leads_back(pieces, state, tried, h, dW, t)
        # Without the barrier every component of the state would compute the whole step again.
        tried, good = jax.lax.optimization_barrier((tried, good))
        refused = State(state.q, scale(-1.0, state.p), state.ledger)
        state = jax.tree.map(lambda new, old: jnp.where(good, new, old), tried, refused)
        state, second = pieces.bath(state, 0.5 * h, z[1], t + h)
        solved = Solve(jnp.where(solve.converged, solve.residual, 0.0), jnp.array(True), solve.iterations)
        return Made(state, solved, first + second, good.astype(state_type(h)))

    def _leads_back(self, pieces: Langevin, state: State, tried: State, h, dW, t):
        back, solve = pieces.variational(self.action, State(tried.q, scale(-1.0, tried.p)), h, dW, t, frozen=True)
        space = pieces.space
        gap = jnp.max(jnp.abs(space.flatten(space.subtract(back.q, state.q)))) + jnp.max(jnp.abs(space.flatten(back.p) + space.flatten(state.p)))
        size = 1 + jnp.max(jnp.abs(space.flatten(state.p)))
        return solve.converged & (gap < 1e-8 * size)

    def __repr__(self):
        return f"Metropolised({getattr(self.action, '__name__', 'own action')})"


def together(solves: list[Solve]) -> Solve:
    """The outcome of several solves: the worst residual, all converged, all iterations."""
    if not solves:
        return Solve(jnp.zeros(()), jnp.array(True), jnp.zeros((), int))
    residual, converged, iterations = zip(*solves, strict=True)
    return Solve(jnp.max(jnp.stack(residual)), jnp.all(jnp.stack(converged)), jnp.sum(jnp.stack(iterations)))


def state_type(h):
    return jnp.result_type(h)


def reversed_gap(action: Action, state: State, h, dW) -> Float[Array, ""]:
    """How far a step, turned around and repeated, misses its beginning."""
    space, step = action.space, Variational(action)
    there, _ = step.advance(state, h, dW, 0.0)
    back, _ = step.advance(State(there.q, scale(-1.0, there.p)), h, dW, 0.0)
    return jnp.max(jnp.abs(space.flatten(space.subtract(back.q, state.q)))) + jnp.max(jnp.abs(space.flatten(back.p) + space.flatten(state.p)))
