"""Which engine takes a task, and why."""

import importlib
from typing import NamedTuple

import jax

from bismut.engines.engine import Engine, Task
from bismut.engines.xla import Xla
from bismut.errors import BismutError

MODES = ("auto", "native", "xla")


class Choice(NamedTuple):
    """An engine, why it was chosen, how many trajectories it advances side by side at least, and how many operations a step has, if it knows."""

    engine: Engine
    why: str
    together: int = 1
    operations: int | None = None


def choose(mode: str, task: Task, longest: int | None = None) -> Choice:
    """The native engine where it can, XLA elsewhere; or the one that was asked for, with an error if it cannot.

    Steps of more than `longest` operations are left to XLA.
    """
    if mode == "xla":
        return Choice(Xla(), "asked for")
    offered = _offered(task, longest, patient=mode == "native")
    if isinstance(offered, Choice):
        return offered
    if mode == "native":
        raise BismutError(f'mode="native" cannot run this: {offered}. mode="auto" uses XLA where necessary.')
    return Choice(Xla(), offered)


def _offered(task: Task, longest: int | None, patient: bool) -> Choice | str:
    """The native engine, which has looked at the task; or why it cannot take it."""
    if jax.default_backend() != "cpu":
        return f"the native engine is one for processors, and JAX computes on {jax.default_backend()}"
    try:
        engine = importlib.import_module("bismut.engines.native.engine").Native(longest=longest, patient=patient)
    except ImportError as problem:
        return f"the native engine cannot be loaded: {problem}"
    return engine.refusal(task) or Choice(engine, *engine.manner(task))
