"""A block in the middle of its way, as plain arrays: everything that its next step depends on, and everything that was seen so far.

    state, carried force, step  +  memories of watchers  +  tallies and waiting rows on the host  +  who failed

A block that goes on from here ends with the same bits as one that was never stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from bismut.engines.engine import Batch
from bismut.ensembles import written
from bismut.ensembles.desk import Desk
from bismut.ensembles.outcome import Failure
from bismut.errors import StoreError


class Checkpoint(NamedTuple):
    """Steps made in the burn-in or, if `watched`, since the watch began; arrays, and the form of those on the desks, which JSON can hold."""

    done: int
    watched: bool
    arrays: dict[str, Any]
    form: Any


def frozen(batch: Batch, desks: list[Desk], failures: Iterable[Failure], done: int, watched: bool) -> Checkpoint:
    """Copies, so that the block can go on meanwhile."""
    lying = [desk.frozen() for desk in desks]
    arrays = {
        "batch": {str(i): leaf for i, leaf in enumerate(written.leaves(batch))},
        "desks": {str(i): arrays for i, (arrays, _) in enumerate(lying)},
        "failures": columns(failures),
    }
    return Checkpoint(done, watched, arrays, [form for _, form in lying])


def thawed(point: Checkpoint, example: Batch, desks: list[Desk], where: str) -> tuple[Batch, list[Failure]]:
    """The batch and its failures; desks are filled. The example has the structure of the batch."""
    lying, batch = point.arrays.get("desks", {}), point.arrays.get("batch", {})
    if not isinstance(point.form, list) or len(point.form) != len(desks):
        raise StoreError(f"{where} does not fit this run: it was made with {len(point.form)} observers, but {len(desks)} are asked for.")
    for i, (desk, form) in enumerate(zip(desks, point.form, strict=True)):
        desk.thaw(lying.get(str(i)), form)
    leaves = [batch[str(i)] for i in range(len(batch))]
    return written.like(example, leaves, where), failures(point.arrays["failures"])


def columns(failures: Iterable[Failure]) -> dict[str, np.ndarray]:
    """Failures as arrays, by trajectory, for the order in which they are noticed depends on where chunks end; which value of a sweep they had is
    known from where they stand."""
    rows = sorted(failures, key=lambda failure: failure.trajectory)
    kinds = {"trajectory": np.uint64, "step": np.int64, "time": float, "residual": float}
    return {name: np.asarray([getattr(row, name) for row in rows], kind) for name, kind in kinds.items()}


def failures(columns: dict[str, np.ndarray]) -> list[Failure]:
    rows = zip(*(columns[name].tolist() for name in ("trajectory", "step", "time", "residual")), strict=True)
    return [Failure(*row) for row in rows]
