"""Many rigid bodies.

    L = Σ_i ½ M_i |v_i|² + ½ w_i·I_i w_i − U(x, R)        on (ℝ³ × SO(3))^K

with x_i the centre of mass of body i, R_i its orientation (from body axes to axes of space) and w_i its angular velocity in the body. The bodies
are arrays, x (K, 3) and R (K, 3, 3), and the kinetic energy falls into single coordinates and single bodies: explicit for positions, three
unknowns for the rotation of each body, and never a system of 6K equations.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from bismut.arguments import float_array
from bismut.errors import DomainError, ShapeError
from bismut.mechanics import validation
from bismut.mechanics.bodies import forces as own
from bismut.mechanics.bodies.terms import in_box
from bismut.mechanics.function import Adapter, UserFunction, required_function
from bismut.mechanics.mechanical import mechanical
from bismut.mechanics.symmetry import Symmetry
from bismut.mechanics.system import System
from bismut.precision import cast, cast_parameters, real_type
from bismut.programs.evaluation import evaluate
from bismut.spaces import SO3, Euclidean

_PROBE_TIME = 0.0  # at which forces are checked against the potential
_SINGULAR = 1e-12  # smallest over largest moment: below it a moment is the round-off of a zero


def rigid_bodies(
    *,
    mass: Any,
    inertia: Any,
    potential: Callable | None = None,
    forces: Callable | None = None,
    torque_frame: str = "space",
    check_forces: bool = True,
    noise: Callable | None = None,
    force: Callable | None = None,
    random_force: Callable | None = None,
    constraint: Callable | None = None,
    box: Any = None,
    symmetries: Mapping[str, Symmetry] | None = None,
    parameters: Any = None,
    precision: str = "float64",
    contact: Any = None,
) -> System:
    """K rigid bodies on (ℝ³ × SO(3))^K: q = (x, R) with arrays (K, 3) and (K, 3, 3), v = (velocities, body angular velocities), both (K, 3).

    mass          (K,)
    inertia       principal moments (K, 3), or matrices (K, 3, 3) about the centre of mass in body axes; `body(points, masses)` computes them
    potential     U(x, R), an energy: a function, or ready-made ones added up, as dipoles(...) + soft_spheres(...)
    forces        the derivatives of U, if you have them: forces(x, R) returns (force, torque), both (K, 3), forces in the axes of space, torques
                  about centres of mass in the axes of torque_frame, "space" or "body". Checked against U at a random point unless check_forces=False
    noise         γ(x, R), one value per Wiener process: a function, or translation_noise(...) + orientation_noise(...) + pair_noise(...)
    force         everything not in the potential: F((x, R), (v, w)) returns (forces in space, torques in the body)
    random_force  F_j((x, R), (v, w)) ∘ dW_j returns (forces in space, torques in the body), each with an extra leading axis
    constraint    g(x, R), one value per constraint, kept at zero: joints between bodies, anchors
    box           a periodic Box, in which pair terms of potential and noise see nearest images (a number: a cube); positions stay unwrapped
    contact       not available, and refused with advice
    symmetries, parameters, precision   as for System
    """
    validation.check_contact(contact)
    validation.check_constraint(constraint)
    mass, inertia = _inertia(mass, inertia)
    potential, noise = (in_box(name, given, box, 3) for name, given in (("potential", potential), ("noise", noise)))
    count, dtype = len(mass), real_type(precision)
    space = (Euclidean(3) * SO3()) ** count
    if forces is not None:
        if potential is None:
            raise ShapeError("forces need a potential too, for the energy: give potential=U(x, R) as well.")
        potential, plain = own.with_forces(potential, forces, torque_frame), potential
        if check_forces:
            own.check_forces(
                plain,
                forces,
                cast(evaluate(lambda: space.random(jax.random.key(0))), dtype),
                torque_frame,
                _PROBE_TIME,
                cast_parameters(parameters, dtype),
            )
    return mechanical(
        space,
        mass=(mass[:, None], inertia),
        potential=_of_bodies("potential", potential),
        noise=_of_bodies("noise", noise),
        force=force,
        random_force=random_force,
        constraint=_of_bodies("constraint", constraint),
        symmetries=symmetries,
        parameters=parameters,
        precision=precision,
    )


@dataclass(frozen=True)
class _OfBodies(Adapter):
    inner: UserFunction

    def __call__(self, q, t=None, parameters=None):
        return self.inner(*q, t=t, parameters=parameters)


def _of_bodies(name: str, function: Callable | None) -> Callable | None:
    """A function of (x, R) as a function of q = (x, R)."""
    return None if function is None else _OfBodies(required_function(name, function, ("x", "R")))


def _inertia(mass: Any, inertia: Any) -> tuple[np.ndarray, np.ndarray]:
    """Masses and inertias that some distribution of mass has, or an error that names the bodies that do not."""
    mass, inertia = float_array(mass, "mass"), float_array(inertia, "inertia")
    count = mass.shape[0] if mass.ndim == 1 else 0
    if count == 0 or inertia.shape not in ((count, 3), (count, 3, 3)):
        raise ShapeError(f"rigid_bodies needs mass (K,) and inertia (K, 3) or (K, 3, 3), got shapes {mass.shape} and {inertia.shape}.")
    if not (np.isfinite(mass).all() and np.isfinite(inertia).all() and (mass > 0).all()):
        raise DomainError(f"rigid_bodies needs positive masses and finite inertias, got mass {mass.tolist()} and inertia {inertia.tolist()}.")
    if inertia.ndim == 3 and not np.allclose(inertia, np.swapaxes(inertia, 1, 2)):
        raise DomainError(f"Inertia matrices are symmetric, got {inertia.tolist()}.")
    moments = inertia if inertia.ndim == 2 else np.linalg.eigvalsh(inertia)
    flat = moments.min(1) <= _SINGULAR * np.abs(moments).max(1)
    if flat.any():
        which = int(np.argmax(flat))
        raise DomainError(
            f"All three moments of inertia must be positive, but body {which} has {moments[which].tolist()}: turning about the axis of a zero "
            "moment costs nothing, so momentum does not determine velocity. Describe a linear molecule by its centre and a unit vector instead, "
            "mechanical(Euclidean(6), ...) with the constraint |u|² = 1, or give the thin axis a small moment of its own; a point mass needs no "
            "orientation: mechanical(Euclidean(3) ** K, ...)."
        )
    total = moments.sum(1)
    odd = total - 2 * moments.max(1) < -1e-9 * total
    if odd.any():
        which = int(np.argmax(odd))
        raise DomainError(
            f"Principal moments of inertia satisfy I₁ + I₂ ≥ I₃ for every order, but body {which} has {moments[which].tolist()}: no distribution "
            "of mass has them. body(points, masses) finds the moments of a point cloud."
        )
    return mass, inertia
