"""The job of computing a block, in this process or in another one.

    request  ↦  (software that computes, cloudpickle)  ↦  request        with the same bits, or a refusal that says what differs

Compiled code is not sent; the rest is some kilobytes. Functions of the user are pickled by value, so a worker needs no file of theirs. A block in
another process is handed back every 45 s as a checkpoint to continue from: no more than that is lost with a worker. Pickles travel between processes
of one run and are never stored.
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

from bismut.engines.xla_selfcheck import check_compiler
from bismut.ensembles.block import BlockHooks, BlockResult, Checkpoint, pace_of, run_block
from bismut.ensembles.journal import Job
from bismut.ensembles.moments import release_scratch
from bismut.ensembles.request import Request
from bismut.errors import ProcessError
from bismut.executors import Channel, Unfinished
from bismut.function_hash import package_hash

TIME_SLICE = 45.0  # seconds after which a block in another process is handed back

# Settings that decide how JAX computes, and where it caches compiled code.
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


class StepsDone(NamedTuple):
    """Progress: so many steps of so many trajectories, and the newest mean."""

    steps: int
    trajectories: int
    newest: Any


class BlockCheckpoint(NamedTuple):
    """A block in progress, to be stored."""

    variant: int
    block: int
    point: Checkpoint


class BlockJob:
    """Computes blocks: the result of one, or None if it was stopped before the first observation.

    keeps       whether blocks that are stopped send a checkpoint
    ends        whether blocks that end say where they would continue
    time_slice  seconds after which a block is handed back unfinished; None for never, where workers do not die
    wanted      predicate, driver only: is this variant still needed?
    """

    def __init__(
        self, request: Request, *, keeps: bool, ends: bool, time_slice: float | None = None, wanted: Callable[[int], bool] = lambda variant: True
    ):
        self.request, self.keeps, self.ends, self.time_slice, self.wanted = request, keeps, ends, time_slice, wanted
        self._opening = threading.Lock()

    def open(self) -> None:
        """Compile, once."""
        with self._opening:
            self.request.compile()

    def __call__(self, job: Job, channel: Channel) -> BlockResult | Unfinished | None:
        if channel.stopped() or not self.wanted(job.variant):
            return None
        self.open()
        part = TimeSlice(channel, self.time_slice)
        control = BlockHooks(part.over, part.note, pace_of(self.request))
        control.ends, control.threads = self.ends, channel.threads
        if self.time_slice is not None:
            control.keep = part.keep
        elif self.keeps:
            control.keep = lambda *checkpoint: channel.send(BlockCheckpoint(*checkpoint))
        try:
            result = run_block(self.request, job.variant, job.block, control, job.begun)
        finally:
            release_scratch()
        part.flush()
        if part.checkpoint is None or (result is not None and result.steps == self.request.steps):
            return result
        if channel.stopped():
            channel.send(part.checkpoint)
            return result
        return Unfinished(job._replace(begun=part.checkpoint.point), part.checkpoint)

    def __reduce__(self):
        return _opened, (computes(), _pickled((self.request, self.keeps, self.ends, self.time_slice)))


class TimeSlice:
    """One call of a job: when its time is over, and what it reports meanwhile, not more often than the channel allows."""

    def __init__(self, channel: Channel, seconds: float | None):
        self._channel, self._end = channel, None if seconds is None else time.monotonic() + seconds
        self._steps, self._reported, self._moved = 0, time.monotonic(), False
        self._last: tuple[int, Any] = (0, None)
        self.checkpoint: BlockCheckpoint | None = None

    def over(self) -> bool:
        return self._channel.stopped() or (self._end is not None and self._moved and time.monotonic() > self._end)

    def note(self, steps: int, trajectories: int, newest: Any) -> None:
        self._moved = True
        self._steps += steps
        self._last = trajectories, newest
        if time.monotonic() - self._reported >= self._channel.every:
            self.flush()

    def flush(self) -> None:
        if self._steps:
            self._channel.send(StepsDone(self._steps, *self._last))
        self._steps, self._reported = 0, time.monotonic()

    def keep(self, variant: int, block: int, point: Checkpoint) -> None:
        self.checkpoint = BlockCheckpoint(variant, block, point)


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


def _opened(sender: dict[str, Any], data: bytes) -> BlockJob:
    here, there = computes()["versions"], sender["versions"]
    if differ := [f"{name} {here.get(name)} instead of {there[name]}" for name in there if here.get(name) != there[name]]:
        raise ProcessError(f"This worker has {', '.join(differ)}, and would not compute the same numbers. Install the same versions.")
    for name, value in sender["settings"].items():
        jax.config.update(name, value)
    if sender["cache"] and Path(sender["cache"]).is_dir():
        jax.config.update(_CACHE, sender["cache"])
    check_compiler()
    request, keeps, ends, time_slice = pickle.loads(data)
    work = BlockJob(request, keeps=keeps, ends=ends, time_slice=time_slice)
    work.open()
    return work


def _pickled(thing: Any) -> bytes:
    import cloudpickle

    with _by_value(cloudpickle):
        return cloudpickle.dumps(thing, 5)


@contextmanager
def _by_value(cloudpickle: Any) -> Iterator[None]:
    """Within, modules of the user are pickled by value, installed ones by name."""
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
