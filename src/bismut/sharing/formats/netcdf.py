"""NetCDF-4: everything observed, a group for each observer, with names of axes and coordinates; xarray, Panoply, R, Julia and MATLAB read it.

Where trajectories were recorded, `paths-bodies` beside `paths` has positions, velocities, orientations (w, x, y, z), angular momenta along principal
axes, masses, moments, species and the sides of the box.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from bismut.sharing.formats import Format, TableSource, require
from bismut.sharing.frames import Frames
from bismut.store import write_file


def write(source: TableSource, place: Path) -> list[Path]:
    import xarray

    require("h5netcdf", "NetCDF")
    run = source.run
    sets = {f"/{name}": child.to_dataset() for name, child in run.tree.children.items()}
    if source.moving:
        sets[f"/{run.states}-bodies"] = _bodies(source.moving)
    root = xarray.Dataset(attrs={"Conventions": "CF-1.11", "source": "bismut", "run": json.dumps(run.run, default=str)})
    tree = xarray.DataTree.from_dict({"/": root, **{name: _plain(data) for name, data in sets.items()}})
    return [write_file(place, in_memory(tree))]


def in_memory(tree: Any) -> memoryview:
    """The bytes of a file with a labelled tree. HDF5 writes to memory, because on a full disk it ends the process."""
    return tree.to_netcdf(engine="h5netcdf", format="NETCDF4")


def _bodies(moving: dict[int, Frames]) -> Any:
    """Trajectories side by side; frames after the last of a shorter one are NaN."""
    import xarray

    first, most = next(iter(moving.values())), max(moving.values(), key=lambda frames: len(frames.times))
    axes = {"x": "space", "v": "space", "q": "quaternion", "L": "principal"}
    names = {"x": "position", "v": "velocity", "q": "orientation", "L": "angular_momentum"}
    arrays: dict[str, Any] = {}
    for key, axis in axes.items():
        if getattr(first, key) is not None:
            each = [getattr(frames, key) for frames in moving.values()]
            padded = [np.concatenate([one, np.full((len(most.times) - len(one), *one.shape[1:]), np.nan)]) for one in each]
            arrays[names[key]] = (("trajectory", "time", "body", axis), np.stack(padded))
    if first.mass is not None:
        arrays["mass"] = (("body",), first.mass)
    if first.moments is not None:
        arrays["moments"] = (("body", "principal"), first.moments)
    arrays["species"] = (("body",), np.array(first.species))
    arrays["box"] = (("space",), np.where(first.periodic, first.sides, np.inf), {"comment": "sides; infinite along open axes"})
    coordinates = {"trajectory": list(moving), "time": most.times, "space": list("xyz"), "quaternion": list("wxyz"), "principal": [1, 2, 3]}
    used = {axis for part in arrays.values() for axis in part[0]}
    return xarray.Dataset(arrays, {name: values for name, values in coordinates.items() if name in used})


def _plain(data: Any) -> Any:
    """With attributes that NetCDF holds."""
    number = lambda value: isinstance(value, int | float)
    fits = lambda value: isinstance(value, str) or number(value) or (isinstance(value, list) and value and all(map(number, value)))
    return data.load().assign_attrs({key: value if fits(value) else json.dumps(value, default=str) for key, value in data.attrs.items()})


FORMAT = Format("netcdf", (".nc", ".netcdf", ".nc4"), "NetCDF-4, everything with labelled axes: xarray, R, Julia, MATLAB", False, write)
