"""What an engine compiles for a run, and the one cache of what engines compiled.

    shared = (scheme, path, ...)  =  numbers  +  functions;        the functions are the program, the numbers are its data

Two runs with the same functions share a program, whatever their parameters, seeds and offsets.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable
from math import prod
from typing import Any, NamedTuple

import jax
import numpy as np

from bismut.compile_cache import LRUCache, partition, program_key
from bismut.engines.choice import choose, compiled, in_place, native_program
from bismut.engines.engine import Engine, Executable, Lowered, Refusal, Task, Watch
from bismut.engines.xla import Xla
from bismut.ensembles.observers.watcher import Setting
from bismut.errors import BismutError
from bismut.flows import kernel
from bismut.mechanics import State
from bismut.noise import Path
from bismut.programs import largest, trace

log = logging.getLogger(__name__)

_LARGEST = 2**26  # bytes that the largest array of a block may have under XLA
_STATES = 2**22  # bytes that the states of a block may have
BLOCK = 8192  # trajectories of a block at most, so that a large run can be stored and distributed in parts
_WIDTH = 2048  # of them under XLA, whose loops should fit into the cache
_FEW = 32  # blocks that a run has if it is long enough, for as many cores
_NARROW = 4  # trajectories for which code is as narrow as they are few
_WORTH = 2**25  # b blocks are worth it from about 2²⁵ b³ operations on: two of 2 ms, eight of 30 ms, 32 of half a second. Each costs half a ms

_PLANS, _PROGRAMS = LRUCache(64), LRUCache(96)


def build_task(
    shared: Any,
    example: Any,
    dtype: Any,
    *,
    draw: Callable,
    per: int = 1,
    begin: Callable = lambda state, t, shared: kernel.begin(shared[0], state, t),
    step: Callable = lambda carry, dW, h, t, shared: kernel.step(shared[0], carry, h, dW, t)[0],
    state: Callable = lambda carry: carry.state,
    watches: tuple[Watch, ...] = (),
) -> Task:
    """The task of functions whose last argument is `shared`: what all trajectories share, by default with the scheme as its first item."""
    numbers, combine = partition(shared)

    def of_numbers(function: Callable) -> Callable:
        return lambda *arguments: function(*arguments[:-1], combine(arguments[-1]))

    return Task(
        begin=of_numbers(begin),
        step=of_numbers(step),
        state=state,
        draw=of_numbers(draw),
        per=per,
        watches=tuple(Watch(*(jax.jit(of_numbers(function)) for function in watch)) for watch in watches),  # traced once, for shapes and for code
        example=shapes_of(example),
        numbers=shapes_of(numbers),
        dtype=np.dtype(dtype),
    )


def increments_of(path: Path, dtype: Any) -> dict[str, Any]:
    """The draws of a task with shared = (scheme, path, ...)."""
    return {
        "draw": lambda trajectory, k, h, shared: shared[1].draw(trajectory, k, shared[0].channels, h, dtype, shared[0].path_channels),
        "per": path.per,
    }


def native(
    kind: str,
    shared: Any,
    example: Any,
    make: Callable[[], Task],
    longest: int | None = None,
    mode: str = "auto",
    arithmetic: str | None = None,
    few: bool = False,
) -> Executable | None:
    """The native program of a task, from the cache if one of its `kind` has the same functions; None in mode "auto" if only XLA can compile it."""
    name = (kind, mode, arithmetic, few, jax.default_backend(), program_key((shared, example)))
    task_program = lambda task: (
        choose("native", task, arithmetic=arithmetic, few=few).compile() if mode == "native" else native_program(task, longest, arithmetic, few)
    )
    return _PROGRAMS.get(name, lambda: task_program(make()))


def native_or_xla(kind: str, shared: Any, example: Any, make: Callable[[], Task], width: int) -> tuple[Executable, str]:
    """The program of a task and the name of its engine, from the cache: the native one, or else that of XLA for so many trajectories at a time."""
    program = native(kind, shared, example, make)
    if program is not None:
        return program, "native"
    name = ("xla", width, kind, jax.default_backend(), program_key((shared, example)))
    return _PROGRAMS.get(name, lambda: Xla(width).lower(make()).compile()), "xla"


def compilations() -> int:
    """How many programs had to be compiled so far."""
    return _PROGRAMS.misses


class EnginePlan(NamedTuple):
    """How a setting is run.

    key         of its functions
    mode        that was asked for
    engine      and why it was chosen; note: what XLA computes in its place
    lowered     the task as the engine took it
    task        that it compiles
    memory      the shapes of each watcher's memory; rows: of its rows
    together    trajectories of a block at least; most: at most
    operations  of a step of one trajectory, if known
    """

    key: Hashable
    mode: str
    engine: Engine
    lowered: Lowered
    why: str
    note: str
    task: Task
    memory: tuple
    rows: tuple
    together: int
    most: int
    operations: int | None

    def block(self, trajectories: int, steps: int) -> int:
        """The size of the blocks of a run: up to 32 of them if there is work enough, whatever the number of cores."""
        fewest = -(-trajectories // self.most)
        if fewest >= _FEW:
            return self.most
        worth = max(trajectories * steps * (self.operations or 0) / _WORTH, 1) ** (1 / 3)
        blocks = max(fewest, 2 ** round(np.log2(min(worth, _FEW))))
        blocks = 4 * -(-blocks // 4) if blocks > 2 else blocks  # few are a multiple of four, so that none is left over
        return self.together * -(-trajectories // (blocks * self.together))


def numbers_of(setting: Setting) -> Any:
    """The arrays that all trajectories of a setting share."""
    return partition(setting)[0]


def engine_plan(mode: str, setting: Setting, one: State, arithmetic: str | None = None, trajectories: int | None = None) -> EnginePlan:
    """The engine for a setting, chosen once for all settings with the same functions, and anew for few trajectories."""
    name, few = _key(setting, one, arithmetic, trajectories), _are_few(trajectories)
    return _PLANS.get((mode, name), lambda: _choose(mode, setting, one, name, arithmetic, few))


def known_plan(mode: str, setting: Setting, one: State, arithmetic: str | None = None, trajectories: int | None = None) -> EnginePlan | None:
    """The same if it was chosen before; then its watchers were checked before."""
    return _PLANS.peek((mode, _key(setting, one, arithmetic, trajectories)))


def _are_few(trajectories: int | None) -> bool:
    return trajectories is not None and trajectories <= _NARROW


def _key(setting: Setting, one: State, arithmetic: str | None, trajectories: int | None) -> Hashable:
    return jax.default_backend(), arithmetic, _are_few(trajectories), program_key((setting, one))


def settled(plan: EnginePlan) -> EnginePlan:
    """The plan that is final because the native engine's code is compiled: where LLVM fails in mode "auto" it is XLA, with the reason, for blocks of
    the same size."""
    if plan.engine.name != "native" or plan.mode != "auto":
        return plan
    refusal = _native_program(plan)
    if not isinstance(refusal, Refusal):
        return plan
    instead = plan._replace(engine=Xla(), lowered=Xla().lower(plan.task), why=refusal.text, note=in_place(refusal.text))
    _PLANS.put((plan.mode, plan.key), instead)
    return instead


def program(plan: EnginePlan, size: int) -> Executable:
    """The compiled task of a plan that is final. Under XLA it is as wide as a block, rounded up so that blocks of about one size share it."""
    if plan.engine.name == "native":
        executable = _native_program(plan)
        assert not isinstance(executable, Refusal), "a plan is settled before its program is used"
        return executable
    engine = Xla(_rounded(size))
    return _PROGRAMS.get((engine.name, engine.width, plan.key), lambda: _timed(engine, engine.lower(plan.task).compile))


def _native_program(plan: EnginePlan) -> Executable | Refusal:
    """The program of the native engine; or, in mode "auto", why there is none."""
    make = (lambda: compiled(plan.lowered)) if plan.mode == "auto" else plan.lowered.compile
    return _PROGRAMS.get(("native", plan.mode, plan.key), lambda: _timed(plan.engine, make))


def _timed(engine: Engine, make: Callable[[], Any]) -> Any:
    clock = time.perf_counter()
    program = make()
    log.debug("compiled for %s by the %s engine in %.2f s", engine.machine, engine.name, time.perf_counter() - clock)
    return program


def _choose(mode: str, setting: Setting, one: State, name: Hashable, arithmetic: str | None, few: bool) -> EnginePlan:
    watches = tuple(
        Watch(
            begin=lambda state, t, shared, watcher=watcher: watcher.begin(shared.scheme, state, t),
            look=lambda memory, state, t, shared, watcher=watcher: watcher.look(memory, shared.scheme, state, t),
        )
        for _, watcher in setting.watchers
    )
    dtype = setting.scheme.system.dtype
    task = build_task(setting, one, dtype, **increments_of(setting.path, dtype), watches=watches)
    lowered = choose(mode, task, setting.scheme.max_native_ops, arithmetic, few)
    engine, _, why, together, operations, others, instead = lowered
    reasons = {reason: [setting.watchers[i][0] for i, other in others if other == reason] for _, reason in others}
    observers = "; ".join(f"{', '.join(names)} computed by XLA from recorded states, because {reason}" for reason, names in reasons.items())
    note = in_place(why) if instead else observers
    why = f"{why}; {observers}" if observers else why
    log.debug("%s on %s: the %s engine, %s", setting.scheme.title, setting.scheme.space, engine.name, why)
    t = jax.ShapeDtypeStruct((), task.dtype)
    memory = tuple(jax.eval_shape(watch.begin, task.example, t, task.numbers) for watch in task.watches)
    rows = tuple(jax.eval_shape(w.look, m, task.example, t, task.numbers)[1] for w, m in zip(task.watches, memory, strict=True))
    largest = bytes_of(task.example) * (_LARGEST // _STATES)
    if isinstance(engine, Xla):
        task = task._replace(step=jax.jit(task.step))  # traced here once, and known when it is compiled
        largest = max(largest, _largest(task))
    # Where one trajectory has all lanes, it is a block of its own, so that few of them keep all cores busy.
    most = _WIDTH if isinstance(engine, Xla) else BLOCK if together > 1 else 1
    most = int(max(together, min(most, 2 ** int(np.log2(max(_LARGEST / largest, 1))))))
    return EnginePlan(name, mode, engine, lowered, why, note, task, memory, rows, together, most, operations)


def _largest(task: Task) -> int:
    """Bytes of the largest array that a step of one trajectory makes."""
    t = jax.ShapeDtypeStruct((), task.dtype)
    carry = jax.eval_shape(task.begin, task.example, t, task.numbers)
    word = jax.ShapeDtypeStruct((), np.uint32)
    dW = jax.eval_shape(task.draw, (word, word), (word, word), t, task.numbers)
    try:
        return largest(trace(task.step, carry, jax.ShapeDtypeStruct(dW.shape[1:], dW.dtype), t, t, task.numbers).program)
    except BismutError:  # it tells the user what to change
        raise
    except Exception:  # XLA may know more than we can read
        return max(bytes_of(carry), 1)


def bytes_of(tree: Any) -> int:
    return sum(prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def shapes_of(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), tree)


def _rounded(size: int) -> int:
    """The next number with three leading bits."""
    unit = 2 ** max(int(size).bit_length() - 3, 0)
    return -(-size // unit) * unit
