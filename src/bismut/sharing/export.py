"""`export`: a run in a format that other programs read; `to_arviz`: values along trajectories as chains and draws.

trajectory → chain,      time → draw
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bismut.arguments import checked, file, integer, table_of
from bismut.ensembles import Result, Trajectory
from bismut.errors import BismutError
from bismut.mechanics import Scheme, System
from bismut.sharing.formats import Format, TableSource, format_of
from bismut.sharing.source import FINAL, ExportSource, export_source, frames
from bismut.units import Units, molecular, si

if TYPE_CHECKING:
    import xarray


@checked(place=file, trajectory=integer(0), at=table_of("names of parameters and one value of each", '"k": 1.0'))
def export(
    what: Result | Trajectory | str | Path,
    place: str | Path,
    *,
    to: str | None = None,
    only: Sequence[str] = (),
    trajectory: int | None = None,
    at: Mapping[str, Any] | None = None,
    system: System | Scheme | None = None,
    species: Sequence[str] | None = None,
    box: Any = None,
    sites: Any = None,
    units: Units | str | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Write a result, a trajectory or a run's folder in another format, and return the files that were written.

    place       file to write; its extension determines the format. For tables of several observers a folder, and `to` names the format
    to          gsd, extxyz or lammpstrj: moving bodies, one file for each kept trajectory (observer `paths`; without one, the last state of the first
                trajectory); netcdf, csv or parquet: everything that was observed
    only        names of observers, `final` among them; all by default
    trajectory  the number of one trajectory
    at          of a sweep, names of parameters and their values
    system      the system or scheme, if `what` does not describe its bodies: a Trajectory
    species     a name for each body, such as elements; by default a letter for each kind of body
    box         the periodic box, if pair terms do not define it; a number is the side of a cube
    sites       for gsd, extxyz and lammpstrj, the sites of rigid bodies instead of one point for each: the `body(points, masses)` of the run,
                or points (n, 3) in body axes from the centre of mass; one for all, or one for each body; "molecules" for those that the
                potential acts between, bm.sites(points, ..., names=...), joined by bonds. `species` then names the sites, of all bodies or of one
    units       for gsd, extxyz and lammpstrj, what the numbers of the run are numbers of: bismut.units.molecular, its name "molecular" or "si", or
                the unit of length alone, such as "nm" or "3.4 angstrom". Files then have the units of their format: extxyz ångströms, daltons and
                the time of ASE, Å √(Da/eV); lammpstrj `units real`, ångströms, daltons and fs; gsd nm, daltons and ps. With a length alone masses
                and times stay what they are
    overwrite   replace existing files

    Without `units` numbers are written as bismut computed with them: a run stores no units, so no file names any.
    """
    place = Path(place)
    form = format_of(place, to)
    if not form.folder and place.suffix.lower() not in form.endings:
        place = place.with_name(place.name + form.endings[0])
    source = export_source(what, system).only(list(only), at or {})
    chosen = None if species is None else list(species)
    if form.moving:
        per = _units_per_unit(form, units)
        return _export_moving(form, source, place, overwrite, per, trajectory=trajectory, species=chosen, box=box, sites=sites)
    if units is not None:
        raise BismutError(f"units= is for gsd, extxyz and lammpstrj; {form.name} holds all numbers as bismut computed with them. Leave units out.")
    if sites is not None:
        raise BismutError(f"sites= is for gsd, extxyz and lammpstrj; {form.name} holds positions and orientations of bodies. Leave sites out.")
    has_states = source.states in source.tree.children and bool(source.tree[source.states].data_vars)
    has_bodies = source.bodies is not None and has_states and not source.run.get("sweep")
    moving = frames(source, trajectory=trajectory, species=chosen, box=box, every=True) if has_bodies else {}
    return _write_atomically(place, lambda path: form.write(TableSource(source, moving), path), overwrite)


def _units_per_unit(form: Format, units: Units | str | None) -> tuple[float, float, float]:
    """How many units of length, mass and time of the format one of the run is."""
    if units is None:
        return 1.0, 1.0, 1.0
    if form.units is None:
        raise BismutError(f"{form.name} says no units of its own, so units= cannot be converted. Leave units out.")
    known = {"molecular": molecular, "si": si}.get(units, units) if isinstance(units, str) else units
    one = known if isinstance(known, Units) else Units(known, "dalton", "kJ/mol")
    length, mass, time = (float(one.quantity(1.0, unit).magnitude) for unit in form.units)
    return (length, mass, time) if isinstance(known, Units) else (length, 1.0, 1.0)


def _export_moving(form: Format, source: ExportSource, place: Path, overwrite: bool, per: tuple[float, float, float], **selection: Any) -> list[Path]:
    """One file for each trajectory."""
    moving = {number: one.in_units(*per) for number, one in frames(source, **selection).items()}
    if not any(len(one.times) for one in moving.values()):
        raise BismutError("No frame of these trajectories is finite, so there is nothing to write.")
    several, files = len(moving) > 1, []
    for number, one in moving.items():
        target = place.with_name(f"{place.stem}-{number}{place.suffix}") if several else place
        files += _write_atomically(target, lambda path, one=one: form.write(one, path), overwrite)
    return files


def _write_atomically(place: Path, write: Callable[[Path], list[Path]], overwrite: bool) -> list[Path]:
    """Write to a temporary folder beside the place, and move the complete file: readers never meet half a file."""
    if place.exists() and not overwrite:
        raise BismutError(f"{place} exists already. Choose another name, or replace it with --overwrite (in Python overwrite=True).")
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".bismut-", dir=place.parent) as folder:
        temporary = Path(folder) / place.name
        files = write(temporary)
        if place.is_dir():
            if unknown := [entry.name for entry in place.iterdir() if entry.suffix not in {file.suffix for file in files}]:
                raise BismutError(f"{place} is not replaced, because it also holds {', '.join(unknown[:5])}. Choose another name.")
            shutil.rmtree(place)
        temporary.replace(place)
    return [place / file.relative_to(temporary) for file in files]


def to_arviz(what: Result | Trajectory | str | Path, *, only: Sequence[str] = ()) -> xarray.DataTree:
    """Observers that kept values or states of single trajectories (`values`, `paths`) as a tree with a group `posterior` and axes (chain, draw, ...),
    which ArviZ accepts: effective sample sizes, R̂, autocorrelations, plots.

    what  a result, a trajectory or the folder of a run
    only  names of observers; by default all that have trajectories and times

    Each trajectory is a chain and each observation a draw; times stay a coordinate of draws. Observers with different observation times do not fit
    into one tree. ArviZ itself is not needed to build it.
    """
    import xarray

    source = export_source(what).only(list(only), {})
    fitting = {name: source.tree[name].to_dataset() for name in source.tree.children if name != FINAL}
    fitting = {str(name): data for name, data in fitting.items() if {"trajectory", "time"} <= set(data.dims)}
    if not fitting:
        raise BismutError("No observer of this run kept values of single trajectories. Observe values(...) or paths(...).")
    looks = {name: data["time"].values.tobytes() + data["trajectory"].values.tobytes() for name, data in fitting.items()}
    if len(set(looks.values())) > 1:
        raise BismutError(f"{', '.join(looks)} have different times or trajectories. Choose matching ones with only=[...].")
    variables = {}
    for name, data in fitting.items():
        for kind, array in data.data_vars.items():
            if {"trajectory", "time"} <= set(array.dims):
                renamed = array.transpose("trajectory", "time", ...).rename(trajectory="chain", time="draw")
                variables[name if len(data.data_vars) == 1 else f"{name}_{kind}"] = renamed.drop_vars(["chain", "draw"], errors="ignore")
    first = next(iter(fitting.values()))
    draws = xarray.Dataset(variables).assign_coords(
        chain=first["trajectory"].values, draw=range(first.sizes["time"]), time=("draw", first["time"].values)
    )
    return xarray.DataTree.from_dict({"/posterior": draws.assign_attrs(inference_library="bismut", run=source.summary)})
