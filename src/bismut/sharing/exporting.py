"""`export`: what a run found, in a format that other programs read."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bismut.ensembles import Result, Trajectory
from bismut.errors import BismutError
from bismut.mechanics import Scheme, System
from bismut.sharing.format import Sheets
from bismut.sharing.formats import format_of
from bismut.sharing.source import frames, shared


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
                or points (n, 3) in body axes from the centre of mass; one for all, or one for each body. `species` then names the sites,
                of all bodies or of one
    overwrite   replace existing files

    Numbers are written as bismut computed with them: a run stores no units, which only `bismut.units` knows, so no file names any.
    """
    place = Path(place)
    form = format_of(place, to)
    if not form.folder and place.suffix.lower() not in form.endings:
        place = place.with_name(place.name + form.endings[0])
    source = shared(what, system).only(list(only), at or {})
    chosen = None if species is None else list(species)
    if form.moving:
        moving = frames(source, trajectory=trajectory, species=chosen, box=box, sites=sites)
        if not any(len(one.times) for one in moving.values()):
            raise BismutError("No frame of these trajectories is finite, so there is nothing to write.")
        several = len(moving) > 1
        targets = {place.with_name(f"{place.stem}-{number}{place.suffix}") if several else place: one for number, one in moving.items()}
        return [file for target, one in targets.items() for file in _written(target, lambda path, one=one: form.write(one, path), overwrite)]
    if sites is not None:
        raise BismutError(f"sites= is for gsd, extxyz and lammpstrj; {form.name} holds positions and orientations of bodies. Leave sites out.")
    keeps = source.bodies is not None and source.kept in source.tree.children and not source.run.get("sweep") and source.tree[source.kept].data_vars
    moving = frames(source, trajectory=trajectory, species=chosen, box=box, every=True) if keeps else {}
    return _written(place, lambda path: form.write(Sheets(source, moving), path), overwrite)


def _written(place: Path, write, overwrite: bool) -> list[Path]:
    """Write beside the place, and move there what is complete: nobody meets half a file."""
    if place.exists() and not overwrite:
        raise BismutError(f"{place} exists already. Choose another name, or replace it with --overwrite (in Python overwrite=True).")
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".bismut-", dir=place.parent) as folder:
        made = Path(folder) / place.name
        files = write(made)
        if place.is_dir():
            if unknown := [entry.name for entry in place.iterdir() if entry.suffix not in {file.suffix for file in files}]:
                raise BismutError(f"{place} is not replaced, because it also holds {', '.join(unknown[:5])}. Choose another name.")
            shutil.rmtree(place)
        made.replace(place)
    return [place / file.relative_to(made) for file in files]
