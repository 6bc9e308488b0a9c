"""What is shared: a result, a kept trajectory or a run's folder, all as one labelled tree with what is known of the bodies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from bismut.ensembles import Result, Trajectory
from bismut.errors import BismutError, nearest
from bismut.mechanics import Inventory, Scheme, System, box_of, inventory
from bismut.sharing.frames import Frames, placed, species_of
from bismut.sharing.sites import sites_of, with_sites
from bismut.store import Group, read_run
from bismut.store.arrays import safe
from bismut.store.results import group

if TYPE_CHECKING:
    import xarray

FINAL, OUTCOME = "final", "outcome"
_LEAF = re.compile(r"[qp]\d*")


@dataclass(frozen=True)
class Shared:
    """A tree with a set for each observer and the last states in `final`; the bodies, if they are known; and how the run was made."""

    tree: Any
    bodies: Inventory | None
    run: dict[str, Any]

    @property
    def observed(self) -> list[str]:
        return [str(name) for name in self.tree.children if name not in (FINAL, OUTCOME)]

    @property
    def kept(self) -> str:
        """Where states are: the first observer that kept trajectories, else the last states."""
        return next((name for name in self.observed if {"trajectory", "time"} <= set(self.tree[name].dims) and holds_states(self.tree[name])), FINAL)

    @property
    def words(self) -> str:
        """How the run was made, in a line."""
        told = {key: self.run[key] for key in ("scheme", "space", "step", "seed") if key in self.run}
        return ", ".join(f"{key} {value}" for key, value in told.items())

    def only(self, names: list[str], at: Mapping[str, Any]) -> Shared:
        """The same with some observers alone, at one value of each swept parameter that is named."""
        import xarray

        for name in names:
            if name not in self.tree.children:
                raise BismutError(f"This run has no {name!r}. {nearest(name, map(str, self.tree.children))}")
        chosen = {str(name): child.to_dataset() for name, child in self.tree.children.items() if not names or name in names}
        for parameter, value in at.items():
            if parameter not in (self.run.get("sweep") or {}):
                raise BismutError(f"{parameter!r} was not swept. {nearest(parameter, self.run.get('sweep') or {})}")
            chosen = {name: _selected(data, parameter, value) for name, data in chosen.items()}
        tree = xarray.DataTree.from_dict({"/": xarray.Dataset(attrs=self.tree.attrs), **{f"/{name}": data for name, data in chosen.items()}})
        swept = {name: values for name, values in (self.run.get("sweep") or {}).items() if name not in at}
        return Shared(tree, self.bodies, {**self.run, "sweep": swept or None})


def shared(what: Result | Trajectory | str | Path, system: System | Scheme | None = None) -> Shared:
    """What there is of a result, a trajectory or a run's folder; `system` where it does not tell of its bodies."""
    bodies = None if system is None else inventory(system.system if isinstance(system, Scheme) else system)
    if isinstance(what, Trajectory):
        return Shared(_tree(_of_trajectory(what)), bodies, {"step": float(what.h), "t0": float(what.times[0])})
    if isinstance(what, Result):
        if bodies is None and what.request is not None:
            bodies = inventory(what.request.scheme.system)
        return Shared(_tree(_of_result(what)), bodies, asdict(what.provenance))
    if not isinstance(what, str | Path):
        raise BismutError(f"Expected a result, a trajectory or the folder of a run, got {type(what).__name__}.")
    found = read_run(what)
    if bodies is None and (data := found.provenance.get("bodies")):
        bodies = Inventory.of_data(data)
    return Shared(found.statistics, bodies, found.provenance.get("run", {}))


def frames(
    source: Shared, *, trajectory: int | None = None, species: list[str] | None = None, box: Any = None, sites: Any = None, every: bool = False
) -> dict[int, Frames]:
    """The frames of every kept trajectory, or of one, by their numbers; those after a failing step are left out. Of last states only the first
    trajectory's, unless `every` one is wanted. With `sites` they are frames of these."""
    bodies, name = source.bodies, source.kept
    if bodies is None:
        raise BismutError(
            f"Formats of moving bodies hold positions and orientations, but points of this run have neither: {source.run.get('space', 'unknown')}. "
            "Choose netcdf, csv or parquet, or give system= if it has bodies."
        )
    if source.run.get("sweep"):
        raise BismutError(f"This run is a sweep over {', '.join(source.run['sweep'])}: choose one value of each with at={{...}} (--at NAME=VALUE).")
    if name not in source.tree.children or not source.tree[name].data_vars:
        raise BismutError("This run kept no states. Observe paths (--observe paths), or keep the last states (--final).")
    data = source.tree[name].to_dataset()
    numbers = data["trajectory"].values.tolist() if "trajectory" in data.coords else list(range(data.sizes["trajectory"]))
    if trajectory is not None and trajectory not in numbers:
        raise BismutError(f"Trajectory {trajectory} was not kept. Kept: {', '.join(map(str, numbers[:20]))}.")
    fixed = None if sites is None else sites_of(sites, bodies)
    names = tuple(species) if species is not None and fixed is None else species_of(bodies)
    if len(names) != bodies.bodies:
        raise BismutError(f"species must name each body, got {len(names)} for {bodies.bodies}.")
    chosen = [trajectory] if trajectory is not None else numbers if every or name != FINAL else numbers[:1]
    found = {int(number): _frames(source, data.isel(trajectory=numbers.index(number)), names, box_of(box, bodies.plane)) for number in chosen}
    return found if fixed is None else {number: with_sites(one, fixed, species) for number, one in found.items()}


def _frames(source: Shared, data: xarray.Dataset, species: tuple[str, ...], box: Any) -> Frames:
    bodies = source.bodies
    assert bodies is not None
    run, h = source.run, float(source.run.get("step", 1.0))
    t0 = float(run.get("t0", 0.0))  # of the first run, where this one continues another
    made = run.get("steps") if run.get("steps_run") is None else run["steps_run"]
    last = run.get("steps_before", 0) + run.get("burn_in", 0) + (made or 0)
    times = np.asarray(data["time"].values, float) if "time" in data.coords else np.array([t0 + h * last])
    # In one layout, so that products are rounded alike whatever the numbers were read from.
    leaves = {letter: [np.ascontiguousarray(data[name].values, float) for name in data.data_vars if str(name)[0] == letter] for letter in "qp"}
    if "time" not in data.dims:
        leaves = {letter: [leaf[None] for leaf in parts] for letter, parts in leaves.items()}
    finite = np.logical_and.reduce([np.isfinite(leaf).reshape(len(times), -1).all(1) for parts in leaves.values() for leaf in parts])
    good = len(times) if finite.all() else int(np.argmin(finite))
    steps = np.rint((times - t0) / h).astype(int)
    state = placed(bodies, *([leaf[:good] for leaf in leaves[letter]] for letter in "qp"))
    return Frames(
        times[:good],
        steps[:good],
        *state,
        mass=bodies.mass,
        moments=bodies.moments,
        species=species,
        box=bodies.box if box is None else box,
        plane=bodies.plane,
        words=source.words,
    )


def holds_states(data: Any) -> bool:
    """Whether a set holds the arrays of points and momenta."""
    return bool(data.data_vars) and all(_LEAF.fullmatch(str(name)) for name in data.data_vars)


def _selected(data: xarray.Dataset, parameter: str, value: Any) -> xarray.Dataset:
    if parameter not in data.dims:
        return data
    values = data[parameter].values
    near = np.flatnonzero(np.isclose(values, value, rtol=1e-9, atol=0))
    if not len(near):
        raise BismutError(f"{parameter} = {value:g} was not run. Values: {', '.join(f'{v:g}' for v in values)}.")
    return data.isel({parameter: int(near[0])}).drop_vars(parameter)


def _of_trajectory(what: Trajectory) -> dict[str, Any]:
    arrays: dict[str, Any] = {"trajectory": (("trajectory",), np.array([int(what.number)])), "time": (("time",), np.asarray(what.times))}
    for letter, tree in (("q", what.q), ("p", what.p)):
        for i, leaf in enumerate(map(np.asarray, jax.tree.leaves(tree))):
            arrays[f"{letter}{i}"] = (("trajectory", "time", *(f"{letter}{i}_{axis}" for axis in range(leaf.ndim - 1))), leaf[None])
    return {"paths": (arrays, {})}


def _of_result(what: Result) -> dict[str, Any]:
    found = {}
    for name, member in group(what).members.items():
        assert isinstance(member, Group)
        found[name] = ({key: (part.axes, np.asarray(part.values)) for key, part in member.members.items()}, dict(member.attributes))
    return found


def _tree(sets: Mapping[str, Any]) -> xarray.DataTree:
    import xarray

    label = lambda name: safe(name) if "/" in name else name  # xarray separates groups by slashes
    return xarray.DataTree.from_dict({f"/{label(name)}": xarray.Dataset(arrays, attrs=attributes) for name, (arrays, attributes) in sets.items()})
