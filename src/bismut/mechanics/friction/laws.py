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

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bismut.mechanics import constraint, newton, small
from bismut.mechanics.scheme import mass_root
from bismut.mechanics.system import System
from bismut.spaces import Point

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
    def relax(self, system: System, q: Point, p: Vector, h, t, kT, z: Float[Array, " r"]) -> Vector:
        """The momentum, as one vector, after a time h in contact with the bath."""

    @abstractmethod
    def drag(self, system: System, q: Point, v: Vector, t, kT) -> Vector:
        """Γ v."""

    def contraction(self, system: System) -> Float[Array, ""] | None:
        """tr(Γ M⁻¹), the rate at which phase volume shrinks, where it is the same everywhere."""
        del system
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
        a = rest(system, q, t)
        p = a + jnp.exp(-self.rate * h) * (p - a) + jnp.sqrt(-kT * jnp.expm1(-2 * self.rate * h)) * mass_root(system, q, z)
        return along(system, q, p, t)

    def drag(self, system, q, v, t, kT):
        return self.rate * (system.space.flatten(system.momentum(q, system.space.unflatten(v), t)) - rest(system, q, t))

    def contraction(self, system):
        return self.rate * system.freedom


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
        n = system.space.dim
        z = z if self.rank == n else jnp.zeros(n, p.dtype).at[np.array(self.driven, int)].set(z)
        a = rest(system, q, t)
        parts, start = [], 0
        for rates, X, inverse in zip(self.rates, self.X, self.inverse, strict=True):
            here = slice(start, start + rates.size)
            w, noise = _times(inverse, (p - a)[here].reshape(rates.shape)), z[here].reshape(rates.shape)
            new = jnp.exp(-h * rates) * w + jnp.sqrt(-kT * jnp.expm1(-2 * h * rates)) * noise
            parts.append(jnp.ravel(_times(X, new)))
            start += rates.size
        return a + jnp.concatenate(parts)

    def drag(self, system, q, v, t, kT):
        parts, start = [], 0
        for rates, X in zip(self.rates, self.X, strict=True):
            part = v[start : start + rates.size].reshape(rates.shape)
            parts.append(jnp.ravel(_times(X, rates * _times(jnp.swapaxes(X, -1, -2) if X.ndim == 3 else X, part))))
            start += rates.size
        return jnp.concatenate(parts)

    def contraction(self, system):
        return jnp.sum(jnp.stack([jnp.sum(rates) for rates in self.rates]))


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
        inverse = lambda y: newton.solve_blocks(masses, y, system.cells)
        K = h * (A.T @ jax.vmap(inverse, in_axes=1, out_axes=1)(A))
        v = inverse(p - rest(system, q, t))
        relaxed, spread = small.functions((relaxation, _spread), K)
        return p + A @ (jnp.sqrt(2 * kT * h) * (spread @ z) - h * (relaxed @ (A.T @ v)))

    def drag(self, system, q, v, t, kT):
        A = self.factors(system, q, t, kT)
        return A @ (A.T @ v)


def relaxation(x):
    """φ(x) = (1 − e^{−x})/x."""
    near = x < 1e-3
    far = jnp.where(near, 1.0, x)
    return jnp.where(near, 1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6)))), -jnp.expm1(-far) / far)


def _spread(x):
    return jnp.sqrt(relaxation(2 * x))


def _times(X, w):
    return X * w if X.ndim == w.ndim else jnp.einsum("cij,cj->ci", X, w)


def rest(system: System, q: Point, t) -> Vector:
    """a = ∂L/∂v at v = 0."""
    return system.space.flatten(system.momentum(q, system.space.zero(system.dtype), t))


def along(system: System, q: Point, p: Vector, t) -> Vector:
    """The momentum without its part against the constraints."""
    if not system.constraints:
        return p
    return system.space.flatten(constraint.project(system, q, system.space.unflatten(p), t)[0])
