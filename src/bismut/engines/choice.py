"""Which engine takes a task, and why."""

import importlib
import logging
from functools import lru_cache

import jax

from bismut.engines.engine import Engine, Executable, Lowered, Refusal, Task
from bismut.engines.split import SplitProgram, alone, recorded
from bismut.engines.xla import Xla
from bismut.errors import BismutError

log = logging.getLogger(__name__)


def choose(mode: str, task: Task, longest: int | None = None, arithmetic: str | None = None, few: bool = False) -> Lowered:
    """The task lowered by the native engine where it can, by XLA elsewhere; or by the one that was asked for, with an error if it cannot.

    Steps of more than `longest` operations are left to XLA, whose arithmetic is its own. For `few` trajectories code is narrow: bits do not depend on
    the width, only how fast one trajectory is.
    """
    xla = Xla().lower(task)
    if mode == "xla":
        return xla
    offered = _offered(task, longest, arithmetic, few, patient=mode == "native")
    if isinstance(offered, Lowered):
        return offered
    if mode == "native":
        raise BismutError(f'mode="native" cannot run this: {offered.text}. mode="auto" uses XLA where necessary.')
    if not offered.preferred:
        _warn(offered.text)
    return xla._replace(why=offered.text, instead=not offered.preferred)


def native_program(task: Task, longest: int | None = None, arithmetic: str | None = None, few: bool = False) -> Executable | None:
    """The task as machine code; None where there is none and the caller has another way."""
    lowered = choose("auto", task, longest, arithmetic, few)
    program = compiled(lowered) if lowered.engine.name == "native" else None
    return None if isinstance(program, Refusal) else program


def compiled(lowered: Lowered) -> Executable | Refusal:
    """The program of the native engine; or why LLVM cannot make it, although the engine took the task."""
    try:
        return lowered.compile()
    except Exception as problem:
        refusal = Refusal(f"LLVM could not compile it ({type(problem).__name__}: {problem})")
        _warn(refusal.text)
        return refusal


def in_place(why: str) -> str:
    """What a result says where XLA ran what the native engine should have."""
    return f"computed by XLA in place of the native engine, because {why}"


@lru_cache(maxsize=256)
def _warn(why: str) -> None:
    """Once for each reason."""
    log.warning("XLA computes instead of the native engine, which may be many times slower: %s", why)


def _offered(task: Task, longest: int | None, arithmetic: str | None, few: bool, patient: bool) -> Lowered | Refusal:
    """The task lowered by the native engine, if need be without some watches."""
    if jax.default_backend() != "cpu":
        return Refusal(f"the native engine is one for processors, and JAX computes on {jax.default_backend()}")
    try:
        native = importlib.import_module("bismut.engines.native.engine")
    except ImportError as problem:
        return Refusal(f"the native engine cannot be loaded: {problem}")
    engine = native.Native(native.FEW if few else None, longest=longest, patient=patient, arithmetic=arithmetic)
    offered = engine.lower(task)
    return _split(engine, task, offered) or offered if isinstance(offered, Refusal) and not offered.preferred else offered


def _split(engine: Engine, task: Task, refusal: Refusal) -> Lowered | None:
    """Steps by the engine and some watches by XLA: those that it refuses, or all where the task is too long only together with them. None if it is
    not for watches that the engine refuses the task."""
    answers = {i: engine.lower(alone(task, watch)) for i, watch in enumerate(task.watches)}
    refused = tuple((i, answer.text) for i, answer in answers.items() if isinstance(answer, Refusal))
    if not refused and refusal.together:
        refused = tuple((i, refusal.text) for i in answers)
    positions = tuple(i for i, _ in refused)
    stepped = engine.lower(recorded(task, positions)) if refused else None
    if not isinstance(stepped, Lowered):
        return None
    return stepped._replace(compile=lambda: SplitProgram(stepped.compile(), task, positions), observers=refused)
