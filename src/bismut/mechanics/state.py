"""The canonical pair (q, p). On a group p is the left-trivialised momentum, a covector of the body frame.

Symplecticity, phase volume, temperature and Gibbs are statements about this pair and about no other. A run that keeps books carries them beside
the pair, so that every observable can read them.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class Ledger(eqx.Module):
    """What a trajectory exchanged since its start:  ΔH = heat + work + error,  and the number of steps made and accepted."""

    heat: Float[Array, "..."]
    work: Float[Array, "..."]
    error: Float[Array, "..."]
    accepted: Float[Array, "..."]
    steps: Float[Array, "..."]


def blank_ledger(dtype, batch: tuple[int, ...] = ()) -> Ledger:
    """A ledger with nothing in it, or a batch of them."""
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
    def state(self) -> "State":
        """The state alone, as steps return it; of a start, without what it was made from."""
        return State(self.q, self.p, self.ledger)
