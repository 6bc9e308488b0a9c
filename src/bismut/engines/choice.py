"""Which engine takes a task, and why."""

import importlib
import logging
from functools import lru_cache
from typing import Any, NamedTuple

import jax

from bismut.engines.engine import Engine, Program, Task, TooLong
from bismut.engines.split import Split, alone, recorded
from bismut.engines.xla import Xla
from bismut.errors import BismutError

log = logging.getLogger(__name__)


class Choice(NamedTuple):
    """An engine, why it was chosen, how many trajectories it advances side by side at least, how many operations a step has, if it knows; and, by
    their places, the watches that XLA computes from recorded states, each with the reason. `instead` says that another engine was preferred."""

    engine: Engine
    why: str
    together: int = 1
    operations: int | None = None
    others: tuple[tuple[int, str], ...] = ()
    instead: bool = False


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
    if not isinstance(offered, TooLong):
        _warn(offered)
    return Choice(Xla(), offered, instead=not isinstance(offered, TooLong))


def native_program(task: Task, longest: int | None = None) -> Program | None:
    """The task as machine code, for those who have another way where there is none."""
    engine = choose("auto", task, longest).engine
    program = compiled(engine, task) if engine.name == "native" else None
    return None if isinstance(program, str) else program


def compiled(engine: Engine, task: Task) -> Program | str:
    """The program of the native engine; or why LLVM cannot make it, in spite of what the engine thought."""
    try:
        return engine.compile(task)
    except Exception as problem:
        reason = f"LLVM could not compile it ({type(problem).__name__}: {problem})"
        _warn(reason)
        return reason


def in_place(why: str) -> str:
    """What a result says where XLA ran what the native engine should have."""
    return f"computed by XLA in place of the native engine, because {why}"


@lru_cache(maxsize=256)
def _warn(why: str) -> None:
    """Once for each reason."""
    log.warning("XLA computes instead of the native engine, which may be many times slower: %s", why)


def _offered(task: Task, longest: int | None, patient: bool) -> Choice | str:
    """The native engine, which has looked at the task; or why it cannot take it."""
    if jax.default_backend() != "cpu":
        return f"the native engine is one for processors, and JAX computes on {jax.default_backend()}"
    try:
        engine = importlib.import_module("bismut.engines.native.engine").Native(longest=longest, patient=patient)
    except ImportError as problem:
        return f"the native engine cannot be loaded: {problem}"
    refused = engine.refusal(task)
    if refused is None:
        return Choice(engine, *engine.manner(task))
    return refused if isinstance(refused, TooLong) else _split(engine, task) or refused


def _split(engine: Any, task: Task) -> Choice | None:
    """Steps by the engine and some watches by XLA; None if it is not for a watch that the engine refuses the task."""
    others = tuple((i, reason) for i, watch in enumerate(task.watches) if (reason := engine.refusal(alone(task, watch))) is not None)
    places = tuple(i for i, _ in others)
    stepped = recorded(task, places)
    if not others or engine.refusal(stepped) is not None:
        return None
    return Choice(Split(engine, places, stepped), *engine.manner(stepped), others=others)
