"""What was found as tables: a row for each place along the axes, a column for each array.

An observer is one table for each set of axes that its arrays have: `energy` has time, a histogram has bins and, apart, edges. Kept states have a
table for each array, `paths-q0`; where they are those of bodies, `paths` has a row for each trajectory, time and body.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bismut.errors import BismutError
from bismut.sharing.format import Sheets
from bismut.sharing.frames import Frames
from bismut.sharing.source import holds_states

if TYPE_CHECKING:
    import pandas
    import xarray


def tables(sheets: Sheets) -> dict[str, pandas.DataFrame]:
    """All tables by name."""
    found: dict[str, Any] = {}
    for name, child in sheets.run.tree.children.items():
        found |= _of_set(str(name), child.to_dataset())
    if sheets.moving:
        found[sheets.run.kept] = _of_bodies(sheets.moving)
    return found


def written(sheets: Sheets, place: Path, ending: str, write: Any) -> list[Path]:
    """One table as a file of that name, or all of them in a folder."""
    found = {name: table for name, table in tables(sheets).items() if len(table)}
    if place.suffix == ending:
        if len(found) != 1:
            raise BismutError(
                f"{place.name} is one file, but there are {len(found)} tables: {', '.join(found)}. Name a folder, or choose one observer (--only)."
            )
        write(next(iter(found.values())), place)
        return [place]
    place.mkdir()
    for name, table in found.items():
        write(table, place / f"{name}{ending}")
    return [place / f"{name}{ending}" for name in found]


def _of_set(name: str, data: xarray.Dataset) -> dict[str, pandas.DataFrame]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for variable, array in data.data_vars.items():
        groups.setdefault(tuple(map(str, array.dims)), []).append(str(variable))
    # The table with the most in it bears the name of the observer, the others name what they hold.
    order = sorted(groups, key=lambda axes: (-len(groups[axes]), -len(axes)))
    whole = not holds_states(data)  # the name itself is left to bodies
    title = lambda i, axes: name if i == 0 and whole else f"{name}-{'-'.join(groups[axes])}"
    return {title(i, axes): _table(data, axes, groups[axes]) for i, axes in enumerate(order)}


def _table(data: xarray.Dataset, axes: tuple[str, ...], variables: list[str]) -> pandas.DataFrame:
    import pandas

    shape = tuple(data.sizes[axis] for axis in axes)
    places = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), int)
    columns = {axis: (data[axis].values if axis in data.coords else np.arange(n))[where] for axis, n, where in zip(axes, shape, places, strict=True)}
    return pandas.DataFrame({**columns, **{variable: np.asarray(data[variable].values).ravel() for variable in variables}})


def _of_bodies(moving: dict[int, Frames]) -> pandas.DataFrame:
    import pandas

    return pandas.concat([_rows(number, frames) for number, frames in moving.items()], ignore_index=True)


def _rows(number: int, frames: Frames) -> pandas.DataFrame:
    import pandas

    times, bodies = len(frames.times), len(frames.species)
    columns: dict[str, Any] = {
        "trajectory": np.full(times * bodies, number),
        "time": np.repeat(frames.times, bodies),
        "step": np.repeat(frames.steps, bodies),
        "body": np.tile(np.arange(bodies), times),
        "species": list(frames.species) * times,
    }
    for names, values in (("x y z", frames.x), ("vx vy vz", frames.v), ("qw qx qy qz", frames.q), ("L1 L2 L3", frames.L)):
        if values is not None:
            columns |= dict(zip(names.split(), values.reshape(times * bodies, -1).T, strict=True))
    if frames.mass is not None:
        columns["mass"] = np.tile(frames.mass, times)
    if frames.moments is not None:
        columns |= {f"I{i + 1}": np.tile(frames.moments[:, i], times) for i in range(3)}
    if frames.periodic.any():
        columns |= {
            f"side_{axis}": np.full(times * bodies, side) for axis, side, closed in zip("xyz", frames.sides, frames.periodic, strict=True) if closed
        }
    return pandas.DataFrame(columns)
