"""Whether this process may compute: not if it was forked from one in which JAX had begun.

The threads of a compiler do not come along with a fork, and whoever waits for them waits for ever, or is aborted.
"""

from __future__ import annotations

import os
import sys

from bismut.errors import ProcessError


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
