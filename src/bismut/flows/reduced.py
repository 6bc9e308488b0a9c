"""Reduction by symmetry: momentum alone.

    S_d(a g0, a g1) = S_d(g0, g1)  for all a in G        ⟹        m1 = Ad*_{g0⁻¹g1} m0   does not depend on g0

When nothing depends on where a system is on its group, a step takes the body momentum m to a new one by itself: the reduced, Lie–Poisson
step. It is not written a second time: it is the step of the full system from the identity, of which only the momentum is kept. Ad* moves m
within its coadjoint orbit, so Casimirs are kept as exactly as momentum maps are by the full step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.actions.action import Action
from bismut.errors import BismutError
from bismut.flows.flow import Flow, flow
from bismut.flows.variational import Solve
from bismut.mechanics import Claims, Scheme, State
from bismut.programs.evaluation import evaluate
from bismut.spaces import Group, Space


class Reduced(Flow):
    """The momentum of a scheme on a group that does not depend on position. States keep q at the identity; p is what moves.

    of  the scheme of the full system; rejected if L or the noise depends on q
    """

    of: Scheme

    def __init__(self, of: Any):
        if not isinstance(of, Scheme):
            raise BismutError(f"Reduced needs a scheme such as VariationalEuler(system), got {type(of).__name__}.")
        if not isinstance(of.space, Group):
            raise BismutError(f"Momentum moves by itself only on a group, and {of.space} is not one.")
        self.system, self.of = of.system, of
        gap = _asymmetry(of)
        if not gap < 1e-9:
            raise BismutError(
                f"{of.title} is not unchanged by the left action of {of.space} (it differs by {gap:.2g} at a random point), so momentum does not "
                "move by itself. Write L and the noise so that they do not depend on q, or run the scheme itself."
            )

    @property
    def space(self) -> Space:
        return self.of.space

    @property
    def channels(self) -> int:
        return self.of.channels

    @property
    def path_channels(self) -> int:
        return self.of.path_channels

    @property
    def pathwise(self) -> bool:
        return self.of.pathwise

    @property
    def keeps_ledger(self) -> bool:
        return self.of.keeps_ledger

    @property
    def claims(self) -> Claims:  # pyright: ignore[reportIncompatibleVariableOverride]
        # The step is a Poisson map of momenta; on pairs (q, p) with q standing still nothing is claimed.
        return Claims(order=None, strong_order=None, weak_order=None, casimirs=self.of.claims.momentum_maps and not self.of.forced)

    @property
    def casimirs(self) -> dict[str, Callable[[State], Any]]:
        assert isinstance(self.space, Group)
        return {name: lambda state, function=function: function(state.p) for name, function in self.space.casimirs.items()}

    @property
    def title(self) -> str:
        return f"Reduced {self.of.title}"

    def advance(self, state: State, h, dW: Float[Array, " m"], t) -> tuple[State, Solve]:
        here = self.space.origin(self.system.dtype)
        new, solve = flow(self.of).advance(State(here, state.p, state.ledger), h, dW, t)
        return State(here, new.p, new.ledger), solve


def _asymmetry(scheme: Scheme) -> float:
    """How much the scheme notices that everything was moved by one element of the group."""
    system, space = scheme.system, scheme.space
    assert isinstance(space, Group)
    one = lambda seed: jax.tree.map(lambda leaf: jnp.asarray(leaf, system.dtype), space.random(jax.random.key(seed)))
    v, h = space.unflatten(jnp.asarray(np.linspace(-0.4, 0.5, space.dim, dtype=system.dtype))), jnp.ones((), system.dtype)
    q0, a = jax.jit(lambda: (one(1), one(2)))()
    q1 = evaluate(space.move, q0, v)
    dW = jnp.linspace(0.3, 0.7, scheme.channels, dtype=system.dtype)

    def acting(q0, q1):
        if isinstance(scheme, Action):
            values = [scheme(system.lagrangian, system.noise, q0, q1, v, h, dW, h)]
        else:
            values = [system.lagrangian(q0, v, h), *([system.noise(q0, h) @ dW] if system.channels else [])]
        covectors = [system.force(q0, v, h), *([system.random_force(q0, v, h)] if system.random_forces else [])]
        return jnp.concatenate([jnp.stack(values), *(jnp.ravel(leaf) for leaf in jax.tree.leaves(covectors))])

    gap = evaluate(lambda: acting(space.multiply(a, q0), space.multiply(a, q1)) - acting(q0, q1))
    return float(np.abs(np.asarray(gap)).max())
