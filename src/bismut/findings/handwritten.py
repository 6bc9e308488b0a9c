"""A step that somebody else wrote, judged like one of ours.

    step(q, p, h, dW) ↦ (q, p)

on a space, or for a system: with a system energies, temperatures, averages and orders can be measured too; with a space alone only structure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from bismut.blame import why
from bismut.errors import BismutError, ShapeError
from bismut.findings.chance import ALARM
from bismut.findings.report import Report
from bismut.findings.verify import BUDGET, verify
from bismut.flows import Flow, Solve
from bismut.mechanics import Claims, State, System
from bismut.mechanics.function import UserFunction, user_function
from bismut.spaces import Space

NOTHING = Claims(order=None, strong_order=None, weak_order=None)


class HandWritten(Flow):
    """A step given as a function, with the claims that its author makes."""

    function: UserFunction = eqx.field(static=True)
    said: Claims = eqx.field(static=True)
    normals: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    constrained = True

    @property
    def claims(self) -> Claims:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.said

    @property
    def channels(self) -> int:
        return self.normals

    @property
    def title(self) -> str:
        return self.name

    def advance(self, state, h, dW, t):
        q, p = self.function(state.q, state.p, h, dW, t=t, parameters=self.system.parameters)
        return State(q, p), Solve(jnp.zeros((), self.system.dtype), jnp.array(True), jnp.zeros((), int))


def hand_written(step: Callable, on: System | Space, *, channels: int = 0, claims: Claims = NOTHING, name: str | None = None) -> HandWritten:
    """The scheme of a step function, checked: it must give back points and momenta as it got them."""
    if isinstance(on, Space):
        on = System(on, None, channels=channels)
    if not isinstance(on, System):
        raise BismutError(f"verify_step needs a space such as bm.SO3() or a system, got {type(on).__name__}.")
    function = user_function("step", step, ("q", "p", "h", "dW"))
    assert function is not None
    scheme = HandWritten(on, function, claims, channels, name or getattr(step, "__name__", "step").replace("<lambda>", "step"))
    q, p, one = on.space.origin(on.dtype), on.space.zero(on.dtype), jnp.ones((), on.dtype)
    shapes = lambda tree: jax.tree.map(jnp.shape, tree)
    try:
        made = jax.eval_shape(lambda: function(q, p, one, jnp.zeros(channels, on.dtype), t=one, parameters=on.parameters))
    except Exception as problem:
        raise ShapeError(f"step(q, p, h, dW) fails on {on.space} with {channels} channels: {why(problem)}.") from problem
    if not isinstance(made, tuple) or len(made) != 2 or (shapes(made[0]), shapes(made[1])) != (shapes(q), shapes(p)):
        raise ShapeError(f"step(q, p, h, dW) must return (q, p) with the shapes it was given, {shapes(q)} and {shapes(p)}, got {shapes(made)}.")
    return scheme


def verify_step(
    step: Callable,
    on: System | Space,
    start: State,
    *,
    h: float,
    channels: int = 0,
    claims: Claims = NOTHING,
    temperature: float | None = None,
    name: str | None = None,
    seed: int = 0,
    order: bool = True,
    tolerance: float = 0.02,
    observables: Mapping[str, Callable[[State], Any]] | None = None,
    budget: int | float | str = BUDGET,
    alarm: float = ALARM,
) -> Report:
    """Judge a step function of your own, or of another program, as `verify` judges a scheme.

    step         step(q, p, h, dW) ↦ (q, p), a JAX function; it may name t and parameters
    on           the system it should solve, or only the space it moves on
    start        a bm.State(q, p), p canonical: ∂L/∂v, on a group in the body frame
    h            the step size
    channels     how many Wiener increments a step takes, as dW, each with variance h
    claims       the claims it is tested against: bm.Claims(order=2, symplectic=True, ...)
    temperature  kT, if it has a bath; then temperatures and averages are measured

    Other arguments are as for `verify`.
    """
    scheme = hand_written(step, on, channels=channels, claims=claims, name=name)
    more = {"order": order, "temperature": temperature, "tolerance": tolerance, "observables": observables, "budget": budget, "alarm": alarm}
    return verify(scheme, start, step=h, seed=seed, **more)
