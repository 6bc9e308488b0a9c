"""Functions evaluated once, here and now, without compiling."""

from bismut.host.evaluating import at_once, evaluate, repeated

__all__ = ["at_once", "evaluate", "repeated"]
