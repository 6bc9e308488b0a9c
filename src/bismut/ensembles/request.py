"""The request of a run: checked, and then immutable.

It holds everything that determines what a run computes, and nothing else: any of its blocks can be computed from it, anywhere and in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from bismut.engines.engine import Course, Executable
from bismut.ensembles.checks import (
    check_final,
    check_looks,
    check_observers,
    check_time,
    chosen_path,
    example_of,
    leading,
)
from bismut.ensembles.observable import energy
from bismut.ensembles.observers.records import Records
from bismut.ensembles.observers.watcher import Setting, Watcher
from bismut.ensembles.result import Failure, Result
from bismut.ensembles.row_buffer import portion_of
from bismut.ensembles.starts import Sampler, StartStates, start_at
from bismut.ensembles.sweep import grid, variants
from bismut.ensembles.task import EnginePlan, bytes_of, engine_plan, known_plan, numbers_of, program, settled
from bismut.errors import BismutError, DomainError, nearest
from bismut.mechanics import Maxwell, Scheme, State, start_on
from bismut.noise import Path
from bismut.tracing import nothing_traced, traced


@dataclass(frozen=True, eq=False)
class Request:
    """What a run computes.

    settings    one for each swept combination: scheme, path and watchers
    starts      one for each of them; `batch` says whether it holds a state for each trajectory
    axes        the swept values by name
    first       the number of the first trajectory
    done        steps of the run that this one continues; lost: the failures in it
    size        trajectories of a block
    """

    settings: tuple[Setting, ...]
    starts: tuple[State | Maxwell, ...]
    batch: tuple[int, ...]
    axes: Mapping[str, np.ndarray]
    step: float
    steps: int
    every: int
    burn_in: int
    trajectories: int
    first: int
    done: int
    lost: tuple[Failure, ...]
    t0: float
    until: Mapping[str, float]
    size: int
    devices: int
    keep_final: bool
    mode: str
    arithmetic: str | None
    on_failure: str

    def __getstate__(self) -> dict[str, Any]:
        """The fields, without what was derived or compiled from them. Engine and arithmetic are those that were settled on here."""
        engine = self.settle().engine
        chosen = {"mode": engine.name, "arithmetic": engine.arithmetic if engine.name == "native" else None}
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | chosen

    @property
    def scheme(self) -> Scheme:
        return self.settings[0].scheme

    @property
    def path(self) -> Path:
        return self.settings[0].path

    @property
    def watchers(self) -> tuple[tuple[str, Watcher], ...]:
        return self.settings[0].watchers

    @property
    def variants(self) -> int:
        return len(self.settings)

    @property
    def blocks(self) -> int:
        return -(-self.trajectories // self.size)

    def numbers(self, block: int) -> np.ndarray:
        """The trajectories of a block."""
        first = block * self.size
        return np.arange(self.first + first, self.first + min(first + self.size, self.trajectories), dtype=np.uint64)

    @cached_property
    def example(self) -> State:
        """The shapes of one state."""
        return example_of(self.starts[0], self.batch)

    @cached_property
    def engine_plan(self) -> EnginePlan:
        """The engine and its task; the same for every variant, since only numbers differ. It is final when it is settled."""
        return engine_plan(self.mode, self.settings[0], self.example, self.arithmetic, self.trajectories)

    def settle(self) -> EnginePlan:
        """The engine that runs this, known once its code is compiled; called before it is recorded, and before blocks are sent to workers."""
        vars(self)["engine_plan"] = settled(self.engine_plan)
        return self.engine_plan

    def compile(self) -> None:
        """Derive all that blocks need."""
        _ = self.program, self.shared, self.samplers

    @cached_property
    def program(self) -> Executable:
        """The compiled task, which all blocks of all variants share."""
        return program(self.settle(), self.size)

    @cached_property
    def shared(self) -> tuple:
        """What all trajectories share, for each variant."""
        return tuple(numbers_of(setting) for setting in self.settings)

    @cached_property
    def courses(self) -> tuple[Course, ...]:
        """Step size, beginning and place among the draws, for each variant."""
        return tuple(Course(self.step, self.t0, setting.path.phase) for setting in self.settings)

    @cached_property
    def portions(self) -> tuple[int, ...]:
        """How many looks of a block are handed to each watcher at a time."""
        return tuple(portion_of(bytes_of(row) * self.size) for row in self.engine_plan.rows)

    @cached_property
    def samplers(self) -> tuple[Sampler, ...]:
        """The states in which trajectories begin, for each variant; drawn by the engine that makes the steps."""
        native = self.engine_plan.engine.name == "native"
        pairs = zip(self.starts, self.settings, strict=True)
        return tuple(StartStates(start, self.batch, self.t0).sampler(setting.path, native, self.arithmetic) for start, setting in pairs)

    @property
    def begins(self) -> float:
        """The time at which watching begins."""
        return self.t0 + self.step * (self.done + self.burn_in)

    def stride(self, watcher: Watcher) -> int:
        return watcher.every or self.every


def build(arguments: SimpleNamespace) -> Request:
    """The request of a run; `arguments` are those of `simulate` by name, each checked by itself."""
    scheme, before = arguments.scheme, arguments.continue_from
    if arguments.mode == "xla" and arguments.arithmetic is not None:
        raise DomainError(
            f'arithmetic="{arguments.arithmetic}" is about the native engine; XLA, which mode="xla" asks for, rounds as it compiles. '
            'Leave out one of the two: mode="auto" or "native" has this arithmetic.'
        )
    _check_untraced(scheme, arguments.start, arguments.step, arguments.t0, arguments.path, arguments.seed)
    if before is not None:
        _take_from(before, arguments)
    if arguments.start is None or arguments.step is None:
        raise DomainError("A run needs start and step=, or continue_from= a result to continue from.")
    start, t0 = arguments.start, 0.0 if arguments.t0 is None else arguments.t0
    check_time(t0, arguments.step, scheme.system.dtype)
    check_observers(arguments.observe)
    check_looks(arguments.observe, arguments.steps)
    if arguments.trajectories is None:
        batch = leading(scheme, start) if isinstance(start, State | Maxwell) else ()
        arguments.trajectories = batch[0] if batch else 1
    steps, trajectories, burn_in, first = int(arguments.steps), int(arguments.trajectories), int(arguments.burn_in), int(arguments.first_trajectory)
    done = 0 if before is None else before.steps_done
    if burn_in + steps >= 2**30:
        raise DomainError(f"A run has at most 2³⁰ steps, got {burn_in + steps}. Continue with simulate(scheme, continue_from=result, steps=...).")
    if first + trajectories >= 2**63:
        raise DomainError(f"Trajectory numbers are below 2⁶³, got {first + trajectories}.")
    step = float(arguments.step)
    path = chosen_path(arguments.seed, arguments.path, scheme, step=step, steps=done + burn_in + steps, trajectories=first + trajectories)
    axes = grid(arguments.sweep)
    schemes = variants(scheme, axes)
    starts, batch = _starts(schemes, start, axes, trajectories, t0, continued=before is not None)
    one = example_of(starts[0], batch)
    watchers = tuple((name, what if isinstance(what, Watcher) else Records(what)) for name, what in (arguments.observe or {"energy": energy}).items())
    here = jax.local_device_count()
    devices = here if arguments.devices is None else int(arguments.devices)
    if devices > here:
        raise DomainError(f"devices = {devices} were requested, but only {here} are available.")
    plan = known_plan(arguments.mode, Setting(schemes[0], path, watchers), one, arguments.arithmetic, trajectories)
    if plan is None:
        watchers = tuple((name, watcher.bound(scheme, name, one)) for name, watcher in watchers)
    settings = tuple(Setting(variant, path, watchers) for variant in schemes)
    plan = plan or engine_plan(arguments.mode, settings[0], one, arguments.arithmetic, trajectories)
    size = int(arguments.block) if arguments.block is not None else plan.block(trajectories, burn_in + steps)
    request = Request(
        settings=settings,
        starts=starts,
        batch=batch,
        axes=axes,
        step=step,
        steps=steps,
        every=-(-steps // 100) if arguments.every is None else int(arguments.every),
        burn_in=burn_in,
        trajectories=trajectories,
        first=first,
        done=done,
        lost=() if before is None else before.outcome.failures,
        t0=float(t0),
        until=_targets(arguments.until, watchers),
        size=min(size, trajectories),
        devices=devices,
        keep_final=arguments.keep_final,
        mode=arguments.mode,
        arithmetic=arguments.arithmetic,
        on_failure=arguments.on_failure,
    )
    vars(request).update(example=one, engine_plan=plan)  # computed above
    return request


def _take_from(before: Result, arguments: SimpleNamespace) -> None:
    """The arguments of a run that continues another: all but how far it goes are those of the first."""
    named = [name for name in ("start", "step", "trajectories", "seed", "path", "t0", "sweep") if getattr(arguments, name) is not None]
    named += ["first_trajectory"] if arguments.first_trajectory else []
    if named:
        raise DomainError(f"continue_from takes {', '.join(named)} from the result; omit it here.")
    if before.final is None:
        raise DomainError("continue_from needs the last states of a run, but this one was made with keep_final=False.")
    if not isinstance(before.trajectories_run, int):
        raise DomainError(f"The values of this sweep ended with different numbers of trajectories, {before.trajectories_run}: continue each alone.")
    check_final(arguments.scheme, before.final)
    request: Request = before.request
    arguments.start, arguments.trajectories = before.final, before.trajectories_run
    arguments.step, arguments.path, arguments.t0, arguments.sweep, arguments.first_trajectory = (
        request.step,
        request.path,
        request.t0,
        request.axes,
        request.first,
    )
    arguments.arithmetic = request.arithmetic if arguments.arithmetic is None else arguments.arithmetic
    arguments.block = request.size if arguments.block is None else arguments.block  # so that the parts of a run are merged as the whole is


def _check_untraced(*values: Any) -> None:
    if nothing_traced() and not traced(values):
        return
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((values, jnp.zeros(()) + 0))):
        raise BismutError(
            "simulate cannot run inside jax.jit, vmap or grad: it looks at numbers while it runs. bm.average is a mean over trajectories that JAX "
            "can transform, and bm.trajectory a whole trajectory."
        )


def _targets(until: Mapping[str, float] | None, watchers: tuple[tuple[str, Watcher], ...]) -> dict[str, float]:
    known = dict(watchers)
    for name in until or {}:
        if name not in known:
            raise DomainError(f"until names {name!r}, which is not observed. {nearest(name, known)}")
        if not known[name].has_error:
            raise DomainError(
                f"until names {name!r}, but {known[name]} has no standard error. A function of a State, time_average and Observer have one."
            )
    return dict(until or {})


def _starts(schemes: list[Scheme], start: Any, axes: Mapping[str, Any], trajectories: int, t0, continued: bool) -> tuple[tuple, tuple[int, ...]]:
    """The start of each variant, and the batch axis of all of them."""
    if continued and axes:
        flat = jax.tree.map(lambda leaf: np.reshape(leaf, (-1, *np.shape(leaf)[len(axes) :])), start)
        starts = tuple(jax.tree.map(lambda leaf, i=i: leaf[i], flat) for i in range(len(schemes)))
        return starts, (trajectories,)
    if continued:
        return (start,), (trajectories,)
    first, batch, _ = start_at(schemes[0], start, t0)
    if batch and batch != (trajectories,):
        raise DomainError(f"start holds {batch} states, but trajectories = {trajectories}. Give one start, or one for each trajectory.")
    return tuple(start_on(variant, start, t0).state for variant in schemes) if axes else (first,), batch
