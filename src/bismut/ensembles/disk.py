"""What a run takes on a disk, before it starts: from the shapes of what is kept.

    results            summaries of all trajectories and their last states, a few small files for every array
    each block         its summaries; and where it can be gone on with, what its next step depends on: states, memories, tallies, rows that wait

Small arrays cost more than their numbers: each has a description, and a file takes up whole pages.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import jax

from bismut.ensembles.desk import portion_of
from bismut.ensembles.observers.records import record_steps
from bismut.ensembles.request import Request
from bismut.ensembles.task import bytes_of

_PAGE = 4096  # bytes that a file or a folder takes at least
_DESCRIBED = 700  # bytes that describe an array within a block: its metadata, its names, its checksums
_LINE = 400  # of the manifest, for each block
_DOCUMENTS = 14 * _PAGE  # configuration, provenance, certificate, README, and their texts in the manifest
# Arrays: of an observer in a block and in the results, of the failures, and of a block beside its observers.
_SUMMARY, _REPORT, _FAILURES, _BLOCK, _END = 6, 7, 5, 7, 11


def disk_of(request: Request, reported: Any) -> int:
    """Bytes of the folder of a run; `reported` gives the bytes of summaries of so many trajectories."""
    found, state = request.chosen, bytes_of(request.example)
    kept = request.trajectories * state if request.keep_final else 0
    arrays = _REPORT * len(request.watchers) + _FAILURES + (len(jax.tree.leaves(request.example)) if request.keep_final else 0)
    results = request.variants * (reported(request.trajectories) + kept) + 4 * _PAGE * arrays
    block = reported(request.size) + _DESCRIBED * (_BLOCK + _SUMMARY * len(request.watchers))
    if request.keep_final:
        remembered = sum(bytes_of(memory) for memory in found.memory)
        block += request.size * (state + remembered + 16) + reported(request.size) + _tallies(request)
        block += _DESCRIBED * (_END + len(jax.tree.leaves((request.example, found.memory))))
    pages = ceil(block / _PAGE) * _PAGE
    return results + request.variants * request.blocks * (pages + _LINE) + _DOCUMENTS


def _tallies(request: Request) -> int:
    """What lies on the desks at the end of a block: rows that do not fill a portion, and a tally for every one that they filled."""
    total = 0
    for (_, watcher), row in zip(request.watchers, request.chosen.rows, strict=True):
        width, looks = bytes_of(row) * request.size, len(record_steps(request.steps, request.stride(watcher))) - 1
        if width:
            portion = portion_of(width)
            total += width * (looks % portion) + _SUMMARY * _DESCRIBED * (looks // portion + 1)
    return total
