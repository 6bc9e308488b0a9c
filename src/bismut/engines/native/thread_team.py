"""Threads that help with one call of machine code: they wait in its `serve`, spinning, until the call is over (`programs.codegen.parallel`).

The call waits for no thread: one that comes late, or never, finds less to do.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from bismut.engines.native.batches import room
from bismut.operating_system import cores, yielding
from bismut.programs.codegen.parallel import LEAVE, SCRATCH, SIZE, TEAM, THREADS, YIELD


@cache
def _pool() -> ThreadPoolExecutor:
    """No more threads than cores: more would wait for each other."""
    return ThreadPoolExecutor(cores(), "bismut-helper")


@contextmanager
def help_of(helpers: int, serve: Any, scratch: int) -> Iterator[np.ndarray | int]:
    """So many threads, each with its own scratch memory, as the numbers by which a call knows them; 0 for none."""
    if helpers < 1:
        yield 0
        return
    team, memory = room((TEAM,), np.int64), np.zeros(helpers * scratch + 1, np.uint8)
    team[:] = 0
    team[SCRATCH], team[SIZE], team[YIELD], team[THREADS] = memory.ctypes.data, scratch, yielding(), helpers + 1
    table = array("q", [team.ctypes.data])
    running = [_pool().submit(serve, table.buffer_info()[0]) for _ in range(helpers)]
    try:
        yield team
    finally:
        team[LEAVE] = 1
        wait([future for future in running if not future.cancel()])
