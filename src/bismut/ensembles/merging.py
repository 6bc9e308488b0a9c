"""Parts of a run put together.

    simulate(..., first_trajectory=0, trajectories=a)  ∪  simulate(..., first_trajectory=a, trajectories=b)  =  simulate(..., trajectories=a + b)

Trajectories are the same to the bit wherever they run; statistics over them agree to round-off, and counts exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import Any

import jax
import numpy as np

from bismut.compile_cache import key
from bismut.ensembles.inorder import merged
from bismut.ensembles.outcome import Outcome
from bismut.ensembles.request import Request
from bismut.ensembles.result import Result
from bismut.ensembles.run import assembled
from bismut.ensembles.task import numbers_of
from bismut.errors import DomainError

_SAME = ("step", "steps", "every", "burn_in", "t0", "done")


def merge(*results: Result) -> Result:
    """The result of the run of which these are consecutive parts, made with the same arguments except first_trajectory and trajectories."""
    if len(results) < 2 or not all(isinstance(result, Result) for result in results):
        got = ", ".join(type(result).__name__ for result in results)
        raise DomainError(f"merge needs two or more results of bm.simulate, merge(first, second, ...), got ({got}).")
    parts = sorted(results, key=lambda result: result.provenance.first_trajectory)
    for before, after in pairwise(parts):
        _check_follows(before, after)
    first = parts[0].request
    total = sum(part.request.trajectories for part in parts)
    request = replace(first, trajectories=total)
    totals = [reduce(lambda a, b: merged(first, a, b), each) for each in zip(*(part.totals for part in parts), strict=True)]
    failures = tuple(failure for part in parts for failure in part.outcome.failures)
    outcome = Outcome(total * len(totals), failures, beyond=sum(part.outcome.beyond for part in parts))
    return assembled(request, totals, [total] * len(totals), first.steps, _final(parts), outcome)


def _check_follows(before: Result, after: Result) -> None:
    a, b = before.request, after.request
    for part in (before, after):
        if part.request is None or not part.outcome.complete:
            raise DomainError(f"merge needs complete runs as returned by simulate, but one ended with: {part.outcome}.")
    other = [name for name in _SAME if getattr(a, name) != getattr(b, name)]
    other += ["sweep"] if {n: v.tolist() for n, v in a.axes.items()} != {n: v.tolist() for n, v in b.axes.items()} else []
    other += ["scheme, observers or seed"] if not other and not _same(a, b) else []
    if other:
        raise DomainError(f"These are not parts of one run: they differ in {', '.join(other)}.")
    if a.first + a.trajectories != b.first:
        text = f"one holds trajectories {a.first} to {a.first + a.trajectories - 1}, the next begins with {b.first}"
        raise DomainError(f"Parts of a run must follow each other, but {text}.")


def _same(a: Request, b: Request) -> bool:
    """Whether two requests compute the same, in functions and in numbers."""
    if key(a.settings) != key(b.settings):
        return False
    pairs = [pair for x, y in zip(a.settings, b.settings, strict=True) for pair in zip(numbers_of(x), numbers_of(y), strict=True)]
    return all(np.array_equal(x, y) for x, y in pairs)


def _final(parts: Sequence[Result]) -> Any:
    if any(part.final is None for part in parts):
        return None
    axis = len(parts[0].request.axes)
    return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis), *(part.final for part in parts))
