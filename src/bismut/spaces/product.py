"""Products A × B of different spaces and powers A^K of one.

A point of A * B is a tuple (a, b). A point of A ** K is a point of A whose arrays have a leading axis of length K, so that K bodies are
arrays, not K Python objects. Every verb acts factor by factor. A product of groups is a group.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.body_loops import each
from bismut.errors import DomainError, ShapeError
from bismut.registry import SPACES
from bismut.spaces.space import Group, Space


def product(a: Space, b: Space) -> "Product":
    """A × B; a product of products is one flat tuple of factors."""
    if not isinstance(b, Space):
        raise DomainError(f"A product of spaces is A * B, and a power A ** K, got {a!r} * {b!r}.")
    factors = [s for space in (a, b) for s in (space.factors if isinstance(space, Product) else (space,))]
    return Product(tuple(factors))


class _Factorwise(Space):
    """Verbs that act on every factor separately, by `_map`."""

    def _map(self, verb: str, *arguments: Any, common: tuple = ()) -> Any:
        """The verb of each factor, at its part of the arguments and at what is common to all."""
        raise NotImplementedError

    def translation(self, q, direction):
        return self._map("translation", q, common=(direction,))

    def left_rotation(self, q, axis):
        return self._map("left_rotation", q, common=(axis,))

    def right_rotation(self, q, axis):
        return self._map("right_rotation", q, common=(axis,))

    def move(self, q, velocity, time=1.0):
        return self._map("move", q, velocity, common=(time,))

    def nudge(self, q, e):
        return self._map("nudge", q, e)

    def covector(self, q, slope):
        return self._map("covector", q, slope)

    def subtract(self, q1, q0):
        return self._map("subtract", q1, q0)

    def coordinate_rate(self, q0, x, v):
        return self._map("coordinate_rate", q0, x, v)

    def turning(self, q, v, p):
        return self._map("turning", q, v, p)

    def project(self, q):
        return self._map("project", q)


class _FactorwiseGroup(Group):
    """Group verbs that act on every factor separately; `move`, `subtract` and what follows from them are those of `_Factorwise`."""

    _map: Callable

    def tau(self, x):
        return self._map("tau", x)

    def tau_inv(self, g):
        return self._map("tau_inv", g)

    def dtau_inv(self, x, y):
        return self._map("dtau_inv", x, y)

    def dtau_inv_adjoint(self, x, mu):
        return self._map("dtau_inv_adjoint", x, mu)

    def multiply(self, g, h):
        return self._map("multiply", g, h)

    def inverse(self, g):
        return self._map("inverse", g)

    def Ad(self, g, x):
        return self._map("Ad", g, x)

    def Ad_star(self, g, mu):
        return self._map("Ad_star", g, mu)

    def bracket(self, x, y):
        return self._map("bracket", x, y)

    def ad_star(self, x, mu):
        return self._map("ad_star", x, mu)


@SPACES.register
@dataclass(frozen=True)
class Product(_Factorwise):
    """A × B × ... Points, velocities and momenta are tuples, one entry per factor."""

    factors: tuple[Space, ...]

    def __new__(cls, factors: tuple[Space, ...]):
        return object.__new__(ProductGroup if all(isinstance(factor, Group) for factor in factors) else Product)

    def __getnewargs__(self):  # of copies
        return (self.factors,)

    def using(self, retraction):
        return Product(tuple(factor.using(retraction) for factor in self.factors))

    def _map(self, verb, *arguments, common=()):
        return tuple(getattr(factor, verb)(*parts, *common) for factor, *parts in zip(self.factors, *arguments, strict=True))

    def origin(self, dtype: Any = float):
        return tuple(factor.origin(dtype) for factor in self.factors)

    def zero(self, dtype: Any = float):
        return tuple(factor.zero(dtype) for factor in self.factors)

    def random(self, key):
        return self._map("random", jax.random.split(key, len(self.factors)))

    def cells(self):
        return tuple(size for factor in self.factors for size in factor.cells())

    @property
    def mixes_arrays(self):
        return any(factor.mixes_arrays for factor in self.factors)

    def ends(self, q0, q1, x, a):
        a0, a1 = zip(*self._map("ends", q0, q1, x, a), strict=True)
        return a0, a1

    def bracket_form(self, q, p):
        return jax.scipy.linalg.block_diag(*self._map("bracket_form", q, p))

    def check(self, q, name="q"):
        if not isinstance(q, tuple | list) or len(q) != len(self.factors):
            text = f"a tuple of {len(q)}" if isinstance(q, tuple | list) else f"an array of shape {np.shape(q)}"
            raise ShapeError(f"{name} must be a tuple of {len(self.factors)} points on {self}, got {text}.")
        batches = [factor.check(part, f"{name}[{i}]") for i, (factor, part) in enumerate(zip(self.factors, q, strict=True))]
        if len(set(batches)) > 1:
            raise ShapeError(f"The parts of {name} have different leading axes: {batches}.")
        return batches[0]

    def __repr__(self):
        return " * ".join(str(factor) for factor in self.factors)


@SPACES.register
@dataclass(frozen=True)
class Power(_Factorwise):
    """A^K, batched: every array of a point, velocity or momentum of A gains a leading axis of length K."""

    base: Any  # a Space; a Group for a PowerGroup
    count: int

    def __new__(cls, base: Any, count: int):
        del count
        return object.__new__(PowerGroup if isinstance(base, Group) else Power)

    def __getnewargs__(self):  # of copies
        return self.base, self.count

    def __post_init__(self):
        if not isinstance(self.count, int) or self.count < 1:
            raise DomainError(f"A power of a space needs a whole exponent ≥ 1, got {self.count!r}.")

    def using(self, retraction):
        return replace(self, base=self.base.using(retraction))

    def _map(self, verb, *arguments, common=()):
        return each(lambda *parts: getattr(self.base, verb)(*parts, *common), *arguments)

    def origin(self, dtype: Any = float):
        return self._repeat(self.base.origin(dtype))

    def zero(self, dtype: Any = float):
        return self._repeat(self.base.zero(dtype))

    def _repeat(self, tree):
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.count, *leaf.shape)), tree)

    def random(self, key):
        return jax.vmap(self.base.random)(jax.random.split(key, self.count))

    def cells(self):
        return self.base.cells()

    @property
    def mixes_arrays(self):
        return self.base.mixes_arrays

    def ends(self, q0, q1, x, a):
        return self._map("ends", q0, q1, x, a)

    def bracket_form(self, q, p):
        # Velocities of a product base are flattened array by array, not body by body, so the diagonal blocks follow from `turning`.
        frame = jnp.eye(self.dim, dtype=jax.tree.leaves(p)[0].dtype)
        return jax.vmap(lambda x: self.flatten(self.turning(q, self.unflatten(x), p)))(frame)

    def check(self, q, name="q"):
        batch = self.base.check(q, name)
        if batch[-1:] != (self.count,):
            raise ShapeError(f"{name} holds points with leading axes {batch}, but {self} needs {self.count} of them along the first axis.")
        return batch[:-1]

    def __repr__(self):
        return f"({self.base}) ** {self.count}" if isinstance(self.base, Product) else f"{self.base} ** {self.count}"


class ProductGroup(Product, _FactorwiseGroup):
    """G × H × ..., a group."""


class PowerGroup(Power, _FactorwiseGroup):
    """G^K, a group."""
