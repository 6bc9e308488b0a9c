"""Results on disk: `save` and `load`, and the results of a run of the command line.

The tree has a group per observer with its arrays (mean, std, stderr, min, max, count over time, ...), in the order in which they were asked for; a
group `final` with the last states; a group `outcome` with what failed; and attributes that say how the run was made and how it ended.
"""

from __future__ import annotations

import platform
import warnings
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import jax
import numpy as np

from bismut.arguments import checked, folder
from bismut.documents import check, parsed, plain_json
from bismut.ensembles import Result
from bismut.ensembles.result import Failure
from bismut.errors import ShapeError, StoreError, WriteError
from bismut.findings import Report
from bismut.mechanics import inventory
from bismut.store import rules
from bismut.store.claim import claim, clean_up
from bismut.store.files import folder_of
from bismut.store.layout import CERTIFICATE, CONFIGURATION, MODEL, PROVENANCE, SCHEMA, STATISTICS
from bismut.store.manifest import MANIFEST
from bismut.store.provenance import now, read_provenance
from bismut.store.run_reader import StoredRun, read_stable
from bismut.store.run_writer import RunWriter
from bismut.store.single_file import write_elsewhere
from bismut.store.verify_data import damage_message, problems_of
from bismut.store.xarray_tree import tree_of
from bismut.store.zarr_writer import LabelledArray, ZarrGroup

if TYPE_CHECKING:
    import xarray

_IN_MEMORY = 2**28  # bytes of results that are read at once: what is read later may belong to a run that was extended meanwhile


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
        return _save(result, path, overwrite=overwrite)
    except WriteError as problem:
        other = write_elsewhere(path, problem, partial(_save, result))
        warnings.warn(f"{problem} The result is kept in {other} instead.", RuntimeWarning, stacklevel=3)
        return other


def store_result(run: RunWriter, result: Result, fields: dict[str, Any], problem: WriteError | None = None) -> tuple[Path | None, str]:
    """Commit the result of a claimed run; `fields` go into its provenance. Returns where it is, if anywhere, and what went wrong if that is not its
    own folder. With a `problem` its blocks could not all be committed, and so it is not complete."""
    stored = run.stored
    fields = read_provenance(stored) | fields
    documents = {name: stored.text(name) for name in (CONFIGURATION, MODEL) if name in stored.committed}
    try:
        return commit_result(run, result, fields, failed=problem is not None), "" if problem is None else str(problem)
    except WriteError as second:
        problem = problem or second
    try:
        return write_elsewhere(run.path, problem, partial(_save, result, documents=documents, fields=fields)), str(problem)
    except WriteError:  # no space anywhere: the numbers can still be printed
        return None, str(problem)


def _save(
    result: Result, path: Path, *, overwrite: bool = False, documents: dict[str, str] | None = None, fields: dict[str, Any] | None = None
) -> Path:
    with claim(path, documents, asked=_asked_counts(result), overwrite=overwrite) as run:
        return commit_result(run, result, fields or {})


def commit_result(run: RunWriter, result: Result, fields: dict[str, Any], failed: bool = False) -> Path:
    """Commit a result and end its run; `fields` go into its provenance."""
    machine = {"system": platform.platform(), "processor": platform.machine()}
    state = "failed" if failed else "interrupted" if result.outcome.interrupted else "complete"
    documents = {PROVENANCE: plain_json({"machine": machine, **fields, **_result_provenance(result)}, indent=1) + "\n"}
    documents |= {} if result.certificate is None else {CERTIFICATE: result.certificate.to_json() + "\n"}
    return run.finish(state, done=_done_counts(result), results=result_group(result), documents=documents)


def _asked_counts(result: Result) -> dict[str, Any]:
    asked = result.provenance
    variants = {} if result.request is None or not result.request.axes else {"variants": result.request.variants}
    return {"trajectories": asked.trajectories, "steps": asked.steps, **variants}


def _done_counts(result: Result) -> dict[str, Any]:
    """How many trajectories and steps were computed; of a sweep for each variant."""
    run = result.provenance
    trajectories, steps = (getattr(run, name, None) for name in ("trajectories_run", "steps_run"))
    return {
        "trajectories": result.outcome.trajectories if trajectories is None else np.asarray(trajectories).tolist(),
        "steps": run.steps if steps is None else steps,
    }


def _result_provenance(result: Result) -> dict[str, Any]:
    """How a result was computed and how it ended. Masses, moments and box of bodies let a folder be exported without the code it came from."""
    outcome = result.outcome
    bodies = None if result.request is None else inventory(result.request.scheme.system)
    return {
        "written": now(),
        "seed": result.provenance.seed,
        "outcome": {
            "words": str(outcome),
            "trajectories": outcome.trajectories,
            "failed": [failure._asdict() for failure in outcome.failures],
            "stopped": outcome.stopped,
        },
        "run": asdict(result.provenance),
        "bodies": None if bodies is None else bodies.data(),
    }


def result_group(result: Result) -> ZarrGroup:
    """A result as a group of arrays."""
    observed = {}
    for name, report in result.observables.items():
        arrays = {kind: LabelledArray(axes, values) for kind, (axes, values) in report.variables.items()}
        arrays |= {axis: LabelledArray((axis,), values) for axis, values in report.coordinates.items() if axis in report.axes}
        observed[name] = ZarrGroup(arrays, {**report.attributes, "words": report.line})
    attributes = {
        "bismut_schema": SCHEMA,
        "provenance": plain_json(asdict(result.provenance)),
        "outcome": str(result.outcome),
        "failed_trajectories": [failure.trajectory for failure in result.outcome.failures],
    }
    return ZarrGroup({**observed, "final": _final_group(result), "outcome": _failure_group(result)}, attributes)


def _final_group(result: Result) -> ZarrGroup:
    """The last states: q0, q1, ... and p0, p1, ... for the arrays of points and momenta."""
    if result.final is None:
        return ZarrGroup({})
    swept = result.provenance.sweep or {}
    lead = (*swept, "trajectory")
    arrays: dict[str, Any] = {}
    for letter, state in (("q", result.final.q), ("p", result.final.p)):
        for i, leaf in enumerate(map(np.asarray, jax.tree.leaves(state))):
            arrays[f"{letter}{i}"] = LabelledArray((*lead, *(f"{letter}{i}_{axis}" for axis in range(leaf.ndim - len(lead)))), leaf)
    return ZarrGroup(arrays | {name: LabelledArray((name,), np.asarray(values)) for name, values in swept.items()})


def _failure_group(result: Result) -> ZarrGroup:
    """A row for each failure."""
    failures = result.outcome.failures
    columns = zip(*failures, strict=True) if failures else [np.zeros(0, kind) for kind in get_type_hints(Failure).values()]
    return ZarrGroup({name: LabelledArray(("failure",), np.asarray(column)) for name, column in zip(Failure._fields, columns, strict=True)})


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
    run, tree = read_stable(path, _open_tree)
    tree.attrs |= {"state": run.state, "asked": run.asked, "done": run.done}
    if run.state != "complete":
        warnings.warn(f"{path} is not complete: {run}.", stacklevel=3)
    return tree


def _open_tree(run: StoredRun) -> tuple[StoredRun, xarray.DataTree]:
    """Metadata is read; of files of numbers only the sizes are compared."""
    files = run.committed[STATISTICS].files if STATISTICS in run.committed else ()
    problems = [problem for key in files if (problem := run.size_problem(STATISTICS, key))]
    if problems:
        run.check_current(STATISTICS)
        raise StoreError(damage_message(run.folder, problems))
    return run, tree_of(run.results())


@dataclass(frozen=True)
class RunFolder:
    """A run folder, read and checked: configuration, provenance, and statistics as a labelled tree."""

    folder: Path
    configuration: str
    provenance: dict[str, Any]
    statistics: xarray.DataTree
    stored: StoredRun
    certificate_text: str = ""

    @property
    def certificate(self) -> Report | None:
        """The certificate of the run; None if it has none."""
        if not self.certificate_text:
            return None
        where = str(self.folder / CERTIFICATE)
        try:
            return Report.from_json(parsed(self.certificate_text, where, rules.CERTIFICATE))
        except StoreError:
            raise
        except ValueError as problem:  # another schema, or an unknown verdict
            raise StoreError(f"{where} is not a certificate: {problem}.") from None

    @property
    def full_provenance(self) -> dict[str, Any]:
        """The provenance of a run that has results: how it was run, when it was written and how it ended."""
        check(self.provenance, str(self.folder / PROVENANCE), rules.RESULTS)
        return self.provenance

    def __repr__(self) -> str:
        return f"RunFolder({str(self.folder)!r}, {self.stored}, observed {', '.join(map(str, self.statistics.children))})"


def read_run(folder: str | Path) -> RunFolder:
    """A run folder, with its statistics as a labelled tree; all of it is compared with its checksums first."""
    clean_up(Path(folder))
    return read_stable(folder, partial(_read_run, Path(folder)))


def _read_run(folder: Path, stored: StoredRun) -> RunFolder:
    places = [place for place in (STATISTICS, PROVENANCE, CONFIGURATION) if place in stored.committed]
    if problems := [problem for place in places for problem in problems_of(stored, place)]:
        raise StoreError(damage_message(folder, problems))
    statistics = tree_of(stored.results(_IN_MEMORY))
    return RunFolder(folder, stored.text(CONFIGURATION, ""), read_provenance(stored), statistics, stored, stored.text(CERTIFICATE, ""))
