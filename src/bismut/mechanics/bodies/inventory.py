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

from bismut.errors import ShapeError
from bismut.mechanics.bodies.box import Box
from bismut.mechanics.bodies.forces import opened
from bismut.mechanics.bodies.pairs import PairTerm
from bismut.mechanics.bodies.shapes import principal_axes
from bismut.mechanics.bodies.site_table import Molecule, SiteTable
from bismut.mechanics.bodies.terms import Potential, Terms
from bismut.mechanics.function import Adapter, UserFunction
from bismut.mechanics.state import State
from bismut.mechanics.subsystems import QuadraticKinetic
from bismut.mechanics.system import System
from bismut.spaces import SE2, SE3, SO2, SO3, BodyMotion, Euclidean, Power, Product, Space

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
    molecules  the sites of each kind of body, in the frame of the body, if the potential is between sites
    kinds     (K,) which of them each body is
    names     of points, (K,), if the potential knows them
    bonds     (B, 2), points that are held together by springs, if there are some
    changing  whether the sides of the box change, so that `box` is only what they began with
    """

    kind: str
    plane: int
    count: int | None = None
    mass: np.ndarray | None = None
    moments: np.ndarray | None = None
    axes: np.ndarray | None = None
    box: Box | None = None
    molecules: tuple[Molecule, ...] = ()
    kinds: np.ndarray | None = None
    changing: bool = False
    names: tuple[str, ...] | None = None
    bonds: np.ndarray | None = None

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
        box = {"box": None if self.box is None else list(self.box.lengths)}
        sites = [{"points": one.points.tolist(), "names": None if one.names is None else list(one.names)} for one in self.molecules]
        known = {"sites": sites, "kinds": None if self.kinds is None else self.kinds.tolist()} if sites else {}
        changing = {"changing": True} if self.changing else {}
        known |= {} if self.names is None else {"names": list(self.names)}
        known |= {} if self.bonds is None else {"bonds": self.bonds.tolist()}
        return {"kind": self.kind, "plane": self.plane, "count": self.count, **arrays, **box, **known, **changing}

    def _arrays(self) -> dict[str, np.ndarray | None]:
        return {"mass": self.mass, "moments": self.moments, "axes": self.axes}

    @staticmethod
    def of_data(data: Mapping[str, Any]) -> Inventory:
        """What `data` was made of."""
        arrays = {name: None if data[name] is None else np.asarray(data[name], float) for name in ("mass", "moments", "axes")}
        box = None if data["box"] is None else Box([float(side) for side in data["box"]])  # float("Infinity") is an open side
        named = lambda one: None if one["names"] is None else tuple(map(str, one["names"]))
        molecules = tuple(Molecule(np.asarray(one["points"], float), named(one)) for one in data.get("sites", ()))
        kinds = None if data.get("kinds") is None else np.asarray(data["kinds"], int)
        names = None if data.get("names") is None else tuple(map(str, data["names"]))
        bonds = None if data.get("bonds") is None else np.asarray(data["bonds"], int).reshape(-1, 2)
        more = {"molecules": molecules, "kinds": kinds, "changing": bool(data.get("changing")), "names": names, "bonds": bonds}
        return Inventory(data["kind"], int(data["plane"]), data["count"], **arrays, box=box, **more)


def inventory(system: System) -> Inventory | None:
    """The bodies of a system; None if its points are no places of bodies, such as angles."""
    space, count = (system.space.base, system.space.count) if isinstance(system.space, Power) else (system.space, None)
    form = _form(space)
    if form is None:
        return None
    acting = declared_terms(system._potential)
    bodies = Inventory(*form, count, box=common_box(system), changing=acting is not None and acting.follows_box)
    table = site_table(system)
    if table is not None and table.molecules is not None and bodies.kind == "bodies":
        bodies = replace(bodies, molecules=table.molecules, kinds=table.species)
    if bodies.kind == "points":
        bodies = replace(bodies, names=None if table is None else table.names, bonds=_springs(acting))
        if bodies.names is not None and len(bodies.names) != bodies.bodies:
            raise ShapeError(f"names= of sites names {len(bodies.names)} points, but there are {bodies.bodies}.")
    masses = None if isinstance(space, BodyMotion) else _masses(system)  # there they are inverse mobilities, which couple
    return bodies if masses is None else _with_masses(bodies, masses)


def _form(space: Space) -> tuple[str, int] | None:
    match space:
        case Euclidean(n=1 | 2 | 3):
            return "points", space.n
        case Product(factors=(Euclidean(n=3), SO3())):
            return "bodies", 3
        case Product(factors=(Euclidean(n=2), SO2())):
            return "disks", 2
        case BodyMotion():
            return "bodies", 3
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
    if isinstance(kinetic, QuadraticKinetic):
        known = [np.asarray(leaf, float) for leaf in jax.tree.leaves(kinetic.masses)]
        known = known if several else [leaf[None] for leaf in known]
        return [_matrices(leaf, shape) for leaf, shape in zip(known, shapes, strict=True)]
    if several or not system.has_lagrangian or not system.quadratic:
        return None
    somewhere = (system.space.origin(system.dtype), 0.0), (system.space.random(jax.random.key(0)), 0.7)
    here, there = (np.asarray(system.mass(q, t=t), float) for q, t in somewhere)
    sizes = [int(np.prod(shape)) for shape in shapes]
    ends = np.cumsum([0, *sizes])
    parts = [here[a:b, a:b][None] for a, b in pairwise(ends)]
    diagonal = np.asarray(jax.scipy.linalg.block_diag(*(jnp.asarray(part[0]) for part in parts)))
    return parts if _equal(here, there) and _equal(here, diagonal) else None


def _matrices(mass: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Masses of a velocity of that shape, (K, *shape) or already matrices, as (K, n, n)."""
    if mass.ndim > len(shape) + 1:
        return mass
    rows = mass.reshape(len(mass), -1)
    return rows[:, :, None] * np.eye(rows.shape[1])


def _with_masses(bodies: Inventory, masses: list[np.ndarray]) -> Inventory:
    """With mass and moments, where the matrices are those of bodies."""
    match bodies.kind:
        case "points":
            linear, turning = masses[0], None
        case "bodies" | "disks":
            linear, turning = masses
        case "turning":
            linear, turning = None, masses[0]
        case _:  # (angular, linear) in one array
            n = masses[0].shape[-1] - bodies.plane
            linear, turning = masses[0][:, n:, n:], masses[0][:, :n, :n]
            if not _equal(masses[0][:, :n, n:], 0.0, np.abs(masses[0]).max()):
                return bodies
    if linear is not None:
        mass = linear[:, 0, 0]
        if not _equal(linear, mass[:, None, None] * np.eye(bodies.plane)):
            return bodies
        bodies = replace(bodies, mass=mass)
    if turning is None:
        return bodies
    if bodies.plane == 2:
        return replace(bodies, moments=turning[:, 0] * np.array([0.0, 0.0, 1.0]), axes=np.tile(np.eye(3), (len(turning), 1, 1)))
    moments, axes = zip(*map(principal_axes, turning), strict=True)
    return replace(bodies, moments=np.stack(moments), axes=np.ascontiguousarray(np.stack(axes)))


def common_box(system: System) -> Box | None:
    """The box of what acts, if all of it is in the same; of one that changes, as it was declared."""
    acting = [declared_terms(one) for one in (system._potential, system._noise)]
    boxes: set[Box] = set().union(*(terms.boxes for terms in acting if terms is not None))
    return boxes.pop() if len(boxes) == 1 else None


def site_table(system: System) -> SiteTable | None:
    """The sites between which the potential acts, if it has some; those of the first such term."""
    terms = declared_terms(system._potential)
    tables = [part.sites for part in (() if terms is None else terms.parts) if isinstance(part, PairTerm) and part.sites is not None]
    return tables[0] if tables else None


def _springs(terms: Terms | None) -> np.ndarray | None:
    """The pairs that springs hold together, (B, 2)."""
    springs = [part.bonds for part in (() if terms is None else terms.parts) if isinstance(part, PairTerm) and part.name == "springs"]
    pairs = [np.stack([np.asarray(one.i, int), np.asarray(one.j, int)], 1) for one in springs if one is not None]
    return np.concatenate(pairs) if pairs else None


def acting_terms(function: UserFunction | None) -> Terms | None:
    """The terms that a function of a system was made from; None if it is a plain function."""
    acting: Any = None if function is None else function.function
    while hasattr(acting, "inner"):
        acting = acting.inner.function
    return acting if isinstance(acting, Terms) else None


def declared_terms(function: UserFunction | None) -> Terms | None:
    """The terms that a function of a system was declared with, beneath forces of the user's own and parameters that follow a protocol: what they say
    of boxes, sites and sizes holds there too. What is computed is computed with `acting_terms`."""
    acting: Any = function
    while isinstance(acting, UserFunction | Adapter) and not isinstance(acting, Terms):
        acting = getattr(acting, "function", None) or getattr(acting, "inner", None)
    return opened(acting) if isinstance(acting, Terms) else None


def term_energies(system: System, state: State, t: Any) -> Any:
    """The potential energy term by term, in one array; one number where it is a plain function."""
    terms, system = acting_terms(system._potential), system.in_box_of(state)
    if not isinstance(terms, Potential):
        return jnp.reshape(system.potential(state.q, t), (1,))
    x, R = state.q if isinstance(state.q, tuple) else (state.q, None)
    return jnp.stack([term(x, R, t, system.parameters) for term in terms.single()])


def term_names(system: System) -> list[str]:
    """The names of the terms of the potential energy, in the order of `term_energies`."""
    terms = acting_terms(system._potential)
    return [part.name for part in terms.parts] if isinstance(terms, Potential) else ["potential"]


def _equal(a: Any, b: Any, scale: float | None = None) -> bool:
    return bool(np.abs(a - b).max(initial=0.0) <= _SAME * (np.abs(a).max(initial=0.0) if scale is None else scale))
