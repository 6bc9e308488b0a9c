"""How drift, kick and bath are put together in one step.

    A  free motion on the space (and on the constraints)      B  kick by −dU and by forces      O  exact contact with the bath
    N  kick by the stochastic potentials, Σ dγ_i ΔW_i

    BAOAB   B½ A½ O A½ B½      configurations right to order 4 at high friction, and for the oscillator exactly
    ABOBA   A½ B½ O B½ A½      for the oscillator positions right exactly
    OBABO   O½ B½ A B½ O½      the trapezoid action between two halves of the bath
    GLA     V then O           over any variational step V
    Metropolised               `metropolised`: exp(−H/kT) exactly, whatever the step

Where there are stochastic potentials, N stands in the middle of the word, with its middle letter in halves on both sides: B½ A½ O½ N O½ A½ B½. N is
exact at fixed q, so the word is a symmetric composition of flows and semigroups, and averages are right to order 2. (The same ΔW in two half kicks
would let the second one see what the first one did: a bias of ¼ h² γ″γ′ in a step, order 1.)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.actions.action import Action
from bismut.errors import BismutError
from bismut.flows.variational import Solve
from bismut.mechanics import Claims, State, System
from bismut.spaces import Velocity

if TYPE_CHECKING:
    from bismut.flows.langevin import Langevin


class Stepped(NamedTuple):
    """What one step made: the state, how it was solved, the heat taken from the bath and the work done on the system (0 where no books are kept),
    whether the step was accepted (1 or 0), and the impulse per time at its end, if it is known."""

    state: State
    solve: Solve
    heat: Float[Array, ""]
    work: Float[Array, ""]
    accepted: Float[Array, ""]
    slope: Velocity | None = None


@dataclass(frozen=True)
class Splitting:
    """An order of the pieces of one step."""

    def baths(self, shaken: bool) -> int:
        """How often the bath is met in a step, with stochastic potentials or without."""
        del shaken
        return 1

    @property
    def letters(self) -> str:
        """What its letters stand for."""
        return "V variational step, O bath"

    @property
    def extra(self) -> int:
        """Normals needed beside those of the baths."""
        return 0

    @property
    def resumes(self) -> bool:
        """Whether a step ends at a kick and the next one begins there, so that one force serves both."""
        return False

    @property
    def pathwise(self) -> bool:
        """Whether the derivative of an average is the average of derivatives along paths."""
        return True

    @abstractmethod
    def claims(self, system: System) -> Claims: ...

    @abstractmethod
    def step(
        self,
        pieces: Langevin,
        state: State,
        slope: Velocity | None,
        h: Float[Array, ""],
        dW: Float[Array, " m"],
        z: Float[Array, "baths r"],
        extra: Float[Array, " e"],
        t: Float[Array, ""],
    ) -> Stepped:
        """One step; `slope` is the impulse per time at its beginning, if it is known."""

    def check(self, pieces: Langevin) -> None:
        """Refuse what this splitting cannot do."""


@dataclass(frozen=True)
class Letters(Splitting):
    """A word in A, B and O; a letter that occurs n times acts for h/n each time. The clock runs with the drift."""

    word: str
    words: str = ""

    def __call__(self, *arguments: Any) -> Any:
        raise BismutError(f"bm.{self.word} takes nothing: write splitting=bm.{self.word}.")

    @property
    def letters(self) -> str:
        named = {"A": "A free motion", "B": "B kick", "O": "O bath"}
        return ", ".join(named[letter] for letter in "ABO" if letter in self.word)

    def sequence(self, shaken: bool) -> str:
        """The letters of a step: the word, with N in its middle where there are stochastic potentials, and its middle letter on both sides of N."""
        n = len(self.word)
        return self.word[: (n + 1) // 2] + "N" + self.word[n // 2 :] if shaken else self.word

    def baths(self, shaken):
        return self.sequence(shaken).count("O")

    @property
    def resumes(self) -> bool:
        moving = self.word.strip("O")  # the bath leaves q where it is
        return moving.startswith("B") and moving.endswith("B")

    def claims(self, system):
        order = 2 if self.word == self.word[::-1] else 1
        return Claims(order=order, strong_order=None, weak_order=order)

    def check(self, pieces):
        pieces.check_kicks()

    def step(self, pieces, state, slope, h, dW, z, extra, t):
        word = self.sequence(shaken=dW.shape[0] > 0)
        share = {letter: 1 / word.count(letter) for letter in word}
        begin, clock, bath = state, t, 0
        solves, heat, work = [], jnp.zeros_like(h), jnp.zeros_like(h)
        for letter in word:
            part = share[letter] * h
            if letter == "A":
                state, solve = pieces.drift(state, part, clock)
                solves.append(solve)
                clock, slope = clock + part, None
            elif letter == "B":
                slope = pieces.slope(state.q, clock) if slope is None else slope
                state, solve = pieces.kick(state, slope, part, clock)
                solves.append(solve)
            elif letter == "N":
                state, solve, done = pieces.shake(state, dW, clock)
                solves.append(solve)
                work = work + done
            else:
                state, gained = pieces.bath(state, part, z[bath], clock)
                heat, bath = heat + gained, bath + 1
        return Stepped(state, together(solves), heat, work + pieces.work(begin, state, h, t), jnp.ones_like(h), slope)

    def __repr__(self):
        return self.word


BAOAB = Letters("BAOAB", "B½ A½ O A½ B½. Configurations are accurate to order 4 at high friction, and exact for the oscillator. The default.")
ABOBA = Letters("ABOBA", "A½ B½ O B½ A½. One evaluation of the force per step.")
OBABO = Letters("OBABO", "O½ B½ A B½ O½. The trapezoid action between two halves of the bath.")


@dataclass(frozen=True)
class GLA(Splitting):
    """Geometric Langevin: a variational step, then the bath.

    action  what makes the scheme from the system: bm.Verlet, bm.Midpoint, ...
    """

    action: Callable[[System], Action]

    def claims(self, system):
        return Claims(order=1, strong_order=None)

    def check(self, pieces):
        pieces.scheme_of(self.action)

    def step(self, pieces, state, slope, h, dW, z, extra, t):
        moved, solve = pieces.variational(self.action, state, h, dW, t, books=True)
        work = jnp.zeros_like(h) if state.ledger is None or moved.ledger is None else moved.ledger.work - state.ledger.work
        moved, heat = pieces.bath(State(moved.q, moved.p, state.ledger), h, z[0], t + h)
        return Stepped(moved, solve, heat, work, jnp.ones_like(h))

    def __repr__(self):
        return f"GLA({getattr(self.action, '__name__', 'own action')})"


def together(solves: list[Solve]) -> Solve:
    """The outcome of several solves: the worst residual, all converged, all iterations."""
    if not solves:
        return Solve(jnp.zeros(()), jnp.array(True), jnp.zeros((), int))
    residual, converged, iterations = zip(*solves, strict=True)
    return Solve(jnp.max(jnp.stack(residual)), jnp.all(jnp.stack(converged)), jnp.sum(jnp.stack(iterations)))
