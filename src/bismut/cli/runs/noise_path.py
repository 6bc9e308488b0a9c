"""The path that drives a run, from the table [path]: a registered path by name, and its arguments. Its seed is that of the run.

    Recorded (file or increments, values)        .npy, or text with a row for each step and a column for each Wiener process

A recorded path becomes numbers in the document, once: a run does not change when the file does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

import numpy as np

from bismut.cli.runs.tables import Mistake
from bismut.ensembles.checks import chosen_path
from bismut.errors import BismutError
from bismut.mechanics import Scheme
from bismut.noise import Path
from bismut.registry import PATHS
from bismut.user_errors import reason_of

_MOST = 1_000_000  # numbers of a record that a run file holds


def with_record(document: Mapping[str, Any], mistakes: list[Mistake]) -> dict[str, Any]:
    """The document with a recorded path in numbers."""
    asked = document.get("path")
    if not isinstance(asked, Mapping) or "file" not in asked or any(mistake.path[0] == "path" for mistake in mistakes):
        return dict(document)
    rest = {key: value for key, value in asked.items() if key not in ("file", "values")}
    try:
        data = _read(asked["file"])
        data = np.diff(data, axis=-2) if asked.get("values", False) else data
        if data.size > _MOST:
            raise BismutError(
                f"{asked['file']} has {data.size} numbers, more than the {_MOST} that a run file holds. Run it from Python: bm.Recorded(data)."
            )
    except BismutError as problem:
        mistakes.append(Mistake(("path", "file"), str(problem)))
        return {key: value for key, value in document.items() if key != "path"}
    return {**document, "path": {**rest, "increments": data.tolist()}}


def _read(name: str) -> np.ndarray:
    try:
        data = (
            np.load(name, allow_pickle=False) if File(name).suffix == ".npy" else np.loadtxt(name, delimiter="," if name.endswith(".csv") else None)
        )
    except OSError as problem:
        raise BismutError(f"{name} cannot be read: {problem.strerror or reason_of(problem)}.") from problem
    except (EOFError, ValueError) as problem:
        raise BismutError(f"{name} is not an array of numbers: {reason_of(problem)}. Write it with numpy.save, or as rows of numbers.") from problem
    data = np.asarray(data, float)
    return data[:, None] if data.ndim == 1 else data


def path_of(document: Mapping[str, Any], scheme: Scheme, mistakes: list[Mistake]) -> Path | None:
    """The path that the document names; None for white noise, and where something is wrong."""
    asked = document.get("path")
    if not isinstance(asked, Mapping) or any(mistake.path[0] == "path" for mistake in mistakes):
        return None
    options = {key: value for key, value in asked.items() if key != "name"}
    seed = document["seed"] if ("seed",) not in {mistake.path for mistake in mistakes} else 0
    try:
        if "increments" in options:
            options["increments"] = np.asarray(options["increments"], float)
        path: Path = PATHS[asked["name"]](seed=seed, **options)
        numbers = {key: document[key] for key in ("step", "steps", "trajectories", "burn_in") if (key,) not in {mistake.path for mistake in mistakes}}
        if len(numbers) == 4:
            steps = numbers["steps"] + numbers["burn_in"]
            chosen_path(None, path, scheme, step=float(numbers["step"]), steps=steps, trajectories=numbers["trajectories"])
    except (BismutError, ValueError) as problem:
        mistakes.append(Mistake(("path",), str(problem)))
        return None
    return path
