"""Friction, and the noise that balances it at temperature kT, with q held fixed.

    dp = −Γ v dt + B dW,   B Bᵀ = 2kT Γ        ⟹        p ← a + E (p − a) + N(0, kT (M − E M Eᵀ)),    E = exp(−h Γ M⁻¹)

a = ∂L/∂v at rest. The flow is exact, whatever h. Three ways to write the same law, by what is known of Γ and M:

    ModalFriction      both constant:     M = X Xᵀ, Γ = X Λ Xᵀ;       X⁻¹p relaxes component by component
    UniformFriction    Γ = rate · M(q):   E = e^{−rate h}
    FactoredFriction   Γ = A(q) A(q)ᵀ:    K = AᵀM⁻¹A is r × r,   p ← p − h A φ(hK) Aᵀv + √(2kT h) A φ(2hK)^{1/2} z,    φ(x) = (1 − e^{−x})/x

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

from bismut.body_loops import each
from bismut.mechanics import constraint, newton, small_linalg
from bismut.mechanics.directional import along
from bismut.mechanics.friction.attenuation import Loss, decay_and_variance, matrix_functions
from bismut.mechanics.start import mass_root
from bismut.mechanics.system import System
from bismut.programs.evaluation import evaluate
from bismut.spaces import Point, Power, Space, Velocity
from bismut.tracing import traced

Vector = Float[Array, " n"]


class Friction(eqx.Module):
    """A law of friction."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """How many standard normals drive one relaxation."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What kind of friction it is."""

    @abstractmethod
    def relax(self, system: System, q: Point, p: Velocity, h, t, kT, z: Float[Array, " r"], loss: Loss | None = None) -> Velocity:
        """The momentum after a time h in contact with the bath, exactly, or as φ says (`attenuation`)."""

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

    @property
    def uniform(self) -> bool:
        """Whether evidently Γ = rate · M."""
        return False

    def rate_of_all(self) -> Float[Array, ""]:
        """That rate, where it is one."""
        raise NotImplementedError

    def volume(self, system: System, h, loss: Loss) -> Float[Array, ""] | None:
        """The factor by which a contact changes phase volume, Π c(hλ), where it is the same everywhere."""
        del system, h, loss
        return None


class NoFriction(Friction):
    """No bath at all."""

    @property
    def rank(self):
        return 0

    @property
    def description(self):
        return "no friction"

    def relax(self, system, q, p, h, t, kT, z, loss=None):
        return p

    def drag(self, system, q, v, t, kT):
        return jnp.zeros_like(v)

    def contraction(self, system):
        return jnp.zeros((), system.dtype)

    @property
    def uniform(self):
        return True

    def rate_of_all(self):
        return jnp.zeros(())

    def volume(self, system, h, loss):
        return jnp.ones((), system.dtype)


class UniformFriction(Friction):
    """Γ = rate · M(q)."""

    rate: Float[Array, ""]
    dim: int = eqx.field(static=True)

    @property
    def rank(self):
        return self.dim

    @property
    def description(self):
        return "Γ = rate · M(q)"

    def relax(self, system, q, p, h, t, kT, z, loss=None):
        space, a = system.space, momentum_at_rest(system, q, t)
        spread = space.flatten(mass_root(system, q, space.unflatten(z), t))
        decay, variance = decay_and_variance(loss, self.rate * h)
        flat = a + decay * (space.flatten(p) - a) + jnp.sqrt(kT * variance) * spread
        return system.space.unflatten(project_momentum(system, q, flat, t))

    def drag(self, system, q, v, t, kT):
        return self.rate * (system.space.flatten(system.momentum(q, system.space.unflatten(v), t)) - momentum_at_rest(system, q, t))

    def contraction(self, system):
        return self.rate * system.freedom

    def fastest(self):
        return self.rate

    @property
    def uniform(self):
        return True

    def rate_of_all(self):
        return self.rate

    def volume(self, system, h, loss):
        return decay_and_variance(loss, h * self.rate)[0] ** system.freedom


class Relaxation(NamedTuple):
    """p ← X E X⁻¹ p + X S z for one array of p, what is constant in it: E = c(hΛ), e^{−hΛ} if exact, S = √(kT(1 − E²)).

    A diagonal X drops out of the first term and is part of S in the second; it and X⁻¹ are None then.
    """

    decay: Float[Array, ...]
    spread: Float[Array, ...]
    X: Float[Array, ...] | None
    inverse: Float[Array, ...] | None

    @classmethod
    def of(cls, rates, X, inverse, h, kT, loss: Loss | None) -> Relaxation:
        decay, variance = decay_and_variance(loss, h * rates)
        spread = jnp.sqrt(kT * variance)
        return cls(decay, X * spread, None, None) if X.ndim == rates.ndim else cls(decay, spread, X, inverse)

    def shaped(self, shape: tuple[int, ...]) -> Relaxation:
        """For an array of p of another shape with as many numbers."""
        square = (*shape, shape[-1]) if shape else shape
        reshaped = lambda part: None if part is None else part.reshape(square)
        return Relaxation(self.decay.reshape(shape), self.spread.reshape(shape), reshaped(self.X), reshaped(self.inverse))

    def __call__(self, p, z):
        if self.X is None or self.inverse is None:
            return self.decay * p + self.spread * z
        return _times(self.X, self.decay * _times(self.inverse, p) + self.spread * z)


class ModalFriction(Friction):
    """Constant Γ and M. One entry per run of equal blocks: rates Λ (count, size), and X, X⁻¹ (count, size, size) or their diagonals (count, size)."""

    rates: list[Float[Array, ...]]
    X: list[Float[Array, ...]]
    inverse: list[Float[Array, ...]]
    driven: tuple[int, ...] = eqx.field(static=True)  # components whose rate is not zero

    @property
    def rank(self):
        return len(self.driven)

    @property
    def description(self):
        return "constant Γ and M, relaxed mode by mode"

    def relax(self, system, q, p, h, t, kT, z, loss=None):
        space, n = system.space, system.space.dim
        z = z if self.rank == n else jnp.zeros(n, z.dtype).at[np.array(self.driven, int)].set(z)
        if system.constant_mass and len(self.rates) == len(jax.tree.leaves(p)):  # at rest there is no momentum
            return self._by_bodies(space, p, h, kT, space.unflatten(z), loss)
        a = momentum_at_rest(system, q, t)
        flat, parts, start = space.flatten(p) - a, [], 0
        for rates, X, inverse in zip(self.rates, self.X, self.inverse, strict=True):
            here = slice(start, start + rates.size)
            part = Relaxation.of(rates, X, inverse, h, kT, loss)(flat[here].reshape(rates.shape), z[here].reshape(rates.shape))
            parts.append(jnp.ravel(part))
            start += rates.size
        return space.unflatten(a + jnp.concatenate(parts))

    def _by_bodies(self, space: Space, p: Velocity, h, kT, z: Velocity, loss: Loss | None) -> Velocity:
        """Array by array, in one loop over bodies where there are some."""
        leaves, structure = jax.tree.flatten(p)
        modes = zip(self.rates, self.X, self.inverse, leaves, strict=True)
        laws = [Relaxation.of(rates, X, inverse, h, kT, loss).shaped(leaf.shape) for rates, X, inverse, leaf in modes]
        relax = lambda laws, p, z: [law(w, noise) for law, w, noise in zip(laws, p, z, strict=True)]
        arguments = laws, leaves, jax.tree.leaves(z)
        return structure.unflatten(each(relax, *arguments) if isinstance(space, Power) else relax(*arguments))

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
        return evaluate(lambda *every: jnp.max(jnp.stack([jnp.max(rates) for rates in every])), *self.rates)

    @property
    def uniform(self):
        if traced(self.rates):
            return len(self.rates) == self.rates[0].size == 1
        flat = np.concatenate([np.ravel(rates) for rates in self.rates])
        return bool(np.ptp(flat) <= 1e-12 * flat.max())

    def rate_of_all(self):
        return self.rates[0].ravel()[0]

    def volume(self, system, h, loss):
        return jnp.prod(jnp.stack([jnp.prod(decay_and_variance(loss, h * rates)[0]) for rates in self.rates]))


class FactoredFriction(Friction):
    """Γ = A(q) A(q)ᵀ with few columns."""

    source: Callable = eqx.field(static=True)  # (system, q, t, kT, constant) ↦ A (n, r)
    constant: Float[Array, "n r"] | None
    columns: int = eqx.field(static=True)
    formula: str = eqx.field(static=True)

    @property
    def rank(self):
        return self.columns

    @property
    def description(self):
        return self.formula

    def factors(self, system: System, q: Point, t, kT) -> Float[Array, "n r"]:
        A = self.source(system, q, t, kT, self.constant)
        if not system.constraints:
            return A
        a = momentum_at_rest(system, q, t)
        return jax.vmap(lambda column: project_momentum(system, q, a + column, t) - a, in_axes=1, out_axes=1)(A)

    def relax(self, system, q, p, h, t, kT, z, loss=None):
        A = self.factors(system, q, t, kT)
        masses = system.mass_cells(q, t)
        inverse = newton.factor_blocks(masses, system.cells)
        K = h * (A.T @ jax.vmap(inverse, in_axes=1, out_axes=1)(A))
        space, flat = system.space, system.space.flatten(p)
        v = inverse(flat - momentum_at_rest(system, q, t))
        relaxed, spread = small_linalg.functions(matrix_functions(loss), K)
        return space.unflatten(flat + A @ (jnp.sqrt(2 * kT * h) * (spread @ z) - h * (relaxed @ (A.T @ v))))

    def drag(self, system, q, v, t, kT):
        A = self.factors(system, q, t, kT)
        return A @ (A.T @ v)


class OwnNoiseFriction(FactoredFriction):
    """Γ = (1/2kT) Σ dγ_i ⊗ dγ_i, of the system's own stochastic potentials: many columns, each of few bodies."""

    def drag(self, system, q, v, t, kT):
        if system.constraints or system.random_forces:
            return super().drag(system, q, v, t, kT)
        space, zero = system.space, system.space.zero(system.dtype)
        gamma = lambda e: system.noise(space.nudge(q, e), t)
        rates = along(gamma, (zero,), (space.unflatten(v),), system.noise_has_jvp)  # dγ_i·v: no matrix is made, so pairs stay loops
        return space.flatten(jax.vjp(gamma, zero)[1](rates)[0]) / (2 * kT)


def _times(X, w):
    return X * w if X.ndim == w.ndim else jnp.einsum("...ij,...j->...i", X, w)


def momentum_at_rest(system: System, q: Point, t) -> Vector:
    """a = ∂L/∂v at v = 0."""
    return system.space.flatten(system.momentum(q, system.space.zero(system.dtype), t))


def project_momentum(system: System, q: Point, p: Vector, t) -> Vector:
    """The momentum projected onto the tangent space of the constraints."""
    if not system.constraints:
        return p
    return system.space.flatten(constraint.project(system, q, system.space.unflatten(p), t)[0])
