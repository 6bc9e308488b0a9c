"""`to_arviz`: values along trajectories as chains and draws.

trajectory → chain,      time → draw
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bismut.ensembles import Result, Trajectory
from bismut.errors import BismutError
from bismut.sharing.source import FINAL, shared

if TYPE_CHECKING:
    import xarray


def to_arviz(what: Result | Trajectory | str | Path, *, only: Sequence[str] = ()) -> xarray.DataTree:
    """Observers that kept values or states of single trajectories (`values`, `paths`) as a tree with a group `posterior` and axes (chain, draw, ...),
    which ArviZ accepts: effective sample sizes, R̂, autocorrelations, plots.

    what  a result, a trajectory or the folder of a run
    only  names of observers; by default all that have trajectories and times

    Each trajectory is a chain and each observation a draw; times stay a coordinate of draws. Observers with different observation times do not fit
    into one tree. ArviZ itself is not needed to build it.
    """
    import xarray

    source = shared(what).only(list(only), {})
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
    return xarray.DataTree.from_dict({"/posterior": draws.assign_attrs(inference_library="bismut", run=source.words)})
