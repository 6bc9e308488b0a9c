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
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from bismut.errors import BismutError, ShapeError
from bismut.mechanics import constraint, newton, small
from bismut.mechanics.coefficients import Coefficient, check, coefficients
from bismut.mechanics.dependence import depends
from bismut.mechanics.law import law
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

    rates: list[Float[Array, "count size"]]
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


# How a user says it.


def friction_of(system: System, friction: Any, rate: Any) -> Friction:
    """The law for what was given: nothing (the system's own γ_i), a rate, numbers, matrices, or a function B(q)."""
    if friction is not None and rate is not None:
        raise BismutError("Give friction= (F = −Γ v) or rate= (Γ = rate · M), not both.")
    if rate is not None:
        return _uniform(system, rate)
    if friction is None:
        return own(system)
    if callable(friction):
        return _from_function(system, friction)
    return _from_numbers(system, friction)


def own(system: System) -> Factors:
    """Γ = (1/2kT) Σ dγ_i ⊗ dγ_i, from the system's own stochastic potentials."""
    if not system.channels:
        raise BismutError("This system has no stochastic potentials for a friction to balance. Give friction= or rate=, or noise= to the system.")

    def source(system, q, t, kT, constant):
        space = system.space
        slopes = jax.jacrev(lambda e: system.noise(space.nudge(q, space.unflatten(e)), t))(jnp.zeros(space.dim, system.dtype))
        return slopes.T / jnp.sqrt(2 * kT)

    return Factors(source, None, system.channels, f"Γ = (1/2kT) Σ dγ_i ⊗ dγ_i from {system.channels} stochastic potentials")


def _uniform(system: System, rate) -> Friction:
    if not isinstance(rate, Tracer):
        if np.shape(rate) != ():
            raise ShapeError(f"rate must be one number, the same for everything, but shape {np.shape(rate)} came. Use friction= for different ones.")
        check(np.asarray(rate, float), False, "rate", positive=False)
        if rate == 0:
            return Nothing()
    rate = jnp.asarray(rate, system.dtype)
    if system.constraints or not _constant_mass(system):
        return Uniform(rate, system.space.dim)
    masses = system.mass_cells(system.space.origin(system.dtype))
    return _modes([rate * m for m in masses], masses, system)


def _from_function(system: System, friction: Callable) -> Factors:
    B = law("friction", friction, ("q",))
    assert B is not None
    flat = lambda tree: jnp.concatenate([leaf.reshape(-1, leaf.shape[-1]) for leaf in jax.tree.leaves(tree)])

    def source(system, q, t, kT, constant):
        return flat(B(q, t=t, parameters=system.parameters)) / jnp.sqrt(2 * kT)

    one = jnp.ones((), system.dtype)
    try:
        shape = jax.eval_shape(lambda q: source(system, q, one, one, None), system.space.origin(system.dtype)).shape
    except Exception as problem:
        raise ShapeError(f"friction(q) must return factors B(q), one array (n, r) or arrays (..., r) as in a velocity: {problem}") from problem
    if shape[0] != system.space.dim:
        raise ShapeError(f"friction(q) must return factors B(q) with {system.space.dim} rows on {system.space}, but shape {shape} came.")
    return Factors(source, None, shape[1], f"Γ = B(q) B(q)ᵀ/2kT with {shape[1]} columns")


def _from_numbers(system: System, friction) -> Friction:
    space, n = system.space, system.space.dim
    several = len(jax.tree.leaves(jax.eval_shape(space.zero))) > 1
    whole = several and not isinstance(friction, tuple | list) and np.shape(friction) == (n, n)
    if whole:
        check(np.asarray(friction, float), True, "friction", positive=False)
        given = [Coefficient(jnp.asarray(friction, system.dtype), True)]
        shapes = [(n,)]
    else:
        given = coefficients(space, friction, "friction", system.dtype, positive=False)
        shapes = [leaf.shape for leaf in jax.tree.leaves(jax.eval_shape(space.zero))]
    if all(not isinstance(one.value, Tracer) and not np.any(one.value) for one in given):
        return Nothing()
    blocks = [_as_blocks(one, shape) for one, shape in zip(given, shapes, strict=True)]
    if _constant_mass(system) and not system.constraints:
        return _modes(blocks, system.mass_cells(space.origin(system.dtype)), system)
    # Γ = A Aᵀ with one column per direction in which there is friction.
    roots = [np.linalg.eigh(np.asarray(_full(block))) for block in blocks]
    A = np.zeros((n, n))
    start = 0
    for values, Q in roots:
        size = len(values)
        A[start : start + size, start : start + size] = Q * np.sqrt(np.maximum(values, 0.0))
        start += size
    A = A[:, np.abs(A).max(0) > 1e-14 * np.abs(A).max()]
    return Factors(lambda system, q, t, kT, constant: constant, jnp.asarray(A, system.dtype), A.shape[1], f"constant Γ of rank {A.shape[1]}")


def _as_blocks(one: Coefficient, shape: tuple[int, ...]) -> Float[Array, "count size size"]:
    """The friction of one array as matrices on the diagonal: of size 1, or of the size of the last axis."""
    if one.matrix:
        return one.value.reshape(-1, *one.value.shape[-2:])
    return jnp.broadcast_to(one.value, shape).reshape(-1, 1, 1)


def _full(blocks: Float[Array, "count size size"]) -> Float[Array, "n n"]:
    count, size, _ = blocks.shape
    return jnp.einsum("cij,cd->cidj", blocks, jnp.eye(count, dtype=blocks.dtype)).reshape(count * size, count * size)


def _constant_mass(system: System) -> bool:
    """Whether ∂²L/∂v² evidently does not depend on q, on time or on parameters."""
    one = jnp.ones((), system.dtype)
    varied = (system.space.origin(system.dtype), system.parameters, one)
    return not depends(lambda given: system.with_parameters(given[1]).mass_cells(given[0], given[2]), varied)


def _modes(frictions: list, masses: list, system: System) -> Modes:
    """X and Λ with M = X Xᵀ and Γ = X Λ Xᵀ: the mass is factored, the friction diagonalised in it."""
    rates, roots, inverses = [], [], []
    for friction, mass in _common_blocks(frictions, masses):
        if friction.shape[-1] == 1:
            root = jnp.sqrt(mass[:, :, 0])
            rates.append(friction[:, :, 0] / mass[:, :, 0])
            roots.append(root)
            inverses.append(1 / root)
            continue
        C = jnp.linalg.cholesky(mass)
        half = jax.vmap(jnp.linalg.solve)(C, friction)
        values, Q = jnp.linalg.eigh(jax.vmap(jnp.linalg.solve)(C, jnp.swapaxes(half, -1, -2)))
        X = C @ Q
        rates.append(jnp.maximum(jnp.where(values < 1e-13 * jnp.max(values), 0.0, values), 0.0))
        roots.append(X)
        inverses.append(jnp.linalg.inv(X))
    flat = jnp.concatenate([jnp.ravel(r) for r in rates])
    driven = tuple(range(flat.size)) if isinstance(flat, Tracer) else tuple(map(int, np.flatnonzero(np.asarray(flat))))
    return Modes([r.astype(system.dtype) for r in rates], roots, inverses, driven)


def _common_blocks(frictions: list, masses: list):
    """Both in blocks of a common size, one pair per run; diagonal ones in blocks of size 1."""
    if sum(f.shape[0] * f.shape[1] for f in frictions) != sum(m.shape[0] * m.shape[1] for m in masses):
        raise ShapeError("friction and mass do not cover the same degrees of freedom.")
    if len(frictions) != len(masses):
        whole = lambda parts: jax.scipy.linalg.block_diag(*[_full(part) for part in parts])[None]
        frictions, masses = [whole(frictions)], [whole(masses)]
    for friction, mass in zip(frictions, masses, strict=True):
        if _diagonal(friction) and _diagonal(mass):
            yield _column(friction), _column(mass)
            continue
        size = max(friction.shape[-1], mass.shape[-1])
        yield _grown(friction, size), _grown(mass, size)


def _diagonal(blocks) -> bool:
    if blocks.shape[-1] == 1:
        return True
    off = blocks * (1 - jnp.eye(blocks.shape[-1], dtype=blocks.dtype))
    return not isinstance(off, Tracer) and not np.any(np.asarray(off))


def _column(blocks) -> Float[Array, "count 1 1"]:
    return jnp.ravel(jnp.diagonal(blocks, axis1=-2, axis2=-1)).reshape(-1, 1, 1)


def _grown(blocks, size: int) -> Float[Array, "count size size"]:
    """Blocks of size 1 as diagonal blocks of a larger size."""
    if blocks.shape[-1] == size:
        return blocks
    return jnp.ravel(blocks).reshape(-1, size)[:, :, None] * jnp.eye(size, dtype=blocks.dtype)
