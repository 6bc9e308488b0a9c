"""Results on disk: one folder in Zarr format, read back as a labelled tree.

The tree has a group per observable with the variables mean, std, stderr, min, max and count over time, a group `final` with the last states, and
attributes that say how the run was made and how it ended. Nothing in it is executable.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import jax

from bismut.ensembles import Result
from bismut.errors import BismutError

if TYPE_CHECKING:
    import xarray

SCHEMA = 1  # raised when a reader of an older file would misread a newer one


def save(result: Result, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a result to a folder, and return its path. An existing one is replaced only with overwrite=True, once the new one is complete."""
    path = Path(path)
    if path.exists() and not overwrite:
        raise BismutError(f"{path} exists already. Choose another name, or save(..., overwrite=True).")
    part = path.with_name(path.name + ".part")
    if part.exists():
        shutil.rmtree(part)
    _tree(result).to_zarr(part, mode="w", consolidated=False)
    if path.exists():
        shutil.rmtree(path)
    part.rename(path)
    return path


def load(path: str | Path) -> xarray.DataTree:
    """The labelled tree of a saved result; the mean energy over time is load(path)["energy"]["mean"]."""
    import xarray

    path = Path(path)
    if not path.is_dir():
        raise BismutError(f"There is no result at {path}. A result is a folder written by bismut.save.")
    tree = xarray.open_datatree(path, engine="zarr", consolidated=False)  # pyright: ignore[reportArgumentType]
    if tree.attrs.get("bismut_schema") != SCHEMA:
        raise BismutError(f"{path} is not a result of this version: schema {tree.attrs.get('bismut_schema')} came, {SCHEMA} was wanted.")
    return tree


def _tree(result: Result) -> xarray.DataTree:
    import xarray

    groups = {f"/{name}": report.dataset().assign_attrs(words=report.words) for name, report in result.observables.items()}
    leaves = {"q": jax.tree.leaves(result.final.q), "p": jax.tree.leaves(result.final.p)} if result.final is not None else {}
    swept = result.provenance.sweep or {}
    lead = (*swept, "trajectory")
    final = {
        f"{letter}{i}": ((*lead, *(f"{letter}{i}_{axis}" for axis in range(leaf.ndim - len(lead)))), leaf)
        for letter, parts in leaves.items()
        for i, leaf in enumerate(parts)
    }
    attributes = {
        "bismut_schema": SCHEMA,
        "provenance": json.dumps(asdict(result.provenance)),
        "outcome": str(result.outcome),
        "failed_trajectories": [failure.trajectory for failure in result.outcome.failures],
    }
    return xarray.DataTree.from_dict({"/": xarray.Dataset(attrs=attributes), "/final": xarray.Dataset(final, swept if final else {}), **groups})
