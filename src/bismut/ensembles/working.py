"""What an executor does with a block, here or elsewhere, and how a request gets there.

    request  ↦  (what computes, cloudpickle)  ↦  request        to the same bits, or a refusal that says what differs

What was compiled stays behind; the rest is some kilobytes. Functions of the user go by value, so a worker needs no file of theirs. A block that is
run elsewhere comes back every minute or so, as a checkpoint to go on from: what dies with a worker is never more than that.
"""

from __future__ import annotations

import pickle
import platform
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jax

from bismut.engines.compiler import check_compiler
from bismut.ensembles import scratch
from bismut.ensembles.block import BlockResult, Checkpoint, Control, run_block
from bismut.ensembles.journal import Job
from bismut.ensembles.pace import pace_of
from bismut.ensembles.request import Request
from bismut.errors import ProcessError
from bismut.executors import Again, Line
from bismut.sameness import package_hash

TURN = 45.0  # seconds after which a block that is run elsewhere comes back

# What decides how JAX computes, and where it keeps what it has compiled.
_SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_debug_nans",
    "jax_persistent_cache_min_compile_time_secs",
)
_CACHE = "jax_compilation_cache_dir"
_COMPUTE = ("bismut", "jax", "jaxlib", "numpy", "llvmlite", "equinox")


class Note(NamedTuple):
    """Progress: so many steps of so many trajectories, and the newest mean."""

    steps: int
    trajectories: int
    newest: Any


class Kept(NamedTuple):
    """A block in progress, to be kept."""

    variant: int
    block: int
    point: Checkpoint


class Work:
    """A job done: the result of a block; None if it was to stop before anybody had looked.

    keeps   whether blocks in progress are kept when they are stopped
    ends    whether blocks that end say where they would go on
    turn    seconds after which a block comes back; None for never, as where nobody need fear for it
    wanted  whether anybody still wants a block of a variant; known in the driver alone
    """

    def __init__(self, request: Request, *, keeps: bool, ends: bool, turn: float | None = None, wanted: Callable[[int], bool] = lambda variant: True):
        self.request, self.keeps, self.ends, self.turn, self.wanted = request, keeps, ends, turn, wanted
        self._opening = threading.Lock()

    def open(self) -> None:
        """Compile, once."""
        with self._opening:
            _ = self.request.program, self.request.shared, self.request.starting

    def __call__(self, job: Job, line: Line) -> BlockResult | Again | None:
        if line.stopped() or not self.wanted(job.variant):
            return None
        self.open()
        turn = _Turn(line, self.turn)
        control = Control(turn.over, turn.note, pace_of(self.request))
        control.ends = self.ends
        if self.turn is not None:
            control.keep = turn.keep
        elif self.keeps:
            control.keep = lambda *kept: line.tell(Kept(*kept))
        try:
            result = run_block(self.request, job.variant, job.block, control, job.begun)
        finally:
            scratch.release()
        turn.flush()
        if turn.kept is None or (result is not None and result.steps == self.request.steps):
            return result
        if line.stopped():
            line.tell(turn.kept)
            return result
        return Again(job._replace(begun=turn.kept.point), turn.kept)

    def __reduce__(self):
        return _opened, (computes(), _pickled((self.request, self.keeps, self.ends, self.turn)))


class _Turn:
    """A job's time, and what it says meanwhile: not more often than the line bears."""

    def __init__(self, line: Line, seconds: float | None):
        self._line, self._end = line, None if seconds is None else time.monotonic() + seconds
        self._steps, self._told, self._moved = 0, time.monotonic(), False
        self._last: tuple[int, Any] = (0, None)
        self.kept: Kept | None = None

    def over(self) -> bool:
        return self._line.stopped() or (self._end is not None and self._moved and time.monotonic() > self._end)

    def note(self, steps: int, trajectories: int, newest: Any) -> None:
        self._moved = True
        self._steps += steps
        self._last = trajectories, newest
        if time.monotonic() - self._told >= self._line.every:
            self.flush()

    def flush(self) -> None:
        if self._steps:
            self._line.tell(Note(self._steps, *self._last))
        self._steps, self._told = 0, time.monotonic()

    def keep(self, variant: int, block: int, point: Checkpoint) -> None:
        self.kept = Kept(variant, block, point)


def computes() -> dict[str, Any]:
    """What must be the same wherever a run is computed."""
    return {
        "versions": {
            "Python": ".".join(platform.python_version_tuple()[:2]),
            **{name: version(name) for name in _COMPUTE},
            "code of bismut": package_hash(),
        },
        "settings": {name: getattr(jax.config, name) for name in _SETTINGS},
        "cache": getattr(jax.config, _CACHE),
    }


def _opened(made_by: dict[str, Any], data: bytes) -> Work:
    here, there = computes()["versions"], made_by["versions"]
    if differ := [f"{name} {here.get(name)} instead of {there[name]}" for name in there if here.get(name) != there[name]]:
        raise ProcessError(f"This worker has {', '.join(differ)}, and would not compute the same numbers. Install the same versions.")
    for name, value in made_by["settings"].items():
        jax.config.update(name, value)
    if made_by["cache"] and Path(made_by["cache"]).is_dir():
        jax.config.update(_CACHE, made_by["cache"])
    check_compiler()
    request, keeps, ends, turn = pickle.loads(data)
    work = Work(request, keeps=keeps, ends=ends, turn=turn)
    work.open()
    return work


def _pickled(thing: Any) -> bytes:
    import cloudpickle

    with _by_value(cloudpickle):
        return cloudpickle.dumps(thing, 5)


@contextmanager
def _by_value(cloudpickle: Any) -> Iterator[None]:
    """Within this, what the user wrote is pickled as it is, and what was installed by its name."""
    known = cloudpickle.list_registry_pickle_by_value()
    own = [module for name, module in list(sys.modules.items()) if isinstance(module, ModuleType) and name not in known and _own(name, module)]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


def _own(name: str, module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if not file or name == "__main__" or name != module.__name__ or name.partition(".")[0] == "bismut":
        return False
    installed = (sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib"))
    return not any(part in ("site-packages", "dist-packages") for part in Path(file).parts) and not file.startswith(tuple(installed))
