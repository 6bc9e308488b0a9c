"""Observations as tables: a row for each index along the axes, a column for each array.

An observer is one table for each set of axes of its arrays: `energy` has time, a histogram has bins and, separately, edges. Recorded states have a
table for each array, `paths-q0`; where they are those of bodies, `paths` has a row for each trajectory, time and body.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bismut.errors import BismutError
from bismut.sharing.formats import TableSource
from bismut.sharing.frames import Frames
from bismut.sharing.source import holds_states

if TYPE_CHECKING:
    import pandas
    import xarray


def write_tables(source: TableSource, place: Path, ending: str, write: Callable[[pandas.DataFrame, Path], Any]) -> list[Path]:
    """One table as a file of that name, or all of them in a folder."""
    tables = {name: table for name, table in _tables(source).items() if len(table)}
    if place.suffix == ending:
        if len(tables) != 1:
            raise BismutError(
                f"{place.name} is one file, but there are {len(tables)} tables: {', '.join(tables)}. Name a folder, or choose one observer (--only)."
            )
        write(next(iter(tables.values())), place)
        return [place]
    place.mkdir()
    for name, table in tables.items():
        write(table, place / f"{name}{ending}")
    return [place / f"{name}{ending}" for name in tables]


def _tables(source: TableSource) -> dict[str, pandas.DataFrame]:
    """All tables by name."""
    import pandas

    tables: dict[str, Any] = {}
    for name, child in source.run.tree.children.items():
        tables |= _dataset_tables(str(name), child.to_dataset())
    if source.moving:
        tables[source.run.states] = pandas.concat([_body_rows(number, frames) for number, frames in source.moving.items()], ignore_index=True)
    return tables


def _dataset_tables(name: str, data: xarray.Dataset) -> dict[str, pandas.DataFrame]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for variable, array in data.data_vars.items():
        groups.setdefault(tuple(map(str, array.dims)), []).append(str(variable))
    # The table with most arrays has the name of the observer, the others name what they hold.
    order = sorted(groups, key=lambda axes: (-len(groups[axes]), -len(axes)))
    plain = not holds_states(data)  # of states, the name itself is that of the table of bodies
    title = lambda i, axes: name if i == 0 and plain else f"{name}-{'-'.join(groups[axes])}"
    return {title(i, axes): _table(data, axes, groups[axes]) for i, axes in enumerate(order)}


def _table(data: xarray.Dataset, axes: tuple[str, ...], variables: list[str]) -> pandas.DataFrame:
    import pandas

    shape = tuple(data.sizes[axis] for axis in axes)
    places = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), int)
    columns = {axis: (data[axis].values if axis in data.coords else np.arange(n))[where] for axis, n, where in zip(axes, shape, places, strict=True)}
    return pandas.DataFrame({**columns, **{variable: np.asarray(data[variable].values).ravel() for variable in variables}})


def _body_rows(number: int, frames: Frames) -> pandas.DataFrame:
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
