"""A block in progress as plain arrays: everything that its next step depends on, and everything that was observed so far.

    state, carried force, step  +  memories of watchers  +  tallies and waiting rows on the host  +  failures

A block that continues from here ends with the same bits as one that was never stopped. Of a batch only the leaves are stored, since a fresh one has
the structure; their shapes are compared before machine code sees them. A block that ends keeps a checkpoint from before a last look that is off its
stride, so that it can be extended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from bismut.engines.engine import Batch
from bismut.ensembles import tree_codec
from bismut.ensembles.result import Failure
from bismut.ensembles.row_buffer import RowBuffer
from bismut.errors import StoreError


class Checkpoint(NamedTuple):
    """Steps made in the burn-in or, if `watched`, since the watch began; arrays, and the form of those in the row buffers, which JSON can hold."""

    done: int
    watched: bool
    arrays: dict[str, Any]
    form: Any


def frozen(batch: Batch, buffers: list[RowBuffer], failures: Iterable[Failure], done: int, watched: bool) -> Checkpoint:
    """Copies, so that the block can go on meanwhile."""
    tallies = [buffer.frozen() for buffer in buffers]
    arrays = {
        "batch": {str(i): leaf for i, leaf in enumerate(tree_codec.leaves(batch))},
        "desks": {str(i): arrays for i, (arrays, _) in enumerate(tallies)},
        "failures": columns(failures),
    }
    return Checkpoint(done, watched, arrays, [form for _, form in tallies])


def thawed(point: Checkpoint, example: Batch, buffers: list[RowBuffer], where: str) -> tuple[Batch, list[Failure]]:
    """The batch and its failures; buffers are filled. The example has the structure of the batch."""
    tallies, batch = point.arrays.get("desks", {}), point.arrays.get("batch", {})
    if not isinstance(point.form, list) or len(point.form) != len(buffers) or not isinstance(tallies, dict):
        raise StoreError(f"{where} does not fit this run: it was not made with {len(buffers)} observers, as are asked for.")
    for i, (buffer, form) in enumerate(zip(buffers, point.form, strict=True)):
        try:
            buffer.thaw(tallies.get(str(i)), form)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as problem:  # what an observer makes of arrays that it did not write
            raise StoreError(f"{where} does not fit this run: {buffer.watcher} does not understand what it holds ({problem}).") from problem
    names = list(map(str, range(len(batch)))) if isinstance(batch, dict) else []
    leaves = [leaf for name in names if isinstance(leaf := batch.get(name), np.ndarray)]
    if len(leaves) != len(names):
        raise StoreError(f"{where} does not hold the arrays of a batch.")
    thawed_batch = tree_codec.like(example, leaves, where)
    same = np.array_equal(thawed_batch.trajectories, example.trajectories)
    if not same or not ((thawed_batch.failed >= -1) & (thawed_batch.failed < max(thawed_batch.step, 1))).all():
        raise StoreError(f"{where} does not fit this run: it is of other trajectories, or they failed at steps that were not made.")
    return thawed_batch, failures(point.arrays.get("failures"))


_KINDS = {"trajectory": np.uint64, "step": np.int64, "time": float, "residual": float}


def columns(failures: Iterable[Failure]) -> dict[str, np.ndarray]:
    """Failures as arrays, by trajectory, for the order in which they are noticed depends on where chunks end; which value of a sweep they had is
    known from where they stand."""
    rows = sorted(failures, key=lambda failure: failure.trajectory)
    return {name: np.asarray([getattr(row, name) for row in rows], kind) for name, kind in _KINDS.items()}


def failures(columns: Any) -> list[Failure]:
    stored = [columns.get(name) if isinstance(columns, dict) else None for name in _KINDS]
    parts = [part for part in stored if isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind in "iuf"]
    if len(parts) != len(stored) or len({len(part) for part in parts}) > 1:
        raise StoreError("The failures of a stored block are not columns of numbers, all of one length.")
    return [Failure(*row) for row in zip(*(part.tolist() for part in parts), strict=True)]
