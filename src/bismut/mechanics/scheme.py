"""What every way of stepping has in common: a system, claims about itself, and start states.

Claims are data. `verify` measures them, and the documentation quotes the measurement.
"""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import BismutError, DegenerateError, DomainError
from bismut.mechanics import newton
from bismut.mechanics.state import State
from bismut.mechanics.system import System
from bismut.noise import Index, Stream, Wiener
from bismut.precision import cast
from bismut.spaces import Point, Space, Velocity


class Claims(NamedTuple):
    """What a scheme says of itself; None where it says nothing."""

    order: float
    strong_order: float | None = 1.0
    symplectic: bool = False
    momentum_maps: bool = False


class Scheme(eqx.Module):
    """A system and a rule to advance it. Concrete schemes are actions or flows."""

    system: System
    claims: ClassVar[Claims]

    @property
    def space(self) -> Space:
        """The space, with the retraction this scheme moves by."""
        return self.system.space

    @property
    def channels(self) -> int:
        return self.system.channels

    def start(
        self,
        q: Point,
        *,
        velocity: Velocity | None = None,
        momentum: Velocity | None = None,
        temperature: float | None = None,
    ) -> "State | Maxwell":
        """A start state from a velocity or a momentum, or Maxwell momenta at kT = temperature, drawn afresh for each trajectory.

        Leading axes of q and velocity or momentum are a batch: one start per trajectory.
        """
        given = {"velocity": velocity, "momentum": momentum, "temperature": temperature}
        chosen = [name for name, value in given.items() if value is not None]
        if len(chosen) != 1:
            raise BismutError(f"start needs one of velocity=, momentum=, temperature=, but {' and '.join(chosen) or 'none'} came.")
        dtype = self.system.dtype
        batch = self.space.check(q, "start.q")
        q = cast(tuple(q) if isinstance(q, list) else q, dtype)
        if temperature is not None:
            return Maxwell(self.system, q, temperature)
        vector = cast(given[chosen[0]], dtype)
        batched = self.space.check_velocity(vector, f"start.{chosen[0]}")
        if batch and batched and batch != batched:
            raise BismutError(f"start.q has leading axes {batch}, but start.{chosen[0]} has {batched}.")
        full = batch or batched
        q, vector = _spread(q, full, batch), _spread(vector, full, batched)
        if momentum is not None:
            return State(q, vector)
        legendre = self.system.momentum
        for _ in full:
            legendre = jax.vmap(legendre)
        p = legendre(q, vector)
        if not all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(p)):
            raise DegenerateError("∂L/∂v is not finite at the start: the velocity lies outside the domain of the Lagrangian.")
        return State(q, p)


class Maxwell(eqx.Module):
    """Starts at rest points q with momenta from exp(−½⟨p, M⁻¹p⟩/kT), one draw per trajectory."""

    system: System
    q: Point
    temperature: Any

    def __init__(self, system: System, q: Point, temperature):
        if not np.all(np.isfinite(temperature)) or np.any(np.asarray(temperature) <= 0):
            raise DomainError(f"temperature must be positive and finite, but {temperature} came.")
        if not system.quadratic:
            raise BismutError("Maxwell momenta need a kinetic energy that is quadratic in the velocity. Give momentum= instead.")
        self.system, self.q = system, q
        self.temperature = jnp.asarray(temperature, system.dtype)

    def draw(self, path: Wiener, trajectory: Index, q: Point) -> State:
        """The start of one trajectory at a point q."""
        system = self.system
        normals = path.normals(trajectory, system.space.dim, Stream.start, system.dtype)
        return State(q, system.space.unflatten(jnp.sqrt(self.temperature) * mass_root(system, q, normals)))


def mass_root(system: System, q: Point, z):
    """C z with C Cᵀ = M(q), so that C z is a Maxwell momentum at kT = 1 for standard normal z."""
    space, zero = system.space, system.space.zero(system.dtype)
    push = lambda x: space.flatten(jax.jvp(lambda v: system.momentum(q, v), (zero,), (space.unflatten(x),))[1])
    parts, start = [], 0
    for matrix, (count, size) in zip(newton.blocks(push, system.cells, system.dtype), system.cells.runs, strict=True):
        part = z[start : start + count * size].reshape(count, size)
        parts.append(jnp.ravel(jnp.einsum("cij,cj->ci", jnp.linalg.cholesky(matrix), part)))
        start += count * size
    return jnp.concatenate(parts)


def _spread(tree, full: tuple[int, ...], own: tuple[int, ...]):
    return tree if own == full else jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*full, *leaf.shape)), tree)
