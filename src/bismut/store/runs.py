"""The runs of the command line: a folder with configuration, provenance and results."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bismut.ensembles import Result
from bismut.errors import StoreError, WriteError
from bismut.store.claim import claim, claim_numbered
from bismut.store.layout import CONFIGURATION, MODEL, PROVENANCE, STATISTICS
from bismut.store.reading import StoredRun, open_run
from bismut.store.results import asked_of, elsewhere, keep_result
from bismut.store.run import Run
from bismut.store.tree import tree_of
from bismut.store.verifying import problems_of

if TYPE_CHECKING:
    import xarray

PACKAGES = ("bismut", "jax", "jaxlib", "numpy", "equinox", "scipy", "xarray", "zarr")


@dataclass(frozen=True)
class RunFolder:
    """A run folder, read and checked."""

    folder: Path
    configuration: str
    provenance: dict[str, Any]
    statistics: xarray.DataTree
    stored: StoredRun

    def __repr__(self) -> str:
        return f"RunFolder({str(self.folder)!r}, {self.stored}, observed {', '.join(map(str, self.statistics.children))})"


def claim_run(folder: Path, *, configuration: str, model: str | None, asked: Mapping[str, Any], overwrite: bool, numbered: bool, need: int) -> Run:
    """Claim the folder of a run, before it is computed; with `numbered` the first free one of name, name-2, ..."""
    documents = {CONFIGURATION: configuration} | ({} if model is None else {MODEL: model})
    if numbered:
        return claim_numbered(folder, documents, asked=asked, need=need)
    return claim(folder, documents, asked=asked, overwrite=overwrite, need=need)


def write_run(run: Run, result: Result, said: dict[str, Any]) -> tuple[Path | None, str]:
    """Commit the result of a claimed run. Returns where it is, if anywhere, and what went wrong if that is not its own place."""
    said = said | {"versions": {"python": platform.python_version(), **versions()}}
    stored = run.stored
    documents = {name: stored.text(name) for name in (CONFIGURATION, MODEL) if name in stored.parts}
    try:
        return keep_result(run, result, said), ""
    except WriteError as problem:

        def again(other: Path) -> Path:
            with claim(other, documents, asked=asked_of(result)) as second:
                return keep_result(second, result, said)

        try:
            return elsewhere(run.path, problem, again), str(problem)
        except WriteError:  # no room anywhere: the numbers can still be printed
            return None, str(problem)


def read_run(folder: str | Path) -> RunFolder:
    """A run folder, with its statistics as a labelled tree; all of it is compared with its checksums first."""
    folder = Path(folder)
    stored = open_run(folder)
    problems = [problem for place in (STATISTICS, PROVENANCE, CONFIGURATION) if place in stored.parts for problem in problems_of(stored, place)]
    if problems:
        raise StoreError("\n".join([f"{folder} is damaged:", *(f"  {problem}" for problem in problems)]))
    try:
        provenance = json.loads(stored.text(PROVENANCE))
    except (ValueError, RecursionError) as problem:
        raise StoreError(f"{folder / PROVENANCE} is no JSON: {problem}.") from None
    return RunFolder(folder, stored.text(CONFIGURATION, ""), provenance, tree_of(stored.results()), stored)


def versions() -> dict[str, str]:
    """Versions of what computes."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found
