"""A run as asked for: checked, and then unchanged.

Everything that decides what a run computes is in a request, and nothing else is: whoever has it can run any of its blocks, anywhere and in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from bismut.arguments import checked
from bismut.engines.engine import Course, Program
from bismut.ensembles.checks import (
    RUN,
    check_final,
    check_looks,
    check_observers,
    check_time,
    chosen_path,
    example_of,
    leading,
)
from bismut.ensembles.desk import portion_of
from bismut.ensembles.observable import Observable, energy
from bismut.ensembles.observers.records import Records
from bismut.ensembles.observers.watcher import Setting, Watcher
from bismut.ensembles.outcome import Failure
from bismut.ensembles.result import Result
from bismut.ensembles.starts import Starting, start_at, starting
from bismut.ensembles.sweep import grid, variants
from bismut.ensembles.task import Chosen, bytes_of, chosen, known, numbers_of, program, settled
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
    done        steps made before, by the run that this one goes on from, and who failed in it
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
    on_failure: str

    def __getstate__(self) -> dict[str, Any]:
        """What decides the computation; not what was derived or compiled from it. The engine is the one that was settled on here."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"mode": self.settle().engine.name}

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
    def chosen(self) -> Chosen:
        """The engine, and what it is given; the same for every variant, since only numbers differ. It is final when it is settled."""
        return chosen(self.mode, self.settings[0], self.example)

    def settle(self) -> Chosen:
        """The engine that runs this, known once its code is compiled; before anybody writes down who it was, or hands blocks to workers."""
        vars(self)["chosen"] = settled(self.chosen)
        return self.chosen

    @cached_property
    def program(self) -> Program:
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
        return tuple(portion_of(bytes_of(row) * self.size) for row in self.chosen.rows)

    @cached_property
    def starting(self) -> tuple[Starting, ...]:
        """Where trajectories begin, for each variant; drawn by the engine that makes the steps."""
        native = self.chosen.engine.name == "native"
        return tuple(starting(start, setting.path, self.batch, self.t0, native) for start, setting in zip(self.starts, self.settings, strict=True))

    @property
    def begins(self) -> float:
        """The time at which watching begins."""
        return self.t0 + self.step * (self.done + self.burn_in)

    def stride(self, watcher: Watcher) -> int:
        return watcher.every or self.every


@checked(**RUN)
def request(
    scheme: Scheme,
    start: Any = None,
    *,
    step: Any = None,
    steps: int,
    trajectories: Any = None,
    seed: Any = None,
    observe: Mapping[str, Callable | Observable | Watcher] | None = None,
    every: int | None = None,
    burn_in: int = 0,
    until: Mapping[str, float] | None = None,
    sweep: Mapping[str, Any] | None = None,
    path: Path | None = None,
    t0: Any = None,
    on_failure: str = "exclude",
    block: int | None = None,
    mode: str = "auto",
    devices: int | None = None,
    keep_final: bool = True,
    first_trajectory: int = 0,
    continue_from: Result | None = None,
) -> Request:
    """A checked request; arguments as for `simulate`."""
    _check_untraced(scheme, start, step, t0, path, seed)
    done = 0
    if continue_from is not None:
        given = {"start": start, "step": step, "trajectories": trajectories, "seed": seed, "path": path, "t0": t0, "sweep": sweep}
        before = _before(continue_from, given, first_trajectory)
        assert continue_from.final is not None
        check_final(scheme, continue_from.final)
        start, trajectories, done = continue_from.final, continue_from.trajectories_run, continue_from.steps_done
        step, path, t0, sweep, first_trajectory = before.step, before.path, before.t0, before.axes, before.first
        block = before.size if block is None else block  # so that the parts of a run are merged as the whole is
    if start is None or step is None:
        raise DomainError("A run needs start and step=, or continue_from= a result to continue from.")
    t0 = 0.0 if t0 is None else t0
    check_time(t0, step, scheme.system.dtype)
    check_observers(observe)
    check_looks(observe, steps)
    if trajectories is None:
        batch = leading(scheme, start) if isinstance(start, State | Maxwell) else ()
        trajectories = batch[0] if batch else 1
    steps, trajectories, burn_in, first = int(steps), int(trajectories), int(burn_in), int(first_trajectory)
    every = -(-steps // 100) if every is None else int(every)
    if burn_in + steps >= 2**30:
        raise DomainError(f"A run has at most 2³⁰ steps, got {burn_in + steps}. Continue with simulate(scheme, continue_from=result, steps=...).")
    if first + trajectories >= 2**63:
        raise DomainError(f"Trajectory numbers are below 2⁶³, got {first + trajectories}.")
    path = chosen_path(seed, path, scheme, step=float(step), steps=done + burn_in + steps, trajectories=first + trajectories)
    axes = grid(sweep)
    schemes = variants(scheme, axes)
    starts, batch = _starts(schemes, start, axes, trajectories, t0, continued=continue_from is not None)
    one = example_of(starts[0], batch)
    watchers = tuple((name, what if isinstance(what, Watcher) else Records(what)) for name, what in (observe or {"energy": energy}).items())
    here = jax.local_device_count()
    devices = here if devices is None else int(devices)
    if devices > here:
        raise DomainError(f"devices = {devices} were requested, but only {here} are available.")
    found = known(mode, Setting(schemes[0], path, watchers), one)
    if found is None:
        watchers = tuple((name, watcher.bound(scheme, name, one)) for name, watcher in watchers)
    settings = tuple(Setting(variant, path, watchers) for variant in schemes)
    found = found or chosen(mode, settings[0], one)
    size = int(block) if block is not None else found.block(trajectories, burn_in + steps)
    made = Request(
        settings=settings,
        starts=starts,
        batch=batch,
        axes=axes,
        step=float(step),
        steps=steps,
        every=every,
        burn_in=burn_in,
        trajectories=trajectories,
        first=first,
        done=done,
        lost=() if continue_from is None else continue_from.outcome.failures,
        t0=float(t0),
        until=_targets(until, watchers),
        size=min(size, trajectories),
        devices=devices,
        keep_final=keep_final,
        mode=mode,
        on_failure=on_failure,
    )
    vars(made).update(example=one, chosen=found)  # what is known already is not looked for again
    return made


def _check_untraced(*values: Any) -> None:
    if nothing_traced() and not traced(values):
        return
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((values, jnp.zeros(()) + 0))):
        raise BismutError(
            "simulate cannot run inside jax.jit, vmap or grad: it looks at numbers while it runs. bm.average is a mean over trajectories that JAX "
            "can transform, and bm.trajectory a whole trajectory."
        )


def _before(result: Result, given: Mapping[str, Any], first: int) -> Request:
    """The request of the run that goes on, which says everything but how far."""
    named = [name for name, value in given.items() if value is not None] + (["first_trajectory"] if first else [])
    if named:
        raise DomainError(f"continue_from takes {', '.join(named)} from the result; omit it here.")
    if result.final is None:
        raise DomainError("continue_from needs the last states of a run, but this one was made with keep_final=False.")
    if not isinstance(result.trajectories_run, int):
        raise DomainError(f"The values of this sweep ended with different numbers of trajectories, {result.trajectories_run}: continue each alone.")
    return result.request


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
    first, batch = start_at(schemes[0], start, t0)
    if batch and batch != (trajectories,):
        raise DomainError(f"start holds {batch} states, but trajectories = {trajectories}. Give one start, or one for each trajectory.")
    return tuple(start_on(variant, start, t0).state for variant in schemes) if axes else (first,), batch
