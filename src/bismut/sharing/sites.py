"""Sites of rigid bodies, such as the atoms of molecules: where they are and how they move, from the poses of their bodies.

y = x + R z,      u = v + R (ω × z),      ω_a = L_a / I_a,      along principal axes
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bismut.errors import BismutError, DomainError, ShapeError
from bismut.mechanics import Body, Inventory
from bismut.sharing.frames import Frames, matrices_of

_SAME = 1e-9  # relative: masses and inertias that differ by less are equal


class Sites(NamedTuple):
    """S sites of K bodies.

    body    (S,) the number of the body that a site belongs to
    number  (S,) its number within that body
    z       (S, 3) from the centre of mass along principal axes
    mass    (S,), or None
    names   (S,), or None
    bonds   (B, 2), pairs of sites that are drawn joined: in each body the shortest tree through its atoms
    """

    body: np.ndarray
    number: np.ndarray
    z: np.ndarray
    mass: np.ndarray | None
    names: tuple[str, ...] | None = None
    bonds: np.ndarray | None = None


def sites_of(given: Any, bodies: Inventory) -> Sites:
    """The sites that were given: a Body, or points (n, 3) in body axes, for all bodies; or K of them, one each; "molecules" for those of the run."""
    if isinstance(given, str) and given == "molecules":
        return _own_sites(bodies)
    if not bodies.turns:
        raise BismutError("sites= needs bodies that turn, but those of this run are points: each is its own site.")
    each = [_along_axes(one, bodies, k) for k, one in enumerate(_for_each(given, bodies.bodies))]
    counts = [len(z) for z, _ in each]
    masses = [mass for _, mass in each if mass is not None]
    return Sites(
        np.repeat(np.arange(len(each)), counts),
        np.concatenate([np.arange(count) for count in counts]),
        np.concatenate([z for z, _ in each]),
        np.concatenate(masses) if len(masses) == len(each) else None,
    )


def _own_sites(bodies: Inventory) -> Sites:
    """Those between which the potential of the run acts. Where they have names, those that are no elements, such as the M of TIP4P, are left out."""
    if not bodies.molecules:
        raise BismutError('sites="molecules" stands for the sites that the potential acts between, but it has none. Give body(...) or points.')
    kinds = np.zeros(bodies.bodies, int) if bodies.kinds is None else bodies.kinds
    atoms = [one.atoms for one in bodies.molecules]
    known = sites_of([atoms[kind].points for kind in kinds], bodies)
    names = [atoms[kind].names for kind in kinds]
    starts = np.cumsum([0, *(len(atoms[kind].points) for kind in kinds)])
    trees = [one.tree for one in atoms]
    bonds = np.concatenate([trees[kind] + start for kind, start in zip(kinds, starts, strict=False)])
    named = None if any(one is None for one in names) else tuple(name for one in names for name in one or ())
    return known._replace(names=named, bonds=bonds)


def _for_each(given: Any, count: int) -> Sequence[Any]:
    """What was given for each body."""
    if isinstance(given, Body):
        several = [Body(*(column[k] for column in given)) for k in range(len(given.mass))] if np.ndim(given.mass) else [given] * count
    elif isinstance(given, Sequence) and any(isinstance(one, Body) or np.ndim(one) == 2 for one in given):
        several = list(given)
    else:
        array = _points(given)
        several = list(array) if array.ndim == 3 else [array] * count
    if len(several) != count:
        raise ShapeError(f"sites must be given once for all bodies or for each of them, got {len(several)} for {count} bodies.")
    return several


def _points(given: Any) -> np.ndarray:
    try:
        array = np.asarray(given, float)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.ndim not in (2, 3) or array.shape[-1] != 3 or array.size == 0 or not np.isfinite(array).all():
        raise ShapeError(
            "sites must be body(points, masses), or finite points (n, 3) in body axes from the centre of mass, or (K, n, 3) for K bodies, "
            f"got {type(given).__name__} of shape {np.shape(array)}."
        )
    return array


def _along_axes(one: Any, bodies: Inventory, k: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Sites of body k along its principal axes, and their masses if they are known."""
    axes = np.eye(3) if bodies.axes is None else bodies.axes[k]
    if not isinstance(one, Body):
        points = _points(one)
        if points.ndim != 2:
            raise ShapeError(f"sites of one body must be points (n, 3), got shape {points.shape}.")
        return points @ axes, None
    points = _in_body_axes(one, bodies, axes, k)
    present = (one.masses > 0) | (one.points != 0).any(1)  # stack_bodies pads with massless points at the centre
    return points[present] @ axes, one.masses[present]


def _in_body_axes(shape: Body, bodies: Inventory, axes: np.ndarray, k: int) -> np.ndarray:
    """The points of a Body in the axes in which the run has its inertia: principal ones, or those in which the points were given."""
    same = lambda a, b: bool(np.abs(a - b).max() <= _SAME * np.abs(b).max())
    if bodies.moments is not None and (bodies.mass is None or same(shape.mass, bodies.mass[k])):
        inertia = (axes * bodies.moments[k]) @ axes.T
        for turn in (np.eye(3), shape.axes):
            if same((turn * shape.moments) @ turn.T, inertia):
                return shape.points @ turn.T
    known = ", ".join(
        f"{name} {'unknown' if value is None else value[k].tolist()}" for name, value in (("mass", bodies.mass), ("moments", bodies.moments))
    )
    raise DomainError(
        f"sites of body {k} have mass {float(shape.mass):g} and moments {shape.moments.tolist()}, but the body of the run has {known}, "
        "so it is not known how they lie in it. Give the body that the run was made with, or its points (n, 3) in body axes."
    )


def with_sites(frames: Frames, sites: Sites, species: Sequence[str] | None) -> Frames:
    """Frames of sites, from those of their bodies."""
    assert frames.q is not None
    R = matrices_of(frames.q)[:, sites.body]
    v = None
    if frames.v is not None and frames.L is not None and frames.moments is not None:
        moments = frames.moments
        spin = np.divide(frames.L, moments, out=np.zeros_like(frames.L), where=np.broadcast_to(moments > 0, frames.L.shape))
        v = frames.v[:, sites.body] + np.einsum("tsij,tsj->tsi", R, np.cross(spin[:, sites.body], sites.z))
    return replace(
        frames,
        x=frames.x[:, sites.body] + np.einsum("tsij,sj->tsi", R, sites.z),
        v=v,
        q=None,
        L=None,
        mass=sites.mass,
        moments=None,
        species=sites.names if species is None and sites.names is not None else _names(frames, sites, species),
        molecule=sites.body,
        bonds=sites.bonds,
    )


def _names(frames: Frames, sites: Sites, species: Sequence[str] | None) -> tuple[str, ...]:
    """A name for each site: those that were given, for all or for one body, or the letter of its body with its number, from 1."""
    if species is None:
        return tuple(f"{frames.species[k]}{n + 1}" for k, n in zip(sites.body, sites.number, strict=True))
    count, each = len(sites.body), np.bincount(sites.body)
    if len(species) == count:
        return tuple(species)
    if (each == len(species)).all():
        return tuple(species) * len(each)
    raise BismutError(f"species must name each site, or each site of one body if all have as many, got {len(species)} for {count} sites.")
