"""Whether this process may compute: not if it was forked from one in which JAX had begun, nor if JAX may not move numbers, nor without memory.

The threads of a compiler do not come along with a fork, and whoever waits for them waits for ever, or is aborted. Without room for their libraries
JAX and LLVM abort as well, or never come back: nothing of them is loaded then.
"""

from __future__ import annotations

import os
import sys

from bismut.errors import ProcessError

_ROOM = 2 * 2**30  # bytes of address space: JAX and LLVM take 1.5 to 2.5 GB of it, most of which they never touch


class _Forks:
    begun, forked = False, False  # in the parent just before a fork; here


def _before() -> None:
    """In the parent: the locks of JAX are free, or will be."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    asked = getattr(bridge, "backends_are_initialized", None)
    _Forks.begun = bridge is not None and (asked is None or bool(asked()))


def _after() -> None:
    _Forks.forked = _Forks.forked or _Forks.begun


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_child=_after)


def check_process() -> None:
    """Refuse to compute in a process forked from one that has computed."""
    if _Forks.forked:
        raise ProcessError(
            "This process was forked from one that had already computed, and would wait forever for threads that exist only there. "
            'Start new processes instead: multiprocessing.get_context("spawn"), or fork before anything is made or run.'
        )
    import jax

    guards = (getattr(jax.config, name, None) for name in ("jax_transfer_guard", "jax_transfer_guard_host_to_device"))
    if any(str(guard or "").startswith("disallow") for guard in guards):
        raise ProcessError(
            "jax_transfer_guard forbids JAX to take numbers from NumPy and Python, which bismut does all the time. "
            'Allow it: jax.config.update("jax_transfer_guard", "allow").'
        )


def check_room() -> None:
    """Refuse to load JAX where the limit of address space (ulimit -v) is too small for its libraries."""
    try:
        from resource import RLIMIT_AS, getrlimit
    except ImportError:  # not on this system
        return
    limit = getrlimit(RLIMIT_AS)[0]
    if 0 <= limit < _ROOM:
        raise ProcessError(
            f"This process may use {limit / 2**20:.0f} MB of address space, but JAX and LLVM need {_ROOM / 2**30:.0f} GB or more to be loaded, "
            "most of which they never touch. Raise the limit: ulimit -v unlimited, or more memory for the job."
        )
