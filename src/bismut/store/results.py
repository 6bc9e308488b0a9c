"""Results on disk: `save` and `load`.

The tree has a group per observer with its arrays (mean, std, stderr, min, max, count over time, ...), in the order in which they were asked for; a
group `final` with the last states; a group `outcome` with what failed; and attributes that say how the run was made and how it ended.
"""

from __future__ import annotations

import platform
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from bismut.arguments import checked, folder
from bismut.ensembles import Result
from bismut.ensembles.outcome import Failure
from bismut.errors import ShapeError, StoreError, WriteError
from bismut.mechanics import inventory
from bismut.store.arrays import Group, Labelled, safe
from bismut.store.claim import claim
from bismut.store.files import folder_of
from bismut.store.layout import CERTIFICATE, PROVENANCE, SCHEMA, STATISTICS
from bismut.store.leftovers import clean_up
from bismut.store.manifest import MANIFEST, plain_json
from bismut.store.reading import StoredRun, steadily
from bismut.store.run import Run
from bismut.store.tree import tree_of
from bismut.store.verifying import damage

if TYPE_CHECKING:
    import xarray


@checked()
def save(result: Result, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a result to a folder, and return its path.

    An existing result is replaced only with overwrite=True, and only once the new one is complete; anything else is never replaced. Where writing
    fails, the result goes to a temporary folder: a warning says so, and the path of that folder is returned.
    """
    path = folder_of(path, "path")
    if not isinstance(result, Result):
        raise ShapeError(f"result must be a result of bm.simulate, got {type(result).__name__}.")
    try:
        return _save(result, path, overwrite)
    except WriteError as problem:
        kept = elsewhere(path, problem, lambda other: _save(result, other, False))
        warnings.warn(f"{problem} The result is kept in {kept} instead.", RuntimeWarning, stacklevel=3)
        return kept


def _save(result: Result, path: Path, overwrite: bool) -> Path:
    with claim(path, asked=asked_of(result), overwrite=overwrite) as run:
        return keep_result(run, result, {})


def keep_result(run: Run, result: Result, said: dict[str, Any], failed: bool = False) -> Path:
    """Commit a result and end its run; `said` goes into its provenance."""
    made = {"machine": machine(), **said, **provenance(result)}
    state = "failed" if failed else "interrupted" if result.outcome.interrupted else "complete"
    documents = {PROVENANCE: plain_json(made, indent=1) + "\n"}
    documents |= {} if result.certificate is None else {CERTIFICATE: result.certificate.to_json() + "\n"}
    return run.finish(state, done=done_of(result), results=group(result), documents=documents)


def elsewhere(path: Path, problem: WriteError, write: Callable[[Path], Path]) -> Path:
    """Write to the first other place that takes it: the folder for temporary files, the present one, or the user's own."""
    for base in (tempfile.gettempdir, Path.cwd, Path.home):
        try:
            return write(Path(tempfile.mkdtemp(prefix="bismut-", dir=base())) / safe(path.name))
        except (OSError, RuntimeError, WriteError):  # no such place, or no room there either
            continue
    raise problem


@checked(path=folder)
def load(path: str | Path) -> xarray.DataTree:
    """The labelled tree of a saved result or a run; the mean energy over time is load(path)["energy"]["mean"].

    Numbers are read when they are used, and compared with their checksums: missing or altered data raise an error that says where. For an
    incomplete run a warning reports how far it got, and so does load(path).attrs["state"].
    """
    path = folder_of(path, "path")
    if path.name == STATISTICS and (path.parent / MANIFEST).is_file():
        path = path.parent  # where plain xarray finds the tree
    clean_up(path)
    run, tree = steadily(path, _opened)
    tree.attrs |= {"state": run.state, "asked": run.asked, "done": run.done}
    if run.state != "complete":
        warnings.warn(f"{path} is not complete: {run}.", stacklevel=3)
    return tree


def _opened(run: StoredRun) -> tuple[StoredRun, xarray.DataTree]:
    """Metadata read, and the files of numbers there."""
    problems = [str(problem) for key in run.parts.get(STATISTICS, (0, {}))[1] if (problem := run.absent(STATISTICS, key))]
    if problems:
        run.check_current(STATISTICS)
        raise StoreError(damage(run.folder, problems))
    return run, tree_of(run.results())


def asked_of(result: Result) -> dict[str, Any]:
    made = result.provenance
    variants = {} if result.request is None or not result.request.axes else {"variants": result.request.variants}
    return {"trajectories": made.trajectories, "steps": made.steps, **variants}


def done_of(result: Result) -> dict[str, Any]:
    """How many trajectories and steps were made; of a sweep for each variant."""
    made = result.provenance
    trajectories, steps = (getattr(made, name, None) for name in ("trajectories_run", "steps_run"))
    return {
        "trajectories": result.outcome.trajectories if trajectories is None else np.asarray(trajectories).tolist(),
        "steps": made.steps if steps is None else steps,
    }


def machine() -> dict[str, str]:
    return {"system": platform.platform(), "processor": platform.machine()}


def provenance(result: Result) -> dict[str, Any]:
    """How a result was made and how it ended."""
    outcome = result.outcome
    return {
        "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "seed": result.provenance.seed,
        "outcome": {
            "words": str(outcome),
            "trajectories": outcome.trajectories,
            "failed": [failure._asdict() for failure in outcome.failures],
            "stopped": outcome.stopped,
        },
        "run": asdict(result.provenance),
        "bodies": _bodies(result),
    }


def _bodies(result: Result) -> dict[str, Any] | None:
    """Masses, moments and box of what moved, so that a folder can be shared without the code it came from."""
    found = None if result.request is None else inventory(result.request.scheme.system)
    return None if found is None else found.data()


def group(result: Result) -> Group:
    """A result as a group to be stored."""
    observed = {}
    for name, report in result.observables.items():
        arrays = {kind: Labelled(axes, values) for kind, (axes, values) in report.variables.items()}
        arrays |= {axis: Labelled((axis,), values) for axis, values in report.coordinates.items() if axis in report.axes}
        observed[name] = Group(arrays, {**report.attributes, "words": report.line})
    attributes = {
        "bismut_schema": SCHEMA,
        "provenance": plain_json(asdict(result.provenance)),
        "outcome": str(result.outcome),
        "failed_trajectories": [failure.trajectory for failure in result.outcome.failures],
    }
    return Group({**observed, "final": _final(result), "outcome": _failures(result)}, attributes)


def _final(result: Result) -> Group:
    """The last states: q0, q1, ... and p0, p1, ... for the arrays that points and momenta are made of."""
    if result.final is None:
        return Group({})
    swept = result.provenance.sweep or {}
    lead = (*swept, "trajectory")
    arrays: dict[str, Any] = {}
    for letter, state in (("q", result.final.q), ("p", result.final.p)):
        for i, leaf in enumerate(map(np.asarray, jax.tree.leaves(state))):
            arrays[f"{letter}{i}"] = Labelled((*lead, *(f"{letter}{i}_{axis}" for axis in range(leaf.ndim - len(lead)))), leaf)
    return Group(arrays | {name: Labelled((name,), np.asarray(values)) for name, values in swept.items()})


def _failures(result: Result) -> Group:
    """What failed, a row for each failure."""
    failures = result.outcome.failures
    columns = zip(*failures, strict=True) if failures else [np.zeros(0, kind) for kind in Failure.__annotations__.values()]
    return Group({name: Labelled(("failure",), np.asarray(column)) for name, column in zip(Failure._fields, columns, strict=True)})
