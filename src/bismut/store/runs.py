"""The runs of the command line: a folder with configuration, provenance and results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bismut.documents import check, parsed
from bismut.ensembles import Result
from bismut.errors import StoreError, WriteError
from bismut.findings import Report
from bismut.store import rules
from bismut.store.claim import claim, claim_numbered
from bismut.store.layout import CERTIFICATE, CONFIGURATION, MODEL, PROVENANCE, STATISTICS
from bismut.store.leftovers import clean_up
from bismut.store.reading import StoredRun, steadily
from bismut.store.results import asked_of, elsewhere, keep_result
from bismut.store.run import Run
from bismut.store.tree import tree_of
from bismut.store.verifying import damage, problems_of

if TYPE_CHECKING:
    import xarray


_AT_ONCE = 2**28  # bytes of results that are read at once: what is read later may belong to a run that was extended meanwhile


@dataclass(frozen=True)
class RunFolder:
    """A run folder, read and checked."""

    folder: Path
    configuration: str
    provenance: dict[str, Any]
    statistics: xarray.DataTree
    stored: StoredRun
    certified: str = ""

    @property
    def certificate(self) -> Report | None:
        """What the run proved of itself; None if it did not try."""
        if not self.certified:
            return None
        where = str(self.folder / CERTIFICATE)
        try:
            return Report.from_json(parsed(self.certified, where, rules.CERTIFICATE))
        except StoreError:
            raise
        except ValueError as problem:  # another schema, or a verdict that nobody knows
            raise StoreError(f"{where} is not a certificate: {problem}.") from None

    @property
    def made(self) -> dict[str, Any]:
        """The provenance of a run that has results: how it was run, when it was written and how it ended."""
        check(self.provenance, str(self.folder / PROVENANCE), rules.RESULTS)
        return self.provenance

    def __repr__(self) -> str:
        return f"RunFolder({str(self.folder)!r}, {self.stored}, observed {', '.join(map(str, self.statistics.children))})"


def claim_run(
    folder: Path,
    *,
    documents: Mapping[str, str],
    asked: Mapping[str, Any],
    overwrite: bool = False,
    numbered: bool = False,
    need: int = 0,
) -> Run:
    """Claim the folder of a run, before it is computed; with `numbered` the first free one of name, name-2, ..."""
    if numbered:
        return claim_numbered(folder, documents, asked=asked, need=need)
    return claim(folder, documents, asked=asked, overwrite=overwrite, need=need)


def write_run(run: Run, result: Result, said: dict[str, Any], problem: WriteError | None = None) -> tuple[Path | None, str]:
    """Commit the result of a claimed run. Returns where it is, if anywhere, and what went wrong if that is not its own place. With a `problem` its
    blocks could not all be committed, and so it is not complete."""
    stored = run.stored
    said = origin_of(stored) | said
    documents = {name: stored.text(name) for name in (CONFIGURATION, MODEL) if name in stored.parts}
    try:
        return keep_result(run, result, said, failed=problem is not None), "" if problem is None else str(problem)
    except WriteError as again:
        problem = problem or again

    def another(other: Path) -> Path:
        with claim(other, documents, asked=asked_of(result)) as second:
            return keep_result(second, result, said)

    try:
        return elsewhere(run.path, problem, another), str(problem)
    except WriteError:  # no room anywhere: the numbers can still be printed
        return None, str(problem)


def origin_of(stored: StoredRun) -> dict[str, Any]:
    """What provenance.json says so far."""
    return parsed(stored.text(PROVENANCE, "{}"), str(stored.folder / PROVENANCE), rules.PROVENANCE)


def read_run(folder: str | Path) -> RunFolder:
    """A run folder, with its statistics as a labelled tree; all of it is compared with its checksums first."""
    clean_up(Path(folder))
    return steadily(folder, partial(_read, Path(folder)))


def _read(folder: Path, stored: StoredRun) -> RunFolder:
    problems = [problem for place in (STATISTICS, PROVENANCE, CONFIGURATION) if place in stored.parts for problem in problems_of(stored, place)]
    if problems:
        raise StoreError(damage(folder, problems))
    statistics = tree_of(stored.results(_AT_ONCE))
    return RunFolder(folder, stored.text(CONFIGURATION, ""), origin_of(stored), statistics, stored, stored.text(CERTIFICATE, ""))
