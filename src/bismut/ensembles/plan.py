"""What a run will take, before it starts."""

import os
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from bismut.ensembles.observers.watcher import Setting
from bismut.errors import DomainError
from bismut.showing import text

_SHARE = 0.8  # of the memory that is free, which a run may fill


@dataclass(frozen=True)
class Plan:
    """What a run would take: sizes in bytes, times in seconds. `seconds` and `compiling` are measured, by a dry run only."""

    trajectories: int
    steps: int
    values: int
    block: int
    blocks: int
    workers: int
    mode: str
    memory: int
    disk: int
    fallbacks: tuple[str, ...] = ()
    seconds: float | None = None
    compiling: float | None = None

    @property
    def path_steps(self) -> int:
        return self.trajectories * self.steps * self.values

    def check(self) -> None:
        """Refuse a run that does not fit into memory."""
        free = available_memory()
        if free is not None and self.memory > _SHARE * free:
            raise DomainError(
                f"This run needs about {_size(self.memory)} of memory, but {_size(free)} are free. Use fewer trajectories or values at once, "
                "a longer stride for paths, fewer bins or lags, or keep_final=False if the last states are not wanted."
            )

    def __repr__(self):
        swept = f" × {self.values} values" if self.values > 1 else ""
        lines = [
            f"{self.trajectories} trajectories × {self.steps} steps{swept}: {self.path_steps:.3g} path-steps",
            f"  blocks       {self.blocks} of {self.block} trajectories, {self.workers} at a time, by {self.mode}",
            f"  memory       {_size(self.memory)}",
            f"  disk         {_size(self.disk)} if saved",
        ]
        if self.fallbacks:
            lines.append(f"  left to vmap {', '.join(self.fallbacks)}")
        if self.seconds is not None and self.compiling is not None:
            rate = self.path_steps / max(self.seconds, 1e-9)
            lines.append(f"  time         {_span(self.seconds)} at {rate / 1e6:.2f} M path-steps/s, after {self.compiling:.1f} s of compiling")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return text(str(self))


def sizes(setting: Setting, state, watching: int, block: int, trajectories: int, workers: int, keep_final: bool) -> tuple[int, int]:
    """(memory, disk) in bytes: final states, what watchers hold for one block (`watching`), and the lanes of blocks that run together."""
    one, channels = bytes_of(state), setting.scheme.channels
    working = workers * (block * (12 * one + 40 * channels) + 2 * watching)
    kept = 2 * trajectories * one if keep_final else 0
    return working + kept + workers * watching, kept // 2 + watching


def bytes_of(tree) -> int:
    return sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def available_memory() -> int | None:
    """Bytes that can be had without swapping, where the system says so."""
    info = Path("/proc/meminfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
