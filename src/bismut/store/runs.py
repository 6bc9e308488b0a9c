"""The folder that a run leaves.

    run.toml           its configuration, every default written out
    provenance.json    when, with which command, versions, seed and machine it was made, and how it ended
    statistics/        what was observed: a Zarr tree with a group per observable (`bismut.load` reads it), and the last states in the group `final`
    model.txt          the text of the Python model, if the system came from one; to be read, never run
    README.txt         these lines

All writing of runs is here. A folder appears under its name only when it is complete.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bismut.ensembles import Result
from bismut.errors import BismutError
from bismut.store.results import load, save

if TYPE_CHECKING:
    import xarray

CONFIGURATION, PROVENANCE, STATISTICS, MODEL, README = "run.toml", "provenance.json", "statistics", "model.txt", "README.txt"
PACKAGES = ("bismut", "jax", "jaxlib", "numpy", "equinox", "scipy", "xarray", "zarr")


@dataclass(frozen=True)
class Run:
    """A run folder, read."""

    folder: Path
    configuration: str
    provenance: dict[str, Any]
    statistics: xarray.DataTree

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, observed {', '.join(map(str, self.statistics.children))})"


def free_folder(folder: Path) -> Path:
    """The folder itself if there is none of this name yet, else the first of name-2, name-3, ... that is free."""
    number, chosen = 1, folder
    while chosen.exists():
        number += 1
        chosen = folder.with_name(f"{folder.name}-{number}")
    return chosen


def check_free(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that holds something else than an old run that may go; best asked before a long run."""
    if not folder.exists():
        return
    if not overwrite:
        raise BismutError(f"{folder} exists already. Choose another folder with --out, or replace it with --overwrite.")
    if not is_run(folder):
        raise BismutError(f"{folder} exists and is not the folder of a run, so it is not replaced. Choose another with --out.")


def write_run(
    folder: Path, result: Result, *, configuration: str, command: str, seconds: float, model: str | None, labels: Mapping[str, Any], overwrite: bool
) -> Path:
    """Write everything to a folder beside it, then give that its name. `labels` says what the numbers of each observer are."""
    check_free(folder, overwrite)
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")  # nobody else's, so nothing of anybody is in the way
    part.mkdir(parents=True)
    save(result, part / STATISTICS)
    (part / CONFIGURATION).write_text(configuration, encoding="utf-8")
    made = _provenance(result, command, seconds) | {"labels": labels}
    (part / PROVENANCE).write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    words = (__doc__ or "").strip()
    (part / README).write_text(f"A run of bismut. {words}\n", encoding="utf-8")
    if model is not None:
        (part / MODEL).write_text(model, encoding="utf-8")
    if folder.exists():
        shutil.rmtree(folder)
    part.rename(folder)
    return folder


def is_run(folder: Path) -> bool:
    return (folder / CONFIGURATION).is_file() and (folder / PROVENANCE).is_file() and (folder / STATISTICS).is_dir()


def read_run(folder: str | Path) -> Run:
    """A run folder, with its statistics as a labelled tree."""
    folder = Path(folder)
    if not is_run(folder):
        raise BismutError(
            f"{folder} is not the folder of a run: it should hold {CONFIGURATION}, {PROVENANCE} and {STATISTICS}/. `bismut run` writes one."
        )
    try:
        provenance = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
    except ValueError as problem:
        raise BismutError(f"{folder / PROVENANCE} is damaged: {problem}.") from None
    return Run(folder, (folder / CONFIGURATION).read_text(encoding="utf-8"), provenance, load(folder / STATISTICS))


def versions() -> dict[str, str]:
    """Versions of what computes."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def _provenance(result: Result, command: str, seconds: float) -> dict[str, Any]:
    outcome = result.outcome
    return {
        "command": command,
        "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "seconds": round(seconds, 3),
        "seed": result.provenance.seed,
        "versions": {"python": platform.python_version(), **versions()},
        "machine": {"system": platform.platform(), "processor": platform.machine()},
        "outcome": {
            "words": str(outcome),
            "trajectories": outcome.trajectories,
            "failed": [failure._asdict() for failure in outcome.failures],
            "stopped": outcome.stopped,
        },
        "run": asdict(result.provenance),
    }
