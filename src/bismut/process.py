"""Whether this process may compute: not if it was forked after JAX had started, nor if JAX may not transfer arrays, nor without address space.

The threads of a compiler do not survive a fork, and waiting for them hangs or aborts. Without address space for their libraries JAX and LLVM abort or
hang as well: then they are not loaded.
"""

from __future__ import annotations

import sys

from bismut.errors import ProcessError
from bismut.operating_system import address_space, at_fork

_NEEDED = 2 * 2**30  # bytes of address space: JAX and LLVM take 1.5 to 2.5 GB of it, most of which they never touch


class _Forks:
    begun, forked = False, False  # in the parent just before a fork; here


def _before() -> None:
    """In the parent: the locks of JAX are free, or will be."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    asked = getattr(bridge, "backends_are_initialized", None)
    _Forks.begun = bridge is not None and (asked is None or bool(asked()))


def _after() -> None:
    _Forks.forked = _Forks.forked or _Forks.begun


at_fork(_before, _after)


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


def check_address_space() -> None:
    """Refuse to load JAX where the limit of address space (ulimit -v) is too small for its libraries."""
    limit = address_space()
    if limit is not None and limit < _NEEDED:
        raise ProcessError(
            f"This process may use {limit / 2**20:.0f} MB of address space, but JAX and LLVM need {_NEEDED / 2**30:.0f} GB or more to be loaded, "
            "most of which they never touch. Raise the limit: ulimit -v unlimited, or more memory for the job."
        )
