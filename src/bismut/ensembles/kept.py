"""Blocks and checkpoints as nested dictionaries of arrays, which a file can hold, and back.

    BlockResult  ↔  {"summaries": {observer: ...}, "failures": {...}, "final" or "end": {...}, "form": text}

The last states are stored once: where a block says how it would go on, they are a part of that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from bismut.documents import anything, parsed, table
from bismut.ensembles import written
from bismut.ensembles.block import BlockResult, states_at
from bismut.ensembles.checkpoint import Checkpoint, columns, failures
from bismut.ensembles.expected import Expected
from bismut.ensembles.request import Request
from bismut.errors import StoreError

Arrays = dict[str, Any]


def block_arrays(request: Request, result: BlockResult) -> Arrays:
    """What a block came to, as arrays."""
    summaries = {name: written.write(summary) for (name, _), summary in zip(request.watchers, result.summaries, strict=True)}
    final, final_form = written.write(result.final if result.end is None else None)
    form = {"summaries": {name: form for name, (_, form) in summaries.items()}, "final": final_form}
    arrays: Arrays = {"summaries": {name: arrays for name, (arrays, _) in summaries.items() if arrays is not None}}
    arrays["failures"] = columns(result.failures)
    arrays["counts"] = {"steps": np.asarray(result.steps), "trajectories": np.asarray(result.trajectories)}
    if result.beyond:
        arrays["counts"]["beyond"] = np.asarray(result.beyond)
    if final is not None:
        arrays["final"] = final
    if result.end is not None:
        arrays["end"] = checkpoint_arrays(result.end)
    return arrays | {"form": np.asarray(json.dumps(form))}


def block_result(expected: Expected, variant: int, block: int, arrays: Mapping[str, Any]) -> BlockResult:
    """The block that was stored so, if it has the arrays that are expected of it."""
    request = expected.request
    form = _form(arrays)
    if not isinstance(arrays.get("summaries"), Mapping):
        raise StoreError("A stored block has no summaries.")
    summaries = tuple(_summary(name, watcher, arrays, form) for name, watcher in request.watchers)
    steps, trajectories = (int(_scalar(arrays, "counts", name, "i")) for name in ("steps", "trajectories"))
    if (steps, trajectories) != (request.steps, len(request.numbers(block))):
        raise StoreError(f"Block {block} of variant {variant} has {trajectories} trajectories of {steps} steps, which are not those of this run.")
    expected.check(variant, block, steps, summaries)
    end = checkpoint(arrays["end"]) if isinstance(arrays.get("end"), Mapping) else None
    final = written.read(arrays.get("final"), form.get("final"), written.classes(()))
    if end is not None and request.keep_final:
        final = states_at(request, variant, block, end)
    beyond = int(_scalar(arrays, "counts", "beyond", "i")) if "beyond" in arrays["counts"] else 0
    return BlockResult(summaries, final, tuple(failures(arrays.get("failures"))), steps, trajectories, end, beyond)


def _summary(name: str, watcher: Any, arrays: Mapping[str, Any], form: Mapping[str, Any]) -> Any:
    if name not in form["summaries"]:
        raise StoreError(f"This block was not observed as {name!r}.")
    return written.read(arrays["summaries"].get(name), form["summaries"][name], written.classes([watcher]))


def checkpoint_arrays(point: Checkpoint) -> Arrays:
    """A checkpoint as arrays."""
    at = {"done": np.asarray(point.done), "watched": np.asarray(point.watched)}
    return {**point.arrays, "at": at, "form": np.asarray(json.dumps(point.form))}


def checkpoint(arrays: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint that was stored so; whether it fits a run is judged by whoever thaws it."""
    done, watched = _scalar(arrays, "at", "done", "i"), _scalar(arrays, "at", "watched", "b")
    form = parsed(str(arrays.get("form", "")), "The form of a checkpoint", anything)
    rest = {name: part for name, part in arrays.items() if name not in ("at", "form")}
    return Checkpoint(int(done), bool(watched), rest, form)


def _form(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return parsed(str(arrays.get("form", "")), "The form of a block", table({"summaries": table()}, needed=("summaries",)))


def _scalar(arrays: Mapping[str, Any], group: str, name: str, kind: str) -> Any:
    """One number of a group of arrays."""
    parts = arrays.get(group)
    value = parts.get(name) if isinstance(parts, Mapping) else None
    if not isinstance(value, np.ndarray) or value.shape != () or value.dtype.kind != kind:
        raise StoreError(f"A stored block does not say {group}/{name} in one number.")
    return value
