"""Start states from the table [start]: a point and how it moves, checked against the space; what is left out is the model's own.

A frame of a file becomes numbers here, once: what a run is does not change when the file does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from bismut.arguments import MOTIONS
from bismut.cli.runs.tables import Mistake
from bismut.cli.runs.toml import Path_
from bismut.ensembles.checks import check_start
from bismut.errors import BismutError
from bismut.mechanics import Maxwell, Scheme, Start, State
from bismut.sharing.import_state import point_from, read_frame


def with_frame(scheme: Scheme, document: Mapping[str, Any], mistakes: list[Mistake]) -> dict[str, Any]:
    """The document with a frame of a file in numbers: q, and the velocity unless the document says how it moves."""
    asked = document.get("start")
    if not isinstance(asked, Mapping) or "file" not in asked or any(mistake.path[0] == "start" for mistake in mistakes):
        return dict(document)
    rest = {key: value for key, value in asked.items() if key not in ("file", "frame")}
    moves = any(key in rest for key in MOTIONS)
    try:
        q, velocity = point_from(scheme, read_frame(asked["file"], asked.get("frame", -1)), at_rest=moves)
    except BismutError as problem:
        mistakes.append(Mistake(("start", "file"), str(problem)))
        return {**document, "start": rest}
    numbers = {"q": _lists(q)} | ({} if moves else {"velocity": _lists(velocity)})
    projected = {"project": True} if scheme.system.constraints else {}  # a file rounds numbers
    return {**document, "start": {**numbers, **projected, **rest}}


def _lists(tree: Any) -> Any:
    return [_lists(part) for part in tree] if isinstance(tree, tuple) else np.asarray(tree).tolist()


def started(scheme: Scheme, own: State | Maxwell, document: Mapping[str, Any], mistakes: list[Mistake]) -> State | Maxwell:
    """The start that was asked for; the model's own where nothing was, or where that is wrong."""
    asked = document.get("start")
    wrong = {mistake.path for mistake in mistakes}
    if not isinstance(asked, Mapping) or not asked:
        return own
    # Each array by itself first, so that all that is wrong with them is said.
    arrays = {key: asked[key] for key in ("q", "velocity", "momentum") if key in asked and ("start", key) not in wrong}
    fitting = {key: _fitting(scheme, key, value, mistakes) for key, value in arrays.items()}
    if any(mistake.path[0] in ("start", "t0") for mistake in mistakes):
        return own
    motion: dict[str, Any] = {key: fitting.get(key, asked[key]) for key in MOTIONS if key in asked}
    if not motion:
        motion = own.motion if isinstance(own, Start | Maxwell) else {"momentum": own.p}
    try:
        start = scheme.start(fitting.get("q", own.q), t=document["t0"], project=asked.get("project", False), **motion)
        batch = check_start(scheme, start, document["t0"])
    except BismutError as problem:
        mistakes.append(Mistake(("start",), str(problem).replace("scheme.start(..., project=True)", "project = true")))
        return own
    trajectories = document["trajectories"]
    if batch and batch != (trajectories,) and ("trajectories",) not in wrong:
        text = f"there are starts for {batch[0]} trajectories, but the run has {trajectories}. Give one start, or one for each trajectory."
        mistakes.append(Mistake(("start",), text))
    return start


def _fitting(scheme: Scheme, key: str, value: Any, mistakes: list[Mistake]) -> Any:
    """The value as the space holds it: one array, or a tuple of as many as it has."""
    space, path = scheme.space, ("start", key)
    like = jax.eval_shape(space.origin if key == "q" else space.zero)
    try:
        fitting = _arrays(value, like)
    except ValueError:
        shapes = " and ".join(str(leaf.shape) for leaf in jax.tree.leaves(like))
        mistakes.append(Mistake(path, f"expected numbers in the shape {shapes} on {space}, in rows of equal length and a list for each array."))
        return None
    check = space.check if key == "q" else space.check_velocity
    return fitting if _holds(lambda: check(fitting, key), path, mistakes) else None


def _holds(check: Any, path: Path_, mistakes: list[Mistake]) -> bool:
    try:
        check()
    except BismutError as problem:
        mistakes.append(Mistake(path, str(problem)))
        return False
    return True


def _arrays(value: Any, like: Any) -> Any:
    if not isinstance(like, tuple):
        array = np.asarray(value, float)
        return array.reshape(like.shape) if array.size == like.size == 1 else array  # a single coordinate is one number
    if not isinstance(value, list) or len(value) != len(like):
        raise ValueError
    return tuple(_arrays(part, shape) for part, shape in zip(value, like, strict=True))
