"""What an engine compiles for a run, and programs that were compiled before.

The numbers of a setting (parameters, seed, offsets) are data of the program; its functions are the program. Two settings with the same functions
share one, whatever their numbers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable
from math import prod
from typing import Any, NamedTuple

import jax
import numpy as np

from bismut.compile_cache import Memory, key, split
from bismut.engines.choice import choose, compiled, in_place
from bismut.engines.engine import Engine, Program, Task, Watch
from bismut.engines.xla import Xla
from bismut.ensembles.observers.watcher import Setting, Watcher
from bismut.errors import BismutError
from bismut.flows import kernel
from bismut.mechanics import State
from bismut.programs import largest, trace

log = logging.getLogger(__name__)

_LARGEST = 2**26  # bytes that the largest array of a block may have under XLA
_STATES = 2**22  # bytes that the states of a block may have
BLOCK = 8192  # trajectories of a block at most, so that a large run can be kept and distributed in parts
_WIDTH = 2048  # of them under XLA, whose loops should fit into the cache
_FEW = 32  # blocks that a run has if it is long enough, for as many cores
_WORTH = 2**25  # b blocks are worth it from about 2²⁵ b³ operations on: two of 2 ms, eight of 30 ms, 32 of half a second. Each costs half a ms


class Chosen(NamedTuple):
    """How a setting is run: by what it is known, what was asked for, the engine and why, what XLA computes in its place, the task, the shapes of a
    watcher's memory and rows, how many trajectories make a block at least and at most, and how many operations a step of one has, if that is
    known."""

    key: Hashable
    mode: str
    engine: Engine
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


_CHOSEN, _PROGRAMS = Memory(64), Memory(32)


def numbers_of(setting: Setting) -> Any:
    """What all trajectories of a setting share."""
    return split(setting)[0]


def chosen(mode: str, setting: Setting, one: State) -> Chosen:
    """The engine for a setting, found once for all settings with the same functions."""
    name = (jax.default_backend(), key((setting, one)))
    return _CHOSEN.get((mode, name), lambda: _choose(mode, setting, one, name))


def known(mode: str, setting: Setting, one: State) -> Chosen | None:
    """The same if it was found before; then its watchers were tried before."""
    return _CHOSEN.peek((mode, (jax.default_backend(), key((setting, one)))))


def settled(found: Chosen) -> Chosen:
    """The choice, which is final once the native engine's code is compiled: where LLVM fails in mode "auto" it is XLA, with the reason, for blocks of
    the same size."""
    if found.engine.name != "native" or found.mode != "auto":
        return found
    native = _native(found)
    if not isinstance(native, str):
        return found
    instead = found._replace(engine=Xla(), why=native, note=in_place(native))
    _CHOSEN.put((found.mode, found.key), instead)
    return instead


def program(found: Chosen, size: int) -> Program:
    """The compiled task of a choice that is final. Under XLA it is as wide as a block, rounded up so that blocks of about one size share it."""
    if found.engine.name == "native":
        native = _native(found)
        assert not isinstance(native, str), "a choice is settled before its program is taken"
        return native
    engine = Xla(_rounded(size))
    return _PROGRAMS.get((engine.name, engine.width, found.key), lambda: _timed(engine, lambda: engine.compile(found.task)))


def _native(found: Chosen) -> Program | str:
    """The program of the native engine; or why there is none, where there is another."""
    make = compiled if found.mode == "auto" else lambda engine, task: engine.compile(task)
    return _PROGRAMS.get(("native", found.mode, found.key), lambda: _timed(found.engine, lambda: make(found.engine, found.task)))


def _timed(engine: Engine, make: Callable[[], Any]) -> Any:
    clock = time.perf_counter()
    program = make()
    log.debug("compiled for %s by the %s engine in %.2f s", engine.machine, engine.name, time.perf_counter() - clock)
    return program


def compilations() -> int:
    """How many programs had to be compiled so far."""
    return _PROGRAMS.made


def task_of(setting: Setting, one: State) -> Task:
    numbers, whole = split(setting)
    dtype = setting.scheme.system.dtype

    def draw(trajectory, k, h, numbers):
        scheme = whole(numbers).scheme
        return whole(numbers).path.draw(trajectory, k, scheme.channels, h, dtype, scheme.clipped)

    return Task(
        begin=lambda state, t, numbers: kernel.begin(whole(numbers).scheme, state, t),
        step=lambda carry, dW, h, t, numbers: kernel.step(whole(numbers).scheme, carry, h, dW, t)[0],
        state=lambda carry: carry.state,
        draw=draw,
        per=setting.path.per,
        watches=tuple(_watch(watcher, whole) for _, watcher in setting.watchers),
        example=_shapes(one),
        numbers=_shapes(numbers),
        dtype=np.dtype(dtype),
    )


def _watch(watcher: Watcher, whole) -> Watch:
    # Traced once, whoever asks for shapes or for code.
    return Watch(
        begin=jax.jit(lambda state, t, numbers: watcher.begin(whole(numbers).scheme, state, t)),
        look=jax.jit(lambda memory, state, t, numbers: watcher.look(memory, whole(numbers).scheme, state, t)),
    )


def _choose(mode: str, setting: Setting, one: State, name: Hashable) -> Chosen:
    task = task_of(setting, one)
    engine, why, together, operations, others, instead = choose(mode, task, setting.scheme.longest)
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
    return Chosen(name, mode, engine, why, note, task, memory, rows, together, most, operations)


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


def bytes_of(tree) -> int:
    return sum(prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def _shapes(tree):
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), tree)


def _rounded(size: int) -> int:
    """The next number with three leading bits."""
    unit = 2 ** max(int(size).bit_length() - 3, 0)
    return -(-size // unit) * unit
