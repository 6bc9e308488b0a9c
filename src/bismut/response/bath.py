"""Whether anything brings a start into equilibrium.

    Γ = 0, no noise   ⟹   a trajectory keeps its H:   averages over many are those of the energies they began with, not of exp(−H/kT)

They look settled, and their errors are as small as those of equilibrium. A friction that is singular is a bath as well: what it does not reach may be
coupled to what it reaches.
"""

from __future__ import annotations

from bismut.flows import Langevin
from bismut.mechanics import Scheme


def no_bath(scheme: Scheme) -> str:
    """What is missing, and what to do; empty where there is a bath, or any noise of which one may be made."""
    nothing = "so nothing brings the start into equilibrium"
    if isinstance(scheme, Langevin) and scheme.friction.rank == 0:  # noise of its own beside it heats, and has no temperature
        return f"no friction, {nothing}: give Langevin a friction= or a rate= above 0"
    if scheme.channels == 0:
        return f"no noise, {nothing}: take bm.Langevin or bm.Brownian, with a friction"
    return ""
