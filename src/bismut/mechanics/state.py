"""The canonical pair (q, p). On a group p is the left-trivialised momentum, a covector of the body frame.

Symplecticity, phase volume, temperature and Gibbs are statements about this pair and about no other.
"""

from typing import Any

import equinox as eqx


class State(eqx.Module):
    """A point of phase space, or a batch of them along leading axes."""

    q: Any
    p: Any
