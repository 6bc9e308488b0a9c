"""Lie–Poisson systems: mechanics after reduction by symmetry.

    dμ = ad*_ξ μ + F,   da = −ξ·a,        ξ = ∂H/∂μ dt + Σ ∂H_i/∂μ ∘ dW_i,     ⟨F, η⟩ = ⟨∂H/∂a, η·a⟩ dt + Σ ⟨∂H_i/∂a, η·a⟩ ∘ dW_i

H(μ, a) and the noises H_i(μ, a) live on 𝔤* and on what the group advects: the body momentum of a free body, a heavy top with the vertical seen from
it, a vehicle in a fluid, vorticity. On so(3) ad*_ξ μ = μ × ξ and −ξ·a = a × ξ. Every path stays on its coadjoint orbit, so Casimirs are kept whatever
H, the noise and the step are. A system of this kind is a `System` in phase space with q = a and p = μ (`spaces/dual.py`): its schemes are those of
phase space, HamiltonianMidpoint above all, and they are the reduction of themselves on T*G.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from bismut.errors import BismutError, ShapeError
from bismut.mechanics.function import Adapter, UserFunction, required_function
from bismut.mechanics.symmetry import Symmetry
from bismut.mechanics.system import System
from bismut.spaces import SE2, SE3, SO2, SO3, Dual, Group


@dataclass(frozen=True)
class ReducedFunction(Adapter):
    """f(μ) or f(μ, a) as a function of the state (a, μ)."""

    inner: UserFunction
    advected: bool

    def __call__(self, q, p, t=None, parameters=None):
        return self.inner(*((p, q) if self.advected else (p,)), t=t, parameters=parameters)


def LiePoisson(
    algebra: Any,
    hamiltonian: Callable,
    noise: Callable | None = None,
    *,
    advected: int | tuple[int, ...] | None = None,
    act: Callable | None = None,
    casimirs: Mapping[str, Callable] | None = None,
    symmetries: Mapping[str, Symmetry] | None = None,
    parameters: Any = None,
    precision: str = "float64",
) -> System:
    """A system on the dual of a Lie algebra, and on what its group advects. States hold μ as p, and a as q.

    algebra      SO3(), SE2(), SE3(), or one of so(n), sl(n), su(n), matrix_algebra(...), structure_constants(...)
    hamiltonian  H(μ), or H(μ, a) where something is advected: one number
    noise        H_i(μ) or H_i(μ, a), one value per Wiener process, as one array
    advected     how many vectors the group acts on, 1 for a (3,) on SO3(); or the shape of a, with `act`
    act          (g, a) ↦ g⁻¹·a, for quantities that are not vectors
    casimirs     names and functions of (μ) or (μ, a) that the bracket makes invariant, in addition to the known ones
    symmetries   as for System; right_rotation(axis) has the momentum map axis·μ
    parameters   numbers passed to the functions that name an argument `parameters`
    """
    if not isinstance(algebra, Group):
        raise BismutError(f"LiePoisson needs a group or an algebra such as SO3() or su(3), got {type(algebra).__name__}.")
    space = Dual(algebra, _shape(algebra, advected, act), act)
    moved = space.shape is not None
    arguments = ("mu", "a") if moved else ("mu",)
    of_state = lambda name, function: ReducedFunction(required_function(name, function, arguments), moved)
    known = _known_casimirs(space) | dict(casimirs or {})
    return System(
        space,
        hamiltonian=None if hamiltonian is None else of_state("hamiltonian", hamiltonian),
        noise_hamiltonian=None if noise is None else of_state("noise", noise),
        symmetries=symmetries,
        invariants={name: of_state(f"casimirs[{name!r}]", function) for name, function in known.items()},
        parameters=parameters,
        precision=precision,
    )


def _shape(algebra: Group, advected: Any, act: Callable | None) -> tuple[int, ...] | None:
    if advected is None:
        if act is not None:
            raise BismutError("act defines how the group moves advected quantities, but advected= is missing. Give their shape.")
        return None
    if isinstance(advected, tuple | list):
        return tuple(int(n) for n in advected)
    if isinstance(advected, bool) or not isinstance(advected, int | np.integer) or advected < 1:
        raise ShapeError(f"advected must be a number of vectors ≥ 1, or a shape such as (3,), got {advected!r}.")
    size = {SO2: 2, SE2: 2, SO3: 3, SE3: 3}.get(type(algebra))
    if size is None:
        raise BismutError(f"{algebra} has no vectors of its own. Give the shape of what is advected, and act=(g, a) ↦ g⁻¹·a.")
    return (size,) if advected == 1 else (int(advected), size)


def _square(mu):
    return mu @ mu


def _linear(mu):
    """P of a momentum (Π, P)."""
    return mu[1:] if mu.shape[0] == 3 else mu[3:]


def _products(mu, a):
    rows = jnp.atleast_2d(a)
    return (rows @ rows.T)[np.triu_indices(len(rows))]


def _known_casimirs(space: Dual) -> dict[str, Callable]:
    group, rigid = space.group, isinstance(space.group, SE2 | SE3)
    if space.shape is None:
        if isinstance(group, SO3):
            return {"mu_mu": _square}
        pitch: dict[str, Callable] = {"Pi_P": lambda mu: mu[:3] @ mu[3:]} if isinstance(group, SE3) else {}
        return {"P_P": lambda mu: _linear(mu) @ _linear(mu)} | pitch if rigid else dict(getattr(group, "casimirs", {}))
    if space.act is not None:
        return {}
    if rigid:
        return {"P_P": lambda mu, a: _linear(mu) @ _linear(mu), "P_a": lambda mu, a: a @ _linear(mu), "a_a": _products}
    return {"mu_a": lambda mu, a: a @ mu, "a_a": _products} if isinstance(group, SO3) and len(space.shape) == 1 else {"a_a": _products}
