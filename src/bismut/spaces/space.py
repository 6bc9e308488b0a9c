"""Configuration spaces: what a space must define, and what follows.

    move      q ⊕ v        the point reached from q along the velocity v in unit time
    subtract  q1 ⊖ q0      the velocity that leads from q0 to q1:   q0 ⊕ (q1 ⊖ q0) = q1

From these two everything a scheme needs follows by automatic differentiation, unless a space gives closed forms. A `Group` does: its velocities are
left-trivialised (body) velocities, with a retraction τ and its right-trivialised tangent dτ⁻¹.

Points, velocities and momenta are plain arrays or tuples of arrays. A space is a value: it holds sizes, never data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.errors import DomainError, ShapeError, nearest
from bismut.formatting import table
from bismut.tracing import traced

if TYPE_CHECKING:
    from bismut.spaces.product import Power, Product

Point = Any  # an array or a tuple of arrays, as the space prescribes
Velocity = Any  # likewise; momenta have the structure of velocities
Scalar = float | Float[Array, ""]


def scale(c, v: Velocity) -> Velocity:
    """c v for a velocity of any structure."""
    return jax.tree.map(lambda leaf: c * leaf, v)


def add(v: Velocity, w: Velocity) -> Velocity:
    return jax.tree.map(jnp.add, v, w)


def pair(p: Velocity, v: Velocity) -> Float[Array, ""]:
    """⟨p, v⟩."""
    terms = [jnp.sum(a * b) for a, b in zip(jax.tree.leaves(p), jax.tree.leaves(v), strict=True)]
    return jnp.sum(jnp.stack(terms))


RETRACTIONS = ("cayley", "exp")


def check_retraction(retraction: str) -> str:
    """The name of a retraction; an error if there is none of that name."""
    if retraction not in RETRACTIONS:
        raise DomainError(f"There is no retraction {retraction!r}. {nearest(retraction, RETRACTIONS)}")
    return retraction


def check_dimension(name: str, n: Any, least: int = 1) -> None:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < least:
        raise DomainError(f"{name}(n) needs a whole number n ≥ {least}, got n = {n!r}.")


class Space:
    """A configuration space: a value with verbs. To define your own, subclass it with origin, zero, move and subtract; the rest follows."""

    points_are: str = "points"  # as `check` names them

    @property
    def dim(self) -> int:
        """Number of degrees of freedom."""
        return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(self.zero)))

    def origin(self, dtype: Any = float) -> Point:
        """A distinguished point; the identity of a group."""
        raise _missing(self, "origin")

    def zero(self, dtype: Any = float) -> Velocity:
        """The zero velocity, which also shows the structure of velocities and momenta."""
        raise _missing(self, "zero")

    def move(self, q: Point, velocity: Velocity, time: Scalar = 1.0) -> Point:
        """q ⊕ time·velocity."""
        raise _missing(self, "move")

    def subtract(self, q1: Point, q0: Point) -> Velocity:
        """q1 ⊖ q0, the velocity that leads from q0 to q1 in unit time."""
        raise _missing(self, "subtract")

    def gap(self, q1: Point, q0: Point) -> Float[Array, " n"]:
        """Numbers that vanish where two points are equal: distances are measured by them."""
        return self.flatten(self.subtract(q1, q0))

    def nudge(self, q: Point, e: Velocity) -> Point:
        """q ⊕ e to first order in e: what a gradient at e = 0 needs, often cheaper than `move`."""
        return self.move(q, e)

    def covector(self, q: Point, slope: Point) -> Velocity:
        """The covector of ∂f/∂q, the derivatives of a function by the numbers in q:  ⟨covector, e⟩ = d f(q ⊕ e)."""
        zero = self.zero(jax.tree.leaves(slope)[0].dtype)
        return jax.vjp(lambda e: self.nudge(q, e), zero)[1](slope)[0]

    def differential(self, function: Callable[[Point], Any], q: Point) -> Velocity:
        """df(q) of a real function, as a covector."""
        return self.covector(q, jax.grad(function)(q))

    def random(self, key) -> Point:
        """A random point: uniform if the space is compact, standard normal if not; by default the origin moved at random."""
        return self.move(self.origin(), self.unflatten(jax.random.normal(key, (self.dim,))))

    def project(self, q: Point) -> Point:
        """The nearest point of the space to an array that lies slightly off it."""
        return q

    def using(self, retraction: str) -> Space:
        """The same space with another retraction, where there is a choice."""
        raise DomainError(f"{self} has only one way to move and no retraction {retraction!r}. Omit retraction=.")

    def ends(self, q0: Point, q1: Point, x: Velocity, a: Velocity) -> tuple[Velocity, Velocity]:
        """The covectors at both ends that a covector a on the displacement x = q1 ⊖ q0 stands for.

        ⟨a, δx⟩ = ⟨a0, δq0⟩ + ⟨a1, δq1⟩.
        """
        del x

        def displacement(e0, e1):
            return self.subtract(self.move(q1, e1), self.move(q0, e0))

        zero = jax.tree.map(jnp.zeros_like, a)
        return jax.vjp(displacement, zero, zero)[1](a)

    def coordinate_rate(self, q0: Point, x: Velocity, v: Velocity) -> Velocity:
        """dx/dt for the point q = q0 ⊕ x moving with velocity v."""
        q, zero = self.move(q0, x), jax.tree.map(jnp.zeros_like, v)
        return jax.jvp(lambda e: self.subtract(self.move(q, e), q0), (zero,), (v,))[1]

    def bracket_form(self, q: Point, p: Velocity) -> Float[Array, "n n"]:
        """⟨p, [e_i, e_j]⟩ for the frame of velocities, from the verbs alone.

        In coordinates x ↦ q ⊕ x it is −d⟨p, η⟩, where η = B(x) dx is the velocity of a moving x.
        """
        flat = self.flatten(p)

        def theta(x):
            here = self.move(q, self.unflatten(x))
            there = lambda y: self.flatten(self.subtract(self.move(q, self.unflatten(y)), here))
            return jax.vjp(there, x)[1](flat)[0]

        slope = jax.jacfwd(theta)(jnp.zeros_like(flat))
        return slope - slope.T

    def turning(self, q: Point, v: Velocity, p: Velocity) -> Velocity:
        """ad*_v p: how a momentum changes in the frame only because the frame turns with the motion."""
        return self.unflatten(self.flatten(v) @ self.bracket_form(q, p))

    def cells(self) -> tuple[int, ...]:
        """For each array of a velocity, how many components of its last axis `ends` couples: 1 where nothing is coupled."""
        return tuple(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(self.zero)))

    @property
    def mixes_arrays(self) -> bool:
        """Whether `ends` may couple different arrays of a velocity, which `cells` cannot express: so it is unless a space has its own `cells`."""
        return type(self).cells is Space.cells and len(jax.tree.leaves(jax.eval_shape(self.zero))) > 1

    # How symmetries act, each as the velocity it gives the point q.

    def translation(self, q: Point, direction) -> Velocity:
        """The velocity of q when everything is shifted along a direction fixed in space."""
        raise DomainError(f"A translation does not act on {self}. Give the action itself: symmetry(lambda q: velocity).")

    def left_rotation(self, q: Point, axis) -> Velocity:
        """The velocity of q when everything is turned about an axis through the origin, fixed in space."""
        raise DomainError(f"A rotation does not act on {self}. Give the action itself: symmetry(lambda q: velocity).")

    def right_rotation(self, q: Point, axis) -> Velocity:
        """The velocity of q when each body is turned about an axis fixed in the body."""
        raise DomainError(f"A rotation in the body does not act on {self}. Give the action itself: symmetry(lambda q: velocity).")

    def flatten(self, v: Velocity) -> Float[Array, " dim"]:
        """A velocity or momentum as one vector."""
        return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(v)])

    def unflatten(self, x: Float[Array, " dim"]) -> Velocity:
        leaves, structure = jax.tree.flatten(jax.eval_shape(self.zero))
        parts = jnp.split(x, np.cumsum([leaf.size for leaf in leaves])[:-1])
        return structure.unflatten([part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)])

    def violation(self, q: Point) -> float:
        """How far q lies off the space; 0 where every array of the right shape is a point."""
        del q
        return 0.0

    def hint(self, shape: tuple[int, ...]) -> str:
        """Advice for an array of a wrong shape."""
        del shape
        return ""

    def check(self, q: Point, name: str = "q") -> tuple[int, ...]:
        """Raise unless q is a point, or a batch of points along leading axes; return the shape of the batch."""
        want = _shapes(self)[0].shape
        shape = np.shape(q)
        if shape[len(shape) - len(want) :] != want:
            advice = self.hint(shape)
            raise ShapeError(f"{name} has shape {shape}, but {self} works with {self.points_are} {want}.{' ' + advice if advice else ''}")
        if not traced(q):
            self.check_numbers(np.asarray(q), name)
        return shape[: len(shape) - len(want)]

    def check_numbers(self, q: Point, name: str) -> None:
        """Raise unless numbers of the right shape are finite and lie on the space."""
        value = np.asarray(q)
        if not np.isfinite(value).all():
            raise DomainError(f"{name} holds values that are not finite. {self} needs finite numbers: {_excerpt(value)}")
        off = float(self.violation(q))
        allowed = float(np.finfo(value.dtype if value.dtype.kind == "f" else float).eps) ** 0.5
        if off > allowed:
            raise DomainError(
                f"{name} lies off {self} by {off:.2g} (allowed {allowed:.1g}). {self}.project({name.rsplit('.', maxsplit=1)[-1]}) moves it back."
            )

    def check_velocity(self, v: Velocity, name: str = "velocity") -> tuple[int, ...]:
        """Raise unless v has the structure and shape of a velocity (or a batch); return the shape of the batch."""
        want, structure = jax.tree.flatten(_shapes(self)[1])
        if jax.tree.structure(v) != structure:
            shapes = tuple(leaf.shape for leaf in want)
            raise ShapeError(f"{name} is {_describe(v)}, but on {self} it is a tuple of arrays of shapes {shapes}.")
        batch = None
        for leaf, expected in zip(jax.tree.leaves(v), want, strict=True):
            shape = np.shape(leaf)
            here = shape[: len(shape) - len(expected.shape)]
            if shape[len(here) :] != expected.shape or (batch is not None and here != batch):
                raise ShapeError(f"{name} has shape {shape}, but on {self} it has shape {expected.shape}, with the same leading axes everywhere.")
            if not traced(leaf) and not np.isfinite(np.asarray(leaf)).all():
                raise DomainError(f"{name} holds values that are not finite: {_excerpt(np.asarray(leaf))}")
            batch = here
        return batch or ()

    def _repr_html_(self) -> str:
        shapes = lambda tree: ", ".join(str(leaf.shape) for leaf in jax.tree.leaves(tree))
        rows = [("degrees of freedom", self.dim), ("points", shapes(jax.eval_shape(self.origin))), ("velocities", shapes(jax.eval_shape(self.zero)))]
        return table(str(self), rows)

    def __mul__(self, other: Space) -> Product:
        from bismut.spaces.product import product  # the one cycle: a product is made of spaces

        return product(self, other)

    def __pow__(self, count: int) -> Power:
        from bismut.spaces.product import Power

        return Power(self, count)


class Group(Space):
    """A Lie group with left-trivialised velocities ξ = g⁻¹ġ and a retraction τ: 𝔤 → G,

        g ⊕ ξ = g τ(ξ),    g1 ⊖ g0 = τ⁻¹(g0⁻¹ g1).

    dτ is right-trivialised: (d/dε τ(x + εy)) τ(x)⁻¹ = dτ_x y.
    """

    def tau(self, x: Velocity) -> Point:
        """τ(x): the group element that the velocity x leads to from the identity."""
        raise _missing(self, "tau")

    def tau_inv(self, g: Point) -> Velocity:
        """τ⁻¹(g): the velocity that leads from the identity to g."""
        raise _missing(self, "tau_inv")

    def dtau_inv(self, x: Velocity, y: Velocity) -> Velocity:
        """dτ⁻¹_x y."""
        raise _missing(self, "dtau_inv")

    def multiply(self, g: Point, h: Point) -> Point:
        """g h."""
        raise _missing(self, "multiply")

    def inverse(self, g: Point) -> Point:
        """g⁻¹."""
        raise _missing(self, "inverse")

    def Ad(self, g: Point, x: Velocity) -> Velocity:
        """Ad_g x = g x g⁻¹."""
        raise _missing(self, "Ad")

    def bracket(self, x: Velocity, y: Velocity) -> Velocity:
        """[x, y] = ad_x y."""
        raise _missing(self, "bracket")

    @property
    def casimirs(self) -> dict[str, Callable[[Velocity], Scalar]]:
        """Functions of μ that coadjoint motion Ad*_g μ conserves, by name; those with a formula here."""
        return {}

    # The adjoints: ⟨A* μ, y⟩ = ⟨μ, A y⟩.

    def dtau_inv_adjoint(self, x: Velocity, mu: Velocity) -> Velocity:
        return _adjoint(lambda y: self.dtau_inv(x, y), mu)

    def Ad_star(self, g: Point, mu: Velocity) -> Velocity:
        return _adjoint(lambda y: self.Ad(g, y), mu)

    def coadjoint(self, x: Velocity, mu: Velocity) -> Velocity:
        """Ad*_{τ(x)} μ."""
        return self.Ad_star(self.tau(x), mu)

    def ad_star(self, x: Velocity, mu: Velocity) -> Velocity:
        return _adjoint(lambda y: self.bracket(x, y), mu)

    def move(self, q: Point, velocity: Velocity, time: Scalar = 1.0) -> Point:
        return self.multiply(q, self.tau(scale(time, velocity)))

    def subtract(self, q1: Point, q0: Point) -> Velocity:
        return self.tau_inv(self.multiply(self.inverse(q0), q1))

    def ends(self, q0: Point, q1: Point, x: Velocity, a: Velocity) -> tuple[Velocity, Velocity]:
        # g0 → g0 exp(η) changes x by −dτ⁻¹_x η, and g1 → g1 exp(η) by dτ⁻¹_x Ad_τ(x) η = dτ⁻¹_{−x} η.
        del q0, q1
        return scale(-1.0, self.dtau_inv_adjoint(x, a)), self.dtau_inv_adjoint(scale(-1.0, x), a)

    def bracket_form(self, q: Point, p: Velocity) -> Float[Array, "n n"]:
        frame = jnp.eye(self.dim, dtype=jax.tree.leaves(p)[0].dtype)
        pairing = lambda x, y: pair(p, self.bracket(self.unflatten(x), self.unflatten(y)))
        return jax.vmap(lambda x: jax.vmap(lambda y: pairing(x, y))(frame))(frame)

    def turning(self, q: Point, v: Velocity, p: Velocity) -> Velocity:
        return self.ad_star(v, p)

    def coordinate_rate(self, q0: Point, x: Velocity, v: Velocity) -> Velocity:
        del q0
        return self.dtau_inv(scale(-1.0, x), v)


def _missing(space: Space, verb: str) -> NotImplementedError:
    return NotImplementedError(f"{type(space).__name__} must define {verb}().")


def _adjoint(linear, mu: Velocity) -> Velocity:
    return jax.vjp(linear, jax.tree.map(jnp.zeros_like, mu))[1](mu)[0]


def _describe(value) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"an array of shape {np.shape(value)}"


def _excerpt(value: np.ndarray) -> str:
    return np.array2string(value, precision=4, threshold=12, separator=", ").replace("\n", "")


@lru_cache(maxsize=256)
def _shapes(space: Space) -> tuple[Any, Any]:
    """Of a point and of a velocity; tracing takes longer than many a run."""
    return jax.eval_shape(lambda: (space.origin(), space.zero()))
