"""How drift, kick and bath are put together in one step.

    A  free motion on the space (and on the constraints)      B  kick by −dU and by forces      O  exact contact with the bath
    N  kick by the stochastic potentials, Σ dγ_i ΔW_i

    BAOAB   B½ A½ O A½ B½      configurations right to order 4 at high friction, and for the oscillator exactly
    ABOBA   A½ B½ O B½ A½      for the oscillator positions right exactly
    OBABO   O½ B½ A B½ O½      the trapezoid action between two halves of the bath
    GJI     BAOAB with c = (1 − γh/2)/(1 + γh/2) in place of e^{−γh}: diffusion and drift of free motion are exact as well
    GJII    BAOAB with A and B of b h, b² = tanh(γh/2)/(γh/2): so are they
    GLA     V then O           over any variational step V
    Metropolised               `metropolised`: exp(−H/kT) exactly, whatever the step

Without forces momenta are a chain p' = c p + …, and where A and B meet between two O in a symmetric order, diffusion and drift are those of the
chain (`mechanics.friction.attenuation`), (γh/2) coth(γh/2) times too fast for c = e^{−γh}. Both remedies are of the GJ set: another c, or time
rescaled.

Where there are stochastic potentials, N stands in the middle of the word, with its middle letter in halves on both sides: B½ A½ O½ N O½ A½ B½. N is
exact at fixed q, so the word is a symmetric composition of flows and semigroups, and averages are right to order 2. (The same ΔW in two half kicks
would let the second one see what the first one did: a bias of ¼ h² γ″γ′ in a step, order 1.)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.actions.action import Action
from bismut.errors import BismutError
from bismut.flows.variational import Solve
from bismut.mechanics import Claims, State, System
from bismut.mechanics.friction import cayley, free_diffusion
from bismut.mechanics.friction.attenuation import Loss
from bismut.registry import SPLITTINGS
from bismut.spaces import Velocity

if TYPE_CHECKING:
    from bismut.flows.substeps import Substeps


class StepOutcome(NamedTuple):
    """The state after one step, how it was solved, the heat taken from the bath and the work done on the system (0 without a ledger), whether the
    step was accepted (1 or 0), the force at its end, if it is known, and by how much a trial raised H, whether it was accepted or not: ∞ where it
    could not be, None where nothing is tried."""

    state: State
    solve: Solve
    heat: Float[Array, ""]
    work: Float[Array, ""]
    accepted: Float[Array, ""]
    force: Velocity | None = None
    rise: Float[Array, ""] | None = None


@dataclass(frozen=True)
class Splitting:
    """An order of the substeps of one step."""

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
    def reuses_force(self) -> bool:
        """Whether a step ends at a kick and the next one begins there, so that one force serves both."""
        return False

    @property
    def pathwise(self) -> bool:
        """Whether the derivative of an average is the average of derivatives along paths."""
        return True

    def free_diffusion(self, x: Any) -> Any:
        """The claimed diffusion and drift of free motion at x = γh, over kT/Γ and 1/Γ; None where nothing is claimed."""
        del x
        return None

    def with_exact_transport(self) -> Splitting:
        """The same splitting with drifts and kicks of b h, so that free diffusion and drift are exact."""
        raise BismutError(
            f'transport="exact" rescales drifts and kicks of BAOAB, ABOBA and OBABO, and {self} has others. Use one of these, or splitting=bm.GJI.'
        )

    @abstractmethod
    def claims(self, system: System) -> Claims: ...

    @abstractmethod
    def step(
        self,
        substeps: Substeps,
        state: State,
        force: Velocity | None,
        h: Float[Array, ""],
        dW: Float[Array, " m"],
        z: Float[Array, "baths r"],
        extra: Float[Array, " e"],
        t: Float[Array, ""],
    ) -> StepOutcome:
        """One step; `force` is the force at its beginning, if it is known."""

    def check(self, substeps: Substeps) -> None:
        """Refuse what this splitting cannot do."""


@dataclass(frozen=True)
class WordSplitting(Splitting):
    """A word in A, B and O; a letter that occurs n times acts for h/n each time. The clock runs with the drift.

    name         what it is called: the word itself, unless `word` is given
    loss         φ(γh) of the bath, c = 1 − γh φ (`mechanics.friction.attenuation`); exact relaxation if omitted. For words with one O
    rescaled     whether A and B last b h, b² = φ/(1 − γhφ/2), so that free motion diffuses and drifts as it should. For one rate of all momenta
    """

    name: str
    description: str = ""
    word: str = ""
    loss: Loss | None = None
    rescaled: bool = False

    def __post_init__(self):
        if not self.word:
            object.__setattr__(self, "word", self.name)
        if not self.word or set(self.word) - set("ABO"):
            raise BismutError(f"Expected a word in A, B and O, got {self.word!r}. Give one as the name, or as word=.")

    def __call__(self, *arguments: Any) -> Any:
        raise BismutError(f"bm.{self} takes nothing: write splitting=bm.{self}.")

    @property
    def letters(self) -> str:
        named = {"A": "A free motion", "B": "B kick", "O": "O bath"}
        listed = [named[letter] for letter in "ABO" if letter in self.word]
        changed = ["c = 1 − γhφ in place of e^{−γh}"] if self.loss is not None else []
        return ", ".join(listed + changed + (["A and B last b h, b² = φ/(1 − γhφ/2)"] if self.rescaled else []))

    def sequence(self, shaken: bool) -> str:
        """The letters of a step: the word, with N in its middle where there are stochastic potentials, and its middle letter on both sides of N."""
        n = len(self.word)
        return self.word[: (n + 1) // 2] + "N" + self.word[n // 2 :] if shaken else self.word

    def baths(self, shaken):
        return self.sequence(shaken).count("O")

    @property
    def reuses_force(self) -> bool:
        moving = self.word.strip("O")  # the bath leaves q where it is
        return moving.startswith("B") and moving.endswith("B")

    @property
    def one_chain(self) -> bool:
        """Whether all A and B meet between one O and the next, in a symmetric order: free diffusion and drift are those of the chain of momenta."""
        ends = self.word.startswith("O") and self.word.endswith("O")
        runs = len([run for run in self.word.split("O") if run])
        return self.word == self.word[::-1] and "O" in self.word and (runs == 1 if ends else runs == 2)

    def free_diffusion(self, x):
        if not self.one_chain:
            return None
        return jnp.ones_like(x) if self.rescaled else free_diffusion(self.loss, x)

    def with_exact_transport(self):
        if self.loss is cayley or self.rescaled:  # b of cayley is 1
            return self
        return replace(self, name=f"{self.name}, transport exact", rescaled=True)

    def claims(self, system):
        order = 2 if self.word == self.word[::-1] else 1
        return Claims(order=order, strong_order=None, weak_order=order)

    def check(self, substeps):
        substeps.check_kicks()
        if self.loss is not None and self.baths(shaken=substeps.moving.channels > 0) > 1:
            raise BismutError(f"A loss φ(γh) is for one contact with the bath in a step, {self} has {self._contacts(substeps)}. Use BAOAB or ABOBA.")
        if self.rescaled:
            self._check_rescaled(substeps)

    def _contacts(self, substeps: Substeps) -> str:
        shaken = substeps.moving.channels > 0
        return f"{self.baths(shaken)}{', half of it on each side of the noise' if shaken else ''}"

    def _check_rescaled(self, substeps: Substeps) -> None:
        """One b for everything: it is a function of γh, and drifts of different lengths in different directions are no free motion on a group."""
        instead = "Use splitting=bm.GJI, which rescales nothing"
        if not self.one_chain:
            raise BismutError(f"Drifts and kicks of {self} are separated by the bath: no rescaling makes both diffusion and drift right. {instead}.")
        if not substeps.friction.uniform:
            raise BismutError(
                f"transport exact by rescaling needs one rate of all momenta, expected rate= or a friction proportional to the mass, got "
                f"{substeps.friction.description}. {instead}."
            )
        if substeps.schedule is not None or substeps.moving.channels:
            what = "a schedule" if substeps.schedule is not None else "other noise"
            raise BismutError(f"Rescaled drifts and kicks assume friction that is constant in time and nothing else, got {what}. Omit transport.")

    def step(self, substeps, state, force, h, dW, z, extra, t):
        word = self.sequence(shaken=dW.shape[0] > 0)
        share = {letter: 1 / word.count(letter) for letter in word}
        pace = h / jnp.sqrt(free_diffusion(self.loss, substeps.friction.rate_of_all() * h)) if self.rescaled else h  # b h
        begin, clock, bath = state, t, 0
        solves, heat, work = [], jnp.zeros_like(h), jnp.zeros_like(h)
        for letter in word:
            if letter == "A":
                state, solve = substeps.drift(state, share[letter] * pace, clock)
                solves.append(solve)
                clock, force = clock + share[letter] * h, None
            elif letter == "B":
                force = substeps.force(state.q, clock) if force is None else force
                state, solve = substeps.kick(state, force, share[letter] * pace, clock)
                solves.append(solve)
            elif letter == "N":
                state, solve, done = substeps.noise_kick(state, dW, clock)
                solves.append(solve)
                work = work + done
            else:
                law = () if self.loss is None else (self.loss,)
                state, gained = substeps.bath(state, share[letter] * h, z[bath], clock, *law)
                heat, bath = heat + gained, bath + 1
        return StepOutcome(state, Solve.worst(solves), heat, work + substeps.work(begin, state, h, t), jnp.ones_like(h), force)

    def __repr__(self):
        return self.name


BAOAB = WordSplitting("BAOAB", "B½ A½ O A½ B½. Configurations are accurate to order 4 at high friction, and exact for the oscillator. The default.")
ABOBA = WordSplitting("ABOBA", "A½ B½ O B½ A½. One evaluation of the force per step.")
OBABO = WordSplitting("OBABO", "O½ B½ A B½ O½. The trapezoid action between two halves of the bath.")
GJI = WordSplitting(
    "GJI",
    "GJ-I, also known as GJF: BAOAB whose bath leaves (1 − γh/2)/(1 + γh/2) of a momentum. Configurations of oscillators, free diffusion and drift "
    "are exact at any step, with any friction, on every space.",
    word="BAOAB",
    loss=cayley,
)
GJII = WordSplitting(
    "GJII",
    "GJ-II: BAOAB with drifts and kicks of h·√(tanh(γh/2)/(γh/2)), as transport='exact' has them. Configurations of oscillators, free diffusion and "
    "drift are exact at any step; for one rate of all momenta.",
    word="BAOAB",
    rescaled=True,
)


@SPLITTINGS.register
@dataclass(frozen=True)
class GLA(Splitting):
    """Geometric Langevin: a variational step, then the bath.

    action  what makes the scheme from the system: bm.Verlet, bm.Midpoint, ...
    """

    action: Callable[[System], Action]

    def claims(self, system):
        return Claims(order=1, strong_order=None)

    def check(self, substeps):
        substeps.scheme_of(self.action)

    def step(self, substeps, state, force, h, dW, z, extra, t):
        moved, solve = substeps.variational(self.action, state, h, dW, t, with_ledger=True)
        work = jnp.zeros_like(h) if state.ledger is None or moved.ledger is None else moved.ledger.work - state.ledger.work
        moved, heat = substeps.bath(State(moved.q, moved.p, state.ledger), h, z[0], t + h)
        return StepOutcome(moved, solve, heat, work, jnp.ones_like(h))

    def __repr__(self):
        return f"GLA({getattr(self.action, '__name__', 'own action')})"
