"""The canonical pair (q, p). On a group p is the left-trivialised momentum, a covector of the body frame.

Symplecticity, phase volume, temperature and Gibbs are statements about this pair and about no other. A run with a ledger carries it
beside the pair, so that every observable can read it.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bismut.errors import BismutError


class Ledger(eqx.Module):
    """What a trajectory exchanged since its start:  ΔH = heat + work + error,  and the number of steps made and accepted."""

    heat: Float[Array, "..."]
    work: Float[Array, "..."]
    error: Float[Array, "..."]
    accepted: Float[Array, "..."]
    steps: Float[Array, "..."]


class BoxLedger(Ledger):
    """A ledger, and the box of a trajectory at constant pressure (`flows.isobaric`).

    lengths  its sides now
    size     the standard deviation of moves of ln(side)
    wait     steps until the next move
    learned  moves by which `size` was adapted
    tried    moves since; taken: how many of them were accepted
    """

    lengths: Float[Array, "... d"]
    size: Float[Array, "..."]
    wait: Float[Array, "..."]
    learned: Float[Array, "..."]
    tried: Float[Array, "..."]
    taken: Float[Array, "..."]

    @property
    def plain(self) -> Ledger:
        """The ledger alone."""
        return Ledger(self.heat, self.work, self.error, self.accepted, self.steps)


def blank_ledger(dtype, batch: tuple[int, ...] = ()) -> Ledger:
    """A ledger without entries, or a batch of them."""
    return Ledger(*(jnp.zeros(batch, dtype) for _ in range(5)))


class State(eqx.Module):
    """A point of phase space, or a batch of them along leading axes. Created by scheme.start(...).

    q       a point of the space
    p       the canonical momentum ∂L/∂v, with the structure of a velocity; on a group a covector of the body frame
    ledger  heat, work and accepted steps, if the start was made with ledger=True
    """

    q: Any
    p: Any
    ledger: Ledger | None = None

    @property
    def box(self) -> Any:
        """The sides of the box now, of a trajectory at constant pressure; None in a box that stays."""
        return self.ledger.lengths if isinstance(self.ledger, BoxLedger) else None

    @property
    def state(self) -> "State":
        """The state alone, as steps return it; of a start, without its arguments."""
        return State(self.q, self.p, self.ledger)


def check_drawn(state: Any) -> None:
    """Refuse a start of which only the temperature is known."""
    if not hasattr(state, "p"):
        raise BismutError(
            f"Expected a State with a momentum p, got {type(state).__name__}. A start with temperature= has no momenta yet: a run draws them for "
            "each trajectory. Take a state of a run, the first of bm.trajectory(...) or bm.simulate(...).final, or give momentum= or velocity=."
        )


def over_batch(function: Callable, batch: tuple[int, ...]) -> Callable:
    """A function of one state, or of its parts, for all states of a batch."""
    for _ in batch:
        function = jax.vmap(function)
    return function
