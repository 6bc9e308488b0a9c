"""What is exported: a result, a trajectory or a run's folder, all as one labelled tree with what is known of the bodies."""

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
from bismut.sharing.frames import Frames, placement_of, species_of
from bismut.sharing.sites import sites_of, with_sites
from bismut.store import LabelledArray, ZarrGroup, read_run
from bismut.store.save_load import result_group
from bismut.store.xarray_tree import tree_of

if TYPE_CHECKING:
    import xarray

FINAL, OUTCOME = "final", "outcome"
_LEAF = re.compile(r"[qp]\d*")


@dataclass(frozen=True)
class ExportSource:
    """A tree with a dataset for each observer and the last states in `final`; the bodies, if they are known; and the provenance of the run."""

    tree: Any
    bodies: Inventory | None
    run: dict[str, Any]

    @property
    def observed(self) -> list[str]:
        return [str(name) for name in self.tree.children if name not in (FINAL, OUTCOME)]

    @property
    def states(self) -> str:
        """The name of the dataset that holds states: the first observer that recorded trajectories, else the last states."""
        return next((name for name in self.observed if {"trajectory", "time"} <= set(self.tree[name].dims) and holds_states(self.tree[name])), FINAL)

    @property
    def summary(self) -> str:
        """How the run was made, in a line."""
        return ", ".join(f"{key} {self.run[key]}" for key in ("scheme", "space", "step", "seed") if key in self.run)

    def only(self, names: list[str], at: Mapping[str, Any]) -> ExportSource:
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
        return ExportSource(tree, self.bodies, {**self.run, "sweep": swept or None})


def export_source(what: Result | Trajectory | str | Path, system: System | Scheme | None = None) -> ExportSource:
    """A result, a trajectory or a run's folder as a source; `system` where it does not describe its bodies."""
    bodies = None if system is None else inventory(system.system if isinstance(system, Scheme) else system)
    if isinstance(what, Trajectory):
        return ExportSource(tree_of(_trajectory_group(what)), bodies, {"step": float(what.h), "t0": float(what.times[0])})
    if isinstance(what, Result):
        if bodies is None and what.request is not None:
            bodies = inventory(what.request.scheme.system)
        return ExportSource(tree_of(result_group(what)), bodies, asdict(what.provenance))
    if not isinstance(what, str | Path):
        raise BismutError(f"Expected a result, a trajectory or the folder of a run, got {type(what).__name__}.")
    run = read_run(what)
    if bodies is None and (data := run.provenance.get("bodies")):
        bodies = Inventory.of_data(data)
    return ExportSource(run.statistics, bodies, run.provenance.get("run", {}))


def frames(
    source: ExportSource, *, trajectory: int | None = None, species: list[str] | None = None, box: Any = None, sites: Any = None, every: bool = False
) -> dict[int, Frames]:
    """The frames of every recorded trajectory, or of one, by their numbers; those after a failing step are left out. Of last states only the first
    trajectory's, unless `every`. With `sites` they are frames of these."""
    bodies, name = source.bodies, source.states
    if bodies is None:
        raise BismutError(
            f"Formats of moving bodies hold positions and orientations, but points of this run have neither: {source.run.get('space', 'unknown')}. "
            "Choose netcdf, csv or parquet, or give system= if it has bodies."
        )
    if source.run.get("sweep"):
        raise BismutError(f"This run is a sweep over {', '.join(source.run['sweep'])}: choose one value of each with at={{...}} (--at NAME=VALUE).")
    if name not in source.tree.children or not source.tree[name].data_vars:
        raise BismutError("This run kept no states. Observe paths (--observe paths), or keep the last states (--final).")
    if bodies.changing and box is None:
        raise BismutError("The box changed during this run, and states that were kept do not hold its sides. Give one box for all frames, box=.")
    data = source.tree[name].to_dataset()
    numbers = data["trajectory"].values.tolist() if "trajectory" in data.coords else list(range(data.sizes["trajectory"]))
    if trajectory is not None and trajectory not in numbers:
        raise BismutError(f"Trajectory {trajectory} was not kept. Kept: {', '.join(map(str, numbers[:20]))}.")
    themselves = sites is None or (not bodies.turns and isinstance(sites, str) and sites == "molecules")  # points are their own sites
    fixed = None if themselves else sites_of(sites, bodies)
    names = tuple(species) if species is not None and fixed is None else species_of(bodies)
    if len(names) != bodies.bodies:
        raise BismutError(f"species must name each body, got {len(names)} for {bodies.bodies}.")
    chosen = [trajectory] if trajectory is not None else numbers if every or name != FINAL else numbers[:1]
    moving = {int(number): _frames(source, data.isel(trajectory=numbers.index(number)), names, box_of(box, bodies.plane)) for number in chosen}
    return moving if fixed is None else {number: with_sites(one, fixed, species) for number, one in moving.items()}


def _frames(source: ExportSource, data: xarray.Dataset, species: tuple[str, ...], box: Any) -> Frames:
    bodies = source.bodies
    assert bodies is not None
    run, h = source.run, float(source.run.get("step", 1.0))
    t0 = float(run.get("t0", 0.0))  # of the first run, where this one continues another
    steps_run = run.get("steps") if run.get("steps_run") is None else run["steps_run"]
    last = run.get("steps_before", 0) + run.get("burn_in", 0) + (steps_run or 0)
    times = np.asarray(data["time"].values, float) if "time" in data.coords else np.array([t0 + h * last])
    # In one layout, so that products are rounded alike whatever the numbers were read from.
    leaves = {letter: [np.ascontiguousarray(data[name].values, float) for name in data.data_vars if str(name)[0] == letter] for letter in "qp"}
    if "time" not in data.dims:
        leaves = {letter: [leaf[None] for leaf in parts] for letter, parts in leaves.items()}
    finite = np.logical_and.reduce([np.isfinite(leaf).reshape(len(times), -1).all(1) for parts in leaves.values() for leaf in parts])
    good = len(times) if finite.all() else int(np.argmin(finite))
    steps = np.rint((times - t0) / h).astype(int)
    state = placement_of(bodies, *([leaf[:good] for leaf in leaves[letter]] for letter in "qp"))
    return Frames(
        times[:good],
        steps[:good],
        *state,
        mass=bodies.mass,
        moments=bodies.moments,
        species=species,
        box=bodies.box if box is None else box,
        plane=bodies.plane,
        summary=source.summary,
        bonds=bodies.bonds,
    )


def holds_states(data: Any) -> bool:
    """Whether a dataset holds the arrays of points and momenta."""
    return bool(data.data_vars) and all(_LEAF.fullmatch(str(name)) for name in data.data_vars)


def _selected(data: xarray.Dataset, parameter: str, value: Any) -> xarray.Dataset:
    if parameter not in data.dims:
        return data
    values = data[parameter].values
    near = np.flatnonzero(np.isclose(values, value, rtol=1e-9, atol=0))
    if not len(near):
        raise BismutError(f"{parameter} = {value:g} was not run. Values: {', '.join(f'{v:g}' for v in values)}.")
    return data.isel({parameter: int(near[0])}).drop_vars(parameter)


def _trajectory_group(what: Trajectory) -> ZarrGroup:
    arrays = {"trajectory": LabelledArray(("trajectory",), np.array([int(what.number)])), "time": LabelledArray(("time",), np.asarray(what.times))}
    for letter, tree in (("q", what.q), ("p", what.p)):
        for i, leaf in enumerate(map(np.asarray, jax.tree.leaves(tree))):
            axes = tuple(f"{letter}{i}_{axis}" for axis in range(leaf.ndim - 1))
            arrays[f"{letter}{i}"] = LabelledArray(("trajectory", "time", *axes), leaf[None])
    return ZarrGroup({"paths": ZarrGroup(arrays)})
