"""Mean-squared displacement, also where positions wind.

    MSD(τ) = ⟨|X(t + τ) − X(t)|²⟩,       X(t_k) = Σ_j q_j ⊖ q_{j−1}

X adds up what happens between looks: on the line it is the displacement, on the circle it counts turns, on rotations it is the integrated rotation
vector in the body, which has no largest value. Looks must be close enough that no angle changes by half a turn between two of them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.arguments import checked
from bismut.ensembles import moments
from bismut.ensembles.moments import KahanSum
from bismut.ensembles.observers.report import ObserverReport
from bismut.ensembles.observers.watcher import Clock, Watcher
from bismut.errors import DomainError, ShapeError
from bismut.formatting import with_error
from bismut.registry import OBSERVERS
from bismut.spaces import Power, Product, Space


class Wound(NamedTuple):
    """Looks so far, the last point, its unwound position, recent positions (newest first), and sums of squares for each lag."""

    count: Any
    q: Any
    position: Any
    recent: Any
    squares: KahanSum


class _Array(NamedTuple):
    """One of the arrays of a displacement, as one vector."""

    number: int

    def __call__(self, v):
        return jnp.ravel(jax.tree.leaves(v)[self.number])


class Displacement(Watcher):
    """Mean-squared displacement at lags 0, 1, ... looks."""

    part: Callable | None = eqx.field(static=True)
    lags: int = eqx.field(static=True)
    per: str | None = eqx.field(static=True, default=None, kw_only=True)
    arrays: int = eqx.field(static=True, default=1, kw_only=True)  # of a displacement, that are added up
    components: int = eqx.field(static=True, default=1, kw_only=True)
    bodies: int = eqx.field(static=True, default=1, kw_only=True)

    def bound(self, scheme, name, example):
        if scheme.changes_box:
            raise DomainError(
                f"observe[{name!r}]: {scheme.title} scales places with the box, which is no motion. Measure displacements at constant volume."
            )
        components, added = counts(self.part, scheme.space, name)
        bodies = scheme.space.count if isinstance(scheme.space, Power) else 1
        if self.per == "body" and bodies == 1:
            raise ShapeError(f'observe[{name!r}]: per="body" needs a space of several bodies, such as SO3() ** 8, got {scheme.space}.')
        return type(self)(self.part, self.lags, per=self.per, arrays=added, components=components, bodies=bodies, every=self.every)

    def _picked(self, v):
        return picked(self.part, v)

    def begin(self, scheme, state, t):
        dtype = scheme.system.dtype
        size = jax.eval_shape(lambda: self._picked(scheme.space.zero(dtype))).shape[0]
        recent = jnp.zeros((self.lags, size), dtype)
        return Wound(jnp.zeros((), jnp.int32), state.q, jnp.zeros(size, dtype), recent, KahanSum.zero(recent[:, 0]))

    def look(self, memory, scheme, state, t):
        space = by_angles(scheme.space)
        position = memory.position + self._picked(space.subtract(state.q, memory.q))
        recent = jnp.concatenate([position[None], memory.recent[:-1]])
        known = jnp.arange(self.lags, dtype=jnp.int32) <= memory.count
        squares = memory.squares.add(jnp.where(known, jnp.sum((recent - position) ** 2, -1), 0.0))
        return Wound(memory.count + 1, state.q, position, recent, squares), ()

    def close(self, tally, memory, ended):
        origins = np.maximum(ended.looks - np.arange(self.lags), 1)
        return moments.gather(memory.squares.value() / origins, ended.finished)

    def merge(self, a, b):
        return moments.merge(a, b)

    def report(self, name, summary, clock: Clock):
        share = {None: 1, "body": self.bodies, "component": self.components}[self.per]
        n, mean = np.asarray(summary.n), summary.mean / share
        known = np.arange(self.lags) < clock.looks
        spread = np.sqrt(summary.second / share**2 / np.maximum(n - 1, 1) / np.maximum(n, 1))
        lag = clock.h * clock.every * np.arange(self.lags)
        values = {"mean": np.where(known, mean, np.nan), "stderr": np.where(known & (n > 1), spread, np.nan), "count": n}
        last = int(known.sum()) - 1
        text = f"{with_error(mean[last], values['stderr'][last])} after τ = {lag[last]:g}"
        text += f", {self._over()}" if self.components > 1 else ""
        text += f"; all {self.arrays} arrays of a displacement are added up, part=0 picks the first" if self.arrays > 1 else ""
        return ObserverReport(name, {kind: (("lag",), v) for kind, v in values.items()}, {"lag": lag}, text)

    def _over(self) -> str:
        bodies = f" of {self.bodies} bodies" if self.bodies > 1 else ""
        kinds = {None: f"summed over {self.components} components{bodies}", "body": f"the mean over {self.bodies} bodies"}
        return kinds.get(self.per, f"the mean over {self.components} components{bodies}")


def picked(part: Callable | None, v: Any) -> jax.Array:
    """The relevant part of a displacement as one vector."""
    leaves = jax.tree.leaves(v) if part is None else [part(v)]
    return jnp.concatenate([jnp.ravel(leaf) for leaf in leaves])


def counts(part: Callable | None, space: Space, name: str) -> tuple[int, int]:
    """How many components that vector has, and how many arrays it is made of."""
    zero = jax.eval_shape(space.zero)
    try:
        shape = jax.eval_shape(lambda v: picked(part, v), zero).shape
    except Exception as problem:
        raise ShapeError(f"observe[{name!r}]: part fails on a displacement of {space}: {problem}") from problem
    if len(shape) != 1:
        raise ShapeError(f"observe[{name!r}]: part must pick one vector from a displacement, got {shape}.")
    return shape[0], len(jax.tree.leaves(zero)) if part is None else 1


def chosen(part: Any) -> Callable | None:
    """A part of displacements, by function or by the number of an array."""
    if isinstance(part, int) and not isinstance(part, bool):
        return _Array(part)
    if not (part is None or callable(part)):
        raise DomainError(f"part must be a function such as lambda v: v[0], or the number of an array of a displacement, got {part!r}.")
    return part


def by_angles(space: Space) -> Space:
    """The space with displacements by the exponential, angles and not their tangents, wherever there is a choice."""
    match space:
        case Product():
            return Product(tuple(map(by_angles, space.factors)))
        case Power():
            return replace(space, base=by_angles(space.base))
    return space if type(space).using is Space.using else space.using("exp")


@OBSERVERS.register
@checked()
def mean_squared_displacement(part: Any = None, *, lags: int = 100, per: str | None = None, every: int | None = None) -> Displacement:
    """The mean-squared displacement, summed over all bodies and components: of K bodies in space it grows as 6 K D τ.

    part  the relevant part of a displacement, say 0 or lambda v: v[0] for the positions of rigid bodies, lambda v: v[0][:, 2] for their heights.
          Without it, squares of lengths and of angles are added up
    per   "body" for the mean over bodies, 6 D τ, or "component" for the mean over all components, 2 D τ
    """
    return Displacement(chosen(part), int(lags), per=per, every=every)
