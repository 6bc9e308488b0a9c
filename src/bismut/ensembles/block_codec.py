"""Blocks and checkpoints as nested dictionaries of arrays, which a file can hold, and back.

    BlockResult  ↔  {"summaries": {observer: ...}, "failures": {...}, "final" or "end": {...}, "form": text}

The last states are stored once: where a block says where it would continue, they are a part of that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from bismut.documents import anything, parsed, table
from bismut.ensembles import tree_codec
from bismut.ensembles.block import BlockResult, states_at
from bismut.ensembles.checkpoint import Checkpoint, columns, failures
from bismut.ensembles.observers.watcher import Ended, Looks, Watcher
from bismut.ensembles.request import Request
from bismut.errors import StoreError

Arrays = dict[str, Any]


def block_arrays(request: Request, result: BlockResult) -> Arrays:
    """The result of a block as arrays."""
    summaries = {name: tree_codec.write(summary) for (name, _), summary in zip(request.watchers, result.summaries, strict=True)}
    final, final_form = tree_codec.write(result.final if result.end is None else None)
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
    """The block of stored arrays, if they are those that are expected of it."""
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
    final = tree_codec.read(arrays.get("final"), form.get("final"), tree_codec.classes(()))
    if end is not None and request.keep_final:
        final = states_at(request, variant, block, end)
    beyond = int(_scalar(arrays, "counts", "beyond", "i")) if "beyond" in arrays["counts"] else 0
    return BlockResult(summaries, final, tuple(failures(arrays.get("failures"))), steps, trajectories, end, beyond)


def _summary(name: str, watcher: Any, arrays: Mapping[str, Any], form: Mapping[str, Any]) -> Any:
    if name not in form["summaries"]:
        raise StoreError(f"This block was not observed as {name!r}.")
    return tree_codec.read(arrays["summaries"].get(name), form["summaries"][name], tree_codec.classes([watcher]))


def checkpoint_arrays(point: Checkpoint) -> Arrays:
    """A checkpoint as arrays."""
    at = {"done": np.asarray(point.done), "watched": np.asarray(point.watched)}
    return {**point.arrays, "at": at, "form": np.asarray(json.dumps(point.form))}


def checkpoint(arrays: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint of stored arrays; whether it fits a run is checked by `thawed`."""
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


class Expected:
    """Shapes of the summaries of a request, each derived once for all blocks of a size: arrays of another shape would be broadcast when they are
    merged, and give other numbers.

    They are those that a watcher gives for rows and memories of zeros. Watchers of one's own may give what they like: of them nothing is known.
    """

    def __init__(self, request: Request):
        self.request = request
        self._known: dict[tuple[int, int, int], Any] = {}

    def check(self, variant: int, block: int, steps: int, summaries: tuple) -> None:
        """Refuse summaries of a block of so many steps that have other arrays than they would have here."""
        for i, (name, watcher) in enumerate(self.request.settings[variant].watchers):
            if type(watcher).__module__.startswith("bismut.") and not watcher.fits(self._summary(i, variant, block, steps), summaries[i]):
                raise StoreError(f"Block {block} of variant {variant} does not fit this run: the arrays of {name!r} have other shapes or types.")

    def _summary(self, i: int, variant: int, block: int, steps: int) -> Any:
        watcher = self.request.settings[variant].watchers[i][1]
        if type(watcher).wants is not Watcher.wants:  # it depends on which trajectories these are
            return self._closed(i, variant, block, steps)
        key = i, len(self.request.numbers(block)), steps
        if key not in self._known:
            self._known[key] = self._closed(i, variant, block, steps)
        return self._known[key]

    def _closed(self, i: int, variant: int, block: int, steps: int) -> Any:
        request = self.request
        setting, trajectories = request.settings[variant], request.numbers(block)
        watcher, stride, count = setting.watchers[i][1], request.stride(setting.watchers[i][1]), len(trajectories)
        zeros = lambda tree, *lead: jax.tree.map(lambda leaf: np.zeros((*lead, *leaf.shape), leaf.dtype), tree)
        row, memory = request.engine_plan.rows[i], request.engine_plan.memory[i]
        looks = np.arange(0 if watcher.sees_start else stride, steps + 1, stride)
        if watcher.records and steps % stride:
            looks = np.append(looks, steps)
        tally = None
        if jax.tree.leaves(row) and watcher.wants(trajectories):
            for first in range(0, len(looks), request.portions[i]):
                some = looks[first : first + request.portions[i]]
                tally = watcher.collect(tally, Looks(zeros(row, len(some), count), some, trajectories, None))
        ended = Ended(
            trajectories=trajectories,
            finished=np.ones(count, bool),
            survived=np.full(count, steps),
            steps=steps,
            looks=steps // stride + int(watcher.sees_start),
            every=stride,
            setting=setting,
            h=request.step,
            t0=request.t0,
            first=request.done + request.burn_in,
            size=request.size,
        )
        with np.errstate(all="ignore"):
            return watcher.close(tally, zeros(memory, count) if jax.tree.leaves(memory) else (), ended)
