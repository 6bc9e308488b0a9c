"""What drives a run, from the table [path]: a path by name, and what it takes. Seeds are those of the run.

    Wiener (substeps, bounded)   OrnsteinUhlenbeck (correlation_time)   Jumps (rate, size, spread)   FractionalBrownian (hurst, steps)
    Recorded (file or increments, values)        .npy, or text with a row for each step and a column for each Wiener process

A recorded path becomes numbers in the document, once: what a run is does not change when the file does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

import numpy as np

from bismut import noise
from bismut.blame import why
from bismut.cli.runs.schema import Mistake
from bismut.ensembles.checks import chosen_path
from bismut.errors import BismutError
from bismut.mechanics import Scheme
from bismut.noise import Path

_MOST = 1_000_000  # numbers of a record that a run file holds


def with_record(document: Mapping[str, Any], found: list[Mistake]) -> dict[str, Any]:
    """The document with a recorded path in numbers."""
    asked = document.get("path")
    if not isinstance(asked, Mapping) or "file" not in asked or any(mistake.path[0] == "path" for mistake in found):
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
        found.append(Mistake(("path", "file"), str(problem)))
        return {key: value for key, value in document.items() if key != "path"}
    return {**document, "path": {**rest, "increments": data.tolist()}}


def _read(name: str) -> np.ndarray:
    try:
        data = (
            np.load(name, allow_pickle=False) if File(name).suffix == ".npy" else np.loadtxt(name, delimiter="," if name.endswith(".csv") else None)
        )
    except OSError as problem:
        raise BismutError(f"{name} cannot be read: {problem.strerror or why(problem)}.") from problem
    except (EOFError, ValueError) as problem:
        raise BismutError(f"{name} is not an array of numbers: {why(problem)}. Write it with numpy.save, or as rows of numbers.") from problem
    data = np.asarray(data, float)
    return data[:, None] if data.ndim == 1 else data


def path_of(document: Mapping[str, Any], scheme: Scheme, found: list[Mistake]) -> Path | None:
    """The path that was asked for; None for the run's own, and where something is wrong."""
    asked = document.get("path")
    if not isinstance(asked, Mapping) or any(mistake.path[0] == "path" for mistake in found):
        return None
    options = {key: value for key, value in asked.items() if key != "name"}
    seed = document["seed"] if ("seed",) not in {mistake.path for mistake in found} else 0
    try:
        if asked["name"] == "Recorded":
            made: Path = noise.Recorded(np.asarray(options["increments"], float), seed=seed)
        else:
            made = getattr(noise, asked["name"])(seed, **options)
        numbers = {key: document[key] for key in ("step", "steps", "trajectories", "burn_in") if (key,) not in {mistake.path for mistake in found}}
        if len(numbers) == 4:
            steps = numbers["steps"] + numbers["burn_in"]
            chosen_path(None, made, scheme, step=float(numbers["step"]), steps=steps, trajectories=numbers["trajectories"])
    except (BismutError, ValueError) as problem:
        found.append(Mistake(("path",), str(problem)))
        return None
    return made
