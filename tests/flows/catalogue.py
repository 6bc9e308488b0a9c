"""Schemes by name, on the systems of `systems`. Compiling would be the cost of these tests, so what runs once is not compiled."""

from collections.abc import Callable
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.flows import Flow, flow
from bismut.programs.evaluation import evaluator
from tests import systems


def once(function: Callable) -> Callable:
    """The function, evaluated in NumPy; traced once for arguments of one shape."""
    return evaluator(function)


PLAIN: dict[str, Callable[[bm.System], bm.Action]] = {
    "euler left": bm.VariationalEuler,
    "euler right": partial(bm.VariationalEuler, end="right"),
    "midpoint": bm.Midpoint,
    "verlet": bm.Verlet,
}
EXP = {f"{name} exp": partial(make, retraction="exp") for name, make in PLAIN.items()}


def leaning(system: bm.System) -> bm.Action:
    """A discrete Lagrangian that is none of ours: L and γ two thirds of the way from q0 to q1, along the curve of the retraction."""
    space, share = system.space, 2 / 3

    def S_d(q0, q1, h, dW):
        v = jax.tree.map(lambda x: x / h, space.subtract(q1, q0))
        q = space.move(q0, v, share * h)
        return h * system.lagrangian(q, v) + system.noise(q) @ dW

    return bm.Discrete(space, S_d, system=system)


OTHERS = {"adjoint of midpoint": lambda system: bm.Midpoint(system).adjoint(), "discrete": leaning}

CASES = [
    *((space, name) for space in ("plane", "heavy_top", "vehicle", "bodies") for name in PLAIN),
    *(("heavy_top", name) for name in EXP),
    *((space, name) for space in ("plane", "heavy_top") for name in OTHERS),
]


# Every space and every action once or twice; all pairs, which take long to compile, belong to `make measure`.
SOME = {
    ("plane", "euler right"),
    ("plane", "midpoint"),
    ("plane", "discrete"),
    ("heavy_top", "euler left"),
    ("heavy_top", "midpoint"),
    ("heavy_top", "verlet exp"),
    ("vehicle", "verlet"),
    ("bodies", "euler left"),
}
everywhere = pytest.mark.parametrize(
    ("space", "name"), [pytest.param(*case, id=" ".join(case), marks=() if case in SOME else pytest.mark.slow) for case in CASES]
)


@cache
def system(space: str) -> bm.System:
    return systems.ALL[space]()


@cache
def scheme(space: str, name: str) -> bm.Action:
    return (PLAIN | EXP | OTHERS)[name](system(space))


def increments(system: bm.System, h: float, steps: int = 1, seed: int = 9, size: float = 3.0) -> jax.Array:
    """ΔW for some steps, each of size 3√h: three times the usual, so that a defect proportional to the noise is not missed."""
    signs = np.random.default_rng(seed).standard_normal((steps, system.channels))
    return jax.device_put(size * np.sqrt(h) * signs / np.abs(signs).max(1, keepdims=True))


class Traced(Flow):
    """The flow of an action behind one `jit`, so that all measurements of a scheme trace its step once."""

    of: bm.Action

    @property
    def claims(self):
        return self.of.claims

    @property
    def space(self):
        return self.of.space

    def advance(self, state, h, dW, t):
        return _advance(self.of, state, jnp.asarray(h), dW, jnp.asarray(t, float))


@eqx.filter_jit
def _advance(action, state, h, dW, t):
    return flow(action).advance(state, h, dW, t)


@cache
def traced(space: str, name: str) -> Traced:
    return Traced(system(space), scheme(space, name))


def path(flow: Flow, start: bm.State, h, dW) -> tuple[bm.State, jax.Array]:
    """The states of a path driven by given increments, the start included, and whether every step was solved."""

    def step(state, driven):
        new, solve = flow.advance(state, h, *driven)
        return new, (new, solve.converged)

    _, (states, converged) = jax.lax.scan(step, start, (dW, h * jnp.arange(dW.shape[0])))
    return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), start, states), jnp.all(converged)


def apart(space: bm.Space, a: bm.State, b: bm.State) -> float:
    """The largest component of the difference of two states, in (q, p)."""
    return float(_apart(space)(a, b))


@cache
def _apart(space: bm.Space) -> Callable:
    flat = space.flatten
    return once(lambda a, b: jnp.max(jnp.abs(jnp.concatenate([flat(space.subtract(a.q, b.q)), flat(a.p) - flat(b.p)]))))
