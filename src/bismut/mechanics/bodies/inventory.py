"""What is known of the bodies of a system, as plain numbers, which can be stored and shared without the system.

    q ↦ (x, R),      ∂²L/∂v² = (M 1, I),      I = A diag(I₁, I₂, I₃) Aᵀ

How a point holds positions and orientations is read off the space, masses off the kinetic energy, and the box off the pair terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.mechanics.bodies.box import Box
from bismut.mechanics.bodies.shapes import principal_axes
from bismut.mechanics.bodies.terms import Terms
from bismut.mechanics.kinetic import Quadratic
from bismut.mechanics.system import System
from bismut.spaces import SE2, SE3, SO2, SO3, Euclidean, Power, Product, Space

_SAME = 1e-12  # relative: matrices of mass that differ by less are equal


@dataclass(frozen=True)
class Inventory:
    """K bodies.

    kind      how a point holds them: points, bodies (x, R), disks (x, R in the plane), turning (R alone), motions (R, x), planar_motions
    plane     how many coordinates a position has
    count     K, along an axis of each array of a point; None for one body, which has no such axis
    mass      (K,), or None where ∂²L/∂v² is no mass: it varies, or differs between directions
    moments   principal moments (K, 3), of bodies that turn; in the plane (0, 0, I)
    axes      A (K, 3, 3), their axes in the frame of the body
    box       the periodic Box that pair terms see
    """

    kind: str
    plane: int
    count: int | None = None
    mass: np.ndarray | None = None
    moments: np.ndarray | None = None
    axes: np.ndarray | None = None
    box: Box | None = None

    @property
    def bodies(self) -> int:
        return self.count or 1

    @property
    def turns(self) -> bool:
        """Whether the bodies have an orientation."""
        return self.kind != "points"

    def data(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        arrays = {name: None if value is None else value.tolist() for name, value in self._arrays().items()}
        return {"kind": self.kind, "plane": self.plane, "count": self.count, **arrays, "box": None if self.box is None else list(self.box.lengths)}

    def _arrays(self) -> dict[str, np.ndarray | None]:
        return {"mass": self.mass, "moments": self.moments, "axes": self.axes}

    @staticmethod
    def of_data(data: Mapping[str, Any]) -> Inventory:
        """What `data` was made of."""
        arrays = {name: None if data[name] is None else np.asarray(data[name], float) for name in ("mass", "moments", "axes")}
        box = None if data["box"] is None else Box([float(side) for side in data["box"]])  # float("Infinity") is an open side
        return Inventory(data["kind"], int(data["plane"]), data["count"], **arrays, box=box)


def inventory(system: System) -> Inventory | None:
    """The bodies of a system; None if its points are no places of bodies, such as angles."""
    space, count = (system.space.base, system.space.count) if isinstance(system.space, Power) else (system.space, None)
    form = _form(space)
    if form is None:
        return None
    found = Inventory(*form, count, box=_box(system))
    masses = _masses(system)
    return found if masses is None else _weighed(found, masses)


def _form(space: Space) -> tuple[str, int] | None:
    match space:
        case Euclidean(n=1 | 2 | 3):
            return "points", space.n
        case Product(factors=(Euclidean(n=3), SO3())):
            return "bodies", 3
        case Product(factors=(Euclidean(n=2), SO2())):
            return "disks", 2
        case SO3():
            return "turning", 3
        case SE3():
            return "motions", 3
        case SE2():
            return "planar_motions", 2
    return None


def _masses(system: System) -> list[np.ndarray] | None:
    """∂²L/∂v², matrices (K, n, n) for each array of the velocity; None if they are not constant or couple the arrays."""
    several = isinstance(system.space, Power)
    shapes = [leaf.shape[1:] if several else leaf.shape for leaf in jax.tree.leaves(jax.eval_shape(system.space.zero))]
    kinetic = None if system._kinetic is None else system._kinetic.function
    if isinstance(kinetic, Quadratic):
        known = [np.asarray(leaf, float) for leaf in jax.tree.leaves(kinetic.masses)]
        known = known if several else [leaf[None] for leaf in known]
        return [_matrices(leaf, shape) for leaf, shape in zip(known, shapes, strict=True)]
    if several or not system.has_lagrangian or not system.quadratic:
        return None
    here, there = (np.asarray(system.mass(q), float) for q in (system.space.origin(system.dtype), system.space.random(jax.random.key(0))))
    sizes = [int(np.prod(shape)) for shape in shapes]
    ends = np.cumsum([0, *sizes])
    parts = [here[a:b, a:b][None] for a, b in pairwise(ends)]
    apart = np.asarray(jax.scipy.linalg.block_diag(*(jnp.asarray(part[0]) for part in parts)))
    return parts if _equal(here, there) and _equal(here, apart) else None


def _matrices(mass: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Masses of a velocity of that shape, (K, *shape) or already matrices, as (K, n, n)."""
    if mass.ndim > len(shape) + 1:
        return mass
    rows = mass.reshape(len(mass), -1)
    return rows[:, :, None] * np.eye(rows.shape[1])


def _weighed(found: Inventory, masses: list[np.ndarray]) -> Inventory:
    """With mass and moments, where the matrices are those of bodies."""
    match found.kind:
        case "points":
            linear, turning = masses[0], None
        case "bodies" | "disks":
            linear, turning = masses
        case "turning":
            linear, turning = None, masses[0]
        case _:  # (angular, linear) in one array
            n = masses[0].shape[-1] - found.plane
            linear, turning = masses[0][:, n:, n:], masses[0][:, :n, :n]
            if not _equal(masses[0][:, :n, n:], 0.0, np.abs(masses[0]).max()):
                return found
    if linear is not None:
        mass = linear[:, 0, 0]
        if not _equal(linear, mass[:, None, None] * np.eye(found.plane)):
            return found
        found = replace(found, mass=mass)
    if turning is None:
        return found
    if found.plane == 2:
        return replace(found, moments=turning[:, 0] * np.array([0.0, 0.0, 1.0]), axes=np.tile(np.eye(3), (len(turning), 1, 1)))
    moments, axes = zip(*map(principal_axes, turning), strict=True)
    return replace(found, moments=np.stack(moments), axes=np.ascontiguousarray(np.stack(axes)))


def _box(system: System) -> Box | None:
    """The box of what acts, if all of it is in the same."""
    boxes: set[Box] = set()
    for law in (system._potential, system._noise):
        acting: Any = None if law is None else law.function
        while hasattr(acting, "inner"):
            acting = acting.inner.function
        boxes |= acting.boxes if isinstance(acting, Terms) else set()
    return boxes.pop() if len(boxes) == 1 else None


def _equal(a: Any, b: Any, scale: float | None = None) -> bool:
    return bool(np.abs(a - b).max(initial=0.0) <= _SAME * (np.abs(a).max(initial=0.0) if scale is None else scale))
