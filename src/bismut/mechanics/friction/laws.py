"""Friction, and the noise that balances it at temperature kT, with q held fixed.

    dp = −Γ v dt + B dW,   B Bᵀ = 2kT Γ        ⟹        p ← a + E (p − a) + N(0, kT (M − E M Eᵀ)),    E = exp(−h Γ M⁻¹)

a = ∂L/∂v at rest. The flow is exact, whatever h. Three ways to write the same law, by what is known of Γ and M:

    Modes     both constant:     M = X Xᵀ, Γ = X Λ Xᵀ;       X⁻¹p relaxes component by component
    Uniform   Γ = rate · M(q):   E = e^{−rate h}
    Factors   Γ = A(q) A(q)ᵀ:    K = AᵀM⁻¹A is r × r,   p ← p − h A φ(hK) Aᵀv + √(2kT h) A φ(2hK)^{1/2} z,    φ(x) = (1 − e^{−x})/x

The last two respect constraints: uniform friction commutes with the projection of momenta, and A is replaced by its projection.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.mechanics import constraint, newton, small
from bismut.mechanics.start import mass_root
from bismut.mechanics.system import System
from bismut.repetition import each
from bismut.spaces import Point, Power, Space, Velocity

Vector = Float[Array, " n"]


class Friction(eqx.Module):
    """A law of friction."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """How many standard normals drive one relaxation."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What kind of friction it is."""

    @abstractmethod
    def relax(self, system: System, q: Point, p: Velocity, h, t, kT, z: Float[Array, " r"]) -> Velocity:
        """The momentum after a time h in contact with the bath."""

    @abstractmethod
    def drag(self, system: System, q: Point, v: Vector, t, kT) -> Vector:
        """Γ v."""

    def contraction(self, system: System) -> Float[Array, ""] | None:
        """tr(Γ M⁻¹), the rate at which phase volume shrinks, where it is the same everywhere."""
        del system
        return None

    def fastest(self) -> Float[Array, ""] | None:
        """The largest rate of Γ M⁻¹, where it is the same everywhere."""
        return None


class Nothing(Friction):
    """No bath at all."""

    @property
    def rank(self):
        return 0

    @property
    def words(self):
        return "no friction"

    def relax(self, system, q, p, h, t, kT, z):
        return p

    def drag(self, system, q, v, t, kT):
        return jnp.zeros_like(v)

    def contraction(self, system):
        return jnp.zeros((), system.dtype)


class Uniform(Friction):
    """Γ = rate · M(q)."""

    rate: Float[Array, ""]
    dim: int = eqx.field(static=True)

    @property
    def rank(self):
        return self.dim

    @property
    def words(self):
        return "Γ = rate · M(q)"

    def relax(self, system, q, p, h, t, kT, z):
        space, a = system.space, rest(system, q, t)
        spread = space.flatten(mass_root(system, q, space.unflatten(z), t))
        flat = a + jnp.exp(-self.rate * h) * (space.flatten(p) - a) + jnp.sqrt(-kT * jnp.expm1(-2 * self.rate * h)) * spread
        return system.space.unflatten(along(system, q, flat, t))

    def drag(self, system, q, v, t, kT):
        return self.rate * (system.space.flatten(system.momentum(q, system.space.unflatten(v), t)) - rest(system, q, t))

    def contraction(self, system):
        return self.rate * system.freedom

    def fastest(self):
        return self.rate


class Relaxation(NamedTuple):
    """p ← X E X⁻¹ p + X S z for one array of p, what is constant in it: E = e^{−hΛ}, S = √(kT(1 − E²)).

    A diagonal X drops out of the first term and is part of S in the second; it and X⁻¹ are None then.
    """

    decay: Float[Array, ...]
    spread: Float[Array, ...]
    X: Float[Array, ...] | None
    inverse: Float[Array, ...] | None

    @classmethod
    def of(cls, rates, X, inverse, h, kT) -> Relaxation:
        decay, spread = jnp.exp(-h * rates), jnp.sqrt(-kT * jnp.expm1(-2 * h * rates))
        return cls(decay, X * spread, None, None) if X.ndim == rates.ndim else cls(decay, spread, X, inverse)

    def shaped(self, shape: tuple[int, ...]) -> Relaxation:
        """For an array of p of another shape with as many numbers."""
        square = (*shape, shape[-1]) if shape else shape
        whole = lambda part, shape: None if part is None else part.reshape(shape)
        return Relaxation(self.decay.reshape(shape), self.spread.reshape(shape), whole(self.X, square), whole(self.inverse, square))

    def __call__(self, p, z):
        if self.X is None or self.inverse is None:
            return self.decay * p + self.spread * z
        return _times(self.X, self.decay * _times(self.inverse, p) + self.spread * z)


class Modes(Friction):
    """Constant Γ and M. One entry per run of equal blocks: rates Λ (count, size), and X, X⁻¹ (count, size, size) or their diagonals (count, size)."""

    rates: list[Float[Array, ...]]
    X: list[Float[Array, ...]]
    inverse: list[Float[Array, ...]]
    driven: tuple[int, ...] = eqx.field(static=True)  # components whose rate is not zero

    @property
    def rank(self):
        return len(self.driven)

    @property
    def words(self):
        return "constant Γ and M, relaxed mode by mode"

    def relax(self, system, q, p, h, t, kT, z):
        space, n = system.space, system.space.dim
        z = z if self.rank == n else jnp.zeros(n, z.dtype).at[np.array(self.driven, int)].set(z)
        if system.inert and len(self.rates) == len(jax.tree.leaves(p)):  # at rest there is no momentum
            return self._by_bodies(space, p, h, kT, space.unflatten(z))
        a = rest(system, q, t)
        flat, parts, start = space.flatten(p) - a, [], 0
        for rates, X, inverse in zip(self.rates, self.X, self.inverse, strict=True):
            here = slice(start, start + rates.size)
            part = Relaxation.of(rates, X, inverse, h, kT)(flat[here].reshape(rates.shape), z[here].reshape(rates.shape))
            parts.append(jnp.ravel(part))
            start += rates.size
        return space.unflatten(a + jnp.concatenate(parts))

    def _by_bodies(self, space: Space, p: Velocity, h, kT, z: Velocity) -> Velocity:
        """Array by array, in one loop over bodies where there are some."""
        leaves, structure = jax.tree.flatten(p)
        modes = zip(self.rates, self.X, self.inverse, leaves, strict=True)
        laws = [Relaxation.of(rates, X, inverse, h, kT).shaped(leaf.shape) for rates, X, inverse, leaf in modes]
        relax = lambda laws, p, z: [law(w, noise) for law, w, noise in zip(laws, p, z, strict=True)]
        given = laws, leaves, jax.tree.leaves(z)
        return structure.unflatten(each(relax, *given) if isinstance(space, Power) else relax(*given))

    def drag(self, system, q, v, t, kT):
        parts, start = [], 0
        for rates, X in zip(self.rates, self.X, strict=True):
            part = v[start : start + rates.size].reshape(rates.shape)
            parts.append(jnp.ravel(_times(X, rates * _times(jnp.swapaxes(X, -1, -2) if X.ndim == 3 else X, part))))
            start += rates.size
        return jnp.concatenate(parts)

    def contraction(self, system):
        return jnp.sum(jnp.stack([jnp.sum(rates) for rates in self.rates]))

    def fastest(self):
        return jnp.max(jnp.stack([jnp.max(rates) for rates in self.rates]))


class Factors(Friction):
    """Γ = A(q) A(q)ᵀ with few columns."""

    source: Callable = eqx.field(static=True)  # (system, q, t, kT, constant) ↦ A (n, r)
    constant: Float[Array, "n r"] | None
    columns: int = eqx.field(static=True)
    formula: str = eqx.field(static=True)

    @property
    def rank(self):
        return self.columns

    @property
    def words(self):
        return self.formula

    def factors(self, system: System, q: Point, t, kT) -> Float[Array, "n r"]:
        A = self.source(system, q, t, kT, self.constant)
        if not system.constraints:
            return A
        a = rest(system, q, t)
        return jax.vmap(lambda column: along(system, q, a + column, t) - a, in_axes=1, out_axes=1)(A)

    def relax(self, system, q, p, h, t, kT, z):
        A = self.factors(system, q, t, kT)
        masses = system.mass_cells(q, t)
        inverse = newton.factor_blocks(masses, system.cells)
        K = h * (A.T @ jax.vmap(inverse, in_axes=1, out_axes=1)(A))
        space, flat = system.space, system.space.flatten(p)
        v = inverse(flat - rest(system, q, t))
        relaxed, spread = small.functions((relaxation, _spread), K)
        return space.unflatten(flat + A @ (jnp.sqrt(2 * kT * h) * (spread @ z) - h * (relaxed @ (A.T @ v))))

    def drag(self, system, q, v, t, kT):
        A = self.factors(system, q, t, kT)
        return A @ (A.T @ v)


class Slopes(Factors):
    """Γ = (1/2kT) Σ dγ_i ⊗ dγ_i, of the system's own stochastic potentials: many columns, each of few bodies."""

    def drag(self, system, q, v, t, kT):
        if system.constraints or system.random_forces:
            return super().drag(system, q, v, t, kT)
        space, zero = system.space, system.space.zero(system.dtype)
        gamma = lambda e: system.noise(space.nudge(q, e), t)
        rates = jax.jvp(gamma, (zero,), (space.unflatten(v),))[1]  # dγ_i·v: no matrix is made, so pairs stay loops
        return space.flatten(jax.vjp(gamma, zero)[1](rates)[0]) / (2 * kT)


def relaxation(x):
    """φ(x) = (1 − e^{−x})/x."""
    near = x < 1e-3
    far = jnp.where(near, 1.0, x)
    return jnp.where(near, 1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6)))), -jnp.expm1(-far) / far)


def _spread(x):
    return jnp.sqrt(relaxation(2 * x))


def _times(X, w):
    return X * w if X.ndim == w.ndim else jnp.einsum("...ij,...j->...i", X, w)


def rest(system: System, q: Point, t) -> Vector:
    """a = ∂L/∂v at v = 0."""
    return system.space.flatten(system.momentum(q, system.space.zero(system.dtype), t))


def along(system: System, q: Point, p: Vector, t) -> Vector:
    """The momentum without its part against the constraints."""
    if not system.constraints:
        return p
    return system.space.flatten(constraint.project(system, q, system.space.unflatten(p), t)[0])
