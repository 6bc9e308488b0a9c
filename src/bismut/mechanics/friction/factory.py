"""The friction law that follows from what a user gives.

    nothing          the system's own γ_i are the bath:  B = dγ
    rate             Γ = rate · M
    numbers          per coordinate, axis or body; matrices, perhaps singular
    a function       B(q), factors with Γ = BBᵀ/2kT

Where Γ and M are constant and there are no constraints, both are diagonalised together, once (`ModalFriction`). Under constraints, numbers that are
a rate times the masses are that rate: it costs one projection, where another friction has an eigenproblem of all its columns at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from bismut.errors import BismutError, BismutWarning, DomainError, ShapeError
from bismut.mechanics import small_linalg
from bismut.mechanics.covectors import noise_covectors
from bismut.mechanics.friction.laws import FactoredFriction, Friction, ModalFriction, NoFriction, OwnNoiseFriction, UniformFriction
from bismut.mechanics.function import UserFunction, required_function
from bismut.mechanics.mechanical import Coefficient, check_coefficient, coefficients
from bismut.mechanics.system import System
from bismut.precision import cast
from bismut.programs.dependence import depends
from bismut.programs.evaluation import evaluate
from bismut.tracing import traced
from bismut.user_errors import reason_of, warn


def friction_of(system: System, friction: Any, rate: Any) -> Friction:
    """The law for what was given: nothing (the system's own γ_i), a rate, numbers, matrices, or a function B(q)."""
    if friction is not None and rate is not None:
        raise BismutError("Give friction= (F = −Γ v) or rate= (Γ = rate · M), not both.")
    if rate is not None:
        return _uniform(system, rate)
    if friction is None:
        return own_noise_friction(system)
    if callable(friction):
        return _from_function(system, friction)
    _check_numbers("friction", friction)
    return _from_numbers(system, friction)


def own_noise_friction(system: System) -> OwnNoiseFriction:
    """Γ = (1/2kT) Σ dγ_i ⊗ dγ_i, from the system's own stochastic potentials."""
    if not system.channels:
        raise BismutError("This system has no stochastic potentials for a friction to balance. Give friction= or rate=, or noise= to the system.")
    if system.kick_sees_velocity:
        raise BismutError("No friction −Γ(q) v balances a random force that depends on the velocity. Give friction= or rate= for the bath.")
    if system.random_forces:
        return OwnNoiseFriction(_slopes, None, system.channels, f"Γ = (1/2kT) Σ F_i ⊗ F_i from {system.channels} noises")
    return OwnNoiseFriction(_slopes, None, system.channels, f"Γ = (1/2kT) Σ dγ_i ⊗ dγ_i from {system.channels} stochastic potentials")


def _slopes(system, q, t, kT, constant):
    """dγ/√(2kT), and F/√(2kT) of random forces."""
    return noise_covectors(system, q, t).T / jnp.sqrt(2 * kT)


def _constant(system, q, t, kT, constant):
    return constant


@dataclass(frozen=True)
class _UserFactors:
    """B(q)/√(2kT), from a function of the user."""

    B: UserFunction

    def __call__(self, system, q, t, kT, constant):
        leaves = jax.tree.leaves(self.B(q, t=t, parameters=system.parameters))
        return jnp.concatenate([leaf.reshape(-1, leaf.shape[-1]) for leaf in leaves]) / jnp.sqrt(2 * kT)


def _check_numbers(name: str, value: Any) -> None:
    """Refuse what holds no numbers; most often a quantity with its unit."""
    if any(isinstance(leaf, str | bytes) or leaf is None for leaf in jax.tree.leaves(value, is_leaf=lambda leaf: leaf is None)):
        raise DomainError(f"{name} must be numbers, got {value!r}. A quantity becomes one with bm.units.molecular.reduced('1 / ps').")


def _uniform(system: System, rate) -> Friction:
    if not isinstance(rate, Tracer):
        _check_numbers("rate", rate)
        if np.shape(rate) != ():
            raise ShapeError(f"rate must be one number, the same for everything, got shape {np.shape(rate)}. Use friction= for different rates.")
        check_coefficient(np.asarray(rate, float), False, "rate", positive=False)
        if rate == 0:
            return NoFriction()
    rate = cast(rate, system.dtype)
    if system.constraints or not _constant_mass(system):
        return UniformFriction(rate, system.space.dim)
    masses = _constant_masses(system)
    return _modes(evaluate(lambda rate, masses: [rate * m for m in masses], rate, masses), masses, system)


def _from_function(system: System, friction: Callable) -> FactoredFriction:
    source = _UserFactors(required_function("friction", friction, ("q",)))
    one = jnp.ones((), system.dtype)
    try:
        shape = jax.eval_shape(lambda q: source(system, q, one, one, None), system.space.origin(system.dtype)).shape
    except Exception as problem:
        raise ShapeError(
            f"friction(q) must return factors B(q), one array (n, r) or arrays (..., r) as in a velocity: {reason_of(problem)}."
        ) from problem
    if shape[0] != system.space.dim:
        raise ShapeError(f"friction(q) must return factors B(q) with {system.space.dim} rows on {system.space}, got shape {shape}.")
    _check_sign(system, lambda q: source(system, q, one, 0.5 * one, None), shape)
    return FactoredFriction(source, None, shape[1], f"Γ = B(q) B(q)ᵀ/2kT with {shape[1]} columns")


def _check_sign(system: System, factors: Callable, shape: tuple[int, ...]) -> None:
    """Refuse symmetric factors with a negative eigenvalue: BBᵀ does not depend on the sign, so Γ itself was meant, and −1 would act as +1.

    (Factors that are not symmetric are as good as any: triangular ones, derivatives of several potentials, axes that turn.)
    """
    if shape[0] != shape[1]:
        return
    for seed in range(3):
        q = jax.tree.map(lambda leaf: jnp.asarray(leaf, system.dtype), evaluate(lambda seed=seed: system.space.random(jax.random.key(seed))))
        B = factors(q)
        if isinstance(B, Tracer):
            return
        smallest = np.linalg.eigvalsh(np.asarray(B)).min() if np.allclose(B, np.swapaxes(B, 0, 1)) else 0.0
        if smallest < -1e-12 * np.abs(B).max():
            raise DomainError(
                f"friction(q) must return factors B(q) of a friction Γ = B(q) B(q)ᵀ/2kT ≥ 0, got a symmetric matrix with eigenvalue {smallest:.3g}, "
                "whose sign would have no effect. If Γ(q) itself was meant, return jnp.linalg.cholesky(2 kT Γ(q)); it cannot be negative."
            )


def _from_numbers(system: System, friction) -> Friction:
    space, n = system.space, system.space.dim
    several = len(jax.tree.leaves(jax.eval_shape(space.zero))) > 1
    if several and not isinstance(friction, tuple | list) and np.shape(friction) == (n, n):
        check_coefficient(np.asarray(friction, float), True, "friction", positive=False)
        numbers, shapes = [Coefficient(jnp.asarray(friction, system.dtype), True)], [(n,)]
    else:
        numbers = coefficients(space, friction, "friction", system.dtype, positive=False)
        shapes = [leaf.shape for leaf in jax.tree.leaves(jax.eval_shape(space.zero))]
    if all(not isinstance(one.value, Tracer) and not np.any(one.value) for one in numbers):
        return NoFriction()
    blocks = [_as_blocks(one, shape) for one, shape in zip(numbers, shapes, strict=True)]
    if _constant_mass(system):
        masses = evaluate(lambda: _constant_masses(system))
        if not system.constraints:
            return _modes(blocks, masses, system)
        if (rate := _rate_of_all(blocks, masses)) is not None:
            return UniformFriction(cast(rate, system.dtype), n)
    # Γ = A Aᵀ with one column per direction in which there is friction.
    roots = [np.linalg.eigh(np.asarray(_full(block))) for block in blocks]
    A = np.zeros((n, n))
    start = 0
    for values, Q in roots:
        size = len(values)
        A[start : start + size, start : start + size] = Q * np.sqrt(np.maximum(values, 0.0))
        start += size
    A = A[:, np.abs(A).max(0) > 1e-14 * np.abs(A).max()]
    if system.constraints and A.shape[1] > small_linalg.LARGEST_BY_ROUNDS:
        warn(
            f"This friction is no rate times the masses, and there are constraints: every step needs the eigenvectors of {A.shape[1]} × {A.shape[1]} "
            "numbers, for which there is no machine code. rate= relaxes all momenta alike, at a cost proportional to the number of bodies.",
            BismutWarning,
        )
    return FactoredFriction(_constant, jnp.asarray(A, system.dtype), A.shape[1], f"constant Γ of rank {A.shape[1]}")


def _as_blocks(one: Coefficient, shape: tuple[int, ...]) -> Float[Array, "count size size"]:
    """The friction of one array as matrices on the diagonal: of size 1, or of the size of the last axis."""
    if one.matrix:
        return one.value.reshape(-1, *one.value.shape[-2:])
    return evaluate(lambda value: jnp.broadcast_to(value, shape).reshape(-1, 1, 1), one.value)


def _full(blocks: Float[Array, "count size size"]) -> Float[Array, "n n"]:
    count, size, _ = blocks.shape
    spread = lambda blocks: jnp.einsum("cij,cd->cidj", blocks, jnp.eye(count, dtype=blocks.dtype)).reshape(count * size, count * size)
    return evaluate(spread, blocks)


def _constant_mass(system: System) -> bool:
    """Whether ∂²L/∂v² evidently does not depend on q, on time or on parameters."""
    varied = (jax.eval_shape(lambda: system.space.origin(system.dtype)), system.parameters, jax.ShapeDtypeStruct((), system.dtype))
    return not depends(lambda varied: system.with_parameters(varied[1]).mass_cells(varied[0], varied[2]), varied)


def _constant_masses(system: System) -> list:
    """The blocks of a constant mass: whatever the point and the time."""
    zero = lambda: jnp.zeros((), system.dtype)
    return evaluate(lambda parameters: system.with_parameters(parameters).mass_cells(system.space.origin(system.dtype), zero()), system.parameters)


def _rate_of_all(frictions: list, masses: list) -> float | None:
    """The number c with Γ = c M, if there evidently is one."""
    if traced(frictions, masses) or len(frictions) != len(masses):
        return None
    pairs = [(np.asarray(friction), np.asarray(mass)) for friction, mass in _common_blocks(frictions, masses)]
    rate = float(pairs[0][0][0, 0, 0] / pairs[0][1][0, 0, 0])
    alike = all(np.allclose(friction, rate * mass, rtol=1e-12, atol=1e-12 * rate * np.abs(mass).max()) for friction, mass in pairs)
    return rate if alike else None


def _modes(frictions: list, masses: list, system: System) -> ModalFriction:
    """X and Λ with M = X Xᵀ and Γ = X Λ Xᵀ: the mass is factored, the friction diagonalised in it."""
    modes = [evaluate(_diagonalised, friction, mass) for friction, mass in _common_blocks(frictions, masses)]
    rates, roots, inverses = (cast([one[k] for one in modes], system.dtype) for k in range(3))
    if traced(rates):
        return ModalFriction(rates, roots, inverses, tuple(range(sum(r.size for r in rates))))
    flat = np.concatenate([np.ravel(r) for r in rates])
    return ModalFriction(rates, roots, inverses, tuple(map(int, np.flatnonzero(flat))))


def _diagonalised(friction, mass):
    """Λ, X and X⁻¹ of blocks of one size."""
    if friction.shape[-1] == 1:
        root = jnp.sqrt(mass[:, :, 0])
        return friction[:, :, 0] / mass[:, :, 0], root, 1 / root
    C = jnp.linalg.cholesky(mass)
    half = jax.vmap(jnp.linalg.solve)(C, friction)
    values, Q = jnp.linalg.eigh(jax.vmap(jnp.linalg.solve)(C, jnp.swapaxes(half, -1, -2)))
    X = C @ Q
    return jnp.maximum(jnp.where(values < 1e-13 * jnp.max(values), 0.0, values), 0.0), X, jnp.linalg.inv(X)


def _common_blocks(frictions: list, masses: list):
    """Both in blocks of a common size, one pair per run; diagonal ones in blocks of size 1."""
    if sum(f.shape[0] * f.shape[1] for f in frictions) != sum(m.shape[0] * m.shape[1] for m in masses):
        raise ShapeError("friction and mass do not cover the same degrees of freedom.")
    if len(frictions) != len(masses):
        joined = lambda parts: jax.scipy.linalg.block_diag(*[_full(part) for part in parts])[None]
        frictions, masses = [joined(frictions)], [joined(masses)]
    for friction, mass in zip(frictions, masses, strict=True):
        if _diagonal(friction) and _diagonal(mass):
            yield _column(friction), _column(mass)
            continue
        size = max(friction.shape[-1], mass.shape[-1])
        yield _grown(friction, size), _grown(mass, size)


def _diagonal(blocks) -> bool:
    if blocks.shape[-1] == 1:
        return True
    return not traced(blocks) and not np.any(np.asarray(blocks) * (1 - np.eye(blocks.shape[-1])))


def _column(blocks) -> Float[Array, "count 1 1"]:
    return evaluate(lambda blocks: jnp.ravel(jnp.diagonal(blocks, axis1=-2, axis2=-1)).reshape(-1, 1, 1), blocks)


def _grown(blocks, size: int) -> Float[Array, "count size size"]:
    """Blocks of size 1 as diagonal blocks of a larger size."""
    if blocks.shape[-1] == size:
        return blocks
    return evaluate(lambda blocks: jnp.ravel(blocks).reshape(-1, size)[:, :, None] * jnp.eye(size, dtype=blocks.dtype), blocks)
