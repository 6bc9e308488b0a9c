"""What a run needs before it starts: its watchers, its targets, the size of its blocks."""

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from bismut.ensembles.block import step_size
from bismut.ensembles.observable import energy
from bismut.ensembles.observers.records import Records
from bismut.ensembles.observers.watcher import Setting, Watcher
from bismut.ensembles.result import RESERVED
from bismut.errors import DomainError, nearest
from bismut.mechanics import Scheme, State
from bismut.noise import Wiener

BLOCK = 2048  # trajectories advanced together: large enough to amortise a loop, small enough for the cache
_FEW = 32  # blocks up to which their number is made to fit
_LARGEST = 2**26  # bytes that the largest array of a block may have under vmap


def setting_of(scheme: Scheme, path: Wiener, step, t0, observe, one: State, by_lanes: bool) -> Setting:
    dtype = scheme.system.dtype
    watchers = tuple((name, _watcher(name, what).bound(scheme, name, one)) for name, what in (observe or {"energy": energy}).items())
    return Setting(scheme, path, jnp.asarray(step, dtype), jnp.asarray(t0, dtype), watchers, by_lanes)


def _watcher(name: str, what) -> Watcher:
    if name in RESERVED or "/" in name:
        raise DomainError(f"An observable cannot be called {name!r}: results keep that name for themselves ({', '.join(RESERVED)}, and '/').")
    return what if isinstance(what, Watcher) else Records(what)


def targets_of(until: Mapping[str, float] | None, setting: Setting) -> dict[str, float]:
    names = [name for name, _ in setting.watchers]
    for name, target in (until or {}).items():
        if name not in names:
            raise DomainError(f"until names {name!r}, which is not observed. {nearest(name, names)}")
        if not target > 0:
            raise DomainError(f"until[{name!r}] must be a positive standard error, but {target} came.")
    return dict(until or {})


def block_size(scheme: Scheme, one: State, mode: str) -> int:
    """Fewer trajectories at once where a step makes large arrays, such as the pairs of many bodies."""
    if mode == "lanes":
        return BLOCK
    largest = step_size(scheme, one).largest * scheme.system.dtype.itemsize
    return int(max(1, min(BLOCK, 2 ** int(np.log2(max(_LARGEST / largest, 1))))))


def even_size(trajectories: int, most: int) -> int:
    """A block size of at most `most` that leaves no worker idle at the end: few blocks are made a multiple of four, whatever the number of cores."""
    blocks = -(-trajectories // most)
    if 1 < blocks < _FEW:
        blocks = 4 * -(-blocks // 4)
    return min(most, -(-trajectories // blocks))
