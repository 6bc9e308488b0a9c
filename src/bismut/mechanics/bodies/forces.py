"""The user's own forces and torques in place of automatic differentiation.

    dU = −Σ_i F_i·dx_i − Σ_i τ_i·dφ_i,      dR_i = dφ̂_i R_i

They are attached to the potential as its derivative, so every scheme, exact or implicit, uses them wherever it would have differentiated U.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.errors import DomainError, ShapeError
from bismut.mechanics.bodies.terms import ManyBodyTerm, Potential, Term, Terms
from bismut.mechanics.function import Adapter, UserFunction, required_function
from bismut.spaces import SO3, Euclidean

FRAMES = ("space", "body")


def with_forces(potential: Callable, forces: Callable, frame: str = "space") -> Potential:
    """U with a given derivative: forces(x, R) returns (F, τ), both (K, 3).

    F_i = −∂U/∂x_i in the axes of space. τ_i is the torque on body i about its centre of mass, in the axes of space, or in those of the body with
    frame="body" (R_iᵀ times the former). May name t and parameters. The result adds to other potentials, and only its own part is taken from
    `forces`. Where a scheme needs second derivatives (Midpoint), `forces` is differentiated.
    """
    if frame not in FRAMES:
        raise DomainError(f'frame must be "space" or "body", the axes in which torques are given, got {frame!r}.')
    if potential is None or forces is None:
        raise ShapeError("forces need their potential as well, for the energy: potential=U with forces=F, both functions of (x, R).")
    U, own = required_function("potential", potential, ("x", "R")), required_function("forces", forces, ("x", "R"))
    value = lambda x, R, t, parameters: U(x, R, t=t, parameters=parameters)

    @jax.custom_jvp
    def energy(x, R, t, parameters):
        return value(x, R, t, parameters)

    def differential(primals, tangents):
        x, R, t, parameters = primals
        F, torque = checked(own(x, R, t=t, parameters=parameters), x)
        tau = torque if frame == "body" else jnp.einsum("kji,kj->ki", R, torque)
        out, rate = value(*primals), jnp.zeros((), x.dtype)
        dx, dR, *rest = tangents
        if not _still(dx):
            rate -= jnp.sum(F * dx)
        if not _still(dR):
            rate -= jnp.sum(tau * _turn(jnp.einsum("kji,kjl->kil", R, dR)))
        if not all(_still(leaf) for leaf in jax.tree.leaves(rest, is_leaf=_still)):
            moving = jax.tree.map(lambda d: jnp.zeros(d.shape, d.dtype) if _still(d) else d, rest, is_leaf=_still)
            rate += jax.jvp(lambda t, parameters: value(x, R, t, parameters), (t, parameters), tuple(moving))[1]
        return out, jnp.asarray(rate, out.dtype)

    energy.defjvp(differential, symbolic_zeros=True)
    time = lambda t, x: None if t is None else jnp.asarray(t, x.dtype)
    joined = Potential(_WithForces(U, own, lambda x, R, t, parameters: energy(x, R, time(t, x), parameters)), "potential with own forces")
    return joined.with_own_images(potential.boxes) if isinstance(potential, Potential) else joined


@dataclass(frozen=True, eq=False)
class _WithForces(Adapter):
    """An energy whose derivative is written by the user."""

    potential: UserFunction
    forces: UserFunction
    energy: Callable

    @property
    def periodic(self) -> bool:
        """Whether the energy sees images."""
        return getattr(self.potential.function, "periodic", False)

    def __call__(self, x, R, t=None, parameters=None):
        return self.energy(x, R, t, parameters)


def opened(terms: Terms) -> Terms:
    """The same values, with forces of one's own taken off: the terms beneath them, which know their box, their sites and their cutoffs."""
    beneath = [_beneath(part) for part in terms.parts]
    return terms._with([part for parts in beneath for part in parts], terms._name)


def _beneath(part: Term) -> tuple[Term, ...]:
    own = part.function.function if isinstance(part, ManyBodyTerm) else None
    if not isinstance(own, _WithForces) or not isinstance(own.potential.function, Terms):
        return (part,)
    inner = opened(own.potential.function).parts
    return inner if part.factor is None else tuple(one.scaled(part.factor) for one in inner)


def checked(result: Any, x):
    """(F, τ) of the right shapes, or an error that says which they are."""
    if not isinstance(result, tuple | list) or len(result) != 2 or any(np.shape(part) != x.shape for part in result):
        shapes = [np.shape(part) for part in result] if isinstance(result, tuple | list) else np.shape(result)
        raise ShapeError(f"forces must return (force, torque), both of shape {x.shape}, got {shapes}.")
    return tuple(jnp.asarray(part, x.dtype) for part in result)


def check_forces(potential: Callable, forces: Callable, q: Any, frame: str, t: Any, parameters: Any = None) -> None:
    """Raise unless forces(x, R) are minus the derivatives of the potential at q = (x, R) and t, to √ε of the largest of them."""
    x, R = (jnp.asarray(part) for part in q)
    plain, own = Potential(potential), required_function("forces", forces, ("x", "R"))
    configurations = (Euclidean(3) * SO3()) ** x.shape[0]
    slope = jax.grad(lambda e: plain(*configurations.nudge((x, R), e), t=t, parameters=parameters))(configurations.zero(x.dtype))
    F, body = (-np.asarray(part) for part in slope)
    space = np.einsum("kij,kj->ki", np.asarray(R), body)
    wanted = {"force": F, "torque": space if frame == "space" else body}
    returned = dict(zip(wanted, map(np.asarray, checked(own(x, R, t=t, parameters=parameters), x)), strict=True))
    for name, want in wanted.items():
        allowed = float(np.finfo(want.dtype).eps) ** 0.5 * max(np.abs(want).max(), np.abs(returned[name]).max())
        if not np.isfinite(want).all() or np.abs(returned[name] - want).max() <= allowed:
            continue
        worst = int(np.argmax(np.abs(returned[name] - want).max(1)))
        other = body if frame == "space" else space
        hint = "F = −∂U/∂x." if name == "force" else f'Torques are about centres of mass, in the axes of "{frame}".'
        if np.allclose(returned[name], -want, rtol=0, atol=allowed):
            hint = "They have the wrong sign."
        elif name == "torque" and np.allclose(returned[name], other, rtol=0, atol=allowed):
            right = "body" if frame == "space" else "space"
            hint = f'They are torques in the axes of "{right}": say torque_frame="{right}".'
        raise DomainError(
            f"forces do not match the potential: at a random point the {name} on body {worst} should be {want[worst]}, from the derivative of the "
            f"potential, got {returned[name][worst]}. {hint}"
        )


def _still(tangent) -> bool:
    return isinstance(tangent, jax.custom_derivatives.SymbolicZero)


def _turn(A):
    """The vectors of skew matrices (K, 3, 3); a symmetric part, which no motion on the group has, is left out."""
    return 0.5 * jnp.stack([A[:, 2, 1] - A[:, 1, 2], A[:, 0, 2] - A[:, 2, 0], A[:, 1, 0] - A[:, 0, 1]], -1)
