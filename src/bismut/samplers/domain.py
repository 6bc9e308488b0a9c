"""Where parameters live: a space to move on, a surface in it perhaps, and the point that a log-density is given.

    density ρ(x) with respect to the volume dx of the domain,      x = point(q),      U(q) = −log ρ(point(q)) − log |dx/dq|

    a space            q itself; on a group dx is Haar's measure, on the circle the angle, on ℝⁿ Lebesgue's
    a surface          g(q) = 0 in a Euclidean space; dx is the area it inherits (`surfaces`)
    a chart            x = x(q) with the volume element of the map (`charts`)

A chain with momenta of unit mass samples e^{−U} with respect to the area of the surface, because the volume of phase space over a surface is area
times the volume of tangent momenta.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.arguments import shown
from bismut.errors import BismutError, DomainError, ShapeError
from bismut.spaces import Euclidean, Point, Power, Product, Space, Velocity

SPREAD = 2.0  # of starts on ℝⁿ


class Domain:
    """What `sample` needs of the home of one parameter. `space` is where the chain moves, `measure` names dx."""

    space: Space
    measure: str
    constraint: Callable[[Point], Float[Array, " k"]] | None = None
    separate: bool = True  # whether each constraint is of one parameter alone

    @property
    def title(self) -> str:
        """As a user would name it."""
        return str(self)

    def point(self, q: Point) -> Any:
        """What the log-density is given."""
        return q

    def coordinates(self, x: Any) -> Point:
        """Where the chain is at a point, the inverse of `point`."""
        if type(self).point is not Domain.point:
            raise NotImplementedError(f"{type(self).__name__} must define coordinates(), the inverse of its point().")
        return x

    def log_volume(self, q: Point) -> Float[Array, ""] | float:
        """log |dx/dq|."""
        del q
        return 0.0

    def gradient(self, q: Point, slope: Velocity) -> Velocity:
        """∂f/∂x along an orthonormal frame of the domain, of a function with the slope ∂f/∂q: that of q itself unless the domain has a chart."""
        if type(self).log_volume is not Domain.log_volume:
            raise DomainError(
                f"The area of a surface in {self.title} needs its gradient(q, slope), ∂f/∂x along an orthonormal frame of x, which "
                f"{type(self).__name__} does not define. Define it beside log_volume(), or give measure='conditional', which needs the volume alone."
            )
        return slope

    def random(self, key) -> Point:
        """A start: uniform where the domain is compact, spread out where it is not."""
        return self.space.random(key)

    @property
    def scalable(self) -> bool:
        """Whether coordinates may be scaled and turned to make a density round: where q is any array of numbers."""
        base = self.space.base if isinstance(self.space, Power) else self.space
        return self.constraint is None and isinstance(base, Euclidean)


@dataclass(frozen=True)
class PlainDomain(Domain):
    """A space as it is."""

    space: Space

    @property
    def measure(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "the volume of the frame: Lebesgue's measure on ℝⁿ, Haar's on a group"

    @property
    def title(self) -> str:
        return str(self.space)

    def random(self, key):
        q = self.space.random(key)
        return jax.tree.map(lambda leaf: SPREAD * leaf, q) if self.scalable else q


@dataclass(frozen=True)
class JointDomain(Domain):
    """Several parameters by name: the product of their domains."""

    names: tuple[str, ...]
    parts: tuple[Domain, ...]

    @property
    def space(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Product(tuple(part.space for part in self.parts))

    @property
    def measure(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "; ".join(f"{name}: {part.measure}" for name, part in zip(self.names, self.parts, strict=True))

    @property
    def title(self) -> str:
        return ", ".join(f"{name}: {part.title}" for name, part in zip(self.names, self.parts, strict=True))

    @property
    def constraint(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        bound = [(i, part.constraint) for i, part in enumerate(self.parts) if part.constraint is not None]
        return (lambda q: jnp.concatenate([g(q[i]) for i, g in bound])) if bound else None

    def point(self, q):
        return {name: part.point(one) for name, part, one in zip(self.names, self.parts, q, strict=True)}

    def coordinates(self, x):
        return tuple(part.coordinates(x[name]) for name, part in zip(self.names, self.parts, strict=True))

    def log_volume(self, q):
        return sum(part.log_volume(one) for part, one in zip(self.parts, q, strict=True))

    def gradient(self, q, slope):
        return tuple(part.gradient(one, along) for part, one, along in zip(self.parts, q, slope, strict=True))

    def random(self, key):
        return tuple(part.random(one) for part, one in zip(self.parts, jax.random.split(key, len(self.parts)), strict=True))


def domain_of(space: Any, role: str = "") -> Domain:
    """The domain of what a user gives: a space, a domain, or a dictionary of them; `role` begins the sentence of an error."""
    if isinstance(space, Domain):
        return space
    if isinstance(space, Space):
        return PlainDomain(space)
    if isinstance(space, Mapping) and space and all(isinstance(part, str) for part in space):
        return JointDomain(tuple(space), tuple(domain_of(part, f"space[{key!r}] is to be ") for key, part in space.items()))
    remedy = ""
    if isinstance(space, type):
        remedy = f" Call it: {space.__name__}(...)."
    elif callable(space):
        remedy = " The space is the first argument, the density the second."
    elif isinstance(space, Mapping):
        wrong = [name for name in space if not isinstance(name, str)]
        remedy = f" Names are text, and {wrong[0]!r} is not." if wrong else " It is empty: name a parameter."
    raise BismutError(
        f"{role or 'Expected '}a space such as bm.SO3(), a domain such as bm.Sphere(2), or a dictionary of them by name, got {shown(space)}.{remedy}"
    )


def checked_point(domain: Domain, x: Any, name: str) -> tuple[int, ...]:
    """Raise unless x is what a log-density on the domain is given, or many of them along leading axes; return the shape of the batch."""
    if isinstance(domain, PlainDomain):
        return domain.space.check(x, name)
    if isinstance(domain, JointDomain):
        if not isinstance(x, Mapping) or set(x) != set(domain.names):
            got = f"one of {', '.join(map(str, x))}" if isinstance(x, Mapping) else f"a {type(x).__name__}"
            raise DomainError(f"{name} expects a dictionary of {', '.join(domain.names)}, got {got}.")
        batches = [checked_point(part, x[one], f"{name}[{one!r}]") for one, part in zip(domain.names, domain.parts, strict=True)]
        if len(set(batches)) > 1:
            raise ShapeError(f"The parts of {name} have different leading axes: {batches}.")
        return batches[0]
    if (inner := getattr(domain, "inner", None)) is not None:
        return checked_point(inner, x, name)
    want, structure = jax.tree.flatten(jax.eval_shape(domain.point, jax.eval_shape(domain.space.origin)))
    leaves = [x] if len(want) == 1 else jax.tree.leaves(x)
    shapes, wanted = [np.shape(leaf) for leaf in leaves], [leaf.shape for leaf in want]
    batches = [shape[: len(shape) - len(last)] for shape, last in zip(shapes, wanted, strict=False)]
    fits = len(shapes) == len(wanted) and all(shape == batch + last for shape, batch, last in zip(shapes, batches, wanted, strict=True))
    if not fits or len(set(batches)) > 1 or (len(want) > 1 and jax.tree.structure(x) != structure):
        one = lambda shapes: str(shapes[0]) if len(shapes) == 1 else f"{len(shapes)} arrays {', '.join(map(str, shapes))}"
        raise ShapeError(f"{name} has shape {one(shapes)}, but a point of {domain.title}, as log_density is given it, has {one(wanted)}.")
    return batches[0]


def parts_of(domain: Domain) -> tuple[Domain, ...]:
    """The domains of the parameters, in the order of the factors of the space."""
    return getattr(domain, "parts", (domain,))
