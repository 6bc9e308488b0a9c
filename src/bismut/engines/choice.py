"""Which engine takes a task, and why."""

import importlib
from typing import NamedTuple

import jax

from bismut.engines.engine import Engine, Task
from bismut.engines.xla import Xla
from bismut.errors import BismutError

MODES = ("auto", "native", "xla")


class Choice(NamedTuple):
    """An engine, and why it was chosen."""

    engine: Engine
    why: str


def choose(mode: str, task: Task, longest: int | None = None) -> Choice:
    """The native engine where it can, XLA elsewhere; or the one that was asked for, with an error if it cannot.

    Steps of more than `longest` operations are left to XLA.
    """
    if mode == "xla":
        return Choice(Xla(), "asked for")
    engine, refusal = _offered(task, longest)
    if engine is not None:
        return Choice(engine, "one machine loop over trajectories")
    if mode == "native":
        raise BismutError(f'mode="native" cannot run this: {refusal}. mode="auto" takes XLA where it has to.')
    return Choice(Xla(), refusal)


def _offered(task: Task, longest: int | None) -> tuple[Engine | None, str]:
    """The native engine, which has looked at the task; or why it cannot take it."""
    if jax.default_backend() != "cpu":
        return None, f"the native engine is one for processors, and JAX computes on {jax.default_backend()}"
    try:
        engine = importlib.import_module("bismut.engines.native.engine").Native(longest=longest)
    except ImportError as problem:
        return None, f"the native engine cannot be loaded: {problem}"
    refusal = engine.refusal(task)
    return (None, refusal) if refusal else (engine, "")
