"""Errors of wrong use: what was expected, what was given, what to do.

A numerical failure during a run is not here: it is an outcome (`ensembles.result`), because the other trajectories finish.
"""

import difflib
from collections.abc import Iterable

_CLOSE = 0.65  # of letters in common: one wrong letter in three, two in six
_LISTED = 40  # names listed at most


class BismutError(ValueError):
    """Wrong input, noticed before anything runs."""


class BismutWarning(RuntimeWarning):
    """What runs, but not as physics may be meant; the header of the result says it too."""


class ExtensionWarning(RuntimeWarning):
    """An installed package publishes something for bismut that cannot be used."""


class ShapeError(BismutError):
    """An array or a structure of arrays has the wrong shape."""


class DomainError(BismutError):
    """A value lies outside the set it must belong to: off the group, not finite, not positive."""


class DegenerateError(BismutError):
    """A Lagrangian that does not determine the velocity from the momentum."""


class PrecisionError(BismutError):
    """Double precision was expected and JAX would have used single precision."""


class StoreError(BismutError):
    """A folder that cannot be claimed or written, or stored data that is missing, altered or not ours."""


class ChangedError(StoreError):
    """A run was extended or replaced while it was being read; reading it again gives the new one."""


class WriteError(StoreError):
    """Writing failed for a reason that may be gone elsewhere: a full or read-only disk, a file in the way, a name that the disk refuses."""


class DiskFullError(WriteError):
    """There is no room where something is to be written."""


class CompilerError(RuntimeError):
    """The compiler of this environment computes wrongly."""


class ProcessError(RuntimeError):
    """A process in which nothing can be computed."""


class SimulationError(RuntimeError):
    """Trajectories failed and the caller asked for failures to be raised."""


class BlockError(SimulationError):
    """Blocks of a run could not be computed, however often they were tried; the others were."""


def nearest(word: str, known: Iterable[str]) -> str:
    """The sentence that offers the known name closest to a mistyped one, or lists them all if they are not too many."""
    names = [name for name in known if isinstance(name, str)]
    spelled = {name.lower(): name for name in names}
    close = difflib.get_close_matches(word.lower(), spelled, n=1, cutoff=_CLOSE)
    if close:
        return f"Did you mean {spelled[close[0]]!r}?"
    if len(names) > _LISTED:
        return f"None of the {len(names)} names that are known is close to it."
    return f"Known: {', '.join(repr(name) for name in names)}." if names else "None are known."
